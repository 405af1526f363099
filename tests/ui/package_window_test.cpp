// The Package window: a package of AOTInductor is opened, its sources are read, and its calls are laid beside a run's.
#include "ui/windows/package_window.h"

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPlainTextEdit>
#include <QTableView>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"

using namespace cutaway;
using namespace cutaway::ui;

class PackageWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    PackageWindow& window() { return m_main->get<PackageWindow>(); }
    QTableView& table() { return *window().findChild<QTableView*>(); }
    QString cell(int row, int column) { return table().model()->index(row, column).data().toString(); }
    QString said() { return window().findChild<QLabel*>()->text(); }
    QString code(const QString& name) {
        for (const auto* view : window().findChildren<QPlainTextEdit*>())
            if (view->accessibleName() == name) return view->toPlainText();
        return QStringLiteral("no such view");
    }
    int rowOf(const QString& name) {
        for (int row = 0; row < table().model()->rowCount(); ++row)
            if (cell(row, PackageModel::Name).endsWith(name)) return row;
        return -1;
    }
    /// With the mouse, as people do.
    void choose(const QString& name) {
        const QModelIndex at = table().model()->index(rowOf(name), PackageModel::Name);
        QVERIFY2(at.isValid(), qPrintable(name));
        table().scrollTo(at);
        QTest::mouseClick(table().viewport(), Qt::LeftButton, {}, table().visualRect(at).center());
    }
    static QString file(const QString& name) { return testing::testFile("data/packages/" + name); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() {
        showWindow({1280, 720});
        m_main->raiseWindow(&window());
    }
    void cleanup() { m_main.reset(); }

    void opensAndReads() {
        new QAbstractItemModelTester(table().model(), QAbstractItemModelTester::FailureReportingMode::QtTest,
                                     &window());
        QVERIFY(!buttonOf(window(), "Compare")->isEnabled());
        // As File > Open, a dropped file and the command line do.
        m_main->open(file("2.15.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(said().startsWith("2.15.pt2 · 10 files · 1 model"), testing::kEnginePatience);
        QVERIFY(!controller().model());
        QCOMPARE(cell(0, PackageModel::Name), "aoti_torch_cpu_addmm_out");
        QCOMPARE(cell(1, PackageModel::What), "kernel");
        QVERIFY(!buttonOf(window(), "Compare")->isEnabled());
        choose("cpp_fused__softmax_masked_fill_mul_1");
        QVERIFY(code("The package's source").startsWith("extern \"C\"  void  cpp_fused__softmax_masked_fill_mul_1("));
        choose(".wrapper.cpp");
        QTRY_VERIFY_WITH_TIMEOUT(code("The package's source").contains("AOTInductorModel::run_impl"),
                                 testing::kEnginePatience);
        choose("norm.weight");
        QTRY_VERIFY_WITH_TIMEOUT(code("The package's source").startsWith("norm.weight: f32[24], from 1 to 1, mean 1\n"),
                                 testing::kEnginePatience);
        QCOMPARE(cell(rowOf("out_spec"), PackageModel::What), "nesting");
        choose(".wrapper.so");
        QTRY_VERIFY_WITH_TIMEOUT(code("The package's source").contains("it is not text"), testing::kEnginePatience);
        picture("package");
        // What is none leaves the package on show.
        window().open(file("model.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(said().contains("it is not a package of AOTInductor"), testing::kEnginePatience);
        QVERIFY(rowOf(".wrapper.cpp") >= 0);
    }

    void laysOursBeside() {
        m_main->open(file("model.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model(), testing::kEnginePatience);
        controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && !controller().isBusy(), testing::kEnginePatience);
        m_main->open(file("2.11.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(said().startsWith("2.11.pt2"), testing::kEnginePatience);
        QVERIFY(controller().model());  // what was open stays open
        QTRY_VERIFY_WITH_TIMEOUT(buttonOf(window(), "Compare")->isEnabled(), testing::kEnginePatience);
        QTest::mouseClick(buttonOf(window(), "Compare"), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(said(), "4 of 4 calls have one of ours that computes the same",
                                  testing::kEnginePatience);
        choose("cpp_fused_amax_gelu_native_layer_norm_0");
        const int row = table().selectionModel()->selectedRows().value(0).row();
        QCOMPARE(cell(row, PackageModel::Ours), "kernel0");
        QCOMPARE(cell(row, PackageModel::Match), "same");
        QVERIFY(code("The package's source").contains("welford_combine"));
        QVERIFY2(code("Our source").endsWith("// both compute amax, gelu, layer_norm, with the same results"),
                 qPrintable(code("Our source").right(200)));
        QVERIFY(code("Our source").contains("for ("));
        picture("package-beside", 500);
    }
};

CUTAWAY_SUITE(PackageWindowTest)
#include "package_window_test.moc"
