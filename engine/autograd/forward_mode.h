#pragma once
// Forward-mode differentiation: a graph that computes, next to its results, their derivative along a direction (spec:
// autograd part C.3).
#include "engine/autograd/joint_graph.h"

namespace cutaway {

struct ForwardModeOptions {
    /// Inputs to differentiate, as for the joint graph.
    JointOptions wanted;
    /// An output that does not depend on the differentiated inputs is an error; else its tangent is zero.
    bool strict = false;
};

/// A copy of `forward` (composites expanded, functional) that takes one more input tangent_in_k per differentiated
/// input, of the same type, and returns its values followed by their tangents: zeros where a floating value does not
/// depend on the inputs, None where it is not floating. Ops without a tangent rule of their own are expanded first.
/// Errors name the op that has neither (fused attention is one), or with `strict` the output that is independent.
Result<std::unique_ptr<Module>> makeForwardMode(const Module& forward, const ForwardModeOptions& options = {});

}  // namespace cutaway
