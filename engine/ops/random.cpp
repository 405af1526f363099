// Operators that draw random numbers.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr OpDef kOps[] = {
    // In training a native_dropout; otherwise a copy, as a program that returns its input unchanged would alias it.
    {.schema = "aten.dropout.default(Tensor input, float p, bool train) -> Tensor", .infer = inferExpanded, .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         if (!d.flag("train") || d.real("p") == 0) return unary("aten.clone.default", d.in(size_t{0}));
         return d.call("aten.native_dropout.default", {d.arg(0), d.arg("p"), true})[0];
     },
     .samples = "f32[2, 3], 0.5, False\nf32[2, 3], 0.0, True"},
};

}  // namespace

std::span<const OpDef> randomOps() { return kOps; }

}  // namespace cutaway
