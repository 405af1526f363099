// What torch.vmap leaves in the graphs of Dynamo and of torch.export around the function that it calls.
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

constexpr PythonFunction kVmapFunctions[] = {
    {"torch._functorch.predispatch.lazy_load_decompositions() -> Any", [](PythonCall&) { return Argument(); }},
    {"torch._functorch.vmap.lazy_load_decompositions() -> Any", [](PythonCall&) { return Argument(); }},
    {"torch._functorch.predispatch._vmap_increment_nesting(Any batch_size, Any randomness) -> Any",
     [](PythonCall& c) {
         return Argument(
             c.builder().call("torch._C._functorch._vmap_increment_nesting", {c["batch_size"], c["randomness"]}));
     }},
    {"torch._functorch.predispatch._vmap_decrement_nesting() -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._functorch._vmap_decrement_nesting", {})); }},
    {"torch._functorch.predispatch._add_batch_dim(Any self, Any batch_dim, Any level) -> Any",
     [](PythonCall& c) {
         return Argument(
             c.builder().call("torch._C._functorch._add_batch_dim", {c["self"], c["batch_dim"], c["level"]}));
     }},
    {"torch._functorch.predispatch._remove_batch_dim(Any self, Any level, Any batch_size, Any out_dim) -> Any",
     [](PythonCall& c) {
         return Argument(c.builder().call("torch._C._functorch._remove_batch_dim",
                                          {c["self"], c["level"], c["batch_size"], c["out_dim"]}));
     }},
};

}  // namespace

std::span<const PythonFunction> vmapFunctions() { return kVmapFunctions; }

}  // namespace cutaway::torchcalls
