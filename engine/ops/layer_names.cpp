// Layers that are written with other ops: pairwise_distance, _weight_norm, renorm, dropout of elements and of whole
// features, rrelu, max_unpool, msort.
#include <cmath>

#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

Values pairDistance(Decomposition& d) {
    const Value apart = d.call("aten.add.Scalar", {d.in(0) - d.in(1), d.real("eps")});
    const int64_t inner = apart ? std::max(d.in(0).rank(), d.in(1).rank()) - 1 : 0;
    return d.call("aten.norm.ScalarOpt_dim",
                  {apart, d.real("p"), Argument(std::vector<int64_t>{inner}), d.flag("keepdim")});
}
/// _weight_norm: v g / |v|, the norm being taken over every dim but `dim` (over all for -1).
Values withLength(Decomposition& d) {
    const Value v = d.call("aten.contiguous.default", {d.in(0)}), g = d.call("aten.contiguous.default", {d.in(1)});
    const auto dim = read(d, d.integer("dim", 0));
    if (!dim) return Value(d.builder(), nullptr);
    if (*dim < -1 || *dim >= v.rank())
        return refuse(d, "dim " + std::to_string(*dim) + " is outside of " + v.type().text());
    std::vector<int64_t> others;
    for (int64_t i = 0; i < v.rank(); ++i)
        if (i != *dim) others.push_back(i);
    const Value length = *dim == -1
                             ? d.call("aten.linalg_vector_norm.default", {v, int64_t{2}})
                             : d.call("aten.linalg_vector_norm.default", {v, int64_t{2}, Argument(others), true});
    return v * (g / length);
}
Result<ValueType> inferRenorm(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY_VOID(c.dim("dim", self.rank()));
    if (self.rank() < 2) return c.fail("needs at least two dims, not " + self.text());
    if (!isFloating(self.dtype)) return c.fail("needs a floating-point tensor");
    if (c.scalar("p") && toDouble(*c.scalar("p")) <= 0) return c.fail("p must be positive");
    if (c.scalar("maxnorm") && toDouble(*c.scalar("maxnorm")) < 0) return c.fail("maxnorm must not be negative");
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}
/// renorm: slices along `dim` whose p-norm is above maxnorm are scaled down to it.
Values boundedLength(Decomposition& d) {
    const Value x = d.in(0);
    std::vector<int64_t> others;
    const int64_t kept = d.dimOf("dim", x.rank());
    for (int64_t i = 0; i < x.rank(); ++i)
        if (i != kept) others.push_back(i);
    const Scalar most = *d.scalar("maxnorm");
    NamedArguments wide;
    if (isHalf(x.dtype())) wide.emplace_back("dtype", DType::F32);
    const Value length =
        d.call("aten.linalg_vector_norm.default", {x, d.arg("p"), Argument(others), true}, std::move(wide));
    const Value over = compareScalar("gt", length, most);
    const Value factor = unary("aten.reciprocal.default", length + 1e-7) * OperandValue(most);
    const Value scale = where(over, factor, scalarTensor(d, 1.0, factor));
    return x * convert(scale, x.dtype());
}

/// Noise for whole features: one number for all positions of a channel.
Values dropFeatures(Decomposition& d, bool features, bool alpha) {
    const Value x = d.in(0);
    const double p = d.real("p");
    if (!(p >= 0 && p <= 1)) return refuse(d, "the probability must lie between 0 and 1");
    if (p == 0 || !d.flag("train") || numel(x.sizes()) == SymInt(0)) return x;
    if (!isFloating(x.dtype()))
        return refuse(d, "drops floating-point numbers only, not " + std::string(info(x.dtype()).torchName));
    if (p == 1) return x * unary("aten.zeros_like.default", x);
    SymDims sizes = x.sizes();
    if (features && x.rank() < 2) return refuse(d, "needs a batch of features, not " + x.type().text());
    for (size_t i = 2; features && i < sizes.size(); ++i) sizes[i] = 1;
    const Value space =
        d.call("aten.empty.memory_format", {Argument(sizes)},
               {{"dtype", x.dtype()}, {"layout", Layout::Strided}, {"device", x.type().device}, {"pin_memory", false}});
    const Value noise = d.call("aten.bernoulli.p", {space, 1 - p});
    if (!alpha) return x * d.call("aten.div.Scalar", {noise, 1 - p});
    constexpr double kAlpha = 1.7580993408473766;
    const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
    const Value shift =
        d.call("aten.add.Scalar",
               {d.call("aten.mul.Scalar", {d.call("aten.add.Scalar", {noise, -1}), kAlpha * a}), kAlpha * a * p});
    return x * d.call("aten.mul.Scalar", {noise, a}) + shift;
}

