#include "engine/session/compare_outputs.h"

#include <charconv>
#include <cmath>

#include "engine/plugins/plugin_calls.h"
#include "engine/support/number_text.h"
#include "engine/tensor/compare.h"

namespace cutaway {
namespace {

/// The smallest error that counts, as a share of what is usual.
double relativeTolerance(DType dtype) {
    switch (dtype) {
        case DType::F64:
        case DType::C128: return 1e-9;
        case DType::F16: return 2e-3;
        case DType::BF16: return 1.6e-2;
        default: return isFloating(dtype) || isComplex(dtype) ? 1e-5 : 0;
    }
}

/// The fewest digits that tell the number from its neighbours in its dtype.
std::string realText(double value, DType dtype) {
    char text[64];
    const bool wide = dtype == DType::F64 || dtype == DType::C128;
    const auto end = wide ? std::to_chars(text, text + sizeof text, value)
                          : std::to_chars(text, text + sizeof text, static_cast<float>(value));
    return {text, end.ptr};
}
std::string valueText(const Tensor& tensor, int64_t position) {
    const DType dtype = tensor.dtype();
    const Scalar value = tensor.contiguous().item(position);
    if (dtype == DType::Bool) return toInt(value) != 0 ? "true" : "false";
    if (isIntegral(dtype, true)) return std::to_string(toInt(value));
    if (!isComplex(dtype)) return realText(toDouble(value), dtype);
    const std::complex<double> both = std::get<std::complex<double>>(value);
    return realText(both.real(), dtype) + (both.imag() < 0 ? "" : "+") + realText(both.imag(), dtype) + "j";
}

}  // namespace

Comparison compareOutput(const Tensor& actual, const Tensor& expected, double tolerance) {
    if (isIntegral(expected.dtype(), true)) return compare(actual, expected, {0, 0});
    const double share = std::max(tolerance, relativeTolerance(expected.dtype()));
    const double usual = sameBits(actual, expected) ? 0 : usualMagnitude(expected);
    return compare(actual, expected, {share, share * std::max(1.0, usual)});
}

std::optional<ElementDifference> worstElement(const Comparison& comparison, const Tensor& actual,
                                              const Tensor& expected) {
    if (comparison.worst < 0) return std::nullopt;
    ElementDifference element{{}, valueText(actual, comparison.worst), valueText(expected, comparison.worst)};
    int64_t rest = comparison.worst;
    const Dims& sizes = expected.sizes();
    for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim])
        element.index.insert(element.index.begin(), rest % sizes[dim]);
    return element;
}

std::string elementText(const ElementDifference& element) {
    std::string place;
    for (const int64_t at : element.index) place += (place.empty() ? "" : ", ") + std::to_string(at);
    return (place.empty() ? "its value is " : "element [" + place + "] is ") + element.actual + " instead of " +
           element.expected;
}

Verdict compareOutputs(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance) {
    if (actual.size() != expected.size())
        return {true,
                "returns " + std::to_string(actual.size()) + " values instead of " + std::to_string(expected.size())};
    double worst = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
        if (!actual[i].defined() && !expected[i].defined()) continue;
        const std::string which = "output " + std::to_string(i + 1) + ": ";
        if (!actual[i].defined() || !expected[i].defined()) return {true, which + "one of the two is None"};
        const Comparison found = compareOutput(actual[i], expected[i], tolerance);
        if (!found.sameType) return {true, which + kOtherType, true};
        if (!found.within) {
            const auto element = worstElement(found, actual[i], expected[i]);
            return {true, which + "largest error " + shortNumber(found.maxAbsoluteError) + " of " +
                              shortNumber(found.maxExpected) + ", " + std::to_string(found.mismatches) + " of " +
                              std::to_string(actual[i].numel()) + " elements differ" +
                              (element ? ", " + elementText(*element) : "")};
        }
        worst = std::max(worst, found.maxAbsoluteError);
    }
    return {false, "largest error " + shortNumber(worst)};
}

Verdict findNonFinite(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    for (size_t i = 0; i < actual.size(); ++i) {
        const int64_t count = nonFiniteCount(actual[i]), before = i < expected.size() ? nonFiniteCount(expected[i]) : 0;
        if (count > before)
            return {true, "output " + std::to_string(i + 1) + ": " + std::to_string(count) +
                              " elements are not finite, " + std::to_string(before) + " were"};
    }
    return {false, "no new NaN or infinity"};
}

Result<RowJudge> RowJudge::of(const RunOptions& options, const Progress& progress) {
    RowJudge out;
    out.m_progress = &progress;
    if (options.judge.empty()) return out;
    if (options.expectFile.empty() && options.expectGradientsFile.empty())
        return invalidInput("a judge compares with what is expected: give a file of it");
    CT_TRY(out.m_judge, findJudge(options.judge));
    return out;
}

Result<void> RowJudge::judge(const Tensor& actual, const Tensor& expected, OutputReport& row) const {
    if (!m_judge) return {};
    CT_TRY(const JudgeAnswer answer, m_judge->ask(actual, expected, [&] { return m_progress->cancelled(); }));
    row.within = answer.takes;
    row.problem = answer.takes ? std::string() : sentenceOf(answer);
    if (answer.takes) row.remark = sentenceOf(answer);
    return {};
}

Result<Verdict> judgedBy(const std::string& judge, const std::vector<Tensor>& actual,
                         const std::vector<Tensor>& expected, const Progress& progress) {
    if (actual.size() != expected.size()) return Verdict{true, "it returns another number of results"};
    CT_TRY(const PluginJudge found, findJudge(judge));
    for (size_t i = 0; i < actual.size(); ++i) {
        CT_TRY(const JudgeAnswer answer, found.ask(actual[i], expected[i], [&] { return progress.cancelled(); }));
        if (!answer.takes)
            return Verdict{true, "the judge refuses output " + std::to_string(i) +
                                     (answer.sentence.empty() ? "" : ": " + answer.sentence)};
    }
    return Verdict{false, "the judge takes every output"};
}

}  // namespace cutaway
