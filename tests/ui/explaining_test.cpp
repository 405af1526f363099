// Rules explained and switched off through the controller, on a source of hand-made structs, without windows.
#include <QAbstractItemModelTester>
#include <QSignalSpy>

#include "tests/support/suites.h"
#include "tests/ui/controller_fixture.h"
#include "tests/ui/tree_text.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class ExplainingTest : public QObject, testing::ControllerFixture {
    Q_OBJECT

  private slots:
    void init() { begin(); }
    void cleanup() { end(); }

    void explainingAsksForTheGraphBeforeTheStep() {
        openAndCompile();
        QSignalSpy answers(m_controller.get(), &SessionController::explained);
        m_selection->setNode(static_cast<NodeKey>(15));
        m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(answers.size(), 1, kPatience);
        const auto explained = answers[0][0].value<std::shared_ptr<const Explained>>();
        QCOMPARE(explained->before, (Place{1, 4, 0}));
        QCOMPARE(QString::fromStdString(explained->pass), "fuse_bias_add");
        ExplainModel model;
        QAbstractItemModelTester tester(&model);
        model.setExplained(*explained);
        // What applies first; the step's own rules carry what they did; a rule that was tried elsewhere has no answer.
        QCOMPARE(testing::treeText(model),
                 "mm_add_to_addmm (fuse_bias_add) | ✓ yes | 7 | 2 | 250 µs\n"
                 "never_here (fuse_bias_add) |  | 3 | 0 | 10.0 µs\n"
                 "drop_noop (normalize) | ✗ no |  |  |  | needs `x` to be read only here, but `m` reads it too\n");
        // Nodes are links, by their names in the sentence or in a list after it.
        QVERIFY2(model.details(2).contains("but <a href=\"node:14\">m</a> reads it too"), qPrintable(model.details(2)));
        QVERIFY2(model.details(0).contains("It would replace <a href=\"node:15\">y</a>"), qPrintable(model.details(0)));
        QCOMPARE(model.currentRow(), -1);
        QVERIFY(model.ruleText(0).contains("aten.addmm(b, m)"));
        QCOMPARE(model.index(2, 0).data(ExplainModel::NodeRole).toULongLong(), 14ull);
    }

    void explainingARewritePutsItsRuleFirst() {
        openAndCompile();
        QSignalSpy answers(m_controller.get(), &SessionController::explained);
        // Shown with all before it, and still asked for the graph that its rule saw.
        m_selection->go({{1, 4, 0}, {1, 4, 2}}, static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(answers.size(), 1, kPatience);
        const auto explained = answers[0][0].value<std::shared_ptr<const Explained>>();
        QCOMPARE(explained->before, (Place{1, 4, 1}));
        ExplainModel model;
        model.setExplained(*explained);
        QCOMPARE(model.currentRow(), 0);
        QCOMPARE(model.ruleName(0), "mm_add_to_addmm");
    }

    void rewritesThatNobodyCountedAreListedToo() {
        openAndCompile();
        QSignalSpy answers(m_controller.get(), &SessionController::explained);
        m_selection->setPlace({1, 5, -1});  // has a rewrite and no rule
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(answers.size(), 1, kPatience);
        ExplainModel model;
        model.setExplained(*answers[0][0].value<std::shared_ptr<const Explained>>());
        QCOMPARE(testing::treeText(model), "mm_add_to_addmm (reinplace) |  |  | 1\n");
    }

    void rulesAreSwitchedOffAndOnAgain() {
        openAndCompile();
        m_controller->setEnabled(1, "fuse_bias_add/mm_add_to_addmm", false);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->runs()[1].options.disabledPasses,
                 std::vector<std::string>{"fuse_bias_add/mm_add_to_addmm"});
        QCOMPARE(m_controller->runs()[1].title(), "Run 2: inference, CPU, 1 rule off");
        QCOMPARE(m_selection->comparison(), (Comparison{{1, 5, -1}, {2, 5, -1}}));
        m_controller->setEnabled(2, "fuse_bias_add/mm_add_to_addmm", true);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 3 && !m_controller->isBusy(), kPatience);
        QVERIFY(m_controller->runs()[2].options.disabledPasses.empty());
    }

    void explainingANewNodeIsNoFailure() {
        openAndCompile();
        QSignalSpy answers(m_controller.get(), &SessionController::explained),
            problems(m_controller.get(), &SessionController::problem);
        m_selection->setNode(static_cast<NodeKey>(16));
        m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(answers.size(), 1, kPatience);
        QCOMPARE(problems.size(), 0);
    }

    void theRewriteThatTouchedANodeIsFound() {
        openAndCompile();
        QCOMPARE(m_controller->runs()[0].rewrites.size(), size_t(6));
        QCOMPARE(m_controller->rewriteAt({1, 4, 2})->index, 1);
        QVERIFY(!m_controller->rewriteAt({1, 4, 3}) && !m_controller->rewriteAt({1, 4, -1}) &&
                !m_controller->rewriteAt({1, -1, 1}));
        int found = -1;
        const auto look = [&](int step, int node) {
            found = -1;
            m_controller->findRewrite(1, step, static_cast<NodeKey>(node), [&](int number) { found = number; });
        };
        look(4, 16);  // made by the second rewrite
        QTRY_COMPARE_WITH_TIMEOUT(found, 2, kPatience);
        look(4, 14);  // removed by it
        QTRY_COMPARE_WITH_TIMEOUT(found, 2, kPatience);
        look(5, 16);  // there before and after
        QTRY_COMPARE_WITH_TIMEOUT(found, 0, kPatience);
        look(3, 16);  // a step without rewrites
        QCOMPARE(found, 0);
        for (const auto& [run, step] : {std::pair{9, 4}, {1, -1}, {1, 6}}) {  // a run or step that there is not
            found = -1;
            m_controller->findRewrite(run, step, static_cast<NodeKey>(16), [&](int number) { found = number; });
            QCOMPARE(found, 0);
        }
    }
};

CUTAWAY_SUITE(ExplainingTest)
#include "explaining_test.moc"
