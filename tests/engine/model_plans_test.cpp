// Kernels of the recorded models, forward and backward, by plans made by chance: any legal plan gives what the kernel
// means. CUTAWAY_SEED starts the plans elsewhere, CUTAWAY_PLANS sets how many there are.
#include <QtTest>
#include <cmath>

#include "engine/formats/open.h"
#include "engine/interpret/specialize.h"
#include "engine/loops/kernel_text.h"
#include "engine/passes/pipeline.h"
#include "engine/schedule/schedule.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr int64_t kMostElements = 1 << 14;  // of a buffer: interpreters are slow

/// Elements from the start of a value's memory to its last; nullopt: too many.
std::optional<int64_t> extentOf(const ValueKey& key) {
    const TensorType* type = tensorOf(key);
    if (type == nullptr) return std::nullopt;
    int64_t last = type->offset.asInt().value_or(kMostElements);
    for (size_t d = 0; d < type->sizes.size(); ++d) {
        const auto size = type->sizes[d].asInt(), stride = type->strides[d].asInt();
        if (!size || !stride || *size > kMostElements || *stride > kMostElements) return std::nullopt;
        last += std::max<int64_t>(*size - 1, 0) * *stride;
    }
    return last < kMostElements ? std::optional(last + 1) : std::nullopt;
}

/// Numbers for what a kernel reads: indices are 0 or 1, so that they are in range of what has two of something.
struct Numbers {
    std::vector<std::vector<char>> bytes;
    std::vector<void*> pointers;
    Numbers(const Kernel& kernel, const std::vector<int64_t>& counts, uint32_t seed) {
        std::mt19937 random(seed);
        for (size_t b = 0; b < counts.size(); ++b) {
            const KernelBuffer& buffer = kernel.buffers[b];
            auto& own = bytes.emplace_back(static_cast<size_t>(counts[b] * byteSize(buffer.dtype)));
            for (int64_t i = 0; i < counts[b]; ++i)
                writeElement(own.data(), buffer.dtype, i,
                             {static_cast<double>(random() % 1024) / 512 - 1, static_cast<int64_t>(random() % 2)});
        }
        for (auto& own : bytes) pointers.push_back(own.data());
    }
};

/// Distance between neighbouring numbers of a dtype around 1.
double unitOf(DType dtype) {
    switch (dtype) {
        case DType::F64: return 2.2e-16;
        case DType::BF16: return 7.8e-3;
        case DType::F16: return 9.8e-4;
        default: return 1.2e-7;
    }
}
/// The first buffer that differs by more than what another order of its sums makes.
QString differing(const Kernel& kernel, const std::vector<int64_t>& counts, const Numbers& meant, const Numbers& made) {
    for (size_t b = 0; b < counts.size(); ++b) {
        const DType dtype = kernel.buffers[b].dtype;
        const auto read = [&](const Numbers& from, int64_t i) { return readElement(from.bytes[b].data(), dtype, i); };
        double largest = 0;
        for (int64_t i = 0; i < counts[b]; ++i)
            if (const double value = std::fabs(read(meant, i).real); std::isfinite(value))
                largest = std::max(largest, value);
        for (int64_t i = 0; i < counts[b]; ++i) {
            const Cell m = read(meant, i), n = read(made, i);
            const bool same = !isFloating(dtype)      ? m.whole == n.whole
                              : std::isfinite(m.real) ? std::fabs(m.real - n.real) <= 4 * unitOf(dtype) * largest
                              : std::isnan(m.real)    ? std::isnan(n.real)
                                                      : m.real == n.real;
            if (!same) return QStringLiteral("b%1[%2] is %3, not %4").arg(b).arg(i).arg(n.real).arg(m.real);
        }
    }
    return {};
}

struct ModelKernel {
    QString model;
    Kernel kernel;
    std::vector<int64_t> counts;
};
void addKernels(const QString& model, const Module& graph, std::set<std::string>& known, std::vector<ModelKernel>& to) {
    auto numbers = std::make_shared<Module>(graph);
    if (!specialize(*numbers, hintedSymbols(*numbers))) return;
    const auto program = scheduleModule(numbers, kCpuTarget);
    if (!program) return;
    for (const ScheduledCall& call : program->calls) {
        if (call.kind != CallKind::Kernel) continue;
        const Kernel& kernel = program->kernels[call.kernel].kernel;
        ModelKernel sample{model, kernel, {}};
        for (const ValueKey& key : call.bindings)
            if (const auto count = extentOf(key)) sample.counts.push_back(*count);
        if (sample.counts.size() == kernel.buffers.size() && kernel.sizes.empty() && known.insert(text(kernel)).second)
            to.push_back(std::move(sample));
    }
}

}  // namespace

class ModelPlansTest : public QObject {
    Q_OBJECT

  private slots:
    void anyLegalPlanDoes() {
        const auto seed = static_cast<uint32_t>(qEnvironmentVariableIntValue("CUTAWAY_SEED"));
        const int wanted = std::max(2000, qEnvironmentVariableIntValue("CUTAWAY_PLANS"));
        qInfo("seed %u", seed);
        std::vector<ModelKernel> samples;
        std::set<std::string> known;
        for (const QString& file : modelFiles()) {
            auto opened = openFile(file.toStdString(), {});
            QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
            CompileRequest training;
            training.mode = Mode::Training;
            const auto trace = runPipeline(std::move(opened->graphs[0].module), training, {.cacheFile = "off"}, {});
            if (!trace || trace->failed()) continue;
            for (const char* graphName : {"forward", "backward"})
                if (const Snapshot graph = trace->resultOf(graphName))
                    addKernels(modelName(file) + " " + graphName, *graph, known, samples);
        }
        QVERIFY(samples.size() > 20);
        std::mt19937 random(seed);
        int legal = 0;
        std::set<size_t> refusing;
        for (size_t round = 0; legal < wanted; ++round) {
            QVERIFY(refusing.size() < samples.size() / 4);
            const size_t which = round % samples.size();
            if (refusing.contains(which)) continue;
            const auto& [model, kernel, counts] = samples[which];
            const LoopPlan plan = randomPlan(kernel, random);
            if (!problemOf(plan, kernel, kCpuTarget).empty()) continue;
            const auto numbers = static_cast<uint32_t>(random());
            Numbers meant(kernel, counts, numbers), made(kernel, counts, numbers);
            if (interpretKernel(kernel, meant.pointers, {}) != KernelFault::None) {
                refusing.insert(which);  // an index of 1 where there is one of something
                continue;
            }
            ++legal;
            QCOMPARE(interpretNests(lowerLoops(kernel, plan, kCpuTarget), made.pointers, {},
                                    static_cast<int64_t>(random() % 20)),
                     KernelFault::None);
            if (const QString wrong = differing(kernel, counts, meant, made); !wrong.isEmpty())
                QFAIL(qPrintable(
                    QStringLiteral("seed %1, %2: %3, by the plan\n%4\n%5")
                        .arg(seed)
                        .arg(model, wrong, QString::fromStdString(text(plan)), QString::fromStdString(text(kernel)))));
        }
        qInfo("%d plans of %zu kernels", legal, samples.size() - refusing.size());
    }
};

CUTAWAY_SUITE(ModelPlansTest)
#include "model_plans_test.moc"
