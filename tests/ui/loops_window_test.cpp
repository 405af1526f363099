// The Loops window on the engine itself: kernels in all their forms, plans that are edited, checked and run.
#include "ui/windows/loops_window.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/session/source.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

class LoopsWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    LoopQuery& query() { return controller().loopQuery(); }
    LoopsWindow& window() { return m_main->get<LoopsWindow>(); }
    QTableView* table() { return window().findChild<QTableView*>(); }
    QString label(const char* name) { return window().findChild<QLabel*>(name)->text(); }
    QPushButton* button(const QString& start) { return buttonOf(window(), start); }
    QPlainTextEdit* area(const QString& name) {
        for (auto* found : window().findChildren<QPlainTextEdit*>())
            if (found->accessibleName() == name) return found;
        return nullptr;
    }
    QString text(const QString& name) { return area(name)->toPlainText(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience); }
    void open(const QString& model) {
        m_main->open(testing::testFile("../resources/models/" + model + ".pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        m_main->raiseWindow(&window());
        QTRY_VERIFY_WITH_TIMEOUT(query().forms() != nullptr, testing::kEnginePatience);
    }
    /// The row of a kernel of this kind.
    int rowOf(const std::string& kind) {
        for (size_t i = 0; i < query().kernels().size(); ++i)
            if (query().kernels()[i].kind == kind) return static_cast<int>(i);
        return -1;
    }
    void choose(int row) {
        QVERIFY(row >= 0);
        table()->selectRow(row);
        QTRY_VERIFY_WITH_TIMEOUT(query().forms() && !text("Kernel").isEmpty(), testing::kEnginePatience);
        QTRY_VERIFY_WITH_TIMEOUT(
            text("Kernel").startsWith(QString::fromStdString(query().kernels()[static_cast<size_t>(row)].name)),
            testing::kEnginePatience);
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    void theModelIsATable() {
        LoopsModel model;
        const QAbstractItemModelTester tester(&model);
        LoopKernel first, second;
        first.name = "kernel0";
        first.nodes = {static_cast<NodeKey>(3), static_cast<NodeKey>(5)};
        first.nodeNames = {"a", "b"};
        first.calls = 2;
        second.name = "kernel1";
        second.microseconds = 1500;
        model.setKernels({first, second});
        QCOMPARE(model.rowOf(static_cast<NodeKey>(5)), 0);
        QCOMPARE(model.rowOf(static_cast<NodeKey>(4)), -1);
        QCOMPARE(model.rowOf(QStringLiteral("kernel1")), 1);
        QCOMPARE(model.index(0, LoopsModel::Nodes).data().toString(), QStringLiteral("a, b"));
        QCOMPARE(model.index(0, LoopsModel::Time).data().toString(), QString());
        QCOMPARE(model.index(1, LoopsModel::Time).data().toString(), QStringLiteral("1.5 ms"));
        QVERIFY(model.isTimed());
    }

    void aKernelHasItsFormsBesideEachOther() {
        QVERIFY(label("loopsSummary").contains("Compile the model first"));
        QVERIFY(!button("Check")->isEnabled() && !button("Run")->isEnabled());
        open("tiny_transformer");
        QCOMPARE(static_cast<size_t>(table()->model()->rowCount()), query().kernels().size());
        choose(rowOf("reduction"));
        QVERIFY2(text("Kernel").contains(" < "), qPrintable(text("Kernel")));
        QVERIFY2(text("Plan").startsWith("order x0"), qPrintable(text("Plan")));
        QVERIFY(text("Plan").contains("# vectors: "));
        QVERIFY2(text("C++").contains("extern \"C\" void"), qPrintable(text("C++")));
        auto* steps = window().findChild<QComboBox*>("loweringSteps");
        QCOMPARE(steps->currentIndex(), steps->count() - 1);
        const QString last = text("Loops");
        steps->setCurrentIndex(0);
        QCOMPARE(steps->currentText(), QStringLiteral("build"));
        QVERIFY(text("Loops") != last);
        QVERIFY2(text("Loops").contains("accumulate "), qPrintable(text("Loops")));
        QVERIFY(!last.contains("accumulate "));
        picture("loops", 300);
        // The step stays where another kernel is chosen.
        choose(rowOf("pointwise"));
        QCOMPARE(steps->currentText(), QStringLiteral("build"));
    }

    void theMachineCodeIsListed() {
        open("mlp");
        auto* tabs = window().findChild<QTabWidget*>();
        QCOMPARE(tabs->tabText(tabs->count() - 1), QString("Machine Code"));
        QVERIFY(text("Machine code").isEmpty());
        tabs->setCurrentIndex(tabs->count() - 1);
        QTRY_VERIFY_WITH_TIMEOUT(text("Machine code").contains("ret"), testing::kEnginePatience);
        QVERIFY(!window().findChild<QLabel*>("whyNoListing")->isVisible());
        // Of another kernel, as soon as it is chosen.
        const QString before = text("Machine code");
        if (table()->model()->rowCount() < 2) return;
        choose(1);
        QTRY_VERIFY_WITH_TIMEOUT(text("Machine code").contains("ret") && text("Machine code") != before,
                                 testing::kEnginePatience);
    }
    void nodesChooseKernels() {
        open("tiny_transformer");
        const int row = static_cast<int>(query().kernels().size()) - 1;
        m_main->selection().setNode(query().kernels()[static_cast<size_t>(row)].nodes.front());
        settle();
        QCOMPARE(table()->selectionModel()->selectedRows().value(0).row(), row);
        QCOMPARE(query().kernel(), QString::fromStdString(query().kernels()[static_cast<size_t>(row)].name));
        table()->setFocus();
        table()->selectRow(0);
        QCOMPARE(m_main->selection().node(), query().kernels()[0].nodes.back());
    }

    /// What is chosen in the Kernels window is chosen here.
    void theKernelsWindowChoosesKernels() {
        open("tiny_transformer");
        actionNamed(*m_main, "F7")->trigger();
        auto* kernels = m_main->window("kernels")->findChild<QTableView*>();
        QTRY_VERIFY_WITH_TIMEOUT(kernels->model()->rowCount() > 0, testing::kEnginePatience);
        for (int row = 0; row < kernels->model()->rowCount(); ++row) {
            if (kernels->model()->index(row, 0).data().toString() != QStringLiteral("kernel3")) continue;
            kernels->selectRow(row);
            QCOMPARE(query().kernel(), QStringLiteral("kernel3"));
            return;
        }
        QFAIL("the Kernels window lists no kernel3");
    }

    void plansAreChecked_data() {
        QTest::addColumn<QString>("plan");
        QTest::addColumn<QString>("said");
        QTest::addColumn<QString>("marked");
        QTest::newRow("a word") << "order x0\nvectros rows 16\n"
                                << "line 2: a plan has lines order, vectors"
                                << "vectros rows 16";
        QTest::newRow("a loop left out") << "order\nvectors nothing\n"
                                         << "line 1: order must name each outer loop of the kernel once"
                                         << "order";
    }
    void plansAreChecked() {
        QFETCH(QString, plan);
        QFETCH(QString, said);
        QFETCH(QString, marked);
        open("tiny_transformer");
        choose(rowOf("pointwise"));
        const QString chosen = text("Plan");
        area("Plan")->setPlainText(plan);
        button("Check")->click();
        QTRY_VERIFY2_WITH_TIMEOUT(label("planResult").contains(said), qPrintable(label("planResult")),
                                  testing::kEnginePatience);
        QCOMPARE(area("Plan")->textCursor().selectedText(), marked);
        QCOMPARE(text("Plan"), plan);
        button("Compiler's Plan")->click();
        QCOMPARE(text("Plan"), chosen);
        QTRY_VERIFY_WITH_TIMEOUT(label("planResult").startsWith("The plan is valid"), testing::kEnginePatience);
    }

    void aPlanIsRun() {
        open("tiny_resnet");
        choose(rowOf("pointwise"));
        QString plan = text("Plan").section('\n', 0, 0) + "\nvectors nothing\n";
        area("Plan")->setPlainText(plan);
        const QString before = text("C++");
        button("Run")->click();
        QVERIFY(query().isRunning());
        QVERIFY(window().activity());
        QTRY_VERIFY_WITH_TIMEOUT(!query().isRunning(), testing::kEnginePatience);
        QVERIFY2(label("planResult").contains("same results to the bit"), qPrintable(label("planResult")));
        QVERIFY(label("planResult").contains("as chosen"));
        QVERIFY(text("C++") != before);
        QCOMPARE(text("Plan"), plan);
        QVERIFY(!window().activity());
        picture("loops-run", 300);
    }

    void aRunIsStopped() {
        open("tiny_transformer");
        choose(rowOf("pointwise"));
        button("Run")->click();
        QVERIFY(query().isRunning());
        QVERIFY(button("Stop"));
        button("Stop")->click();
        QVERIFY(!query().isRunning());
        QCOMPARE(label("planResult"), QStringLiteral("Stopped."));
        controller().close();
        QTRY_VERIFY(query().kernels().empty());
        QVERIFY(text("Kernel").isEmpty() && text("Plan").isEmpty());
    }
};

CUTAWAY_SUITE(LoopsWindowTest)
#include "loops_window_test.moc"
