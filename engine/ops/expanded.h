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

/// For use as OpDef::eval by operators that have no value of their own: a pass (`vmap`, `forward_ad`) rewrites the
/// graph around them. Says which.
EvalResult evalLeftToPass(const EvalContext& c);
bool isLeftToPass(const Op& op);

/// A row that is shorthand for other ops: shape, value and gradient come from its expansion.
constexpr OpDef shorthand(std::string_view schema, Fn<Values(Decomposition&)> rule, std::string_view samples,
                          Tag tags = Tag::None) {
    return {.schema = schema,
            .tags = tags,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = rule,
            .samples = samples};
}
/// The value of a Result; if it is an error, nothing, and the builder keeps the error.
template <class T>
std::optional<T> read(Decomposition& d, Result<T> result) {
    if (result) return std::move(*result);
    d.builder().fail(std::move(result).error());
    return std::nullopt;
}
/// The error of a rule for a call that it does not accept; names the op.
Values refuse(Decomposition& d, std::string what);
/// An int64 range 0, 1, ... (or from `start`, by `step`), as PyTorch's traces write it.
Value iota(GraphBuilder& builder, const SymInt& length, Device device, const SymInt& start = 0, const SymInt& step = 1,
           DType dtype = DType::I64);
/// The items of a tuple, each by a getitem.
std::vector<Value> itemsOf(const Value& tuple);
/// aten.cat.default
Value cat(GraphBuilder& builder, const std::vector<Value>& tensors, int64_t dim);

}  // namespace cutaway
