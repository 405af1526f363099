// The Operators window: what is compiled one by one is listed, run, timed, compared and deleted.
#include "ui/windows/operators_window.h"

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTableView>

#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/windows/cache_window.h"
#include "ui/windows/operator_dialog.h"

using namespace cutaway;
using namespace cutaway::ui;

class OperatorsWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    OperatorsWindow& window() { return m_main->get<OperatorsWindow>(); }
    QTableView& table() { return *window().findChild<QTableView*>(); }
    QString cell(int row, int column) { return table().model()->index(row, column).data().toString(); }
    QString said() { return window().findChild<QLabel*>()->text(); }
    void click(const QString& text) { QTest::mouseClick(buttonOf(window(), text), Qt::LeftButton); }
    void ended() { QTRY_VERIFY_WITH_TIMEOUT(!window().activity(), testing::kEnginePatience); }
    /// Through the dialog, as the menu opens it.
    void compile(const QString& op, const QString& arguments) {
        for (QAction* action : m_main->findChildren<QAction*>())
            if (action->text().remove('&') == "Compile One Operator…") action->trigger();
        auto* dialog = window().findChild<OperatorDialog*>();
        QVERIFY(dialog);
        dialog->findChild<QLineEdit*>()->setText(op);
        dialog->findChild<QPlainTextEdit*>()->setPlainText(arguments);
        dialog->accept();
        ended();
    }

  private slots:
    void initTestCase() {
        prepareSettings();
        qputenv("XDG_CACHE_HOME", m_folder.filePath("cache").toUtf8());
    }
    void init() {
        showWindow({1100, 800});
        m_main->raiseWindow(&window());
    }
    void cleanup() { m_main.reset(); }

    /// From nothing to an entry that was run, timed, compared, found by the next window, and deleted.
    void anEntryFromItsBeginToItsEnd() {
        new QAbstractItemModelTester(table().model(), QAbstractItemModelTester::FailureReportingMode::QtTest,
                                     &window());
        QTRY_VERIFY_WITH_TIMEOUT(said().contains("found by the next program"), testing::kEnginePatience);
        for (const char* name : {"Run", "Time", "Compare", "Delete"}) QVERIFY(!buttonOf(window(), name)->isEnabled());
        compile("aten::add.Tensor", "f32[2, 3]\nf32[3]\n\nalpha=2\n");
        QVERIFY2(said().contains("aten::add.Tensor is compiled, in "), qPrintable(said()));
        QTRY_COMPARE_WITH_TIMEOUT(table().model()->rowCount(), 1, testing::kEnginePatience);
        QCOMPARE(cell(0, OperatorsModel::Operator), "aten::add.Tensor");
        QCOMPARE(cell(0, OperatorsModel::Inputs), "f32[2, 3], f32[3], 2");
        QCOMPARE(cell(0, OperatorsModel::Device), "cpu");
        QCOMPARE(cell(0, OperatorsModel::Hits), "0");
        QVERIFY(cell(0, OperatorsModel::Size).endsWith("KiB") && !cell(0, OperatorsModel::LastUse).isEmpty());
        QTRY_VERIFY_WITH_TIMEOUT(buttonOf(window(), "Run")->isEnabled(), testing::kEnginePatience);
        picture("operators");
        click("Run");
        ended();
        QVERIFY2(said().startsWith("result: f32[2, 3], "), qPrintable(said()));
        click("Time");
        ended();
        QVERIFY2(said().contains("of 100 runs."), qPrintable(said()));
        click("Compare");
        ended();
        QVERIFY2(said().contains("as the interpreter has it (largest error 0)"), qPrintable(said()));
        compile("aten::add.Tensor", "f32[2, 3]\nf32[3]\nalpha=2");
        QVERIFY2(said().contains("was in the cache."), qPrintable(said()));
        QTRY_COMPARE_WITH_TIMEOUT(cell(0, OperatorsModel::Hits), "1", testing::kEnginePatience);
        cleanup();
        init();
        QTRY_COMPARE_WITH_TIMEOUT(table().model()->rowCount(), 1, testing::kEnginePatience);
        table().selectRow(0);
        QTest::keyClick(&table(), Qt::Key_Delete);
        ended();
        QVERIFY2(said().contains("aten::add.Tensor(f32[2, 3], f32[3], 2) is deleted."), qPrintable(said()));
        QTRY_COMPARE_WITH_TIMEOUT(table().model()->rowCount(), 0, testing::kEnginePatience);
    }

    void whatIsRefusedIsSaid() {
        compile("aten::sum.dim_IntList", "f32[2, 3]\n[0]");
        QVERIFY2(said().contains("_impl_with_aoti_compile encounters unsupported input types: [f32[2, 3], [0]]"),
                 qPrintable(said()));
        QCOMPARE(table().model()->rowCount(), 0);
    }

    /// The Cache window beside it: what runs have kept, checked and deleted.
    void theCacheOfGraphs() {
        QFile file(m_folder.filePath("graph.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("def forward(x: \"f32[3, 4]\"):\n    a = aten.relu.default(x)\n    return (a,)\n");
        file.close();
        for (const bool freeze : {false, true}) {
            Session session;
            QVERIFY(session.open(file.fileName().toStdString()));
            CompileRequest request;
            request.freeze = freeze;
            CacheUse use;
            QVERIFY(compileToRun(session, request, {}, use));
        }
        CacheWindow& cache = m_main->get<CacheWindow>();
        QTableView& list = *cache.findChild<QTableView*>();
        const auto state = [&] { return cache.findChild<QLabel*>()->text(); };
        m_main->raiseWindow(&cache);
        new QAbstractItemModelTester(list.model(), QAbstractItemModelTester::FailureReportingMode::QtTest, &cache);
        QTRY_COMPARE_WITH_TIMEOUT(list.model()->rowCount(), 2, testing::kEnginePatience);
        QVERIFY2(state().startsWith("2 compiled graphs, ") && state().contains("of 2.0 GiB"), qPrintable(state()));
        QStringList options;
        for (int row = 0; row < 2; ++row) {
            QCOMPARE(list.model()->index(row, CachedGraphsModel::Model).data().toString(), "graph.py");
            options << list.model()->index(row, CachedGraphsModel::Options).data().toString();
        }
        options.sort();
        QCOMPARE(options, (QStringList{"", "--freeze"}));
        picture("cache");
        QTest::mouseClick(buttonOf(cache, "Verify"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(state().contains("Every byte is as it was written."), testing::kEnginePatience);
        list.setFocus();
        list.selectRow(0);
        QTest::keyClick(&list, Qt::Key_Delete);
        QTRY_COMPARE_WITH_TIMEOUT(list.model()->rowCount(), 1, testing::kEnginePatience);
        QTest::mouseClick(buttonOf(cache, "Delete All"), Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(list.model()->rowCount(), 0, testing::kEnginePatience);
        QVERIFY(!buttonOf(cache, "Delete All")->isEnabled() && state().startsWith("0 compiled graphs"));
    }

    void stops() {
        OperatorOptions options;
        options.op = "aten::exp";
        options.arguments = {"f32[7]"};
        window().compile(options);
        QVERIFY(window().activity() && window().activity()->doing == "Compiling aten::exp");
        QVERIFY(!buttonOf(window(), "Compile")->isEnabled());
        window().stopActivity();
        QVERIFY(!window().activity() && said() == "Stopped.");
        QTRY_VERIFY_WITH_TIMEOUT(buttonOf(window(), "Compile")->isEnabled(), testing::kEnginePatience);
    }
};

CUTAWAY_SUITE(OperatorsWindowTest)
#include "operators_window_test.moc"
