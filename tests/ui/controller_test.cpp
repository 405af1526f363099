// Selection and controller on a source of hand-made structs, without windows.
#include <QAbstractItemModelTester>
#include <QSignalSpy>

#include "tests/support/suites.h"
#include "tests/ui/controller_fixture.h"
#include "tests/ui/tree_text.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class ControllerTest : public QObject, testing::ControllerFixture {
    Q_OBJECT

  private slots:
    void init() { begin(); }
    void cleanup() { end(); }

    void openingShowsTheGraphAsOpened() {
        QSignalSpy shown(m_controller.get(), &SessionController::shown);
        QAbstractItemModelTester tester(&m_controller->log());
        m_controller->open("/models/a.pt2");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, kPatience);
        QCOMPARE(m_selection->comparison(), (Comparison{Place{}, Place{}}));
        QCOMPARE(m_controller->placeName(m_selection->place()), "as opened");
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QCOMPARE(testing::treeText(m_controller->log()),
                 "Opened a.pt2: 8 nodes, .pt2 | /models/a.pt2\none remark | /models/a.pt2\n");
    }

    /// A slider that moves faster than budgets are computed leaves none waiting but the latest.
    void ofManyBudgetsTheLatestIsTried() {
        openAndCompile();
        CompileRequest training;
        training.mode = Mode::Training;
        m_controller->compile(training);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        QVERIFY(m_controller->partition() && m_controller->partition()->problem.isEmpty());
        QSignalSpy shown(m_controller.get(), &SessionController::candidateShown);
        m_control->held = "try";
        m_controller->tryBudget(0.9);
        QTRY_VERIFY_WITH_TIMEOUT(m_control->calls().contains("try 0.90"), kPatience);
        for (const double budget : {0.8, 0.6, 0.4}) m_controller->tryBudget(budget);
        m_control->held = nullptr;
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->candidate() && m_controller->candidate()->budget == 0.4, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QStringList tried = m_control->calls().filter("try ");
        QCOMPARE(tried, (QStringList{"try 0.90", "try 0.40"}));
        QCOMPARE(shown.size(), 2);
        m_controller->tryBudget(1);  // the run's own needs no engine
        QVERIFY(!m_controller->candidate());
        QCOMPARE(m_control->calls().filter("try ").size(), 2);
    }

    void aCancelledBudgetLeavesTheSliderAlive() {
        openAndCompile();
        CompileRequest training;
        training.mode = Mode::Training;
        m_controller->compile(training);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        m_control->held = "try";
        m_controller->tryBudget(0.9);
        m_controller->cancel("look");
        m_control->held = nullptr;
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_controller->tryBudget(0.3);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->candidate() && m_controller->candidate()->budget == 0.3, kPatience);
        // Another run has its own budget.
        m_selection->setPlace({m_controller->runs()[0].id, -1, -1});
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QVERIFY(!m_controller->candidate());
        QVERIFY(m_controller->partition()->problem.startsWith("Only a run for training"));
    }

    void runsOfOneJointGraphShareTheirCurve() {
        openAndCompile();
        CompileRequest training;
        training.mode = Mode::Training;
        m_controller->compile(training);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        QSignalSpy shown(m_controller.get(), &SessionController::curveShown);
        m_controller->askCurve();
        m_controller->askCurve();  // while the first is not answered
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QCOMPARE(m_control->calls().filter("curve").size(), 1);
        m_controller->deriveWithBudget(0.5);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 3 && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->runs()[2].options.memoryBudget, 0.5);
        m_controller->askCurve();
        QCOMPARE(shown.size(), 2);
        QCOMPARE(m_control->calls().filter("curve").size(), 1);
    }

    void aFileOfSeveralGraphsOffersThem() {
        QSignalSpy asked(m_controller.get(), &SessionController::severalGraphs);
        m_controller->open("/models/folder");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->graphs().size(), size_t(2));
        QCOMPARE(m_controller->graphs()[1].name, std::string("two.py"));
        QCOMPARE(asked.size(), 1);
        QCOMPARE(m_controller->graph(), "one.py");
        QVERIFY(testing::treeText(m_controller->log())
                    .contains("Opened folder: 8 nodes, graph one.py, .pt2 | /models/folder | It holds 2 graphs"));
        m_controller->open("/models/folder", "two.py");
        QTRY_COMPARE_WITH_TIMEOUT(m_controller->graph(), "two.py", kPatience);
        QCOMPARE(m_controller->graphs().size(), size_t(2));  // still known
        QCOMPARE(asked.size(), 1);
        m_controller->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->graphs().empty() && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->graph(), QString());
    }

    void compilingGoesToTheFirstChange() {
        openAndCompile();
        QCOMPARE(m_selection->place(), (Place{1, 4, -1}));
        QCOMPARE(m_selection->comparison().before, (Place{1, 4, 0}));
        QCOMPARE(m_controller->placeName(m_selection->place()), "fuse_bias_add");
        QVERIFY(m_control->calls().contains("diff 4 4"));
    }

    void aFailureSaysWhatWhereAndWhatNext() {
        openAndCompile();
        QSignalSpy problem(m_controller.get(), &SessionController::problem);
        m_controller->open("/models/bad.pt2");
        QTRY_COMPARE_WITH_TIMEOUT(problem.size(), 1, kPatience);
        const auto entry = problem[0][0].value<LogEntry>();
        QCOMPARE(entry.what, "Opening bad.pt2: the archive has no models/ folder");
        QCOMPARE(entry.where, "/models/bad.pt2");
        QCOMPARE(entry.next, "Save the program with torch.export.save.");
        QCOMPARE(m_controller->path(), "/models/a.pt2");  // what was open stays open
        QCOMPARE(m_controller->runs().size(), size_t(1));
        QCOMPARE(m_selection->place(), (Place{1, 4, -1}));
    }

    void onlyTheLatestPlaceIsShown() {
        openAndCompile();
        QSignalSpy shown(m_controller.get(), &SessionController::shown);
        m_control->hold = true;
        for (int step : {1, 2, 3, 5}) m_selection->setPlace({1, step, -1});
        m_control->hold = false;
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QCOMPARE(shown.size(), 1);
        QCOMPARE(shown[0][0].value<std::shared_ptr<const Shown>>()->comparison.after, (Place{1, 5, -1}));
    }

    void cancelStopsAtOnce() {
        openAndCompile();
        m_control->hold = true;
        QSignalSpy busy(m_controller.get(), &SessionController::busyChanged);
        m_controller->compile({});
        QTRY_COMPARE_WITH_TIMEOUT(m_control->calls().count("compile"), 2, kPatience);
        m_controller->cancel("compile");
        QVERIFY(!m_controller->isBusy());
        QCOMPARE(busy.last()[0].toBool(), false);
        QVERIFY(testing::treeText(m_controller->log()).endsWith("Compiling: cancelled\n"));
        m_control->hold = false;
        m_selection->setPlace({1, 5, -1});
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->runs().size(), size_t(1));  // its late answer is dropped
    }

    void stepsComeWhileCompiling() {
        m_controller->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), kPatience);
        m_control->slowAfter = 3;
        m_controller->compile({});
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->compiling() && m_controller->compiling()->steps.size() == 3, kPatience);
        QCOMPARE(m_controller->compiling()->title(), "Run 1: inference, CPU");
        QVERIFY(m_controller->runs().empty() && m_controller->isBusy());
        m_control->slowAfter = 5;
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->compiling()->steps.size() == 5, kPatience);
        m_control->slowAfter = -1;
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->runs().empty() && !m_controller->isBusy(), kPatience);
        QVERIFY(!m_controller->compiling());
        QCOMPARE(m_controller->runs()[0].steps.size(), size_t(6));
    }

    void aStoppedCompileKeepsItsSteps() {
        openAndCompile();
        m_control->slowAfter = 5;
        CompileRequest options;
        options.disabledPasses = {"normalize"};
        m_controller->compile(options, 1);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->compiling() && m_controller->compiling()->steps.size() == 5, kPatience);
        m_controller->cancel("compile");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        const Run& run = m_controller->runs()[1];
        QCOMPARE(run.steps.size(), size_t(5));
        QCOMPARE(run.title(), "Run 2: inference, CPU, stopped, 1 pass off");
        QCOMPARE(run.rewrites[4].size(), size_t(2));
        // Not compared with the run before: it is half of one. Its own first change is on show.
        QCOMPARE(m_selection->comparison(), (Comparison{{2, 4, 0}, {2, 4, -1}}));
        QVERIFY(
            testing::treeText(m_controller->log())
                .endsWith(
                    "stopped, 1 pass off: 5 passes, 1 changed the graph |  | The passes after these did not run; compile again (Ctrl+B) to have them all.\n"));
    }

    void aModelThatIsOpenedDropsTheCompile() {
        m_controller->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), kPatience);
        m_control->slowAfter = 3;
        m_controller->compile({});
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->compiling(), kPatience);
        m_controller->open("/models/b.pt2");
        QTRY_COMPARE_WITH_TIMEOUT(m_controller->path(), "/models/b.pt2", kPatience);
        QVERIFY(!m_controller->compiling());
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QVERIFY(m_controller->runs().empty() && !m_controller->compiling());
    }

    void lookingNeverWaitsForWork_data() {
        QTest::addColumn<QByteArray>("call");
        QTest::addColumn<QString>("doing");
        for (const auto& [call, doing] : std::initializer_list<std::pair<const char*, const char*>>{
                 {"run", "Running in the reference interpreter"},
                 {"build", "Generating code"},
                 {"bisect", "Looking for the rewrite that broke the graph"},
                 {"compile", "Compiling"}})
            QTest::newRow(call) << QByteArray(call) << QString(doing);
    }
    void lookingNeverWaitsForWork() {
        QFETCH(QByteArray, call);
        QFETCH(QString, doing);
        openAndCompile();
        const std::string name = call.toStdString();
        m_control->held = name.c_str();
        if (call == "run") m_controller->run(1, {});
        if (call == "build") m_controller->build(1, Target::Cpu);
        if (call == "bisect") m_controller->bisect(1, {});
        if (call == "compile") m_controller->compile({});
        QSignalSpy shown(m_controller.get(), &SessionController::shown),
            nodes(m_controller.get(), &SessionController::nodeShown),
            answers(m_controller.get(), &SessionController::explained);
        m_selection->go(comparisonAt({1, 5, -1}), static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(!shown.empty() && !nodes.empty() && m_controller->activities().size() == 1, kPatience);
        m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(answers.size(), 1, kPatience);
        // What goes on says what it is and how far it is, and is stopped by its name.
        QTRY_COMPARE_WITH_TIMEOUT(m_controller->activities().size(), 1, kPatience);
        QTRY_COMPARE_WITH_TIMEOUT(m_controller->activities()[0].progress, "test 1 of 4", kPatience);
        QCOMPARE(m_controller->activities()[0].doing, doing);
        QCOMPARE(m_controller->activities()[0].fraction, 0.25);
        m_controller->cancel(m_controller->activities()[0].tag);
        QVERIFY(!m_controller->isBusy());
        m_control->held = nullptr;
    }

    void workOfEachKindGoesOnBesideTheOthers() {
        openAndCompile();
        m_control->hold = true;
        m_controller->run(1, {});
        m_controller->bisect(1, {});
        m_controller->compile({});
        QTRY_VERIFY_WITH_TIMEOUT(m_control->calls().contains("run") && m_control->calls().contains("bisect") &&
                                     m_control->calls().count("compile") == 2,
                                 kPatience);
        QStringList tags;
        for (const Activity& one : m_controller->activities()) tags << one.tag;
        QCOMPARE(tags, (QStringList{"run", "bisect", "compile"}));  // as they were begun
        m_controller->cancel("bisect");
        QCOMPARE(m_controller->activities().size(), 2);
        m_control->hold = false;
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QCOMPARE(m_controller->runs().size(), size_t(2));
    }

    void whoHasMovedOnIsNotTakenElsewhere() {
        openAndCompile();
        m_control->held = "compile";
        m_controller->compile({});
        QTRY_COMPARE_WITH_TIMEOUT(m_control->calls().count("compile"), 2, kPatience);
        m_selection->setPlace({1, 5, -1});
        QSignalSpy said(m_controller.get(), &SessionController::message);
        m_control->held = nullptr;
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_selection->place(), (Place{1, 5, -1}));
        QCOMPARE(said.size(), 1);
        QCOMPARE(said[0][0].toString(), "Run 2: inference, CPU is finished: select it in the Steps window.");
    }

    void whatIsCancelledIsNotGoneTo() {
        openAndCompile();
        m_selection->setNode(static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_control->held = "diff";
        m_selection->go(comparisonAt({1, 5, -1}), static_cast<NodeKey>(16));
        QTRY_VERIFY_WITH_TIMEOUT(m_control->calls().contains("diff 5 5"), kPatience);
        QSignalSpy shown(m_controller.get(), &SessionController::shown);
        m_controller->cancel(m_controller->activities()[0].tag);
        QVERIFY(!m_controller->isBusy());
        m_control->held = nullptr;
        QCOMPARE(m_selection->place(), (Place{1, 4, -1}));
        QCOMPARE(m_selection->node(), static_cast<NodeKey>(15));
        QTest::qWait(20);
        QVERIFY(!m_controller->isBusy() && shown.empty());  // it is on show still
    }

    void aCancelledExplanationSaysSo() {
        openAndCompile();
        m_selection->setNode(static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_control->held = "explain";
        m_controller->explain();
        QSignalSpy answers(m_controller.get(), &SessionController::explained);
        m_controller->cancel(m_controller->activities()[0].tag);
        QCOMPARE(answers.size(), 1);
        QVERIFY(answers[0][0].value<std::shared_ptr<const Explained>>()->stopped);
        QCOMPARE(m_selection->node(), static_cast<NodeKey>(15));
    }

    void whatThrowsEndsInWords_data() {
        QTest::addColumn<QByteArray>("call");
        for (const char* call : {"open", "compile", "run", "bisect", "diff", "node", "explain"})
            QTest::newRow(call) << QByteArray(call);
    }
    void whatThrowsEndsInWords() {
        QFETCH(QByteArray, call);
        openAndCompile();
        if (call == "explain") m_selection->setNode(static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        QSignalSpy problems(m_controller.get(), &SessionController::problem);
        const std::string name = call.toStdString();
        m_control->thrown = name.c_str();
        if (call == "open") m_controller->open("/models/b.pt2");
        if (call == "compile") m_controller->compile({});
        if (call == "run") m_controller->run(1, {});
        if (call == "bisect") m_controller->bisect(1, {});
        if (call == "diff") m_selection->setPlace({1, 5, -1});
        if (call == "node") m_selection->setNode(static_cast<NodeKey>(15));
        if (call == "explain") m_controller->explain();
        QTRY_COMPARE_WITH_TIMEOUT(problems.size(), 1, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        m_control->thrown = nullptr;
        QVERIFY(problems[0][0].value<LogEntry>().what.contains("something unforeseen"));
        QCOMPARE(m_selection->place(), (Place{1, 4, -1}));
        QVERIFY(m_controller->runs().size() == 1 && !m_controller->compiling());
    }

    void nodesCarryBothSides() {
        openAndCompile();
        QSignalSpy nodes(m_controller.get(), &SessionController::nodeShown);
        m_selection->setNode(static_cast<NodeKey>(14));  // m: only before
        QTRY_VERIFY_WITH_TIMEOUT(!nodes.empty() && !m_controller->isBusy(), kPatience);
        auto facts = nodes.last()[0].value<std::shared_ptr<const NodeFacts>>();
        QVERIFY(facts->before && !facts->after);
        m_selection->setNode(static_cast<NodeKey>(9999));
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), kPatience);
        facts = nodes.last()[0].value<std::shared_ptr<const NodeFacts>>();
        QVERIFY(!facts->before && !facts->after);
    }

    void switchingAPassOffComparesBothResults() {
        openAndCompile();
        CompileRequest options;
        options.disabledPasses = {"fuse_bias_add"};
        m_controller->compile(options, 1);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() == 2 && !m_controller->isBusy(), kPatience);
        QCOMPARE(m_selection->comparison(), (Comparison{{1, 5, -1}, {2, 5, -1}}));
        QCOMPARE(m_controller->runs()[1].title(), "Run 2: inference, CPU, 1 pass off");
    }

    void bisectingGoesToTheCulprit() {
        openAndCompile();
        m_selection->setNode(static_cast<NodeKey>(14));
        m_controller->bisect(1, {});
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy() && m_control->calls().contains("bisect"), kPatience);
        QCOMPARE(m_selection->comparison(), (Comparison{{1, 4, 1}, {1, 4, 2}}));
        QCOMPARE(m_selection->node(),
                 static_cast<NodeKey>(15));  // the one that the rewrite started from, not what was looked at before
        const QString log = testing::treeText(m_controller->log());
        QVERIFY2(log.contains("The graph after 1 rewrite is good: largest error 0"), qPrintable(log));
        QVERIFY2(
            log.contains(
                "Rewrite 2 of fuse_bias_add broke the graph: mm_add_to_addmm at y. Found among 3 rewrites by 3 tests"),
            qPrintable(log));
    }

    void historyGoesBackAndForward() {
        Selection selection;
        selection.setPlace({1, 0, -1});
        selection.setPlace({1, 4, -1});
        selection.setNode(static_cast<NodeKey>(7));
        selection.setPlace({1, 5, 1});
        QCOMPARE(selection.comparison().before, (Place{1, 5, 0}));
        QCOMPARE(selection.node(), static_cast<NodeKey>(7));
        QSignalSpy places(&selection, &Selection::placeChanged), nodes(&selection, &Selection::nodeChanged);
        selection.goBack();
        QCOMPARE(selection.place(), (Place{1, 4, -1}));
        selection.goBack();
        QCOMPARE(selection.place(), (Place{1, 0, -1}));
        QCOMPARE(selection.node(), NodeKey::None);
        QVERIFY(!selection.canGoBack());
        selection.goForward();
        selection.goForward();
        QCOMPARE(selection.place(), (Place{1, 5, 1}));
        QVERIFY(!selection.canGoForward());
        QCOMPARE(places.size(), 4);
        QCOMPARE(nodes.size(), 2);
    }

    void twoMarksAreCompared() {
        Selection selection;
        selection.setPlace({1, 0, -1});
        selection.setMarkA(Place{1, 2, -1});
        QCOMPARE(selection.place(), (Place{1, 0, -1}));
        selection.setMarkB(Place{2, 3, -1});
        QCOMPARE(selection.comparison(), (Comparison{{1, 2, -1}, {2, 3, -1}}));
    }
};

CUTAWAY_SUITE(ControllerTest)
#include "controller_test.moc"
