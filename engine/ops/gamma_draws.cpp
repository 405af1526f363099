// Draws of gamma and Dirichlet distributions, whose shapes an operand gives, and the gradient of the former.
#include "engine/ops/build.h"
#include "engine/ops/draw.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/gamma.h"

namespace cutaway {
namespace {

/// The least of what is drawn, whose logarithm may be taken next: the dtype's smallest normal number.
double leastDrawn(DType dtype) {
    switch (dtype) {
        case DType::F64: return std::numeric_limits<double>::min();
        case DType::F16: return 0x1p-14;
        default: return std::numeric_limits<float>::min();
    }
}
/// What is drawn with the shapes that an operand gives.
std::optional<std::vector<double>> drawnGammas(const EvalContext& c) {
    std::vector<double> numbers = spread(c, c.in("self"));
    KeyBits bits(nextKey(c));
    const double least = leastDrawn(c.resultType().dtype);
    for (double& number : numbers) {
        if (!(number >= 0) || std::isinf(number)) return std::nullopt;
        number = standardGamma(number, least, bits);
    }
    return numbers;
}
constexpr const char* kBadShape = "the concentrations must be finite and not negative";
EvalResult evalStandardGamma(const EvalContext& c) {
    const auto numbers = drawnGammas(c);
    if (!numbers) return c.fail(kBadShape);
    Tensor out = c.result();
    unpackElements(*numbers, out);
    return out;
}
EvalResult evalGammaGradient(const EvalContext& c) {
    std::vector<double> shapes = spread(c, c.in("self"));
    const std::vector<double> drawn = spread(c, c.in("output"));
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i] = gammaByShape(shapes[i], drawn[i]);
    Tensor out = c.result();
    unpackElements(shapes, out);
    return out;
}
void deriveStandardGamma(Derivation& d) {
    d.input(0) = d.dy() * d.call("aten._standard_gamma_grad.default", {d.in(0), d.out()});
}
/// Gamma draws of a row, divided by their sum.
EvalResult evalDirichlet(const EvalContext& c) {
    auto numbers = drawnGammas(c);
    if (!numbers) return c.fail(kBadShape);
    Tensor out = c.result();
    const auto classes = static_cast<size_t>(out.rank() == 0 ? 1 : out.sizes().back());
    for (size_t row = 0; classes > 0 && row < numbers->size(); row += classes)
        shareRow({numbers->data() + row, classes});
    unpackElements(*numbers, out);
    return out;
}

constexpr OpDef kGammaDrawOps[] = {
    // Of the gamma distribution of the shapes `self`, scale 1; how they move with these; and rows of them that add up
    // to 1.
    {.schema = "aten._standard_gamma.default(Tensor self, Generator? generator=None) -> Tensor",
     .tags = Tag::Random,
     .infer = inferDrawnFloats,
     .eval = evalStandardGamma,
     .derive = deriveStandardGamma,
     .samples = "f32[2, 3]>0\nbf16[4]>0\nf64[3]>0"},
    {.schema = "aten._standard_gamma_grad.default(Tensor self, Tensor output) -> Tensor",
     .infer = inferDrawnFloats,
     .eval = evalGammaGradient,
     .samples = "f32[2, 3]>0, f32[2, 3]>0\nf64[5]>0, f64[5]>0"},
    {.schema = "aten._sample_dirichlet.default(Tensor self, Generator? generator=None) -> Tensor",
     .tags = Tag::Random,
     .infer = inferDrawnFloats,
     .eval = evalDirichlet,
     .samples = "f32[2, 3]>0\nf64[4]>0"},
};

}  // namespace

std::span<const OpDef> gammaDrawOps() { return kGammaDrawOps; }

}  // namespace cutaway
