// Targets as values: what a schedule holds of its machine decides, is hashed, and is checked against.
#include <QDir>
#include <QtTest>
#include <algorithm>
#include <set>

#include "cutaway/session.h"
#include "engine/host/plan_program.h"
#include "engine/interpret/interpret.h"
#include "engine/libraries/choose.h"
#include "engine/loops/nest_text.h"
#include "engine/runtime/libraries/table.h"
#include "engine/schedule/lowering.h"
#include "engine/schedule/schedule.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/session_state.h"
#include "tests/engine/lowering_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct TargetChange {
    const char* name;
    void (*make)(TargetInfo& target);
};
constexpr std::string_view kNoSine[] = {"sin"};
const TargetChange kTargetChanges[] = {
    {"name", [](TargetInfo& t) { t.name = "another"; }},
    {"device",
     [](TargetInfo& t) {
         t.device = {DeviceType::Cuda, 0};
     }},
    {"alignment", [](TargetInfo& t) { t.alignment *= 2; }},
    {"sharedBytes", [](TargetInfo& t) { t.sharedBytes += 1024; }},
    {"sums", [](TargetInfo& t) { t.sums = DType::F32; }},
    {"missing", [](TargetInfo& t) { t.missing = kNoSine; }},
    {"lanes", [](TargetInfo& t) { t.loops.lanes = 8; }},
    {"indexBits", [](TargetInfo& t) { t.loops.indexBits = 32; }},
    {"gatheredCost", [](TargetInfo& t) { t.loops.gatheredCost += 1; }},
    {"in_registers", [](TargetInfo& t) { t.loops.inRegisters = false; }},
    {"tf32", [](TargetInfo& t) { t.tf32 = Tf32::All; }},
    {"measuresProducts", [](TargetInfo& t) { t.measuresProducts = true; }},
    {"buffers", [](TargetInfo& t) { t.fusion.buffers = 20; }},
    {"parts", [](TargetInfo& t) { t.fusion.parts = 2; }},
    {"cheapCost", [](TargetInfo& t) { t.fusion.cheapCost = 0; }},
};

TargetInfo targetWith(void (*make)(TargetInfo&)) {
    TargetInfo target = kCpuTarget;
    make(target);
    return target;
}

}  // namespace

class TargetsTest : public QObject {
    Q_OBJECT

