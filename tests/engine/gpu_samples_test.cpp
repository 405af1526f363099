// Every recorded sample of the operators that a GPU's kernels or libraries compute, and random graphs, on the GPU of
// this machine against the interpreter. Without one the rows skip. CUTAWAY_OPS=TEXT takes only ops whose names hold it,
// CUTAWAY_SAMPLES=N so many samples of each, CUTAWAY_SEED the first random graph, CUTAWAY_SEEDS how many.
#include <QTemporaryDir>
#include <QtTest>
#include <map>
#include <set>

#include "cutaway/numerics.h"
#include "engine/libraries/choose.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/session/session_state.h"
#include "engine/support/files.h"
#include "engine/text/print.h"
#include "tests/engine/lowering_samples.h"
#include "tests/engine/random_kernels.h"
#include "tests/support/graph_eval.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// What the host had to compute although the program is a GPU's, by operator.
std::map<std::string, int> leftToHost;

Result<std::vector<WayRun>> runOnGpu(const std::shared_ptr<const Module>& module, const std::vector<Tensor>& inputs) {
    CpuBuildOptions build;
    build.target = &kH100Target;
    CT_TRY(const CpuProgram program, buildCpu(module, build));
    CpuRunOptions options;
    options.repeat = 1;  // the second time the segment is one recorded graph
    CT_TRY(const CpuRun run, runCpu(program, inputs, options));
    const auto& kernels = program.info().kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
        if (kernels[i].kind.starts_with("reference")) ++leftToHost[kernels[i].kind];
        if (const auto refused = run.refused.find(i); refused != run.refused.end())
            ++leftToHost[kernels[i].kind + ": " + refused->second];
    }
    return std::vector<WayRun>{{"on the GPU", run.outputs}};
}

/// Where CUDA's functions and libraries round otherwise than the host's: a bias is added to a rounded convolution, as
/// eager PyTorch does there, and weights of attention are rounded for their product.
Bound boundOnGpu(const Op& op, const Bound& usual) {
    static const std::map<std::string_view, double> kUnits = {
        {"lgamma", 4},
        {"logcumsumexp", 8},
        {"convolution", 64},  // where it nearly cancels the bias
        {"convolution_backward", 4},
        {"upsample_trilinear3d_backward", 256},  // f64, where it nearly cancels
        {"upsample_bicubic2d_backward", 8},
        // a sum of values that nearly cancel
        {"_scaled_dot_product_flash_attention_for_cpu", 32}};
    const auto found = kUnits.find(op.baseName());
    return found == kUnits.end() ? usual : Bound{found->second};
}

/// Operators of which a row of the table is a GPU's, or which have a lowering rule.
std::vector<const Op*> opsOfGpus() {
    std::vector<const Op*> ops = loweredOps();
    std::set<const Op*> known(ops.begin(), ops.end());
    for (const LibraryRow& row : libraryRows())
        if (const Op* op = findOp(row.op); op && row.library.device == DeviceType::Cuda && known.insert(op).second)
            ops.push_back(op);
    return ops;
}

std::vector<const TensorType*> resultTypes(const Module& module) {
    std::vector<const TensorType*> types;
    for (const Argument& output : module.graph().outputs()) types.push_back(output.node()->type().tensor());
    return types;
}

