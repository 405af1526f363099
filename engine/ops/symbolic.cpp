// Projections of tuples and arithmetic on sizes.
#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr OpDef kOps[] = {
    // Item `b` of a tuple. Python's indexing: negative positions count from the end. A tensor's subscript (slices, None,
    // tensors as index) occurs in graphs from before tracing to aten; it is carried with the type that was written.
    {.schema = "operator.getitem(Any a, Any b) -> Any",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         const Node* tuple = c.arg(0).node();
         if (tuple == nullptr) return c.fail("the first argument is not a value");
         if (tuple->type().isOpaque() || tuple->type().tensor()) return ValueType(OpaqueType{});
         const TupleType* items = tuple->type().tuple();
         if (items == nullptr) return c.fail("'" + tuple->name() + "' is not a tuple");
         CT_TRY(int64_t position, c.integer("b"));
         if (position < 0) position += static_cast<int64_t>(items->size());
         if (position < 0 || position >= static_cast<int64_t>(items->size()))
             return c.fail("item " + std::to_string(position) + " of a tuple of " + std::to_string(items->size()));
         return (*items)[static_cast<size_t>(position)];
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         TensorList all = c.list("a");
         int64_t position = c.integerOr("b", 0);
         if (position < 0) position += static_cast<int64_t>(all.size());
         return all[static_cast<size_t>(position)];
     }},
};

}  // namespace

std::span<const OpDef> symbolicOps() { return kOps; }

}  // namespace cutaway
