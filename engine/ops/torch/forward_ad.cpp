// torch.autograd.forward_ad, and what torch.func.jvp leaves in Dynamo's graphs around it.
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

/// The level that a call names; -1 for the one that is open.
Argument levelOf(PythonCall& c) { return Argument(c["level"].asInt().value_or(-1)); }

Argument setForwardMode(PythonCall& c) {
    if (c.flag("mode")) return {};
    return c.fail("forward-mode differentiation is switched off here, which is not understood",
                  {"take the call out of the region that the program switches it off for"});
}

constexpr PythonFunction kForwardAdFunctions[] = {
    {"torch.autograd.forward_ad.enter_dual_level() -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._enter_dual_level", {})); }},
    {"torch.autograd.forward_ad.exit_dual_level(*, Any level=None) -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._exit_dual_level", {levelOf(c)})); }},
    {"torch.autograd.forward_ad.make_dual(Any tensor, Any tangent, *, Any level=None) -> Any",
     [](PythonCall& c) {
         return c.aten("_make_dual", {c["tensor"], c["tangent"], levelOf(c)});
     }},
    {"torch.autograd.forward_ad.unpack_dual(Any tensor, *, Any level=None) -> Any",
     [](PythonCall& c) {
         return c.aten("_unpack_dual", {c["tensor"], levelOf(c)});
     }},
    {"torch.autograd.forward_ad._maybe_load_decompositions() -> Any", [](PythonCall&) { return Argument(); }},
    {"torch._C._set_fwd_grad_enabled(Any mode) -> Any", setForwardMode},
    {"torch._functorch.predispatch._jvp_increment_nesting() -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._functorch._jvp_increment_nesting", {})); }},
    {"torch._functorch.predispatch._jvp_decrement_nesting() -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._functorch._jvp_decrement_nesting", {})); }},
    {"torch._functorch.predispatch._enter_dual_level() -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._enter_dual_level", {})); }},
    {"torch._functorch.predispatch._exit_dual_level(*, Any level) -> Any",
     [](PythonCall& c) { return Argument(c.builder().call("torch._C._exit_dual_level", {levelOf(c)})); }},
    {"torch._functorch.predispatch._make_dual(Any tensor, Any tangent, *, Any level=0) -> Any",
     [](PythonCall& c) {
         return c.aten("_make_dual", {c["tensor"], c["tangent"], levelOf(c)});
     }},
    {"torch._functorch.predispatch._unpack_dual(Any tensor, *, Any level=0) -> Any",
     [](PythonCall& c) {
         return c.aten("_unpack_dual", {c["tensor"], levelOf(c)});
     }},
    {"torch._functorch.predispatch._unwrap_for_grad(Any tensor, Any level) -> Any",
     [](PythonCall& c) { return c["tensor"]; }},
    // Levels are counted by the calls that open and close them, so their wrappers say nothing more.
    {"torch._C._functorch._wrap_for_grad(Any self, Any level) -> Any", [](PythonCall& c) { return c["self"]; }},
    {"torch._C._functorch._unwrap_for_grad(Any self, Any level) -> Any", [](PythonCall& c) { return c["self"]; }},
};

}  // namespace

std::span<const PythonFunction> forwardAdFunctions() { return kForwardAdFunctions; }

}  // namespace cutaway::torchcalls
