// A compiled program stays loaded in a process of its own: the next run finds it there, and whatever happens to the
// process costs one run.
#include <signal.h>

#include <QTemporaryDir>
#include <QtTest>
#include <random>
#include <thread>

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/reference.h"
#include "engine/runtime/worker_pool.h"
#include "engine/support/sanitized.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::moduleOf;

namespace {

const char* const kChain = R"(def forward(x: "f32[64, 32]", w: "f32[32, 48]"):
    e = aten.exp.default(x)
    m = aten.mm.default(e, w)
    r = aten.relu.default(m)
    return (r,))";

bool lives(int process) { return ::kill(process, 0) == 0; }

/// What the interpreter says of the run.
QString wrong(const Module& module, const std::vector<Tensor>& inputs, const Result<CpuRun>& run) {
    if (!run) return QString::fromStdString(run.error().text());
    const auto expected = interpret(module, inputs);
    if (!expected) return QString::fromStdString(expected.error().text());
    for (size_t i = 0; i < expected->size(); ++i)
        if (!compare(run->outputs[i], (*expected)[i], {1e-4, 1e-4}).within)
            return QString("output %1 is not the interpreter's").arg(i);
    return {};
}

}  // namespace

class ProgramWorkerTest : public QObject {
    Q_OBJECT

  private slots:
    void theNextRunFindsTheProgramLoaded() {
        const auto module = moduleOf(kChain);
        const auto program = buildCpu(module);
        QVERIFY(program.has_value());
        QCOMPARE(program->process(), 0);
        int first = 0;
        for (uint64_t seed = 1; seed <= 3; ++seed) {
            const auto inputs = randomInputs(*module, seed);
            QCOMPARE(wrong(*module, *inputs, runCpu(*program, *inputs)), QString());
            if (first == 0) first = program->process();
            QVERIFY(first > 0);
            QCOMPARE(program->process(), first);
        }
        // OpenMP reads the number of threads when it starts.
        const auto inputs = randomInputs(*module, 4);
        QCOMPARE(wrong(*module, *inputs, runCpu(*program, *inputs, {.threads = 1})), QString());
        QVERIFY(program->process() != first);
        QTRY_VERIFY(!lives(first));
    }

    /// An error in a run leaves the process as it is.
    void aRefusedRunIsFollowedByAGoodOne() {
        const auto module = moduleOf(R"(def forward(x: "f32[4]", i: "i64[2]"):
    e = aten.index_select.default(x, 0, i)
    return (e,))");
        const auto program = buildCpu(module);
        QVERIFY(program.has_value());
        std::vector<Tensor> inputs = *randomInputs(*module, 1);
        inputs[1] = Tensor::full(DType::I64, {2}, int64_t{9});
        QVERIFY(!runCpu(*program, inputs));
        const int process = program->process();
        inputs[1] = Tensor::full(DType::I64, {2}, int64_t{3});
        QCOMPARE(wrong(*module, inputs, runCpu(*program, inputs)), QString());
        QCOMPARE(program->process(), process);
    }

    /// What a graph writes to its inputs is not there in the next repeat, nor in the next run.
    void inputsAreAsGivenInEachRepeat() {
        const auto module = moduleOf(R"(def forward(x: "f32[8]"):
    a = aten.add.Tensor(x, 1.0)
    c = aten.copy_.default(x, a)
    return (a,))");
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const std::vector<Tensor> inputs = {Tensor::zeros(DType::F32, {8})};
        for (int i = 0; i < 2; ++i) {
            const auto run = runCpu(*program, inputs, {.repeat = 5});
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            QCOMPARE(toDouble(run->outputs[0].item()), 1.0);
        }
        QCOMPARE(toDouble(inputs[0].item()), 0.0);
    }

    void aProcessThatWasKilledIsReplaced() {
        const auto module = moduleOf(kChain);
        const auto program = buildCpu(module);
        const auto inputs = randomInputs(*module, 1);
        QVERIFY(runCpu(*program, *inputs).has_value());
        const int process = program->process();
        ::kill(process, SIGKILL);
        QCOMPARE(wrong(*module, *inputs, runCpu(*program, *inputs)), QString());
        QVERIFY(program->process() != process);
    }

