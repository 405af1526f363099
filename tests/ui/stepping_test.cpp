// Stepping in the main window: from step to step and rewrite to rewrite by keys, and the Steps window.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTreeView>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/rewrite_bar.h"
#include "ui/windows/steps_window.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class SteppingTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void keysStep() {
        auto* bar = m_main->findChild<RewriteBar*>();
        QVERIFY(bar->text().isEmpty());
        openAndCompile();
        QCOMPARE(shownStep(), "fuse_bias_add");
        press(Qt::Key_F10);
        QCOMPARE(shownStep(), "reinplace");
        press(Qt::Key_F10);
        QCOMPARE(shownStep(), "reinplace");
        press(Qt::Key_F10, Qt::ShiftModifier);
        QCOMPARE(shownStep(), "fuse_bias_add");
        press(Qt::Key_F10, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(shownStep(), "remove_noop_ops");
        press(Qt::Key_F10, Qt::ControlModifier);
        QCOMPARE(shownStep(), "fuse_bias_add");
        press(Qt::Key_F11);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 1");
        press(Qt::Key_F11);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 2");
        QVERIFY2(bar->text().startsWith("mm_add_to_addmm at y – the bias is added"), qPrintable(bar->text()));
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(15));  // the node that the rewrite started from
        press(Qt::Key_F11, Qt::ShiftModifier);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 1");
        press(Qt::Key_F11, Qt::ShiftModifier);
        QCOMPARE(shownStep(), "fuse_bias_add");
        QCOMPARE(bar->text(), "What fuse_bias_add does.");
        press(Qt::Key_F11);
        press(Qt::Key_F11);
        press(Qt::Key_F11);
        QCOMPARE(shownStep(), "reinplace");
        press(Qt::Key_F11, Qt::ShiftModifier);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 2");
        press(Qt::Key_F11, Qt::ControlModifier);
        QCOMPARE(shownStep(), "fuse_bias_add");
        QCOMPARE(m_main->window("steps")->findChild<QTreeView*>()->selectionModel()->selectedRows().size(), 1);
        press(Qt::Key_F11, Qt::ShiftModifier);
        QCOMPARE(shownStep(), "as opened");  // no earlier step changed anything
        press(Qt::Key_F10);
        press(Qt::Key_F11);
        press(Qt::Key_F11);
        press(Qt::Key_F11);
        QCOMPARE(shownStep(), "reinplace");
        press(Qt::Key_Left, Qt::AltModifier);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 2");
        press(Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(shownStep(), "reinplace");
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
    }

    void rewritesAreChosenByNumber() {
        openAndCompile();
        auto* bar = m_main->findChild<RewriteBar*>();
        auto* number = bar->findChild<QSpinBox*>();
        auto* slider = bar->findChild<QSlider*>();
        QCOMPARE(number->maximum(), 2);
        number->selectAll();
        QTest::keyClicks(number, "2");
        QTest::keyClick(number, Qt::Key_Return);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 2");
        QCOMPARE(m_main->selection().comparison().before, (Place{1, 4, 1}));
        QCOMPARE(slider->value(), 2);
        QTest::keyClick(slider, Qt::Key_Left);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 1");
        QCOMPARE(number->value(), 1);
        // Together with what was done before it in its step.
        m_main->stepper().setAllSoFar(true);
        m_main->stepper().toRewrite(2);
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, 4, 0}, {1, 4, 2}}));
        m_main->stepper().setAllSoFar(false);
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, 4, 1}, {1, 4, 2}}));
        // A place and its node are one stop of the history.
        m_main->selection().goBack();
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, 4, 0}, {1, 4, 2}}));
        m_main->selection().goForward();
        // By the number in the whole run.
        QCOMPARE(m_main->stepper().fuelOfRun(), 3);
        QCOMPARE(m_main->stepper().fuel(), 2);
        m_main->stepper().toFuel(3);
        QCOMPARE(shownStep(), "reinplace, rewrite 1");
        number->setValue(0);
        QCOMPARE(shownStep(), "reinplace");
        m_main->stepper().toFuel(4);
        QCOMPARE(shownStep(), "reinplace");
    }

    void theCheckBoxSwitchesAPassOff() {
        openAndCompile();
        auto* tree = m_main->window("steps")->findChild<QTreeView*>();
        const QModelIndexList found = tree->model()->match(tree->model()->index(0, 0), Qt::DisplayRole, "fuse_bias_add",
                                                           1, Qt::MatchExactly | Qt::MatchRecursive);
        QCOMPARE(found.size(), 1);
        tree->model()->setData(found[0], Qt::Unchecked, Qt::CheckStateRole);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 2 && m_main->isSettled(), kPatience);
        QCOMPARE(m_main->controller().runs()[1].options.disabledPasses, std::vector<std::string>{"fuse_bias_add"});
        QCOMPARE(m_main->selection().comparison().before.run, 1);
        QCOMPARE(m_main->selection().comparison().after.run, 2);
    }

    void marksAreCompared() {
        openAndCompile();
        press(Qt::Key_A, Qt::ControlModifier | Qt::ShiftModifier);
        press(Qt::Key_F10);
        press(Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, 4, -1}, {1, 5, -1}}));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
    }

    void theFilterSaysWhatItHides() {
        openAndCompile();
        auto* steps = m_main->window("steps");
        auto* field = steps->findChild<QLineEdit*>();
        QTest::keyClicks(field, "bias");
        QString said;
        for (const QLabel* label : steps->findChildren<QLabel*>())
            if (label->isVisible()) said += label->text();
        QCOMPARE(said, "5 of 6 passes hidden by the filter");
        QVERIFY(testing::treeText(*steps->findChild<QTreeView*>()->model()).contains("fuse_bias_add"));
        QVERIFY(!testing::treeText(*steps->findChild<QTreeView*>()->model()).contains("reinplace"));
    }

    void theFilterFindsRewrites_data() {
        QTest::addColumn<QString>("words");
        QTest::addColumn<QString>("said");
        QTest::addColumn<QString>("tree");
        QTest::newRow("by rule")
            << "addmm"
            << "4 of 6 passes hidden by the filter; 3 rewrites match"
            << "post_grad\n  fuse_bias_add\n    1  mm_add_to_addmm at y\n    2  mm_add_to_addmm at y\n  reinplace\n    1  mm_add_to_addmm at y\n";
        QTest::newRow("a pass by name with all its rewrites") << "fuse_b"
                                                              << "5 of 6 passes hidden by the filter"
                                                              << "post_grad\n  fuse_bias_add\n";
        QTest::newRow("by rule and node")
            << "mm_add y"
            << "4 of 6 passes hidden by the filter; 3 rewrites match"
            << "post_grad\n  fuse_bias_add\n    1  mm_add_to_addmm at y\n    2  mm_add_to_addmm at y\n  reinplace\n    1  mm_add_to_addmm at y\n";
        QTest::newRow("nothing") << "mm_add zz"
                                 << "6 of 6 passes hidden by the filter"
                                 << "";
    }
    void theFilterFindsRewrites() {
        QFETCH(QString, words);
        openAndCompile();
        m_main->get<StepsWindow>().setFilter(words);
        auto* steps = m_main->window("steps");
        QString said;
        for (const QLabel* label : steps->findChildren<QLabel*>())
            if (label->isVisible()) said += label->text();
        QTEST(said, "said");
        const QString tree = testing::treeText(*steps->findChild<QTreeView*>()->model());
        QString names;  // the first column is enough
        for (const QString& line : tree.split('\n', Qt::SkipEmptyParts))
            names += line.section(QStringLiteral(" | "), 0, 0) + '\n';
        QTEST(names, "tree");
    }

    void theHistoryLeadsToTheRewrite() {
        openAndCompile();
        press(Qt::Key_F10);
        m_main->get<GraphWindow>().view().nodeChosen(static_cast<NodeKey>(16));
        auto* tree = m_main->window("node")->findChild<QTreeView*>();
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*tree->model()).contains("created by fuse_bias_add"), kPatience);
        const QModelIndexList found = tree->model()->match(tree->model()->index(0, 0), Qt::DisplayRole, "fuse_bias_add",
                                                           1, Qt::MatchExactly | Qt::MatchRecursive);
        QCOMPARE(found.size(), 1);
        emit tree->activated(found[0]);
        QTRY_COMPARE_WITH_TIMEOUT(shownStep(), "fuse_bias_add, rewrite 2", kPatience);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(16));
        // And from anywhere in its step by a key.
        press(Qt::Key_F11, Qt::ControlModifier);
        QCOMPARE(shownStep(), "fuse_bias_add");
        press(Qt::Key_R, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(shownStep(), "fuse_bias_add, rewrite 2", kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
    }

    void theStepsWindowFillsWhileCompiling() {
        openAndCompile();
        auto& tree = *m_main->window("steps")->findChild<QTreeView*>();
        auto& runs = *m_main->window("steps")->findChild<QComboBox*>();
        m_control->slowAfter = 3;
        press(Qt::Key_B, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(
            testing::treeText(*tree.model()),
            "As opened\npre_grad\n  3 unchanged passes\n    normalize | · | 8 | 1.5 ms\n    split_cat | · | 8 | 1.5 ms\n    fuse_conv | · | 8 | 1.5 ms\n",
            kPatience);
        QCOMPARE(runs.currentText(), "Run 2: inference, CPU, under way");
        // What was there can be looked at meanwhile, and what is under way again.
        runs.setCurrentIndex(0);
        emit runs.activated(0);
        QCOMPARE(m_main->get<StepsWindow>().currentRun(), 1);
        runs.setCurrentIndex(1);
        emit runs.activated(1);
        QCOMPARE(m_main->get<StepsWindow>().currentRun(), StepsModel::kUnderWay);
        m_control->slowAfter = 5;
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*tree.model()).endsWith("  fuse_bias_add | +1 −2 | 7 | 1.5 ms\n"),
                                 kPatience);
        press(Qt::Key_Escape);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        QCOMPARE(m_main->get<StepsWindow>().currentRun(), 2);
        QCOMPARE(runs.count(), 2);
        QCOMPARE(runs.currentText(), "Run 2: inference, CPU, stopped");
        QCOMPARE(shownStep(), "fuse_bias_add (run 2)");
        press(Qt::Key_F11);
        QCOMPARE(shownStep(), "fuse_bias_add, rewrite 1 (run 2)");
    }
};

CUTAWAY_SUITE(SteppingTest)
#include "stepping_test.moc"
