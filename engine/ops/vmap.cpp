// What torch.vmap leaves in a graph. A value inside of a vmap has the type of one example; these calls say where the
// examples begin and end. The pass vmap writes the calls between them for all examples at once, so their kernels refuse
// what only it knows.
#include "engine/ir/stacked.h"
#include "engine/ops/eval.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// One example: the operand without its dim of examples.
Result<ValueType> inferExample(const InferContext& c) {
    CT_TRY(TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("a tensor without dims has no examples to go through");
    CT_TRY(const int64_t dim, c.dim("batch_dim", self.rank()));
    self.sizes.erase(self.sizes.begin() + dim);
    self.strides.erase(self.strides.begin() + dim);
    return ValueType(std::move(self));
}

/// All examples: one behind the other in memory, whatever the dim.
Result<ValueType> inferExamples(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("out_dim", self.rank() + 1));
    CT_TRY(const SymInt count, c.size("batch_size"));
    TensorType all = stacked(self, count);
    std::rotate(all.sizes.begin(), all.sizes.begin() + 1, all.sizes.begin() + dim + 1);
    std::rotate(all.strides.begin(), all.strides.begin() + 1, all.strides.begin() + dim + 1);
    return ValueType(std::move(all));
}

Result<ValueType> inferNothing(const InferContext&) { return ValueType(); }

EvalResult giveNothing(const EvalContext&) { return TensorList{}; }

constexpr OpDef kVmapOps[] = {
    {.schema = "torch._C._functorch._add_batch_dim(Tensor(a) self, int batch_dim, int level) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferExample,
     .eval = evalLeftToPass,
     .derive =
         [](Derivation& d) {
             d.input(0) =
                 d.call("torch._C._functorch._remove_batch_dim",
                        {d.dy(), d.arg(2), Argument(d.in(size_t{0}).size(d.dimOf("batch_dim", d.in(size_t{0}).rank()))),
                         d.arg(1)});
         }},
    {.schema =
         "torch._C._functorch._remove_batch_dim(Tensor self, int level, SymInt batch_size, int out_dim) -> Tensor",
     .infer = inferExamples,
     .eval = evalLeftToPass,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("torch._C._functorch._add_batch_dim", {d.dy(), d.arg(3), d.arg(1)});
         }},
    {.schema = "torch._C._functorch._vmap_increment_nesting(SymInt batch_size, str randomness) -> ()",
     .tags = Tag::Impure,
     .infer = inferNothing,
     .eval = giveNothing},
    {.schema = "torch._C._functorch._vmap_decrement_nesting() -> ()",
     .tags = Tag::Impure,
     .infer = inferNothing,
     .eval = giveNothing},
};

}  // namespace

std::span<const OpDef> vmapOps() { return kVmapOps; }

}  // namespace cutaway