    /// Killed at any moment, a hundred times: one clear error or a good answer, and the next run works.
    void killedAtAnyMoment() {
        const auto module = moduleOf(kChain);
        const auto program = buildCpu(module);
        const auto inputs = randomInputs(*module, 1);
        const auto seed = static_cast<unsigned>(QDateTime::currentMSecsSinceEpoch());
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        int killed = 0;
        for (int i = 0; i < 100; ++i) {
            QVERIFY(runCpu(*program, *inputs, {.repeat = 0}).has_value());
            const int process = program->process();
            std::thread killer([&, wait = std::chrono::microseconds(random() % 5000)] {
                std::this_thread::sleep_for(wait);
                ::kill(process, SIGKILL);
            });
            // Every other run lasts longer than a busy machine takes to kill it.
            const auto run = runCpu(*program, *inputs, {.repeat = i % 2 ? 100 : 5'000});
            killer.join();
            if (run) continue;
            ++killed;
            QVERIFY2(run.error().text().find("killed by signal 9") != std::string::npos, run.error().text().c_str());
            QTRY_VERIFY(!lives(process));
        }
        QVERIFY(killed > 0);
        QCOMPARE(wrong(*module, *inputs, runCpu(*program, *inputs)), QString());
    }

    /// Loaded programs hold their weights, so only the latest few are kept; none outlives its program.
    void fewProcessesAreKept() {
        const auto module = moduleOf(kChain);
        const auto inputs = randomInputs(*module, 1);
        std::vector<int> processes;
        {
            std::vector<CpuProgram> programs;
            for (int i = 0; i < 5; ++i) {
                programs.push_back(*buildCpu(module));
                QVERIFY(runCpu(programs.back(), *inputs).has_value());
                processes.push_back(programs.back().process());
            }
            QCOMPARE(std::count_if(processes.begin(), processes.end(), lives), 3);
            QCOMPARE(wrong(*module, *inputs, runCpu(programs[0], *inputs)), QString());
            processes.push_back(programs[0].process());
        }
        // One process waits for the next program.
        const std::vector<int> idle = idleWorkers();
        QCOMPARE(idle.size(), size_t(1));
        QTRY_COMPARE(std::count_if(processes.begin(), processes.end(), lives), 1);
        const auto next = *buildCpu(module);
        QCOMPARE(wrong(*module, *inputs, runCpu(next, *inputs)), QString());
        QCOMPARE(next.process(), idle[0]);
        QVERIFY(idleWorkers().empty());
    }

    /// A process that waited and was killed meanwhile costs nobody an answer.
    void aWaitingProcessThatWasKilledIsReplaced() {
        const auto module = moduleOf(kChain);
        const auto inputs = randomInputs(*module, 1);
        QVERIFY(runCpu(*buildCpu(module), *inputs).has_value());
        for (const bool compiled : {true, false}) {
            QVERIFY(runReference(*module, *inputs).has_value());
            const std::vector<int> idle = idleWorkers();
            QCOMPARE(idle.size(), size_t(1));
            ::kill(idle[0], SIGKILL);
            if (compiled) QCOMPARE(wrong(*module, *inputs, runCpu(*buildCpu(module), *inputs)), QString());
            else QVERIFY(runReference(*module, *inputs).has_value());
        }
    }

    /// Weights that the library has packed are given back, and are there again when other sizes want them.
    void weightsAreHeldOnce() {
        constexpr int64_t kRows = 1024, kBytes = kRows * kRows * 4;
        Module module(*moduleOf(
            R"(def forward(x: "f32[s0, 1024]", w: "f32[1024, 1024]", v: "f32[1024, 1024][1, 1024]", e: "f32[1024, 1024]"):
    a = aten.mm.default(x, w)
    r = aten.relu.default(a)
    b = aten.mm.default(r, v)
    c = aten.mm.default(b, e)
    f = aten.slice.Tensor(e, 0, 0, 1)
    d = aten.add.Tensor(c, f)
    return (d, v))"));
        std::vector<Tensor> inputs(4);
        module.inputs.resize(4);
        for (size_t i = 1; i < 4; ++i) {
            module.inputs[i] = {InputSpec::Kind::Parameter, "weight" + std::to_string(i), true, {}};
            inputs[i] = Tensor::zeros(DType::F32, {kRows, kRows});  // one of them lies otherwise than the graph says
            float* const numbers = inputs[i].as<float>();
            for (int64_t k = 0; k < kRows * kRows; ++k) numbers[k] = static_cast<float>(k * 7919 % 101 - 50) / 1000;
        }
        const auto program = buildCpu(std::make_shared<const Module>(module));
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        int loads = 0;
        for (const int64_t rows : {3, 64, 3, 200, 1}) {
            inputs[0] = Tensor::full(DType::F32, {rows, kRows}, 0.01);
            const auto run = runCpu(*program, inputs);
            QCOMPARE(wrong(module, inputs, run), QString());
            QCOMPARE(run->cost.weightsBytes, 3 * kBytes);
            QVERIFY(run->cost.arenaBytes >= rows * kRows * 4);
            QVERIFY(run->cost.peakBytes > run->cost.weightsBytes + run->cost.arenaBytes);
            QVERIFY(run->cost.programPeakBytes > run->cost.weightsBytes);
            QVERIFY(run->cost.startMilliseconds > 0);
            loads += run->cost.loadMilliseconds > 0;
        }
        QVERIFY2(loads <= 2, "weights are sent again for every size");
    }

    /// Beside weights and values a process has little: no memory of a compiler that it never calls, none of what only
    /// loading needs.
    void aProcessHoldsWhatItRuns() {
        if (kSanitized || testing::build().sharedEngine)
            QSKIP("sanitizers, and an engine in one library, have memory of their own");
        constexpr int kWeights = 24;
        std::string parameters = "x: \"f32[1, 1024]\"", calls, value = "x";
        for (int i = 0; i < kWeights; ++i) {
            const std::string number = std::to_string(i);
            parameters += ", w" + number + ": \"f32[1024, 1024]\"";
            calls += "    m" + number + " = aten.mm.default(" + value + ", w" + number + ")\n";
            value = "m" + number;
        }
        Module module(*moduleOf("def forward(" + parameters + "):\n" + calls + "    return (" + value + ",)"));
        std::vector<Tensor> inputs = *randomInputs(module, 1);
        module.inputs.resize(inputs.size());
        for (size_t i = 1; i < inputs.size(); ++i)
            module.inputs[i] = {InputSpec::Kind::Parameter, "weight" + std::to_string(i), true, {}};
        const auto program = buildCpu(std::make_shared<const Module>(module));
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const RunCost& cost = run->cost;
        QCOMPARE(cost.weightsBytes, int64_t{kWeights} << 22);
        QVERIFY2(cost.peakBytes * 5 <= cost.weightsBytes * 6 + cost.arenaBytes * 5,
                 qPrintable(QString::number(cost.peakBytes)));
        QFile maps(QString("/proc/%1/maps").arg(program->process()));
        QVERIFY(maps.open(QIODevice::ReadOnly));
        const QByteArray files = maps.readAll();
        for (const char* library : {"Cbc", "sqlite"}) QVERIFY2(!files.contains(library), library);
    }

    /// While a backward runs, its forward's values are there as far as they were saved.
    void aForwardLeavesWhatItHasSaved() {
        if (kSanitized) QSKIP("sanitizers keep what is freed");
        const auto forward = moduleOf(R"(def forward(x: "f32[32768, 16]", w: "f32[16, 1024]"):
    a = aten.mm.default(x, w)
    s = aten.sum.dim_IntList(a, [1], True)
    t = aten.sum.default(s)
    return (t, s))");
        const auto backward = moduleOf(R"(def forward(s: "f32[32768, 1]", r: "f32[1, 1024]"):
    b = aten.mm.default(s, r)
    g = aten.sum.dim_IntList(b, [0])
    return (g,))");
        const auto training = buildTraining(forward, backward, {1, -1});
        QVERIFY2(training.has_value(), training ? "" : training.error().text().c_str());
        const auto inputs = randomInputs(*forward, 1);
        const auto ahead = runCpu(training->forward, *inputs, {.leaveSaved = true});
        QCOMPARE(wrong(*forward, *inputs, ahead), QString());
        std::vector<Tensor> handed = *randomInputs(*backward, 2);
        handed[0] = runCpu(training->forward, *inputs, {.leaveSaved = true})->outputs[1];
        const auto back = runCpu(training->backward, handed);
        QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
        constexpr int64_t kProduct = int64_t{32768} * 1024 * 4;
        QVERIFY(ahead->cost.arenaBytes >= kProduct && back->cost.arenaBytes >= kProduct);
        QVERIFY2(back->cost.peakBytes < kProduct * 3 / 2, qPrintable(QString::number(back->cost.peakBytes)));
        handed[0] = ahead->outputs[1];  // which wrong() has read
        QCOMPARE(wrong(*backward, handed, runCpu(training->backward, handed)), QString());
    }

    /// Kernels that were compiled once are found by what they are made from, whatever program they belong to.
    void kernelsAreCompiledOnce() {
        QTemporaryDir folder;
        const std::string store = folder.filePath("store.sqlite").toStdString();
        const auto compiled = [&](const char* text) {
            const auto program = buildCpu(moduleOf(text), {.store = store});
            if (!program) qFatal("%s", program.error().text().c_str());
            const auto module = moduleOf(text);
            const auto inputs = randomInputs(*module, 1);
            if (const QString problem = wrong(*module, *inputs, runCpu(*program, *inputs)); !problem.isEmpty())
                qFatal("%s", qPrintable(problem));
            return QString::fromStdString(program->info().compileLog).count("-shared");
        };
        QCOMPARE(compiled(kChain), 1);
        QCOMPARE(compiled(kChain), 0);
        // One of its kernels, in another program.
        const char* const other = R"(def forward(y: "f32[64, 32]"):
    e = aten.exp.default(y)
    return (e,))";
        QCOMPARE(compiled(other), 0);
        // A library that was changed since is not loaded.
        const QStringList files = QDir(folder.filePath("kernels")).entryList(QDir::Files);
        QCOMPARE(files.size(), 1);
        QFile library(folder.filePath("kernels/" + files[0]));
        QVERIFY(library.open(QIODevice::Append));
        library.write("x");
        library.close();
        QCOMPARE(compiled(other), 1);
        // Nor is anything where others may write.
        QVERIFY(QFile::remove(folder.filePath("kernels/" + files[0])));
        const QString kernels = folder.filePath("kernels");
        QVERIFY(QDir(kernels).removeRecursively());
        QVERIFY(QFile::link("/nonexistent", kernels));
        QCOMPARE(compiled(other), 1);
        QCOMPARE(compiled(other), 1);
    }
};

CUTAWAY_SUITE(ProgramWorkerTest)
#include "program_worker_test.moc"
