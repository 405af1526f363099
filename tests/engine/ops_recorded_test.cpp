// Every op against what PyTorch computed for its samples and for variants of them in dtype, layout and size: results
// with dtype, sizes and strides, gradients by the op's derivative, and refusals. The record in tests/data/ops is made
// by tests/scripts/record_ops.py; a row whose samples it lacks is a failure: run the script again for the op.
#include <QtTest>
#include <set>

#include "engine/ops/op_registry.h"
#include "engine/support/check.h"
#include "tests/support/op_record.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

using Outcome = RecordedSample::Outcome;

const std::map<std::string, std::vector<RecordedSample>>& opRecord() {
    static const auto loaded = readOpRecord();
    if (!loaded) qFatal("%s", loaded.error().text().c_str());
    return *loaded;
}

/// Samples that do not agree yet, each with the reason: "results aten.foo.default f32[2]". One that agrees is a failure
/// until it is taken off the list, so the list only shrinks.
const std::map<std::string, std::string>& openSamples() {
    static const auto loaded = readOpenList("open.txt");
    return loaded;
}

/// A backward is not differentiated again (spec: autograd A8.7), so rows of backward ops need no derivative.
bool isDifferentiated(const std::string& op) {
    const Op* row = findOp(op);
    return op.find("_backward") == std::string::npos || (row != nullptr && row->def() != nullptr && row->def()->derive);
}

/// One data row per op that has a sample which `wanted` accepts.
template <class Wanted>
void addOps(
    Wanted wanted, bool (*wantedOp)(const std::string&) = [](const std::string&) { return true; }) {
    QTest::addColumn<QString>("op");
    for (const auto& [op, samples] : opRecord())
        if (wantedOp(op) && std::any_of(samples.begin(), samples.end(), wanted))
            QTest::newRow(op.c_str()) << QString::fromStdString(op);
}

/// Runs `check(sample)`, which says what is wrong, over an op's samples, and fails with all that it says.
template <class Wanted, class Check>
void checkAll(const QString& op, Wanted wanted, Check check) {
    int wrong = 0, all = 0;
    QString text;
    for (const RecordedSample& sample : opRecord().at(op.toStdString())) {
        if (!wanted(sample)) continue;
        ++all;
        std::string problem = check(sample);
        const auto open =
            openSamples().find(std::string(QTest::currentTestFunction()) + " " + op.toStdString() + " " + sample.text);
        if (open != openSamples().end()) {
            const bool mayAgree = open->second.starts_with("the matrix is singular");  // processors round otherwise
            problem = problem.empty() && !mayAgree ? "agrees now: take it off tests/data/ops/open.txt" : "";
        }
        if (problem.empty()) continue;
        if (++wrong <= 100)
            text += "\n  " + QString::fromStdString(sample.text) + ": " + QString::fromStdString(problem);
    }
    if (wrong > 0) QFAIL(qPrintable(QString::number(wrong) + " of " + QString::number(all) + " samples:" + text));
}

std::string typeText(DType dtype, const Dims& sizes) { return TensorType::contiguous(dtype, toSymDims(sizes)).text(); }
std::string text(const Dims& dims) {
    std::string out = "[";
    for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
    return out + "]";
}

/// Rounding is relative to the terms of a sum, which may be as large as the largest element. Kernels of half floats
/// round in between, each in its own places.
std::string recordedDifference(const Tensor& actual, const RecordedTensor& expected, bool sums,
                               std::optional<DType> coarsest = {}) {
    if (actual.dtype() != expected.dtype || actual.sizes() != expected.sizes)
        return typeText(actual.dtype(), actual.sizes()) + " instead of " + typeText(expected.dtype, expected.sizes);
    if (!expected.values.defined()) return {};
    Tolerance tolerance = defaultTolerance(coarsest.value_or(expected.dtype));
    if (!coarsest && expected.dtype == DType::F32) tolerance = {1e-5, 1e-6};
    const Comparison exact = compare(actual, expected.values, tolerance);
    if (exact.within) return {};
    if (sums || isHalf(expected.dtype)) tolerance.absolute += tolerance.relative * exact.maxExpected;
    const Comparison comparison = compare(actual, expected.values, tolerance);
    if (comparison.within) return {};
    const int64_t at = std::max<int64_t>(comparison.worst, 0);
    return std::to_string(comparison.mismatches) + " elements, element " + std::to_string(at) + " is " +
           std::to_string(toDouble(actual.item(at))) + " instead of " +
           std::to_string(toDouble(expected.values.item(at)));
}

Result<TensorList> evaluated(const Op& op, const RecordedSample& recorded) {
    CT_TRY(const std::unique_ptr<SampleCall> sample, buildSample(op, recorded.text));
    NodeValues values;
    for (size_t i = 0; i < sample->placeholders.size(); ++i) values.set(*sample->placeholders[i], {sample->inputs[i]});
    return evaluateNode(*sample->call, values);
}

/// The half dtype among a sample's operands: a gradient passes through every op of a derivative, and where dtypes are
/// mixed each of them may round to it.
std::optional<DType> halfAmong(const std::string& sample) {
    if (sample.find("bf16[") != std::string::npos) return DType::BF16;
    if (sample.find("f16[") != std::string::npos) return DType::F16;
    return {};
}

/// A missing gradient stays missing where PyTorch makes zeros, and the other way round (spec: ops 2.7).
bool isZero(const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (toDouble(tensor.item(i)) != 0) return false;
    return true;
}

bool hasResults(const RecordedSample& sample) { return sample.outcome == Outcome::Results; }
bool hasGradients(const RecordedSample& sample) { return !sample.gradients.empty(); }
bool isRefused(const RecordedSample& sample) {
    return sample.outcome == Outcome::Refused || sample.outcome == Outcome::RefusedWhenRun;
}

