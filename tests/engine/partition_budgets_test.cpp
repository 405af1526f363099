// The memory budget of a partition, as a session answers for it: runs derived with another one, and what each costs.
#include <QtTest>

#include "cutaway/session.h"
#include "engine/passes/whole_program.h"
#include "engine/session/session_state.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

CompileRequest trainingRequest() {
    CompileRequest request;
    request.mode = Mode::Training;
    return request;
}

}  // namespace

class PartitionBudgetsTest : public QObject {
    Q_OBJECT

  private slots:
    /// A derived run shares the steps before the partition and is, from there on, the run that a compilation with that
    /// budget would have made.
    void derivedRuns_data() {
        QTest::addColumn<int>("fuel");
        for (const int fuel : {-1, 40}) QTest::addRow("fuel %d", fuel) << fuel;  // -1: any number
    }
    void derivedRuns() {
        QFETCH(int, fuel);
        Session session;
        QVERIFY(session.open(testing::testFile("../resources/models/tiny_transformer.pt2").toStdString()));
        CompileRequest again = trainingRequest();
        if (fuel >= 0) again.fuel = fuel;
        QVERIFY(session.compile(again));
        const auto derived = session.deriveWithBudget(0, 0.25);
        QVERIFY2(derived, derived ? "" : derived.error().text().c_str());
        again.memoryBudget = 0.25;
        QVERIFY(session.compile(again));
        QCOMPARE(*session.requestOf(*derived), again);
        auto& runs = session.state().runs;
        const CompileTrace &first = runs[0].trace, &shared = runs[1].trace, &anew = runs[2].trace;
        const int cut = splitStepOf(first)->info.index;
        QCOMPARE(shared.steps.size(), anew.steps.size());
        for (size_t i = 0; i < shared.steps.size(); ++i) {
            QCOMPARE(shared.steps[i].info.key(), anew.steps[i].info.key());
            QCOMPARE(shared.steps[i].info.rewrites, anew.steps[i].info.rewrites);
            if (static_cast<int>(i) < cut) QVERIFY(shared.steps[i].after == first.steps[i].after);
        }
        for (const char* graphName : {"forward", "backward"})
            QCOMPARE(printText(*shared.resultOf(graphName)).text, printText(*anew.resultOf(graphName)).text);
        QVERIFY(printText(*shared.resultOf("backward")).text != printText(*first.resultOf("backward")).text);
        QCOMPARE(shared.stages.size(), anew.stages.size());
        for (size_t i = 0; i < shared.stages.size(); ++i) {
            QCOMPARE(shared.stages[i].stage, anew.stages[i].stage);
            QVERIFY(shared.stages[i].before == anew.stages[i].before && shared.stages[i].after == anew.stages[i].after);
        }
    }

    /// What a slider asks: less memory, more computed again; the ends are the budgets 0 and 1.
    void budgets() {
        Session session;
        QVERIFY(session.open(testing::testFile("../resources/models/tiny_transformer.pt2").toStdString()));
        QVERIFY(session.compile(trainingRequest()));
        const auto most = session.partition(0), least = session.partitionAt(0, 0);
        QVERIFY(most && least);
        QCOMPARE(least->activationBytes, int64_t(0));
        QVERIFY(most->activationBytes > 0);
        const auto curve = session.budgetCurve(0);
        QVERIFY2(curve, curve ? "" : curve.error().text().c_str());
        QVERIFY(curve->size() > 2);
        QCOMPARE(curve->front().budget, 0.0);
        QCOMPARE(curve->front().activationBytes, int64_t(0));
        QCOMPARE(curve->back().activationBytes, most->activationBytes);
        for (size_t i = 1; i < curve->size(); ++i) QVERIFY((*curve)[i].budget > (*curve)[i - 1].budget);
        QVERIFY(curve->front().recomputedRuntime >= (*curve)[1].recomputedRuntime);
        QVERIFY(curve->front().recomputedRuntime > 0);
        QCOMPARE(curve->back().recomputedRuntime, 0.0);
        const auto held = session.heldBytes(0);
        QVERIFY(held && !held->empty());
        int64_t peak = 0;
        for (const SavedBytes& at : *held) peak = std::max(peak, at.bytes);
        QCOMPARE(peak, most->activationBytes);
        QCOMPARE(held->back().bytes, int64_t(0));
        const auto sides = session.sides(0);
        QVERIFY(sides);
        size_t both = 0, kept = 0;
        for (const NodeSide& node : *sides) {
            both += node.side == Side::Both;
            kept += node.saved;
        }
        QVERIFY(both >= most->recomputed.size());
        QCOMPARE(kept, most->saved.size());
        int64_t bytes = 0;
        for (const auto& value : most->saved) bytes += value.bytes;
        QVERIFY(bytes > 0);
        QCOMPARE(most->savedBytes, bytes);
        QVERIFY(!session.partitionAt(0, 1.5));
        QVERIFY(session.compile({}));
        const auto none = session.partition(1);
        QVERIFY(!none && none.error().message.find("only a run for training") != std::string::npos);
    }
};

CUTAWAY_SUITE(PartitionBudgetsTest)
#include "partition_budgets_test.moc"
