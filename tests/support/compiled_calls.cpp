#include "tests/support/compiled_calls.h"

#include "engine/interpret/interpret.h"

namespace cutaway::testing {

bool isLeft(const KernelInfo& kernel) {
    return kernel.kind.starts_with("reference") || kernel.kind.starts_with("portable");
}

QString outputDifference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double scale) {
    if (actual.size() != expected.size()) return "number of outputs";
    for (size_t i = 0; i < actual.size(); ++i) {
        if (actual[i].defined() != expected[i].defined()) return QString("output %1 is missing").arg(i);
        if (!actual[i].defined()) continue;
        Tolerance tolerance = defaultTolerance(expected[i].dtype());
        tolerance.relative *= scale;
        tolerance.absolute *= scale;
        const Comparison c = compare(actual[i], expected[i], tolerance);
        if (!c.sameType) return QString("output %1 has another type").arg(i);
        if (!c.within)
            return QString("output %1: %2 mismatches, error %3 of %4")
                .arg(i)
                .arg(c.mismatches)
                .arg(c.maxAbsoluteError)
                .arg(c.maxExpected);
    }
    return {};
}

}  // namespace cutaway::testing
