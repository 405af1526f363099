#pragma once
// Types and values of ops that are defined by their decomposition: the call is expanded into a scratch graph, and that
// graph is typed or run. Composite rows need no shape rule and no kernel of their own; a row that has both is held to
// agree with its expansion by the op tests.
#include "engine/ops/build.h"
#include "engine/ops/eval.h"

namespace cutaway {

/// Type of the call's expansion. For use as OpDef::infer, so the decomposition may not rely on an accepted shape: it
/// asks through Result-returning readers and reports with GraphBuilder::fail.
Result<ValueType> inferExpanded(const InferContext& c);
/// Value of the call's expansion, op by op. For use as OpDef::eval.
EvalResult evalExpanded(const EvalContext& c);

}  // namespace cutaway
