// Activation functions.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/float_map.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/opmath.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

constexpr Tag kTags = Tag::Pointwise | Tag::Inplace;

constexpr std::string_view kSamples = R"(
f32[2, 3]
f64[2, 3][1, 2]
bf16[5]
f16[]
f32[0, 3]
f32[2, 3, 2, 2][12, 1, 6, 3]
)";

Result<ValueType> inferGelu(const InferContext& c) {
    const std::string mode = c.text("approximate");
    if (mode != "none" && mode != "tanh") return c.fail("approximate is 'none' or 'tanh', not '" + mode + "'");
    return inferFloatLikeFirst(c);
}
Value geluOf(const Value& x, bool tanh) {
    if (!tanh) {
        const Value half = x * 0.5;
        return half * (unary("aten.erf.default", x * 0.7071067811865476) + 1);
    }
    const Value inner = (x + x * x * x * 0.044715) * 0.7978845608028654;
    const Value half = x * 0.5;
    return half * (unary("aten.tanh.default", inner) + 1);
}

constexpr OpDef kOps[] = {
    // x * Phi(x), exactly or by the tanh approximation.
    {.schema = "aten.gelu.default(Tensor self, *, str approximate='none') -> Tensor", .tags = kTags, .infer = inferGelu,
     .eval = [](const EvalContext& c) -> EvalResult {
         if (c.text("approximate") == "tanh")
             return floatMap(c, [](auto x) { return x * decltype(x)(0.5) * (1 + std::tanh(decltype(x)(0.7978845608028654) * (x + decltype(x)(0.044715) * x * x * x))); });
         return floatMap(c, [](auto x) { return x * decltype(x)(0.5) * (1 + std::erf(x * decltype(x)(0.7071067811865476))); });
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return fromOpmath(d, geluOf(toOpmath(d.in(size_t{0})), d.text("approximate") == "tanh"));
     },
     .derive = [](Derivation& d) {
         NamedArguments keywords;
         if (d.text("approximate") != "none") keywords = {{"approximate", d.text("approximate")}};
         d.input(0) = d.call("aten.gelu_backward.default", {d.dy(), d.in(size_t{0})}, std::move(keywords));
     },
     .samples = R"(
f32[2, 3]
f32[2, 3], approximate = 'tanh'
f64[2, 3][1, 2]
bf16[5]
f16[], approximate = 'tanh'
f32[0, 3]
)"},
};

}  // namespace

std::span<const OpDef> activationOps() { return kOps; }

}  // namespace cutaway
