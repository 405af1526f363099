// The public API: open, compile, look at every step, run. On the bundled models.
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/session/run_inputs.h"
#include "engine/session/session_state.h"
#include "engine/support/files.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

QStringList bundledModels() {
    QStringList models;
    QDirIterator files(QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models"), {"*.pt2"}, QDir::Files);
    while (files.hasNext()) models << files.next();
    models.sort();
    return models;
}

/// Largest difference between two runs, as a share of the largest value (at least 1).
double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    double worst = a.size() == b.size() ? 0 : 1e9;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const Comparison result = compare(a[i], b[i], {0, 0});
        worst = std::max(worst, result.sameType ? result.maxAbsoluteError / std::max(1.0, result.maxExpected) : 1e9);
    }
    return worst;
}

std::vector<float> floatsOf(const Tensor& tensor) {
    const Tensor packed = tensor.to(DType::F32).contiguous();
    return {packed.as<float>(), packed.as<float>() + packed.numel()};
}
Tensor indices(const std::vector<int64_t>& values) {
    Tensor tensor = Tensor::zeros(DType::I64, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.as<int64_t>());
    return tensor;
}

}  // namespace

class SessionTest : public QObject {
    Q_OBJECT

    static RunOptions comparing(const QString& folder, Backend backend, const std::string& values) {
        RunOptions options;
        options.backend = backend;
        options.inputsFile = (folder + "/inputs.safetensors").toStdString();
        options.expectFile = (folder + "/expected.safetensors").toStdString();
        options.valuesFile = values;
        return options;
    }

    static void addModels() {
        QTest::addColumn<QString>("path");
        const QStringList models = bundledModels();
        QVERIFY2(!models.isEmpty(), "resources/models holds the bundled models");
        for (const QString& model : models) QTest::newRow(qPrintable(QFileInfo(model).baseName())) << model;
    }

