// Elementwise operators: arithmetic, comparison, selection, casts.
#include "engine/ops/build.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// Pairs that broadcast, promote and stride in every way that matters to a binary elementwise op.
constexpr std::string_view kBinarySamples = R"(
f32[2, 3], f32[2, 3]
f32[2, 3], f32[3]
f32[4, 1], f32[1, 5]
f32[2, 3][1, 2], f32[2, 3]
f32[], f32[3]
f32[0, 3], f32[3]
f64[3], f32[3]
bf16[2, 3], bf16[3]
f16[5], f32[]
i64[4], i32[4]
i32[3], f32[3]
u8[4], i8[4]
b8[4], i64[4]
f32[2, 3], 2
i64[3], 2
i64[3], 2.5
)";

constexpr OpDef kOps[] = {
    // Elementwise product with broadcasting. Integers wrap; NaN and infinity follow IEEE; bool is "and".
    {.schema = "aten.mul.Tensor(Tensor self, Tensor other) -> Tensor",
     .tags = Tag::Pointwise | Tag::Commutative | Tag::Inplace,
     .infer = inferBroadcast,
     .eval = [](const EvalContext& c) { return zipComplex(c, [](auto a, auto b) { return a * b; }); },
     .derive = [](Derivation& d) {
         d.input(0) = d.dy() * d.any(1);
         if (d.needs(1)) d.input(1) = d.dy() * d.any(0);
     },
     .lower = [](LowerContext& c) { return c.load(0) * c.load(1); },
     .samples = kBinarySamples},
};

}  // namespace

std::span<const OpDef> pointwiseOps() { return kOps; }

}  // namespace cutaway
