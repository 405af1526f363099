// Every recorded sample of the operators that a GPU's kernels or libraries compute, and random graphs, on the GPU of
// this machine against the interpreter. Without one the rows skip. CUTAWAY_OPS=TEXT takes only ops whose names hold it,
// CUTAWAY_SAMPLES=N so many samples of each, CUTAWAY_SEED the first random graph.
#include <QtTest>
#include <map>
#include <set>

#include "engine/libraries/choose.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cuda/requests.h"
#include "tests/engine/lowering_samples.h"
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
/// eager PyTorch does there.
Bound boundOnGpu(const Op& op, const Bound& usual) {
    static const std::map<std::string_view, double> kUnits = {
        {"lgamma", 4}, {"logcumsumexp", 8}, {"convolution", 1}, {"convolution_backward", 1}};
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

  private:
    bool m_any = false;
};

CUTAWAY_SUITE(GpuSamplesTest)
#include "gpu_samples_test.moc"