  private slots:
    void everyStepKeepsTheNumbers_data() { addModels(); }
    void everyStepKeepsTheNumbers() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        auto run = session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto& state = session.state();
        const CompileTrace& trace = state.runs[0].trace;
        QVERIFY(trace.steps.size() > 5);
        const auto user = randomInputs(*state.input, 7);
        QVERIFY(user.has_value());
        auto resultOf = [&](const Module& module) {
            auto bound = bindInputs(module, *user);
            if (!bound) qFatal("%s", bound.error().text().c_str());
            auto out = interpret(module, *bound);
            if (!out) qFatal("%s", out.error().text().c_str());
            return *out;
        };
        const auto expected = resultOf(*trace.input);
        for (const Step& step : trace.steps) {
            QVERIFY2(step.info.state != StepState::Failed, step.info.error.c_str());
            QVERIFY2(distance(resultOf(*step.after), expected) < 1e-5, step.info.name.c_str());
        }
    }

    void runsMatchPyTorch_data() { addModels(); }
    void runsMatchPyTorch() {
        QFETCH(QString, path);
        const std::string stem = path.chopped(4).toStdString();
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            options.inputsFile = stem + ".inputs.safetensors";
            options.expectFile = stem + ".expected.safetensors";
            const auto report = session.run(0, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QVERIFY(report->compared);
            QVERIFY(report->matches);
        }
    }

    /// droppath_mini adds a block's result to four rows of eight, chosen at random, twice; which ones PyTorch's
    /// generator chose was not recorded. Rows do not touch one another, so four runs show every row in all its four
    /// states. The expected rows must be among them and name four rows for each block; with that choice the results
    /// must match.
    void droppathMatchesApartFromItsChoice() {
        const QString folder = testing::referenceFolder("models/droppath_mini");
        if (folder.isEmpty()) QSKIP(testing::kNoReference);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        QVERIFY(session.compile({}));
        const CompileTrace& trace = session.state().runs[0].trace;
        const auto inputs = readSafeTensors((folder + "/inputs.safetensors").toStdString());
        const auto file = readSafeTensors((folder + "/expected.safetensors").toStdString());
        QVERIFY(inputs && file);
        const std::vector<float> expected = floatsOf(file->tensors[0].second);
        QTemporaryDir scratch;
        const std::string values = scratch.filePath("values.safetensors").toStdString();
        auto choose = [&](const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
            SafeTensors chosen;
            chosen.tensors.emplace_back("randperm", indices(first));
            chosen.tensors.emplace_back("randperm_1", indices(second));
            return writeSafeTensors(values, chosen);
        };
        const std::vector<int64_t> low{0, 1, 2, 3, 4, 5, 6, 7}, high{4, 5, 6, 7, 0, 1, 2, 3};
        constexpr size_t kRow = 5 * 32;
        std::vector<int64_t> firsts, seconds, others[2];  // rows chosen by each block, then the rest
        std::vector<std::vector<float>> results;
        for (int run = 0; run < 4; ++run) {
            QVERIFY(choose(run & 1 ? high : low, run & 2 ? high : low));
            std::vector<Tensor> user{inputs->tensors[0].second};
            const auto module = withValues(*trace.result(), values, user);
            QVERIFY2(module, module ? "" : module.error().text().c_str());
            const auto bound = bindInputs(**module, user);
            QVERIFY(bound);
            const auto result = interpret(**module, *bound);
            QVERIFY(result);
            results.push_back(floatsOf(result->front()));
        }
        for (int64_t row = 0; row < 8; ++row) {
            int fitting = 0;
            for (int run = 0; run < 4; ++run) {
                double worst = 0;
                for (size_t i = static_cast<size_t>(row) * kRow; i < static_cast<size_t>(row + 1) * kRow; ++i)
                    worst = std::max<double>(worst, std::abs(results[static_cast<size_t>(run)][i] - expected[i]));
                if (worst > 5e-5) continue;
                ++fitting;
                (((run & 1) != 0) == (row >= 4) ? firsts : others[0]).push_back(row);
                (((run & 2) != 0) == (row >= 4) ? seconds : others[1]).push_back(row);
            }
            QCOMPARE(fitting, 1);
        }
        QCOMPARE(firsts.size(), 4U);
        QCOMPARE(seconds.size(), 4U);
        firsts.insert(firsts.end(), others[0].begin(), others[0].end());
        seconds.insert(seconds.end(), others[1].begin(), others[1].end());
        QVERIFY(choose(firsts, seconds));
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            const auto report = session.run(0, comparing(folder, backend, values));
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QVERIFY(report->matches);
        }
    }
    void valuesMustFitTheirNodes_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("message");
        QTest::newRow("no such node") << "nothing"
                                      << "the graph that runs has no node 'nothing' to give a value to";
        QTest::newRow("an input") << "x"
                                  << "the graph that runs has no node 'x' to give a value to";
        QTest::newRow("another shape") << "addmm"
                                       << "its value in the file is f32[3]";
    }
    void valuesMustFitTheirNodes() {
        QFETCH(QString, name);
        QFETCH(QString, message);
        QTemporaryDir scratch;
        const std::string path = scratch.filePath("v.safetensors").toStdString();
        SafeTensors file;
        file.tensors.emplace_back(name.toStdString(), Tensor::zeros(DType::F32, {3}));
        QVERIFY(writeSafeTensors(path, file));
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        QVERIFY(session.compile({}));
        RunOptions options;
        options.valuesFile = path;
        const auto report = session.run(0, options);
        QVERIFY(!report);
        QVERIFY2(QString::fromStdString(report.error().text()).contains(message), report.error().text().c_str());
    }

    /// At every node where a step's rewrite began, the rule that did it is explained as applying.
    void rulesThatFiredAreExplained_data() { addModels(); }
    void rulesThatFiredAreExplained() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        const auto steps = session.steps(0);
        QVERIFY(steps);
        for (const StepInfo& step : *steps) {
            const auto uses = session.ruleUses(0, step.index);
            QVERIFY(uses);
            int64_t applied = 0;
            for (const RuleUse& use : *uses) applied += use.applied;
            if (!uses->empty()) QCOMPARE(applied, static_cast<int64_t>(step.rewrites));
            if (applied == 0) continue;
            const auto rewrites = session.rewrites(0, step.index);
            const Place before{0, step.index - 1, -1};
            const RewriteInfo& first = rewrites->front();
            const auto verdict = session.explain(before, step.name + "/" + first.rule, first.key);
            QVERIFY2(verdict, verdict ? "" : verdict.error().text().c_str());
            QVERIFY2(verdict->applies, verdict->reason.c_str());
            QVERIFY(std::find(verdict->nodes.begin(), verdict->nodes.end(), first.key) != verdict->nodes.end());
            const auto others = session.explainAll(before, first.key, step.name);
            QVERIFY(others);
            for (const RuleExplanation& other : *others)
                QVERIFY2(other.applies != !other.reason.empty(), other.rule.c_str());
        }
    }
    void explainingNamesWhatIsMissing() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        QVERIFY(session.compile({}));
        QVERIFY(!session.explain({0, -1, -1}, "no_such_rule", NodeKey(0)));
        QVERIFY(!session.explain({0, -1, -1}, "pointless_view", NodeKey(9999999)));
        QVERIFY(!session.explainText({0, -1, -1}, "rule r\n  find\n    y = aten.nothing(x)\n", NodeKey(0)));
        QVERIFY(!ruleList().empty());
    }

    void anyAmountOfFuelLeavesAGoodGraph_data() { addModels(); }
    void anyAmountOfFuelLeavesAGoodGraph() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        const CompileTrace& trace = session.state().runs[0].trace;
        const auto user = randomInputs(*session.state().input, 3);
        for (const Step& step : trace.steps)
            for (int fuel = 0; fuel <= step.info.rewrites; fuel += std::max(1, step.info.rewrites / 5)) {
                auto graph = replayRewrites(step, trace, fuel);
                QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
                auto good = verify(**graph, {});
                QVERIFY2(good, good ? "" : (step.info.name + ": " + good.error().text()).c_str());
                auto bound = bindInputs(**graph, *user);
                auto out = interpret(**graph, *bound);
                QVERIFY2(out, out ? "" : (step.info.name + ": " + out.error().text()).c_str());
            }
    }

    void sameInputGivesSameText_data() { addModels(); }
    void sameInputGivesSameText() {
        QFETCH(QString, path);
        std::vector<std::string> texts[2];
        for (auto& side : texts) {
            Session session;
            QVERIFY(session.open(path.toStdString()));
            QVERIFY(session.compile({}));
            for (int step = -1; step < static_cast<int>(session.steps(0)->size()); ++step)
                side.push_back(session.text({0, step, -1})->text);
        }
        QCOMPARE(texts[0], texts[1]);
    }

    void differencesAddUp_data() { addModels(); }
    void differencesAddUp() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        const auto steps = session.steps(0);
        for (const StepInfo& step : *steps) {
            auto graph = session.diff({0, step.index - 1, -1}, {0, step.index, -1});
            QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
            QCOMPARE(graph->added, step.added);
            QCOMPARE(graph->removed, step.removed);
            QCOMPARE(static_cast<int>(graph->nodes.size()), step.nodesAfter + step.removed);
            // The union's order is topological for what stands after the step.
            std::map<NodeKey, size_t> place;
            for (size_t i = 0; i < graph->nodes.size(); ++i) place[graph->nodes[i].info.id] = i;
            for (const UnionGraph::Edge& edge : graph->edges)
                if (edge.change != Change::Removed) QVERIFY(place.at(edge.from) < place.at(edge.to));
        }
    }

    void everyNodeTellsItsLife() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        QVERIFY(session.compile({}));
        const int last = static_cast<int>(session.steps(0)->size()) - 1;
        auto graph = session.diff({0, -1, -1}, {0, last, -1});
        int made = 0;
        for (const UnionGraph::Node& node : graph->nodes) {
            const Place place = node.change == Change::Removed ? Place{0, -1, -1} : Place{0, last, -1};
            auto details = session.node(place, node.info.id);
            QVERIFY2(details, details ? "" : details.error().text().c_str());
            QVERIFY(!details->history.empty());
            QVERIFY(!details->line.empty());
            if (node.change == Change::Added) {
                QVERIFY(details->history.front().step >= 0);
                ++made;
            } else {
                QCOMPARE(details->history.front().step, -1);
            }
        }
        QVERIFY(made > 0);
    }

    void badFileLeavesTheSessionAsItWas_data() {
        QTest::addColumn<QByteArray>("content");
        QFile file(bundledModels().first());
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray good = file.readAll();
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("text") << QByteArray("hello\n");
        QTest::newRow("truncated") << good.left(good.size() / 2);
        QTest::newRow("directory only") << good.right(2000);
        QByteArray flipped = good;
        for (qsizetype at = good.size() - 600; at < good.size(); at += 7)
            flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
        QTest::newRow("flipped directory") << flipped;
    }
    void badFileLeavesTheSessionAsItWas() {
        QFETCH(QByteArray, content);
        QTemporaryDir folder;
        QFile file(folder.filePath("bad.pt2"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
        file.close();
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        QVERIFY(session.compile({}));
        const std::string before = session.text({0, 3, -1})->text;
        auto bad = session.open(file.fileName().toStdString());
        QVERIFY(!bad);
        QVERIFY(!bad.error().message.empty());
        QCOMPARE(session.text({0, 3, -1})->text, before);
        QCOMPARE(session.runs().size(), size_t{1});
    }

    /// Weights are read when they are used, and somebody may export the model anew meanwhile.
    void modelsCutShortWhileOpen_data() {
        QTest::addColumn<int>("backend");
        QTest::newRow("reference") << static_cast<int>(Backend::Reference);
        QTest::newRow("compiled") << static_cast<int>(Backend::Cpu);
    }
    void modelsCutShortWhileOpen() {
        QFETCH(int, backend);
        using namespace cutaway::testing;
        QTemporaryDir folder;
        const std::string path = folder.filePath("model.pt2").toStdString();
        const std::string bytes = largeWeightArchive();
        QVERIFY(writeFile(path, bytes).has_value());

        Session session;
        QVERIFY2(session.open(path), "opens");
        const auto compiled = session.compile({});
        QCOMPARE(failureOf(compiled), QString());
        std::filesystem::resize_file(path, 100);
        RunOptions options;
        options.backend = static_cast<Backend>(backend);
        const QString failure = failureOf(session.run(*compiled, options));
        QVERIFY2(failure.startsWith(QString::fromStdString(path) +
                                    ": data/weights/weight_0: the file has changed since it was opened"),
                 qPrintable(failure));
        // The session lives on, and the file may be opened again.
        QVERIFY(session.text({*compiled, 0, -1}).has_value());
        QVERIFY(writeFile(path, bytes).has_value());
        QVERIFY(session.open(path));
        const auto again = session.compile({});
        QCOMPARE(failureOf(again), QString());
        QCOMPARE(failureOf(session.run(*again, options)), QString());
    }

    void passesCanBeSwitchedOff() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        CompileRequest options;
        options.disabledPasses = {"remove_noop_ops"};
        QVERIFY(session.compile(options));
        bool seen = false;
        const auto steps = session.steps(0);
        for (const StepInfo& step : *steps)
            if (step.name == "remove_noop_ops") {
                QCOMPARE(step.state, StepState::Disabled);
                seen = true;
            }
        QVERIFY(seen);
        options.disabledPasses = {"no_such_pass"};
        auto wrong = session.compile(options);
        QVERIFY(!wrong);
        QVERIFY(wrong.error().message.find("no_such_pass") != std::string::npos);
    }

    void fuelLimitsTheWholeRun() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        int64_t all = 0;
        const auto optional = [](const StepInfo& step) {  // all others are required
            return step.stage == "joint" || step.stage == "post_grad" || step.name == "choose_libraries" ||
                   step.name == "fuse_nodes";
        };
        const auto whole = session.steps(*session.compile({}));
        for (const StepInfo& step : *whole)
            if (optional(step)) all += step.rewrites;
        QVERIFY(all > 1);
        for (int64_t fuel : {0, 1, 5, 9}) {
            CompileRequest options;
            options.fuel = fuel;
            auto run = session.compile(options);
            QVERIFY(run.has_value());
            int64_t used = 0;
            const auto steps = session.steps(*run);
            for (const StepInfo& step : *steps)
                if (optional(step)) used += step.rewrites;
            QCOMPARE(used, std::min<int64_t>(fuel, all));
            QCOMPARE(steps->back().name, std::string("reuse_memory"));
        }
    }

    void cancelStopsTheRun() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        Progress progress;
        progress.cancel->cancel();
        auto run = session.compile({}, {}, progress);
        QVERIFY(!run);
        QCOMPARE(run.error().code, ErrorCode::Cancelled);
        QVERIFY(session.runs().empty());
    }

    void watchedRunsTellEveryStep() {
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        std::vector<std::string> told;
        const auto run = session.compileWatched(
            {}, {}, [&](const StepInfo& step) { told.push_back(std::to_string(step.index) + step.name); });
        QVERIFY(run);
        std::vector<std::string> recorded;
        const auto steps = session.steps(*run);
        for (const StepInfo& step : *steps) recorded.push_back(std::to_string(step.index) + step.name);
        QCOMPARE(told, recorded);
        QCOMPARE(*session.wasCancelled(*run), false);
    }

    /// A watched run that was stopped is the steps of the whole one until then.
    void aStoppedRunKeepsWhatItDid_data() {
        QTest::addColumn<int>("stopAfter");
        for (const int steps : {0, 5, 20}) QTest::addRow("after step %d", steps) << steps;
    }
    void aStoppedRunKeepsWhatItDid() {
        QFETCH(int, stopAfter);
        Session session;
        QVERIFY(session.open(bundledModels().first().toStdString()));
        const auto whole = session.compile({});
        Progress progress;
        const auto run = session.compileWatched(
            {}, {},
            [&](const StepInfo& step) {
                if (step.index == stopAfter) progress.cancel->cancel();
            },
            progress);
        QVERIFY(run);
        QVERIFY(*session.wasCancelled(*run));
        QCOMPARE(session.steps(*run)->size(), static_cast<size_t>(stopAfter) + 1);
        for (const int step : {-1, stopAfter / 2, stopAfter})
            QCOMPARE(session.text({*run, step, -1})->text, session.text({*whole, step, -1})->text);
        QVERIFY(session.diff({*run, -1, -1}, {*run, stopAfter, -1}));
        RunOptions options;
        QVERIFY(session.run(*run, options));
        Progress early;
        early.cancel->cancel();
        const auto none = session.compileWatched(
            {}, {}, [](const StepInfo&) {}, early);
        QCOMPARE(none.error().code, ErrorCode::Cancelled);
        QCOMPARE(session.runs().size(), size_t(2));
    }
};

CUTAWAY_SUITE(SessionTest)
#include "engine_session_test.moc"