/// Graphs that are other ones on a GPU, or have kernels of their own there, compiled as a whole.
struct GpuGraph {
    const char *name, *inputs, *statements;
};
constexpr GpuGraph kGraphs[] = {
    {"windows by channel", R"(x: "bf16[2, 32, 14, 14][6272, 1, 448, 32]", w: "bf16[32, 1, 5, 5]", b: "bf16[32]")",
     "y = aten.convolution.default(x, w, b, [2, 2], [2, 2], [1, 1], False, [0, 0], 32); z = aten.silu.default(y); return z"},
    {"windows by channel, f32, two each, dilated", R"(x: "f32[2, 3, 9, 8]", w: "f32[6, 1, 3, 2]")",
     "y = aten.convolution.default(x, w, None, [1, 2], [1, 0], [2, 1], False, [0, 0], 3); return y"},
    {"halves with channels last",
     R"(x: "bf16[2, 8, 9, 9]", w: "bf16[16, 8, 3, 3]", b: "bf16[16]", v: "bf16[4, 16, 1, 1]")",
     "y = aten.convolution.default(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1); r = aten.relu.default(y); "
     "z = aten.convolution.default(r, v, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1); return z"},
    {"halves over one dim", R"(x: "f16[2, 8, 30]", w: "f16[16, 8, 3]", b: "f16[16]")",
     "y = aten.convolution.default(x, w, b, [2], [1], [1], False, [0], 1); z = aten.gelu.default(y); return z"},
    {"gradients of halves with channels last",
     R"(g: "bf16[2, 16, 9, 9][1296, 1, 144, 16]", x: "bf16[2, 8, 9, 9][648, 1, 72, 8]", w: "bf16[16, 8, 3, 3]")",
     "t = aten.convolution_backward.default(g, x, w, [16], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]); "
     "a = operator.getitem(t, 0); b = operator.getitem(t, 1); c = operator.getitem(t, 2); return (a, b, c)"},
    {"attention", R"(q: "f32[2, 4, 70, 16]", k: "f32[2, 4, 90, 16]", v: "f32[2, 4, 90, 16]")",
     "y = aten.scaled_dot_product_attention.default(q, k, v); return y"},
    {"attention, causal, shared heads, bf16",
     R"(q: "bf16[2, 8, 130, 64]", k: "bf16[2, 2, 130, 64]", v: "bf16[2, 2, 130, 64]")",
     "y = aten.scaled_dot_product_attention.default(q, k, v, None, 0.0, True, enable_gqa = True); return y"},
    {"attention, heads of 40, turned, f16",
     R"(a: "f16[2, 100, 4, 40]", b: "f16[2, 75, 4, 40]", c: "f16[2, 75, 4, 40]")",
     "q = aten.transpose.int(a, 1, 2); k = aten.transpose.int(b, 1, 2); v = aten.transpose.int(c, 1, 2); "
     "y = aten.scaled_dot_product_attention.default(q, k, v, None, 0.0, False, scale = 0.5); return y"},
    {"attention with a mask",
     R"(q: "bf16[2, 4, 33, 32]", k: "bf16[2, 4, 47, 32]", v: "bf16[2, 4, 47, 32]", m: "b8[33, 47]")",
     "y = aten.scaled_dot_product_attention.default(q, k, v, m); return y"},
    {"attention of a long row, heads of 128",
     R"(q: "bf16[1, 2, 300, 128]", k: "bf16[1, 2, 1030, 128]", v: "bf16[1, 2, 1030, 128]")",
     "y = aten.scaled_dot_product_attention.default(q, k, v, None, 0.0, True); return y"},
    {"bags", R"(w: "f32[50, 24]")",
     "i = aten.arange.default(40, dtype = torch.int64, device = device(type='cpu')); "
     "o = aten.arange.start_step(0, 40, 4, dtype = torch.int64, device = device(type='cpu')); "
     "t = aten.embedding_bag.padding_idx(w, i, o, False, 0, False, None, False, None); y = operator.getitem(t, 0); return y"},
    {"max pooling, trained", R"(x: "f32[2, 3, 9, 11]", g: "f32[2, 3, 5, 6]")",
     "t = aten.max_pool2d_with_indices.default(x, [3, 2], [2, 2], [1, 1]); i = operator.getitem(t, 1); "
     "y = aten.max_pool2d_with_indices_backward.default(g, x, [3, 2], [2, 2], [1, 1], [1, 1], False, i); return y"},
    {"max pooling with gaps, trained", R"(x: "bf16[2, 3, 12, 11]", g: "bf16[2, 3, 8, 10]")",
     "t = aten.max_pool2d_with_indices.default(x, [3, 2], [1, 1], [0, 1], [2, 3]); i = operator.getitem(t, 1); "
     "y = aten.max_pool2d_with_indices_backward.default(g, x, [3, 2], [1, 1], [0, 1], [2, 3], False, i); return y"},
    {"adaptive max pooling, trained", R"(x: "f32[2, 3, 9, 11]", g: "f32[2, 3, 4, 5]")",
     "t = aten.adaptive_max_pool2d.default(x, [4, 5]); i = operator.getitem(t, 1); "
     "y = aten.adaptive_max_pool2d_backward.default(g, x, i); return y"},
    {"adaptive means, trained", R"(x: "f32[2, 3, 9, 11]", g: "f32[2, 3, 4, 25]")",
     "y = aten._adaptive_avg_pool2d_backward.default(g, x); return y"},
    {"adaptive means of three dims, trained", R"(x: "f32[3, 9, 4, 7]", g: "f32[3, 4, 4, 2]")",
     "y = aten._adaptive_avg_pool3d_backward.default(g, x); return y"},
    {"adaptive means, windows of several sizes", R"(x: "bf16[2, 3, 9, 11]")",
     "y = aten._adaptive_avg_pool2d.default(x, [4, 5]); return y"},
    {"nearest, trained", R"(g: "f32[2, 3, 7, 9][189, 1, 27, 3]")",
     "y = aten.upsample_nearest2d_backward.default(g, [7, 9], [2, 3, 4, 5]); return y"},
    {"nearest to the middle, trained", R"(g: "f16[2, 3, 3, 9]")",
     "y = aten._upsample_nearest_exact2d_backward.default(g, [3, 9], [2, 3, 7, 4]); return y"},
    {"bilinear, trained", R"(g: "f32[2, 3, 17, 9]")",
     "y = aten.upsample_bilinear2d_backward.default(g, [17, 9], [2, 3, 8, 5], False, 2.0, 1.9); return y"},
    {"bilinear between corners, trained", R"(g: "bf16[1, 2, 5, 3]")",
     "y = aten.upsample_bilinear2d_backward.default(g, [5, 3], [1, 2, 8, 9], True); return y"},
    {"trilinear, trained", R"(g: "f32[1, 2, 6, 4, 7]")",
     "y = aten.upsample_trilinear3d_backward.default(g, [6, 4, 7], [1, 2, 3, 5, 4], False); return y"},
    {"bicubic, trained", R"(g: "f32[1, 2, 9, 11]")",
     "y = aten.upsample_bicubic2d_backward.default(g, [9, 11], [1, 2, 4, 5], False); return y"},
    {"the border repeated, trained", R"(g: "f32[2, 3, 8, 12]", x: "f32[2, 3, 5, 7]")",
     "y = aten.replication_pad2d_backward.default(g, x, [2, 3, 1, 2]); return y"},
    {"a line cut off and repeated, trained", R"(g: "f32[3, 6]", x: "f32[3, 7]")",
     "y = aten.replication_pad1d_backward.default(g, x, [-2, 1]); return y"},
    {"convolutions in TF32", R"(x: "f32[2, 16, 12, 12]", w: "f32[32, 16, 3, 3]", b: "f32[32]", v: "f32[16, 32, 1, 1]")",
     "y = aten.convolution.default(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1); r = aten.relu.default(y); "
     "z = aten.convolution.default(r, v, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1); return z"},
    {"turned and joined", R"(x: "bf16[3, 40, 6, 20]")",
     "t = aten.transpose.int(x, 1, 2); n = aten.neg.default(t); c = aten.cat.default([n, t], -1); "
     "y = aten.clone.default(c, memory_format = torch.contiguous_format); return y"},
};

}  // namespace

class GpuSamplesTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        const auto found = findCuda();
        if (!found || found->device.empty()) QSKIP("this machine has no GPU");
        m_any = true;
    }
    void samples() {
        if (!m_any) QSKIP("this machine has no GPU");
        const auto record = readOpRecord();
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        const std::string only = qgetenv("CUTAWAY_OPS").toStdString();
        const int most = qEnvironmentVariableIsSet("CUTAWAY_SAMPLES") ? qEnvironmentVariableIntValue("CUTAWAY_SAMPLES")
                                                                      : std::numeric_limits<int>::max();
        std::vector<LoweringCase> cases;
        for (const Op* op : opsOfGpus()) {
            const auto found = record->find(op->name());
            if (found == record->end() || op->name().find(only) == std::string::npos) continue;
            // Their samples draw the indices; there, as in PyTorch on GPUs, a window adds to what it holds alone.
            if (op->baseName().find("max_pool") != std::string_view::npos && op->baseName().ends_with("_backward"))
                continue;
            int taken = 0;
            for (const RecordedSample& sample : found->second) {
                if (taken == most) break;
                auto one = makeCase(*op, sample.text, Operands::Stored);
                if (!one) continue;
                ++taken;
                one->bounds = {boundOnGpu(*op, one->bounds.front())};
                cases.push_back(std::move(*one));
            }
        }
        QVERIFY(!cases.empty());
        constexpr size_t kTogether = 100;
        const std::vector<std::string> wrong = wrongOf({"GPU", runOnGpu}, cases, kTogether);
        int failed = 0;
        for (size_t i = 0; i < cases.size(); ++i) {
            if (wrong[i].empty()) continue;
            ++failed;
            QTest::qFail(("\n" + cases[i].name + "\n    " + wrong[i]).c_str(), __FILE__, __LINE__);
        }
        qInfo("%zu calls, %d wrong", cases.size(), failed);
        for (const auto& [what, count] : leftToHost) qInfo("left to the host %d times: %s", count, what.c_str());
    }

    /// CUTAWAY_SEEDS random graphs of everything that kernels are made of.
    void randomGraphs() {
        if (!m_any) QSKIP("this machine has no GPU");
        const int first = qEnvironmentVariableIntValue("CUTAWAY_SEED");
        const int count =
            qEnvironmentVariableIsSet("CUTAWAY_SEEDS") ? qEnvironmentVariableIntValue("CUTAWAY_SEEDS") : 500;
        std::vector<LoweringCase> cases;
        for (int seed = first; seed < first + count; ++seed) {
            cases.push_back(randomKernels(static_cast<uint64_t>(seed), Undefined::LeftOut));
            // CUDA's functions round otherwise than the host's, and what they give in f32 may be read as f64.
            const std::vector<const TensorType*> results = resultTypes(*cases.back().module);
            for (size_t i = 0; i < results.size(); ++i)
                if (isFloating(results[i]->dtype))
                    cases.back().bounds[i] = {results[i]->dtype == DType::F64 ? 0x1p35 : 64, true};
        }
        const std::vector<std::string> wrong = wrongOf({"GPU", runOnGpu}, cases, 20);
        for (size_t i = 0; i < cases.size(); ++i) {
            if (wrong[i].empty()) continue;
            std::fprintf(stderr, "%s\n", printText(*cases[i].module, {}).text.c_str());  // QtTest cuts long messages
            QTest::qFail((cases[i].name + ": " + wrong[i]).c_str(), __FILE__, __LINE__);
        }
    }

    void graphs_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kGraphs); ++i) QTest::newRow(kGraphs[i].name) << static_cast<int>(i);
    }
    void graphs() {
        if (!m_any) QSKIP("this machine has no GPU");
        QFETCH(int, row);
        const auto module = moduleOf(kGraphs[row].inputs, kGraphs[row].statements);
        QTemporaryDir folder;
        const std::string path = folder.filePath("graph.py").toStdString();
        QVERIFY(writeFile(path, printText(*module).text));
        Session session;
        const auto opened = session.open(path);
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        CompileRequest request;
        request.target = Target::Cuda;
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        CheckedRunOptions options;
        options.backend = Backend::Cuda;
        const auto checked =
            checkedRun(session, {0, static_cast<int>(session.state().runs[0].trace.steps.size()) - 1, -1}, options);
        QVERIFY2(checked, checked ? "" : checked.error().text().c_str());
        QVERIFY2(checked->failed.empty(), checked->failed.c_str());
        QVERIFY2(!checked->firstDivergent, checked->summary.c_str());
        const auto built = session.build(*run, Target::Cuda);
        QVERIFY2(built, built ? "" : built.error().text().c_str());
        for (const KernelInfo& kernel : built->kernels)
            QVERIFY2(!kernel.kind.starts_with("reference"), kernel.kind.c_str());
    }

  private:
    bool m_any = false;
};

CUTAWAY_SUITE(GpuSamplesTest)
#include "gpu_samples_test.moc"
