// Keys of steps: their text, which step they name, and that they stay what they are.
#include "cutaway/step_key.h"

#include <QtTest>

#include "cutaway/session.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

StepInfo stepAt(int index, const char* graphName, const char* stage, const char* name, int occurrence) {
    StepInfo step;
    step.index = index;
    step.graphName = graphName;
    step.stage = stage;
    step.name = name;
    step.occurrence = occurrence;
    step.rewrites = 2;
    return step;
}

/// As training has them behind a partition.
const std::vector<StepInfo> kSteps = {
    stepAt(0, "joint", "joint", "remove_noop_ops", 1),   stepAt(1, "joint", "joint", "batch_tanh", 1),
    stepAt(2, "joint", "joint", "batch_tanh", 2),        stepAt(3, "forward", "post_grad", "dce", 1),
    stepAt(4, "forward", "post_grad", "stable_sort", 1), stepAt(5, "backward", "post_grad", "dce", 1)};

}  // namespace

class StepKeyTest : public QObject {
    Q_OBJECT

  private slots:
    void found_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("index");
        QTest::addColumn<int>("rewrites");
        const auto row = [](const char* text, int index, int rewrites = -1) {
            QTest::newRow(text) << text << index << rewrites;
        };
        for (const StepInfo& step : kSteps) row(step.key().c_str(), step.index);
        row("remove_noop_ops", 0);
        row("joint/remove_noop_ops", 0);
        row("batch_tanh", 1);
        row("batch_tanh#2", 2);
        row("joint/batch_tanh#2:1", 2, 1);
        row("stable_sort:2", 4, 2);
        row("stable_sort:0", 4, 0);
        row("backward/post_grad/dce", 5);
        row("3", 2);
        row("6:1", 5, 1);
    }
    void found() {
        QFETCH(QString, text);
        QFETCH(int, index);
        QFETCH(int, rewrites);
        const auto step = findStep(kSteps, text.toStdString());
        QVERIFY2(step.has_value(), step ? "" : step.error().text().c_str());
        QCOMPARE(step->index, index);
        QCOMPARE(step->rewrites.value_or(-1), rewrites);
    }

    void refused_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* text, const char* problem) { QTest::newRow(text) << text << problem; };
        row("remove_noop_op", "did you mean remove_noop_ops?");
        row("batch_tanh#3", "no step named 'batch_tanh#3'");
        row("forward/joint/batch_tanh", "no step named");
        row("dce", "backward/post_grad/dce#1");
        row("post_grad/dce", "several steps are named");
        row("stable_sort:3", "has 2 rewrites, not 3");
        row("0", "no step named '0'");
        row("7", "no step named '7'");
        row("", "is not a step");
        row("a/b/c/d", "is not a step");
        row("//dce", "is not a step");
        row("dce#0", "is not a step");
    }
    void refused() {
        QFETCH(QString, text);
        QFETCH(QString, problem);
        const auto step = findStep(kSteps, text.toStdString());
        QVERIFY(!step.has_value());
        QVERIFY2(QString::fromStdString(step.error().text()).contains(problem), step.error().text().c_str());
    }

    void printsAndReads() {
        for (const char* text : {"a", "s/a", "t/s/a", "t/s/a#2", "t/s/a#2:7", "a:0", "place.file#1"}) {
            const auto key = parseStepKey(text);
            QVERIFY2(key.has_value(), text);
            QCOMPARE(key->text(), std::string(text));
        }
    }

    /// Whatever is switched off, moved away or added, a pass keeps its key; and no two steps share one.
    void keysStay() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.pt2"));
        const auto keys = [&](const CompileRequest& request) {
            std::map<std::string, std::string> out;
            const auto run = session.compile(request);
            if (!run) qFatal("%s", run.error().text().c_str());
            const auto steps = session.steps(*run);
            for (const StepInfo& step : *steps) out.emplace(step.key(), step.summary);
            if (out.size() != steps->size()) qFatal("two steps share a key");
            return out;
        };
        const auto plain = keys({});
        QVERIFY(plain.contains("main/joint/pass_pattern_0#1"));
        QVERIFY(plain.contains("main/schedule/fuse_nodes#1"));
        QCOMPARE(keys({.disabledPasses = {"pass_pattern_0", "dce", "chunk_addmm"}}), plain);
        CompileRequest more;
        more.enabledPasses = {{"dce", {}}, {"normalization_pass", {{"counter", "3"}}}};
        more.moves = {*parsePassMove("reorder_for_locality=after:remove_profiler_ops")};
        const auto added = keys(more);
        for (const auto& [key, summary] : plain) QVERIFY2(added.at(key) == summary, key.c_str());
        QVERIFY(added.contains("main/pre_grad/normalization_pass#3"));
        QCOMPARE(added.size(), plain.size() + 4);
        CompileRequest training;
        training.mode = Mode::Training;
        QVERIFY(keys(training).contains("joint/capture/differentiate#1"));
    }
};

CUTAWAY_SUITE(StepKeyTest)
#include "step_key_test.moc"