  private slots:
    void everyMemberDecides() {
        const Hash128 hash128 = Schedule(kCpuTarget).fingerprint();
        QVERIFY(hash128 == Schedule(kCpuTarget).fingerprint());
        QVERIFY(!(hash128 == Schedule(kH100Target).fingerprint()));
        for (const TargetChange& change : kTargetChanges) {
            const TargetInfo other = targetWith(change.make);
            QVERIFY2(!(other == kCpuTarget), change.name);
            QVERIFY2(!(hash128 == Schedule(other).fingerprint()), change.name);
        }
    }
    void aRequestNamesARow() {
        CompileRequest request;
        QVERIFY(targetOf(request) == kCpuTarget);
        request.target = Target::Cuda;
        QVERIFY(!(targetOf(request) == kH100Target));  // PyTorch's default rounds convolutions
        request.tf32 = Tf32::None;
        QVERIFY(targetOf(request) == kH100Target);
    }
    void schedulesAreOfOneTarget() {
        const std::shared_ptr<const Module> module = moduleOf(kSine);
        const auto planned = scheduled(module, kH100Target);
        QVERIFY2(planned, planned ? "" : planned.error().text().c_str());
        const auto program = scheduleModule(*planned, kH100Target);
        QVERIFY(program && *program->target == kH100Target);
        QCOMPARE(program->kernels[0].plan.lanes, 256);
        const auto refused = scheduleModule(*planned, kCpuTarget);
        QVERIFY(!refused);
        QCOMPARE(QString::fromStdString(refused.error().message),
                 QString("the schedule is for h100, and cpu is wanted"));
    }
    void plansAreOfOneTarget() {
        const Kernel kernel = softmax(9, 4000);
        const LoopPlan plan = choosePlan(kernel, kH100Target);
        QCOMPARE(problemOf(plan, kernel, kH100Target), std::string());
        QCOMPARE(problemOf(plan, kernel, kCpuTarget), std::string("vectors have 16 lanes"));
    }
    /// 4 096 numbers of a row are kept; where there are fewer bytes they are computed again.
    void lanesShareWhatTheTargetHas() {
        const Kernel rows = softmax(9, 4096), turned = transpose(512, 512);
        TargetInfo small = kH100Target;
        small.sharedBytes = 8 << 10;
        const LoopPlan wide = choosePlan(rows, kH100Target);
        QVERIFY(!wide.cached.empty());
        QVERIFY(choosePlan(rows, small).cached.empty());
        small.sharedBytes = 64;
        small.sums = DType::F64;  // as kernels sum that are interpreted
        QCOMPARE(choosePlan(rows, small).lanes, 1);
        QCOMPARE(difference(rows, choosePlan(rows, small), small, 9 * 4096, 3, 5), QString());
        small.sharedBytes = 8 << 10;
        const QString why = QString::fromStdString(problemOf(wide, rows, small));
        QVERIFY2(why.startsWith("what lanes share takes ") && why.endsWith(" bytes, and h100 has 8192"),
                 qPrintable(why));
        for (const TargetInfo& target : {kH100Target, small}) {
            const LoopPlan plan = choosePlan(turned, target);
            QVERIFY(plan.tiled >= 0 && !plan.inRegisters);
            QVERIFY(sharedBytes(plan, turned, target) <= target.sharedBytes);
            const LoweredKernel lowered = lowerLoops(turned, plan, target);
            int64_t bytes = 0;
            for (const Scratch& scratch : lowered.nests[0].scratch) bytes += scratch.count * byteSize(scratch.dtype);
            QCOMPARE(bytes, sharedBytes(plan, turned, target));
            QCOMPARE(difference(turned, plan, target, 512 * 512, 3, 5), QString());
        }
    }
    void sumsAreInTheTargetsDtype() {
        Kernel kernel = columnSums(40, 7);
        const TargetInfo narrow = targetWith([](TargetInfo& t) { t.sums = DType::F32; });
        const auto nestOf = [&](const TargetInfo& target) {
            return QString::fromStdString(text(lowerLoops(kernel, choosePlan(kernel, target), target).nests[0]));
        };
        QVERIFY(nestOf(kCpuTarget).contains("f64"));
        QVERIFY2(!nestOf(narrow).contains("f64"), qPrintable(nestOf(narrow)));
    }
    void missingFunctionsAreNoKernels() {
        const std::shared_ptr<const Module> module = moduleOf(kSine);
        const Node* sine = module->graph().outputNode()->inputs()[0];
        QVERIFY(probe(*sine, kCpuTarget).lowers);
        const RuleFacts facts = probe(*sine, targetWith([](TargetInfo& t) { t.missing = kNoSine; }));
        QVERIFY(!facts.lowers);
        QCOMPARE(QString::fromStdString(facts.whyNot), QString("kernels have no function 'sin' on cpu"));
    }
    void kernelsHoldWhatTheTargetSays() {
        const std::shared_ptr<const Module> module = moduleOf(kSine);
        const Node* sine = module->graph().outputNode()->inputs()[0];
        const RuleFacts facts = probe(*sine, targetWith([](TargetInfo& t) { t.fusion.buffers = 1; }));
        QCOMPARE(QString::fromStdString(facts.whyNot),
                 QString("it reads and writes 2 tensors, and a kernel has at most 1"));
    }
    /// A library's own file names it as the list does.
    void listsAgree() {
        for (const Library* library : allLibraries()) {
            const CtLibrary* const found = libraryNamed(library->name);
            QVERIFY2(found != nullptr && found->name == library->name, std::string(library->name).c_str());
        }
        QVERIFY(libraryNamed("none") == nullptr);
    }

