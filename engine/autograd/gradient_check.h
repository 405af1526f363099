#pragma once
// Gradients held against central differences: of a joint graph, and of the derivatives of its calls, one by one.
#include "cutaway/gradients.h"
#include "engine/autograd/gradient_probe.h"

namespace cutaway {

struct GradientCheckPlan {
    uint64_t seed = 1;
    bool everyCall = false;
    bool eachGradient = true;                // of wrong ones those that are looked at alone
    std::function<void(const Node&)> begin;  // called before each node that runs
    const CancelToken* cancel = nullptr;
};
/// `joint`: as GradientProbe takes it. Keys of nodes are those of the main graph; `place`, `inputsFrom` and `summary`
/// are left to the caller.
Result<GradientCheck> checkGradients(const ReadyGraph& joint, const GradientCheckPlan& plan);

/// The sentence that says what a check has found.
std::string summaryOf(const GradientCheck& check);

}  // namespace cutaway
