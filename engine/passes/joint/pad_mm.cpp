#include "engine/passes/joint/pad_mm.h"

#include "engine/passes/joint/padding_decision.h"

namespace cutaway {
namespace {

template <ProductKind kind>
std::string_view unlessPays(const Match& m) {
    return unlessPadded(m, kind);
}
template <ProductKind kind>
Values buildPaddedProduct(const Match& m, GraphBuilder& builder) {
    PaddedOperands operands;
    operands.mat1 = builder.value(m.node("mat1"));
    operands.mat2 = builder.value(m.node("mat2"));
    if constexpr (kind == ProductKind::Addmm) {
        operands.bias = builder.value(m.node("bias"));
        operands.beta = m["beta"];
        operands.alpha = m["alpha"];
    }
    return buildPadded(builder, kind, operands, paddingOf(kind, m.tensor("mat1"), m.tensor("mat2")));
}

constexpr std::string_view kWhyPadded = "sizes that are multiples of the vector width have faster kernels";
constexpr Rule kPadRules[] = {
    {.name = "pad_mm",
     .find = "y = aten.mm.default(mat1, mat2); return y",
     .build = buildPaddedProduct<ProductKind::Mm>,
     .unless = unlessPays<ProductKind::Mm>,
     .why = kWhyPadded},
    {.name = "pad_bmm",
     .find = "y = aten.bmm.default(mat1, mat2); return y",
     .build = buildPaddedProduct<ProductKind::Bmm>,
     .unless = unlessPays<ProductKind::Bmm>,
     .why = kWhyPadded},
    {.name = "pad_addmm",
     .find = "y = aten.addmm.default(bias, mat1, mat2, beta=$beta, alpha=$alpha); return y",
     .build = buildPaddedProduct<ProductKind::Addmm>,
     .unless = unlessPays<ProductKind::Addmm>,
     .why = kWhyPadded},
};

}  // namespace

std::span<const Rule> padProductRules() { return kPadRules; }

}  // namespace cutaway
