#pragma once
// From a forward graph to the joint graph of training (spec: autograd A.6, A.11): placeholders primals_1.. and
// tangents_1.., the forward nodes, the backward nodes; returned are the forward's values, then one gradient or None per
// primal.
#include <span>
#include <string>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// As a pass over a graph whose composites are expanded and which is functional, but not yet decomposed: the derivative
/// of an op is taken first, and both are expanded afterwards. Differentiated are parameters and the inputs whose type
/// requires a gradient. Does nothing if no returned value depends on them: then this is inference (A3.2).
///
/// The first rewrite makes the joint graph without derivatives; each derivative is one more. With less fuel the graph
/// still verifies; its gradients lack the share of the ops that were not reached.
///
/// Leaves alone: tensors read as attributes (they are constants), and the final copies into inputs, which stay last.
/// A mutated input that itself requires a gradient is returned before the forward's values instead (MUTATED_OUT_GRAPH).
/// Errors name the op without a derivative.
Result<bool> differentiate(Module& module, Rewriter& rewriter);

struct JointOptions {
    /// User inputs, by placeholder name, whose gradient is wanted as well.
    std::vector<std::string> inputs;
    /// All floating inputs; for functions without parameters, such as rewrite rules.
    bool allInputs = false;
    Release release = kDefaultRelease;
};

/// Errors: an input that the graph does not have, by its name or its name in the file.
Result<void> checkInputNames(const Module& module, std::span<const std::string> names);

/// Marks an input, by its name or its name in the file, as one whose gradient is wanted. Errors: an unknown name, or
/// not a floating tensor.
Result<void> requireGradient(Module& module, const std::string& name);

/// Marks the inputs that the options name as requiring a gradient. Errors: an unknown name, or not a floating tensor.
Result<void> requireGradients(Module& module, const JointOptions& options);

/// The joint graph of a copy of `forward`. Errors: an unknown input name, or nothing to differentiate.
Result<std::unique_ptr<Module>> makeJointGraph(const Module& forward, const JointOptions& options = {});

}  // namespace cutaway