Values randomSlopes(Decomposition& d) {
    const Value x = d.in(0);
    const double lower = d.real("lower", 0.125), upper = d.real("upper", 1.0 / 3);
    if (!isFloating(x.dtype())) return refuse(d, "needs floating-point numbers, not " + x.type().text());
    if (!(lower <= upper)) return refuse(d, "lower exceeds upper");
    if (!d.flag("training")) return d.call("aten.leaky_relu.default", {x, (lower + upper) / 2});
    const Value negative = d.call("aten.le.Scalar", {x, 0});
    return where(negative, x * d.call("aten.uniform.default", {x, lower, upper}), x);
}

// -- unpooling

Result<ValueType> inferUnpool(const InferContext& c, int64_t dims) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const TensorType indices, c.tensor("indices"));
    CT_TRY(const SymDims size, c.sizes("output_size"));
    if (self.rank() != dims + 1 && self.rank() != dims + 2)
        return c.fail("needs " + std::to_string(dims + 1) + " or " + std::to_string(dims + 2) + " dims, not " +
                      self.text());
    if (indices.dtype != DType::I64 || !(indices.sizes == self.sizes))
        return c.fail("needs int64 indices of the tensor's shape");
    if (static_cast<int64_t>(size.size()) != dims)
        return c.fail("output_size needs " + std::to_string(dims) + " sizes");
    for (size_t i = 1; i < self.sizes.size(); ++i)
        if (self.sizes[i] == SymInt(0))
            return c.fail("dim " + std::to_string(i) + " of " + self.text() + " has no elements");
    SymDims sizes(self.sizes.begin(), self.sizes.end() - dims);
    sizes.insert(sizes.end(), size.begin(), size.end());
    return ValueType(TensorType::contiguous(self.dtype, sizes, self.device));
}
/// An index lies in the plane of its own channel: one before it or behind it would be another channel's.
EvalResult evalUnpool(const EvalContext& c) {
    const int64_t plane = numel(c.integersOf("output_size"));
    for (const int64_t at : packElements<int64_t>(c.in("indices")))
        if (at < 0 || at >= plane)
            return c.fail("index " + std::to_string(at) + " is out of range for a plane of " + std::to_string(plane) +
                          " elements");
    return evalExpanded(c);
}
/// Written to where the indices say, of a plane of zeros; planes one after the other.
Values unpool(Decomposition& d, int64_t dims) {
    const auto rowMajor = [&](const Value& v) {
        return v.type().isContiguous()
                   ? v
                   : d.call("aten.clone.default", {v}, {{"memory_format", MemoryFormat::Contiguous}});
    };
    const Value x = rowMajor(d.in("self")), indices = rowMajor(d.in("indices"));
    const SymDims size = d.out().sizes;
    const SymInt plane = numel(SymDims(size.end() - dims, size.end())),
                 planes = numel(SymDims(size.begin(), size.end() - dims));
    SymDims shape(x.sizes().begin(), x.sizes().end() - dims);
    shape.insert(shape.end(), static_cast<size_t>(dims), SymInt(1));
    const Value offsets =
        d.call("aten.mul.Tensor", {view(iota(d.builder(), planes, x.type().device), shape), Argument(plane)});
    const Value at = view(indices + offsets, {SymInt(-1)});
    const Value zeros = full(d.builder(), size, Scalar(int64_t{0}), x.dtype(), x.type().device);
    const std::vector<Argument> positions = {at};
    const Value flat = view(zeros, {SymInt(-1)});
    return view(d.call("aten.index_put.default", {flat, Argument(positions), view(x, {SymInt(-1)})}), size);
}
void deriveUnpool(Derivation& d, int64_t dims) {
    const Value x = d.in("self");
    const auto flat = [&](const Value& v) {
        SymDims sizes(v.sizes().begin(), v.sizes().end() - dims);
        sizes.push_back(numel(SymDims(v.sizes().end() - dims, v.sizes().end())));
        return reshape(v, sizes);
    };
    d.input(0) = view(d.call("aten.gather.default", {flat(d.dy()), -1, flat(d.in("indices"))}), x.sizes());
}