/// The step of a dim of at most one element, or of no elements at all, is never taken: kernels leave there what comes.
bool sameLayout(const Dims& sizes, const Dims& actual, const Dims& expected) {
    if (numel(sizes) == 0) return true;
    for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] > 1 && actual[i] != expected[i]) return false;
    return true;
}

}  // namespace

class OpsRecordedTest : public QObject {
    Q_OBJECT

  private slots:
    void everySampleIsRecorded();
    void everyOpenSampleIsRecorded();
    void results_data() { addOps(hasResults); }
    void results();
    void gradients_data() { addOps(hasGradients, isDifferentiated); }
    void gradients();
    void refusals_data() { addOps(isRefused); }
    void refusals();
};

void OpsRecordedTest::everySampleIsRecorded() {
    size_t compared = 0;
    QStringList missing;
    for (const Op* op : allOps()) {
        const auto found = opRecord().find(op->name());
        std::set<std::string> texts;
        if (found != opRecord().end())
            for (const RecordedSample& sample : found->second) {
                texts.insert(sample.text);
                compared += hasResults(sample);
            }
        if (op->functional() == nullptr)
            for (const OpSample& sample : samplesOf(*op))
                if (!texts.contains(sample.text)) missing << QString::fromStdString(sample.name() + ": " + sample.text);
    }
    QVERIFY2(missing.isEmpty(), qPrintable("not recorded: " + missing.join("; ")));
    QVERIFY2(compared >= 5000, qPrintable(QString::number(compared) + " samples"));
}

void OpsRecordedTest::everyOpenSampleIsRecorded() {
    std::set<std::string> names;
    for (const auto& [op, samples] : opRecord())
        for (const RecordedSample& sample : samples)
            for (const char* kind : {"results ", "gradients ", "refusals "})
                names.insert(kind + op + " " + sample.text);
    QStringList unknown;
    for (const auto& [name, reason] : openSamples())
        if (!names.contains(name)) unknown << QString::fromStdString(name);
    QVERIFY2(unknown.isEmpty(),
             qPrintable("tests/data/ops/open.txt names samples that do not exist: " + unknown.join("; ")));
}

void OpsRecordedTest::results() {
    QFETCH(QString, op);
    const Op& row = requireOp(op.toStdString());
    // The kernel reads the buffer of the forward op, which a sample cannot provide; the expansion recomputes it.
    const bool needsForward = op == "aten.log_sigmoid_backward.default";
    // A product of matrices over hundreds of samples, whose sums a library orders as suits the processor.
    const bool sumsUp = op == "torchvision.deform_conv2d.default";
    // PyTorch fits functions to it, and is right to three digits; random_test holds ours to quantiles.
    const std::optional<DType> coarsest =
        op == "aten._standard_gamma_grad.default" ? std::optional(DType::F16) : std::nullopt;
    checkAll(op, hasResults, [&](const RecordedSample& sample) -> std::string {
        auto results = evaluated(row, sample);
        if (!results) return results.error().message;
        for (size_t i = 0; i < sample.results.size(); ++i) {
            if (!sample.results[i]) continue;
            const RecordedTensor& expected = *sample.results[i];
            const std::string number = sample.results.size() > 1 ? "result " + std::to_string(i) + ": " : "";
            if (i >= results->size() || !(*results)[i].defined()) return number + "nothing";
            const Tensor& actual = (*results)[i];
            const std::string wrong = needsForward ? "" : recordedDifference(actual, expected, sumsUp, coarsest);
            if (!wrong.empty()) return number + wrong;
            if (!sameLayout(expected.sizes, actual.strides(), expected.strides) &&
                !sameLayout(expected.sizes, actual.strides(), expected.tracedStrides))
                return number + "strides " + text(actual.strides()) + " instead of " + text(expected.strides);
        }
        return {};
    });
}

void OpsRecordedTest::gradients() {
    QFETCH(QString, op);
    const Op& row = requireOp(op.toStdString());
    checkAll(op, hasGradients, [&](const RecordedSample& sample) -> std::string {
        auto gradients = gradientsOf(row, sample);
        if (!gradients) return gradients.error().text();
        for (const auto& [number, expected] : sample.gradients) {
            const Tensor& actual = (*gradients)[number];
            const std::string which = "gradient of tensor " + std::to_string(number) + ": ";
            if (!actual.defined() && (!expected || isZero(expected->values))) continue;
            if (!actual.defined()) return which + "none";
            if (!expected && isZero(actual)) continue;
            if (!expected) return which + "one, where PyTorch has none";
            const std::string wrong = recordedDifference(actual, *expected, true, halfAmong(sample.text));
            if (!wrong.empty()) return which + wrong;
        }
        return {};
    });
}

void OpsRecordedTest::refusals() {
    QFETCH(QString, op);
    const Op& row = requireOp(op.toStdString());
    checkAll(op, isRefused, [&](const RecordedSample& sample) -> std::string {
        const auto results = evaluated(row, sample);
        if (!results) return {};
        if (sample.outcome == Outcome::Refused) return "accepted";
        for (size_t i = 0; i < sample.results.size(); ++i) {
            if (!sample.results[i]) continue;
            if (i >= results->size() || !(*results)[i].defined()) return "result " + std::to_string(i) + ": nothing";
            const std::string wrong = recordedDifference((*results)[i], *sample.results[i], false);
            if (!wrong.empty()) return "accepted with " + wrong;
        }
        return {};
    });
}

CUTAWAY_SUITE(OpsRecordedTest)
#include "ops_recorded_test.moc"
