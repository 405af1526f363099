#pragma once
// Forward mode of a whole graph: next to its results, their derivative along a direction (spec: autograd part C.3).
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// As a pass over a functional graph whose composites are expanded. Differentiated are parameters and the inputs whose
/// type requires a gradient; without any of those, all floating inputs. For each of them there is one more input,
/// tangent_in_k of the same type; behind its results the graph returns their tangents, zeros where a result does not
/// depend on the differentiated inputs.
///
/// The first rewrite adds inputs and outputs, each call's tangent is one more. With less fuel the graph still verifies;
/// its tangents lack what was not reached.
///
/// Leaves alone: what is written back to buffers and inputs, which returns no tangent.
/// Errors: no floating input; a result that is not a tensor, or, if the request is strict, depends on none of the
/// inputs; an op through which no tangent can be pushed, by name.
Result<bool> jvp(Module& module, Rewriter& rewriter);

}  // namespace cutaway
