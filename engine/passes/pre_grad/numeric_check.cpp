#include "engine/passes/pre_grad/numeric_check.h"

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/interpret/interpret.h"
#include "engine/passes/torch_calls_to_aten.h"
#include "engine/support/number_text.h"

namespace cutaway {
namespace {

/// The sentence about two lists of values called `what`.
Result<std::string> compared(const Module& before, const Module& after, const std::string& what, double precision,
                             int iterations) {
    for (int i = 0; i < iterations; ++i) {
        constexpr uint64_t kSeed = 1337;
        CT_TRY(const std::vector<Tensor> inputs, randomInputs(before, kSeed + static_cast<uint64_t>(i)));
        CT_TRY(const std::vector<Tensor> expected, interpret(before, inputs));
        CT_TRY(const std::vector<Tensor> actual, interpret(after, inputs));
        if (expected.size() != actual.size())
            return "there are " + std::to_string(actual.size()) + " " + what + " where there were " +
                   std::to_string(expected.size());
        for (size_t at = 0; at < expected.size(); ++at) {
            if (!expected[at].defined() || !actual[at].defined()) continue;
            const Comparison comparison = compare(actual[at], expected[at], Tolerance{precision, precision});
            if (!comparison.sameType)
                return what + " differ: number " + std::to_string(at) + " has another dtype or shape";
            if (!comparison.within)
                return what + " differ: number " + std::to_string(at) + " by " +
                       shortNumber(comparison.maxAbsoluteError);
        }
    }
    return what + " agree within " + shortNumber(precision);
}

/// The graph with the gradients of its inputs.
Result<std::unique_ptr<Module>> withGradients(const Module& graph) {
    Module forward(graph);
    static const CompileRequest kOptions;
    Rewriter rewriter("fx_passes_numeric_check", kOptions);
    CT_TRY_VOID(torchCallsToAten(forward, rewriter));
    CT_TRY_VOID(expandComposites(forward, rewriter));
    CT_TRY_VOID(functionalize(forward, rewriter));
    return makeJointGraph(forward, {.inputs = {}, .allInputs = true});
}
Result<std::string> comparedGradients(const Module& before, const Module& after, double precision, int iterations) {
    CT_TRY(const std::unique_ptr<Module> first, withGradients(before));
    CT_TRY(const std::unique_ptr<Module> second, withGradients(after));
    return compared(*first, *second, "values and gradients", precision, iterations);
}

std::string sentence(const Result<std::string>& found, const std::string& what) {
    return found ? *found : what + " could not be compared: " + found.error().text();
}

}  // namespace

std::string numericCheck(const Module& before, const Module& after, const OptionalPass& settings) {
    const double precision = settings.number("precision", 1e-4);
    const int iterations = static_cast<int>(std::clamp(settings.number("num_iterations", 1), 1.0, 100.0));
    return sentence(compared(before, after, "results", precision, iterations), "results") + "; " +
           sentence(comparedGradients(before, after, precision, iterations), "gradients");
}

}  // namespace cutaway
