#include "engine/session/compare_outputs.h"

#include "engine/interpret/interpret.h"
#include "engine/session/run_inputs.h"
#include "engine/support/number_text.h"

namespace cutaway {

Result<std::vector<Tensor>> valuesFor(const Module& graph, const Session::State& state, const std::string& path) {
    CT_TRY(std::vector<Tensor> values, randomInputs(graph, 0));
    CT_TRY(RunInputs given, chooseInputs(*state.input, state.sampleInputs, path));
    if (given.user.size() > values.size())
        return invalidInput("the file has " + std::to_string(given.user.size()) + " tensors, the graph takes " + std::to_string(values.size()), path);
    std::move(given.user.begin(), given.user.end(), values.begin());
    return bindInputs(graph, values);
}

Verdict compareOutputs(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance) {
    if (actual.size() != expected.size()) return {true, "returns " + std::to_string(actual.size()) + " values instead of " + std::to_string(expected.size())};
    double worst = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
        if (!actual[i].defined() && !expected[i].defined()) continue;
        const std::string which = "output " + std::to_string(i) + ": ";
        if (!actual[i].defined() || !expected[i].defined()) return {true, which + "one of the two is None"};
        const Comparison first = compare(actual[i], expected[i], {0, 0});
        if (!first.sameType) return {true, which + "another dtype or shape"};
        const double allowed = std::max(tolerance, relativeTolerance(actual[i].dtype())) * std::max(1.0, first.maxExpected);
        if (isIntegral(actual[i].dtype(), true) ? first.mismatches > 0 : !compare(actual[i], expected[i], {0, allowed}).within)
            return {true, which + "largest error " + shortNumber(first.maxAbsoluteError) + " of " + shortNumber(first.maxExpected)};
        worst = std::max(worst, first.maxAbsoluteError);
    }
    return {false, "largest error " + shortNumber(worst)};
}

}  // namespace cutaway
