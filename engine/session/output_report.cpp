#include "engine/session/output_report.h"

#include <cmath>

#include "engine/session/compare_outputs.h"
#include "engine/tensor/compare.h"

namespace cutaway {
namespace {

void describeValues(const Tensor& tensor, OutputReport& report) {
    const Tensor plain = tensor.contiguous();
    double sum = 0;
    int64_t finite = 0;
    forEachBlock<double>(plain, 0, plain.numel(), [&](int64_t, int64_t count, const double* values) {
        for (int64_t i = 0; i < count; ++i) {
            const double value = values[i];
            if (!std::isfinite(value)) {
                ++report.nonFinite;
                continue;
            }
            report.minimum = finite ? std::min(report.minimum, value) : value;
            report.maximum = finite ? std::max(report.maximum, value) : value;
            sum += value;
            ++finite;
        }
    });
    report.mean = finite ? sum / static_cast<double>(finite) : 0;
}

void compareValues(const Tensor& actual, const Tensor& expected, double tolerance, OutputReport& report) {
    report.compared = true;
    const Comparison result = compareOutput(actual, expected, tolerance);
    report.maxAbsoluteError = result.maxAbsoluteError;
    report.maxExpected = result.maxExpected;
    if (!result.sameType) {
        report.problem = "expected " + TensorType::contiguous(expected.dtype(), toSymDims(expected.sizes())).text();
        return;
    }
    report.within = result.within;
    report.worst = worstElement(result, actual, expected);
    if (!result.within)
        report.problem = std::to_string(result.mismatches) + " of " + std::to_string(actual.numel()) +
                         " elements differ" + (report.worst ? "; " + elementText(*report.worst) : "");
}

std::string typeOf(const Tensor& tensor) {
    return TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text();
}

}  // namespace

OutputReport reportOf(const std::string& name, const Tensor& output, const Tensor* expected, double tolerance) {
    OutputReport row;
    row.name = name;
    row.compared = expected != nullptr;
    if (output.defined()) {
        row.type = typeOf(output);
        describeValues(output, row);
        if (expected) compareValues(output, *expected, tolerance, row);
    } else {
        row.type = "None";
        if (expected) row.problem = "expected " + typeOf(*expected);
    }
    return row;
}

OutputReport reportOf(const std::string& name, const Argument& returned, const Tensor& output, const Tensor* expected,
                      double tolerance) {
    const Node* node = returned.node();
    const bool number = node ? node->type().sym() != nullptr : returned.isNumber();
    const bool sameKind = number && expected && output.defined() && expected->rank() == 0 &&
                          isFloating(output.dtype()) == isFloating(expected->dtype()) &&
                          (output.dtype() == DType::Bool) == (expected->dtype() == DType::Bool);
    OutputReport row = reportOf(name, sameKind ? output.to(expected->dtype()) : output, expected, tolerance);
    if (output.defined()) row.type = typeOf(output);
    if (returned.get<std::string>()) row.type = "str";
    return row;
}

}  // namespace cutaway
