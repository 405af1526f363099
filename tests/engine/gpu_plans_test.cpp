// Kernels as they are planned for a GPU, without one: of every recorded sample of every op with a lowering rule the
// nests, interpreted in vectors and lane by lane in an order made by chance, and the printed program, which NVRTC
// compiles where it is there. It takes long, so that of each op some samples do: CUTAWAY_SAMPLES=N takes more, and
// CUTAWAY_SAMPLES=all every one. CUTAWAY_SEED starts the order elsewhere, CUTAWAY_OPS=TEXT takes only ops whose names
// hold it.
#include <QDir>
#include <QtTest>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "cutaway/session.h"
#include "engine/codegen/cuda_prelude.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/runtime/cuda/functions.h"
#include "engine/runtime/cuda/library.h"
#include "engine/schedule/schedule.h"
#include "engine/session/session_state.h"
#include "tests/engine/lowering_samples.h"
#include "tests/support/kernels.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr size_t kPerGpuGraph = 100, kPerProgram = 64, kUsualKernels = 2;

/// Sums in f64, as the judge's are, so that an order of its own changes little.
TargetInfo judgedTarget() {
    TargetInfo target = kH100Target;
    target.sums = DType::F64;
    return target;
}

void failWhereWrong(const std::vector<std::string>& wrong, const std::vector<LoweringCase>& cases) {
    for (size_t i = 0; i < cases.size(); ++i)
        if (!wrong[i].empty()) QTest::qFail(("\n" + cases[i].name + "\n    " + wrong[i]).c_str(), __FILE__, __LINE__);
}

double secondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

class GpuPlansTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        const auto record = readOpRecord();
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        const std::string only = qgetenv("CUTAWAY_OPS").toStdString();
        for (const Op* op : loweredOps()) {
            const auto found = record->find(op->name());
            if (found == record->end() || op->name().find(only) == std::string::npos) continue;
            for (const RecordedSample& sample : found->second)
                if (auto one = makeCase(*op, sample.text, Operands::Stored)) m_cases.push_back(std::move(*one));
        }
        QVERIFY(!m_cases.empty());
    }
    void vectorsAgreeWithTheJudge() {
        failWhereWrong(wrongOf(interpretedKernels(Interpreted::Nests, judgedTarget()), m_cases, kPerGpuGraph), m_cases);
    }
    /// What lanes hand to each other without a barrier, and what one reads of another's state, comes out otherwise.
    void lanesAgreeInAnyOrder() {
        const auto begin = std::chrono::steady_clock::now();
        const auto seed = static_cast<uint32_t>(qEnvironmentVariableIsSet("CUTAWAY_SEED")
                                                    ? qEnvironmentVariableIntValue("CUTAWAY_SEED")
                                                    : static_cast<int>(std::random_device{}() % 100000));
        qInfo("CUTAWAY_SEED=%u", seed);
        failWhereWrong(wrongOf(interpretedKernels(Interpreted::Lanes, judgedTarget(), seed), m_cases, kPerGpuGraph),
                       m_cases);
        qInfo("%zu calls in %.0f s", m_cases.size(), secondsSince(begin));
    }
    /// Plans made by chance, with one warp and with several.
    void anyLegalPlanDoes() {
        const auto seed = static_cast<uint32_t>(qEnvironmentVariableIntValue("CUTAWAY_SEED"));
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        const std::vector<KernelSample> all = kernelSamples();
        TargetInfo target = kH100Target;
        target.sums = DType::F64;  // as kernels sum that are interpreted
        int legal = 0;
        for (int round = 0; legal < std::max(100, qEnvironmentVariableIntValue("CUTAWAY_SEEDS")); ++round) {
            const KernelSample& sample = all[static_cast<size_t>(round) % all.size()];
            target.loops.lanes = random() % 2 ? 64 : 16;
            const LoopPlan plan = randomPlan(sample.kernel, random, target);
            if (!problemOf(plan, sample.kernel, target).empty()) continue;
            ++legal;
            const QString wrong = differenceOfLanes(sample.kernel, plan, target, sample.elements, random());
            QVERIFY2(wrong.isEmpty(), qPrintable(QStringLiteral("seed %1, %2: %3").arg(seed).arg(sample.name, wrong)));
        }
    }
    /// One thread stores for all what others still have to read.
    void allLanesReadBeforeOneStores() {
        Kernel kernel;
        kernel.name = "over";
        kernel.buffers = {{DType::F32, true}, {DType::F32, true}, {DType::F32, false}};
        kernel.outer = {{0, 7}};
        const Expr at = Expr::axis(0) * num(90) + Expr::axis(1), own = Expr::load("b0", Expr::axis(0), DType::F32);
        const Expr element = Expr::load("b2", at, DType::F32);
        kernel.stores = {{1, {{1, 90}}, at, element * own}, {0, {}, Expr::axis(0), own + constantLike(own, 1)}};
        TargetInfo target = kH100Target;
        target.loops.lanes = 64;
        const LoopPlan plan = choosePlan(kernel, target);
        QCOMPARE(plan.vectors, VectorOver::Inner);
        const LoweredKernel lowered = lowerLoops(kernel, plan, target);
        int barriers = 0;
        forEachStmt(lowered.nests[0].body,
                    [&](const Stmt& stmt) { barriers += std::holds_alternative<Barrier>(stmt.node); });
        QCOMPARE(barriers, 1);
        for (uint32_t seed = 0; seed < 5; ++seed)
            QCOMPARE(differenceOfLanes(kernel, plan, target, 7 * 90, seed), QString());
        LoopPlan direct = choosePlan(transpose(128, 128), target);
        QVERIFY(direct.tiled >= 0);
        direct.inRegisters = true;
        QCOMPARE(problemOf(direct, transpose(128, 128), target),
                 std::string("only one thread transposes tiles in registers"));
    }
    void compilerTakesAll() {
        const auto nvrtc = cuda::Nvrtc::load();
        if (!nvrtc) QSKIP(nvrtc.error().message.c_str());
        std::vector<PrintedKernel> kernels;
        std::set<std::string> names;
        std::map<std::string, size_t> taken;  // kernels of each op
        const QByteArray wanted = qgetenv("CUTAWAY_SAMPLES");
        const size_t most = wanted == "all" ? SIZE_MAX : wanted.isEmpty() ? kUsualKernels : wanted.toULong();
        for (const LoweringCase& one : m_cases) {
            size_t& own = taken[one.name.substr(0, one.name.find('('))];
            if (own >= most) continue;
            const auto program = scheduleModule(one.module, kH100Target);
            QVERIFY2(program, program ? "" : program.error().text().c_str());
            for (const PlannedKernel& planned : program->kernels) {
                PrintedKernel kernel = printCuda(lowerLoops(planned.kernel, planned.plan, kH100Target));
                if (kernel.functions.empty() || !names.insert(kernel.functions[0]).second) continue;
                kernels.push_back(std::move(kernel));
                ++own;
            }
        }
        // Plans that small samples do not have: lanes side by side, unrolled and jammed, parts, tiles.
        std::mt19937 random(1);
        const std::vector<KernelSample> samples = kernelSamples();
        const size_t before = kernels.size();
        for (size_t round = 0; kernels.size() < before + 100; ++round) {
            const KernelSample& sample = samples[round % samples.size()];
            const LoopPlan plan = randomPlan(sample.kernel, random, kH100Target);
            if (problemOf(plan, sample.kernel, kH100Target).empty())
                kernels.push_back(printCuda(lowerLoops(sample.kernel, plan, kH100Target)));
        }
        QVERIFY(std::any_of(kernels.begin(), kernels.end(),
                            [](const PrintedKernel& kernel) { return kernel.helpers.contains("wide"); }));
        compile(*nvrtc, kernels);
    }
    /// All kernels of the models that come with the program.
    void compilerTakesModels() {
        const auto nvrtc = cuda::Nvrtc::load();
        if (!nvrtc) QSKIP(nvrtc.error().message.c_str());
        std::vector<PrintedKernel> kernels;
        for (const QFileInfo& file : QDir(CUTAWAY_SOURCE_DIR "/resources/models").entryInfoList({"*.pt2"})) {
            Session session;
            QVERIFY(session.open(file.filePath().toStdString()));
            CompileRequest request;
            request.passesOnly = true;
            QVERIFY(session.compile(request));
            const auto program = scheduleModule(session.state().runs[0].trace.result(), kH100Target);
            QVERIFY2(program, program ? "" : program.error().text().c_str());
            for (const PlannedKernel& planned : program->kernels)
                kernels.push_back(printCuda(lowerLoops(planned.kernel, planned.plan, kH100Target)));
        }
        QVERIFY(kernels.size() > 10);
        compile(*nvrtc, kernels);
    }

    void functionsOfOurOwnCompile() {
        const auto nvrtc = cuda::Nvrtc::load();
        if (!nvrtc) QSKIP(nvrtc.error().message.c_str());
        for (const std::string& source : cuda::gpuFunctionSources()) {
            const auto cubin = nvrtc->compile(source, cudaOptions(90));
            QVERIFY2(cubin, cubin ? "" : cubin.error().message.c_str());
        }
    }

  private:
    static void compile(const cuda::Nvrtc& nvrtc, const std::vector<PrintedKernel>& kernels) {
        const auto begin = std::chrono::steady_clock::now();
        std::vector<std::string> wrong((kernels.size() + kPerProgram - 1) / kPerProgram);
        std::atomic<size_t> next{0};
        const auto work = [&] {
            for (size_t i; (i = next.fetch_add(1)) < wrong.size();) {
                const auto first = kernels.begin() + static_cast<std::ptrdiff_t>(i * kPerProgram);
                const auto last =
                    kernels.begin() + static_cast<std::ptrdiff_t>(std::min(kernels.size(), (i + 1) * kPerProgram));
                const auto cubin = nvrtc.compile(cudaFile({first, last}), cudaOptions(90));
                if (!cubin) wrong[i] = cubin.error().text();
            }
        };
        std::thread other(work);
        work();
        other.join();
        for (const std::string& own : wrong)
            if (!own.empty()) QTest::qFail(own.c_str(), __FILE__, __LINE__);
        qInfo("NVRTC %s compiled %zu kernels in %.0f s", nvrtc.version().c_str(), kernels.size(), secondsSince(begin));
    }
    std::vector<LoweringCase> m_cases;
};

CUTAWAY_SUITE(GpuPlansTest)
#include "gpu_plans_test.moc"