    /// Rows of libraries are for one device; empty where it has none for the call.
    void librariesAreOfOneDevice_data() {
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("cpu");
        QTest::addColumn<QString>("gpu");
        QTest::newRow("products") << "aten.mm.default(x, x)"
                                  << "library: mm (oneDNN)"
                                  << "library: mm (cuBLASLt)";
        QTest::newRow("copies") << "aten.cat.default([x, x, x, x, x])"
                                << "library: cat (copies)"
                                << "";
        QTest::newRow("LAPACK") << "aten.linalg_inv_ex.default(x)"
                                << "library: linalg_inv_ex (LAPACK)"
                                << "";
        QTest::newRow("portable") << "aten.cumsum.default(x, 0)"
                                  << "portable: aten.cumsum.default"
                                  << "library: cumsum (GPU functions)";
        QTest::newRow("in place") << "aten.copy_.default(x, x)"
                                  << "portable: aten.copy_.default"
                                  << "library: copy_ (GPU functions)";
    }
    void librariesAreOfOneDevice() {
        QFETCH(QString, call);
        QFETCH(QString, cpu);
        QFETCH(QString, gpu);
        const auto module = moduleOf("x: \"f32[8, 8]\"", "y = " + call.toStdString() + "; return y");
        for (const TargetInfo& target : {kCpuTarget, kH100Target}) {
            const auto planned = scheduled(module, target);
            QVERIFY2(planned, planned ? "" : planned.error().text().c_str());
            const QString& library = target == kH100Target ? gpu : cpu;
            for (const auto& scheduledModule : {*planned, forExport(*planned)})
                QCOMPARE(Schedule::of(*scheduledModule)->libraries.empty(), library.isEmpty());
            const auto program = scheduleModule(*planned, target);
            QVERIFY2(program, program ? "" : program.error().text().c_str());
            for (const ScheduledCall& made : program->calls) {
                QCOMPARE(made.library == nullptr, library.isEmpty());
                if (!library.isEmpty()) QCOMPARE(QString::fromStdString(made.description), library);
            }
        }
    }
    /// By request: none, conv, all. Of halves and f64 nothing is rounded, nor on the CPU.
    void f32IsRoundedToTf32_data() {
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("rounded");
        const auto convolution = [](const char* transposed) {
            return QString("aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], %1, [0, 0], 1)")
                .arg(transposed);
        };
        const auto inputs = [](const char* dtype) {
            return QString("x: \"%1[2, 8, 9, 9]\", w: \"%1[8, 8, 3, 3]\"").arg(dtype);
        };
        QTest::newRow("convolution") << inputs("f32") << convolution("False") << "conv all";
        QTest::newRow("transposed") << inputs("f32") << convolution("True") << "all";
        QTest::newRow("half") << inputs("f16") << convolution("False") << "";
        QTest::newRow("double") << inputs("f64") << convolution("False") << "";
        QTest::newRow("product") << "x: \"f32[8, 8]\", w: \"f32[8, 8]\""
                                 << "aten.mm.default(x, w)"
                                 << "all";
        QTest::newRow("half product") << "x: \"bf16[8, 8]\", w: \"bf16[8, 8]\""
                                      << "aten.mm.default(x, w)"
                                      << "";
        QTest::newRow("no product") << "x: \"f32[8, 8]\", w: \"f32[8, 8]\""
                                    << "aten.cumsum.default(x, 0)"
                                    << "";
    }
    void f32IsRoundedToTf32() {
        QFETCH(QString, inputs);
        QFETCH(QString, call);
        QFETCH(QString, rounded);
        const auto module = moduleOf(inputs.toStdString(), "y = " + call.toStdString() + "; return y");
        std::set<std::string> fingerprints;
        for (const Target device : {Target::Cuda, Target::Cpu})
            for (const Tf32 tf32 : {Tf32::None, Tf32::Conv, Tf32::All}) {
                CompileRequest request;
                request.target = device;
                request.tf32 = tf32;
                const TargetInfo& target = targetOf(request);
                const bool wanted = device == Target::Cuda &&
                                    rounded.split(' ').contains(QString::fromStdString(std::string(tf32Name(tf32))));
                const auto planned = scheduled(module, target);
                QVERIFY2(planned, planned ? "" : planned.error().text().c_str());
                fingerprints.insert(Schedule::of(**planned)->fingerprint().hex());
                const auto program = planProgram({*planned}, {}, target);
                QVERIFY2(program, program ? "" : program.error().text().c_str());
                const std::string& description = program->graphs[0].calls.back().description;
                QCOMPARE(description.ends_with(", TF32)"), wanted);
                QCOMPARE(roundsToTf32(program->host), wanted);
            }
        QCOMPARE(fingerprints.size(), size_t{4});  // a program is kept for the setting, which the CPU has not
    }
    void maxAutotuneMeasuresProducts_data() {
        QTest::addColumn<int>("device");
        QTest::addColumn<QString>("argument");
        QTest::addColumn<QString>("call");
        QTest::addColumn<bool>("measured");
        const QString matrix = "x: \"f32[8, 8]\"", batch = "x: \"f32[2, 8, 8]\"";
        QTest::newRow("product") << int(Target::Cuda) << matrix << "aten.mm.default(x, x)" << true;
        QTest::newRow("batch") << int(Target::Cuda) << batch << "aten.bmm.default(x, x)" << true;
        QTest::newRow("scan") << int(Target::Cuda) << matrix << "aten.cumsum.default(x, 0)" << false;
        QTest::newRow("product on the CPU") << int(Target::Cpu) << matrix << "aten.mm.default(x, x)" << false;
    }
    void maxAutotuneMeasuresProducts() {
        QFETCH(int, device);
        QFETCH(QString, argument);
        QFETCH(QString, call);
        QFETCH(bool, measured);
        const auto module = moduleOf(argument.toStdString(), "y = " + call.toStdString() + "; return y");
        for (const bool asked : {false, true}) {
            CompileRequest request;
            request.target = static_cast<Target>(device);
            request.tf32 = Tf32::All;  // both are told to one call
            if (asked) request.enabledPasses.push_back({"max_autotune", {}});
            const TargetInfo& target = targetOf(request);
            const auto planned = scheduled(module, target);
            QVERIFY2(planned, planned ? "" : planned.error().text().c_str());
            const auto program = planProgram({*planned}, {}, target);
            QVERIFY2(program, program ? "" : program.error().text().c_str());
            bool told = false;
            for (const HostStep& step : program->host.functions[0].steps) {
                QVERIFY(step.params.empty() || step.params.size() == step.args.size());
                told |= std::find(step.params.begin(), step.params.end(), kMeasure) != step.params.end();
            }
            QCOMPARE(told, asked && measured);
        }
    }
    void schedulesAreHashedByTheirRows() {
        const auto module = moduleOf("x: \"f32[8, 8]\"", "y = aten.mm.default(x, x); return y");
        Schedule schedule(kCpuTarget);
        const Node& call = *module->graph().outputNode()->inputs()[0];
        const Hash128 none = schedule.fingerprint();
        schedule.libraries.emplace(call.id(), libraryRowOf(call, kCpuTarget));
        QVERIFY(!(schedule.fingerprint() == none));
        const LibraryRow other{.op = "aten.mm.default", .library = kPortable, .whyNot = nullptr};
        Schedule theirs(kCpuTarget);
        theirs.libraries.emplace(call.id(), &other);
        QVERIFY(!(schedule.fingerprint() == theirs.fingerprint()));
    }
    void modelsOnAGpu_data() {
        QTest::addColumn<QString>("path");
        for (const QFileInfo& file : QDir(CUTAWAY_SOURCE_DIR "/resources/models").entryInfoList({"*.pt2"}))
            QTest::newRow(qPrintable(file.baseName())) << file.filePath();
    }
    /// Down to the nests of the GPU's plans, which are interpreted here, in vectors and as threads.
    void modelsOnAGpu() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        CompileRequest request;
        request.passesOnly = true;
        QVERIFY(session.compile(request));
        const Snapshot graph = session.state().runs[0].trace.result();
        const std::vector<Tensor> inputs = *bindInputs(*graph, *cutaway::randomInputs(*session.state().input, 3));
        const std::vector<Tensor> expected = *interpret(*graph, inputs);
        for (const Interpreted how : {Interpreted::Nests, Interpreted::Lanes}) {
            const auto runs = interpretedKernels(how, kH100Target, 5).run(graph, inputs);
            QVERIFY2(runs, runs ? "" : runs.error().text().c_str());
            const Verdict verdict = compareOutputs(runs->front().outputs, expected, 1e-5);
            QVERIFY2(!verdict.bad, verdict.detail.c_str());
        }
    }

  private:
    static constexpr const char* kSine = R"(def forward(x: "f32[64, 512]"):
    sin: "f32[64, 512]" = torch.ops.aten.sin.default(x)
    return (sin,))";
};

CUTAWAY_SUITE(TargetsTest)
#include "targets_test.moc"