constexpr OpDef kLayerNamesOps[] = {
    shorthand(
        "aten.pairwise_distance.default(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor",
        pairDistance, "f32[4, 3], f32[4, 3]\nf64[2, 4, 3], f64[3], 1.0, 1e-06, True"),
    shorthand("aten._weight_norm.default(Tensor v, Tensor g, int dim=0) -> Tensor", withLength,
              "f32[3, 4], f32[3, 1]\nf64[3, 4], f64[1, 4], 1"),
    {.schema = "aten.renorm.default(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferRenorm,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = boundedLength,
     .samples = "f32[3, 4], 2, 0, 1.0\nf64[2, 3, 4], 1, 1, 3\nf32[3, 4], 3, -1, 100"},
    {.schema = "aten.max_unpool2d.default(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
     .infer = [](const InferContext& c) { return inferUnpool(c, 2); },
     .eval = evalUnpool,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return unpool(d, 2); },
     .derive = [](Derivation& d) { deriveUnpool(d, 2); },
     .samples = "f32[2, 3, 1, 1], i64[2, 3, 1, 1]<16, [4, 4]\nf64[3, 1, 1], i64[3, 1, 1]<6, [2, 3]"},
    {.schema =
         "aten.max_unpool3d.default(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
     .infer = [](const InferContext& c) { return inferUnpool(c, 3); },
     .eval = evalUnpool,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return unpool(d, 3); },
     .derive = [](Derivation& d) { deriveUnpool(d, 3); },
     .samples = "f32[2, 3, 1, 1, 1], i64[2, 3, 1, 1, 1]<8, [2, 2, 2], [2, 2, 2], [0, 0, 0]"},
    // In training a native_dropout; otherwise a copy, as a program that returns its input unchanged would alias it.
    // Its in-place form dropout_ is expanded like the other dropouts here.
    {.schema = "aten.dropout.default(Tensor input, float p, bool train) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         if (d.op().mutates()) return dropFeatures(d, false, false);
         if (!(d.real("p") >= 0 && d.real("p") <= 1)) return refuse(d, "the probability must lie between 0 and 1");
         if (!d.flag("train") || d.real("p") == 0)
             return has(d.release(), ReleaseChange::PlainDropout) ? d.in(size_t{0})
                                                                  : unary("aten.clone.default", d.in(size_t{0}));
         return d.call("aten.native_dropout.default", {d.arg(0), d.arg("p"), true})[0];
     },
     .samples = "f32[2, 3], 0.5, False\nf32[2, 3], 0.0, True"},
    // Negative elements times slopes: one for all, or drawn for each in training.
    shorthand(
        "aten.rrelu.default(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
        randomSlopes, "f32[2, 3], 0.125, 0.5\nf32[2, 3], 0.1, 0.3, True\nf64[4]", Tag::Random | Tag::Inplace),
    shorthand(
        "aten.feature_dropout.default(Tensor input, float p, bool train) -> Tensor",
        [](Decomposition& d) { return dropFeatures(d, true, false); },
        "f32[2, 3, 4], 0.5, True\nf32[2, 3, 4], 0.5, False\nf32[2, 3], 0.0, True", Tag::Random | Tag::Inplace),
    shorthand(
        "aten.feature_alpha_dropout.default(Tensor input, float p, bool train) -> Tensor",
        [](Decomposition& d) { return dropFeatures(d, true, true); },
        "f32[2, 3, 4], 0.5, True\nf32[2, 3, 4], 0.5, False", Tag::Random | Tag::Inplace),
    shorthand(
        "aten.alpha_dropout.default(Tensor input, float p, bool train) -> Tensor",
        [](Decomposition& d) { return dropFeatures(d, false, true); }, "f32[2, 3], 0.5, True\nf32[2, 3], 0.5, False",
        Tag::Random | Tag::Inplace),
    shorthand(
        "aten.msort.default(Tensor self) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.sort.default", {d.in(0), 0, false})[0];
        },
        "f32[3, 2]!"),
};

}  // namespace

std::span<const OpDef> layerNameOps() { return kLayerNamesOps; }

}  // namespace cutaway
