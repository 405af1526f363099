// Dual tensors of forward-mode differentiation, as Dynamo's graphs hold them (torch.autograd.forward_ad,
// torch.func.jvp). They say where tangents come in and are asked for; the pass forward_ad computes them, so their
// kernels refuse what only it knows.
#include "engine/ops/eval.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Result<ValueType> aliased(const InferContext& c) {
    CT_TRY(TensorType self, c.tensor(size_t{0}));
    return ValueType(std::move(self));
}
Result<ValueType> inferLeft(const InferContext&) { return ValueType(); }

constexpr OpDef levelRow(std::string_view schema) {
    return {.schema = schema, .tags = Tag::Impure, .infer = inferLeft, .eval = [](const EvalContext&) -> EvalResult {
                return TensorList{};
            }};
}

constexpr OpDef kDualOps[] = {
    // The primal's memory, carrying the tangent. Level -1: the one that is open.
    {.schema = "aten._make_dual.default(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a)",
     .tags = Tag::View,
     .infer = aliased,
     .eval = [](const EvalContext& c) { return c.in(size_t{0}); }},
    {.schema = "aten._unpack_dual.default(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent)",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const ValueType one, aliased(c));
         return ValueType(TupleType{one, one});
     },
     .eval = evalLeftToPass},
    levelRow("torch._C._enter_dual_level() -> ()"),
    levelRow("torch._C._exit_dual_level(int level) -> ()"),
    levelRow("torch._C._functorch._jvp_increment_nesting() -> ()"),
    levelRow("torch._C._functorch._jvp_decrement_nesting() -> ()"),
};

}  // namespace

std::span<const OpDef> dualOps() { return kDualOps; }

}  // namespace cutaway
