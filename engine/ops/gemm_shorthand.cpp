// Shorthands for products: addmv, addr, addbmm, inner, tensordot, kron, multi_dot. Those whose result has another
// dtype than the operands stand in gemm_narrow.cpp.
#include <algorithm>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/gemm_rules.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

Value transposedShort(const Value& x) { return x ? x.builder().call("aten.t.default", {x}) : x; }
Value wideShort(const Value& x) { return isHalf(x.dtype()) ? convert(x, DType::F32) : x; }
bool isZero(const std::optional<Scalar>& number) { return number && toDouble(*number) == 0; }

/// addendFits, and all three have one dtype.
Result<ValueType> withAddend(const InferContext& c, TensorType product) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.dtype != product.dtype) return c.fail("operands of different dtypes");
    return addendFits(c, std::move(product));
}

Result<ValueType> inferAddmv(const InferContext& c) {
    CT_TRY(const TensorType matrix, c.tensor(1));
    CT_TRY(const TensorType vector, c.tensor(2));
    if (matrix.rank() != 2 || vector.rank() != 1) return c.fail("needs a matrix and a vector");
    if (matrix.dtype != vector.dtype) return c.fail("operands of different dtypes");
    if (differ(matrix.sizes[1], vector.sizes[0]))
        return c.fail("the matrix has " + matrix.sizes[1].text() + " columns, the vector " + vector.sizes[0].text() +
                      " elements");
    TensorType product = TensorType::contiguous(matrix.dtype, {matrix.sizes[0]}, matrix.device);
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (promote(self.dtype, product.dtype) != product.dtype)
        return c.fail("the added tensor " + self.text() + " does not fit the product's dtype");
    return addendFits(c, std::move(product));
}
Values decomposeAddmv(Decomposition& d) {
    const Value self = wideShort(d.in(0)), matrix = wideShort(d.in(1)), vector = wideShort(d.in(2));
    // Factors of integers are integers: what stands behind the point is cut off.
    const auto factor = [&](size_t position) {
        const auto number = d.arg(position).asReal();
        const bool cut = number && isIntegral(d.out().dtype, true);
        return cut ? OperandValue(static_cast<int64_t>(*number)) : d.any(position);
    };
    const Value product = d.call("aten.mv.default", {matrix, vector}) * factor(4);
    const OperandValue beta = factor(3);
    const bool none = beta.argument().isNumber() && beta.argument().asReal() == 0.0;
    if (none) return convert(product, d.out().dtype);
    const bool widened = has(d.release(), ReleaseChange::AddendOfAddmv);
    return convert(product + (widened ? expand(self, product.sizes()) : self) * beta, d.out().dtype);
}
/// Elementwise over self, the column and the row, with the dtype of all three.
Result<ValueType> inferAddr(const InferContext& c) {
    CT_TRY(const Operand self, c.operand(0));
    CT_TRY(Operand first, c.operand(1));
    CT_TRY(const Operand second, c.operand(2));
    if (first.type.rank() != 1 || second.type.rank() != 1) return c.fail("needs two vectors");
    const SymDims product = {first.type.sizes[0], second.type.sizes[0]};
    CT_TRY_VOID(addendFits(c, TensorType::contiguous(first.type.dtype, product, first.type.device)));
    first.type.sizes.emplace_back(1);
    first.type.strides.emplace_back(1);
    const Operand operands[] = {self, first, second};
    CT_TRY(TensorType type, elementwiseType(c, operands, resultType(operands)));
    return ValueType(std::move(type));
}
Values decomposeAddr(Decomposition& d) {
    const bool keeps = !isZero(d.scalar("beta"));
    const auto asColumn = [&] { return view(d.in(1), {d.in(1).size(0), SymInt(1)}); };
    if (d.out().dtype == DType::Bool) {
        const Value product = d.call("aten.logical_and.default", {asColumn(), d.in(2)});
        const Value scaledProduct = isZero(d.scalar("alpha")) ? d.call("aten.zeros_like.default", {product}) : product;
        return keeps ? d.call("aten.logical_or.default", {expand(d.in(0), d.out().sizes), scaledProduct})
                     : scaledProduct;
    }
    const Value scaledSelf = keeps ? expand(d.in(0), d.out().sizes) * d.any(3) : Value();
    const Value product = asColumn() * d.in(2) * d.any(4);
    return keeps ? scaledSelf + product : product;
}

Result<ValueType> inferAddbmm(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(1));
    CT_TRY(const TensorType b, c.tensor(2));
    CT_TRY(const TensorType product, productType(c, a, b, 3));
    return withAddend(c, TensorType::contiguous(product.dtype, {product.sizes[1], product.sizes[2]}, product.device));
}
/// The sum over the batch is a product with the batch inside the inner dim.
Values expandAddbmm(Decomposition& d) {
    const Value a = d.in(1), b = d.in(2);
    const SymInt inner = a.size(0) * a.size(2);
    const Value rows = reshape(permute(a, {1, 0, 2}), {a.size(1), inner}), columns = reshape(b, {inner, b.size(2)});
    return d.call("aten.addmm.default", {d.in(0), rows, columns}, {{"beta", d.arg("beta")}, {"alpha", d.arg("alpha")}});
}
void deriveAddbmm(Derivation& d) {
    const Value a = conjugated(d.in(1)), b = conjugated(d.in(2));
    const auto alpha = d.scalar("alpha");
    const auto spread = [&] { return expand(unsqueeze(d.dy(), 0), {a.size(0), a.size(1), b.size(2)}); };
    if (d.needs(1)) {
        const Value g = spread();
        d.input(1) = scaled(d.call("aten.bmm.default", {g, d.call("aten.transpose.int", {b, 1, 2})}), alpha);
    }
    if (d.needs(2)) {
        const Value turned = d.call("aten.transpose.int", {a, 1, 2});
        d.input(2) = scaled(d.call("aten.bmm.default", {turned, spread()}), alpha);
    }
    if (d.needs(0)) d.input(0) = scaled(d.dy(), d.scalar("beta"));
}

// -- products over named dims

Values decomposeTensordot(Decomposition& d, const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    Value a = d.in(0), b = d.in(1);
    if (first.size() != second.size())
        return refuse(d, "sums over " + std::to_string(first.size()) + " dims of one tensor and " +
                             std::to_string(second.size()) + " of the other");
    if (a.dtype() != b.dtype()) return refuse(d, "operands of different dtypes");
    auto wrap = [](int64_t dim, const Value& x) { return dim < 0 ? dim + x.rank() : dim; };
    std::vector<bool> inA(static_cast<size_t>(a.rank()), false), inB(static_cast<size_t>(b.rank()), false);
    SymInt inner = 1;
    for (size_t i = 0; i < first.size(); ++i) {
        const int64_t x = wrap(first[i], a), y = wrap(second[i], b);
        if (x < 0 || x >= a.rank() || y < 0 || y >= b.rank()) return refuse(d, "a dim to sum over is out of range");
        if (inA[static_cast<size_t>(x)] || inB[static_cast<size_t>(y)])
            return refuse(d, "a dim to sum over appears twice");
        inA[static_cast<size_t>(x)] = inB[static_cast<size_t>(y)] = true;
        const NamedArguments dtype = {{"dtype", a.dtype()}};
        if (b.size(y) == SymInt(1))
            a = d.call("aten.sum.dim_IntList", {a, Argument(std::vector<int64_t>{first[i]}), true}, dtype);
        else if (a.size(x) == SymInt(1))
            b = d.call("aten.sum.dim_IntList", {b, Argument(std::vector<int64_t>{second[i]}), true}, dtype);
        else if (differ(a.size(x), b.size(y)))
            return refuse(d, "dims of sizes " + a.size(x).text() + " and " + b.size(y).text() + " are summed together");
        else inner = inner * a.size(x);
    }
    std::vector<int64_t> orderA, orderB = second;
    SymDims sizes;
    SymInt rows = 1, columns = 1;
    for (int64_t dim = 0; dim < a.rank(); ++dim) {
        if (inA[static_cast<size_t>(dim)]) continue;
        orderA.push_back(dim);
        sizes.push_back(a.size(dim));
        rows = rows * a.size(dim);
    }
    orderA.insert(orderA.end(), first.begin(), first.end());
    for (int64_t dim = 0; dim < b.rank(); ++dim) {
        if (inB[static_cast<size_t>(dim)]) continue;
        orderB.push_back(dim);
        sizes.push_back(b.size(dim));
        columns = columns * b.size(dim);
    }
    if (sizes.empty()) {
        const Value x = permute(a, orderA), y = permute(b, orderB);
        const auto flat = [&](const Value& v) { return v.rank() == 1 ? v : reshape(v, {inner}); };
        const Value right = flat(y), left = flat(x);
        return reshape(d.call("aten.dot.default", {left, right}), {});
    }
    const Value left = reshape(permute(a, orderA), {rows, inner}),
                right = reshape(permute(b, orderB), {inner, columns});
    return reshape(d.call("aten.mm.default", {left, right}), sizes);
}
Values decomposeNamedDims(Decomposition& d) {
    const auto first = read(d, d.integers("dims_self")), second = read(d, d.integers("dims_other"));
    if (!first || !second) return Value(d.builder(), nullptr);
    return decomposeTensordot(d, *first, *second);
}
Values decomposeInner(Decomposition& d) {
    if (d.in(0).rank() == 0 || d.in(1).rank() == 0) return d.in(0) * d.in(1);
    if (differ(d.in(0).size(-1), d.in(1).size(-1)))
        return refuse(d, "the last dims have sizes " + d.in(0).size(-1).text() + " and " + d.in(1).size(-1).text());
    return decomposeTensordot(d, {-1}, {-1});
}
Values decomposeKron(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    const int64_t rank = std::max(a.rank(), b.rank());
    SymDims first, second, sizes;
    for (int64_t dim = 0; dim < rank; ++dim) {
        const SymInt x = dim < rank - a.rank() ? SymInt(1) : a.size(dim - rank),
                     y = dim < rank - b.rank() ? SymInt(1) : b.size(dim - rank);
        first.insert(first.end(), {x, SymInt(1)});
        second.insert(second.end(), {SymInt(1), y});
        sizes.push_back(x * y);
    }
    const Value left = reshape(a, first), right = reshape(b, second);
    return reshape(left * right, sizes);
}

// -- chains of matrices

struct Chain {
    std::vector<Value> matrices;
    std::vector<std::vector<size_t>> cut;  // where the product of i..j is cut
};
Value chainProduct(Decomposition& d, const Chain& chain, size_t first, size_t last) {
    if (first == last) return chain.matrices[first];
    const size_t cut = chain.cut[first][last];
    const Value left = chainProduct(d, chain, first, cut), right = chainProduct(d, chain, cut + 1, last);
    return d.call("aten.mm.default", {left, right});
}
/// The cheapest order, by the textbook recurrence; of two equal ones the first.
void planChain(Chain& chain, const std::vector<double>& sizes) {
    const size_t n = chain.matrices.size();
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    chain.cut.assign(n, std::vector<size_t>(n, 0));
    for (size_t length = 1; length < n; ++length)
        for (size_t i = 0; i + length < n; ++i) {
            const size_t j = i + length;
            cost[i][j] = std::numeric_limits<double>::infinity();
            for (size_t k = i; k < j; ++k) {
                const double here = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
                // Of three matrices the product from the left wins a tie, as PyTorch breaks it.
                if (here < cost[i][j] || (n == 3 && length == 2 && here == cost[i][j])) {
                    cost[i][j] = here;
                    chain.cut[i][j] = k;
                }
            }
        }
}
Values decomposeChain(Decomposition& d, std::string_view param) {
    const auto types = read(d, d.tensors(param));
    if (!types) return Value(d.builder(), nullptr);
    if (types->empty() || (types->size() == 1 && param == "tensors")) return refuse(d, "needs at least two tensors");
    Chain chain{d.list(param), {}};
    std::vector<Value>& all = chain.matrices;
    if (all.size() == 1 && all[0].rank() != 2) return refuse(d, "needs matrices");
    if (all.size() == 1) return unary("aten.clone.default", all[0]);
    SymDims shape;
    if (all[0].rank() == 1) all[0] = unsqueeze(all[0], 0);
    else shape.push_back(all[0].size(0));
    if (all.back().rank() == 1) all.back() = unsqueeze(all.back(), -1);
    else shape.push_back(all.back().size(-1));
    std::vector<double> sizes{0};
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].rank() != 2) return refuse(d, "tensor " + std::to_string(i) + " is not a matrix");
        if (i > 0 && differ(all[i - 1].size(1), all[i].size(0)))
            return refuse(d, "inner sizes " + all[i - 1].size(1).text() + " and " + all[i].size(0).text() + " differ");
        if (!all[i].size(0).isInt() || !all[i].size(1).isInt())
            return refuse(d, "the cheapest order depends on symbolic sizes");
        sizes.back() = static_cast<double>(all[i].size(0).value());
        sizes.push_back(static_cast<double>(all[i].size(1).value()));
    }
    planChain(chain, sizes);
    return view(chainProduct(d, chain, 0, all.size() - 1), shape);
}
/// Three tensors with dims of size 1 put in where `expandN` says, multiplied, and summed over `sumdim`.
Result<ValueType> inferTrilinear(const InferContext& c) {
    std::vector<SymDims> shapes;
    DType dtype = DType::F32;
    Device device;
    for (size_t i = 0; i < 3; ++i) {
        CT_TRY(const TensorType type, c.tensor(i));
        CT_TRY(const std::vector<int64_t> added, c.integers("expand" + std::to_string(i + 1)));
        if (i > 0 && type.dtype != dtype) return c.fail("operands of different dtypes");
        dtype = type.dtype;
        device = type.device;
        SymDims sizes = type.sizes;
        for (int64_t dim : added) {
            if (dim < 0 || dim > static_cast<int64_t>(sizes.size()))
                return c.fail("no place for a dim at " + std::to_string(dim) + " in " + type.text());
            sizes.insert(sizes.begin() + dim, SymInt(1));
        }
        if (i > 0 && sizes.size() != shapes[0].size())
            return c.fail("the three do not have one number of dims once they are expanded");
        shapes.push_back(std::move(sizes));
    }
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return c.fail(sizes.error().message);
    CT_TRY(const std::vector<int64_t> summed, c.integers("sumdim"));
    SymDims kept;
    for (size_t dim = 0; dim < sizes->size(); ++dim)
        if (std::find(summed.begin(), summed.end(), static_cast<int64_t>(dim)) == summed.end())
            kept.push_back((*sizes)[dim]);
    if (kept.size() + summed.size() != sizes->size())
        return c.fail("'sumdim' names a dim twice, or one that is not there");
    return ValueType(TensorType::contiguous(dtype, std::move(kept), device));
}
Values expandTrilinear(Decomposition& d) {
    Value total;
    for (size_t i = 0; i < 3; ++i) {
        Value x = d.in(i);
        for (int64_t dim : d.integersOf("expand" + std::to_string(i + 1))) x = unsqueeze(x, dim);
        total = total ? total * x : x;
    }
    const std::vector<int64_t> summed = d.integersOf("sumdim");
    return summed.empty() ? total : convert(sum(total, summed, false), d.out().dtype);
}
void deriveTrilinear(Derivation& d) {
    const Argument own[] = {d.arg("expand1"), d.arg("expand2"), d.arg("expand3"), d.arg("sumdim")};
    for (size_t i = 0; i < 3; ++i) {
        if (!d.needs(i)) continue;
        std::vector<Argument> args = {d.arg(0), d.arg(1), d.arg(2), own[0], own[1], own[2], own[i]};
        args[i] = d.dy();
        args[3 + i] = own[3];
        d.input(i) = d.call("aten._trilinear.default", std::move(args));
    }
}
Values decomposeBilinear(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1), weight = d.in(2);
    if (a.rank() == 0 || a.rank() != b.rank() || weight.rank() != 3)
        return refuse(d, "needs two inputs of as many dims and a weight of three");
    SymDims shape(a.sizes().begin(), a.sizes().end() - 1);
    for (size_t i = 0; i < shape.size(); ++i)
        if (differ(shape[i], b.sizes()[i]))
            return refuse(d, "the batches of " + a.type().text() + " and " + b.type().text() + " differ");
    if (differ(a.size(-1), weight.size(1)) || differ(b.size(-1), weight.size(2)))
        return refuse(d, "the weight " + weight.type().text() + " does not fit the inputs");
    const auto flat = [&](const Value& x) {
        return d.call("aten.reshape.default", {x, Argument(SymDims{SymInt(-1), x.size(-1)})});
    };
    const Value first = flat(a), second = flat(b);
    const auto dims = [](const std::vector<int64_t>& list) { return Argument(list); };
    const Value product =
        d.call("aten._trilinear.default", {first, weight, second, dims({1, 3}), dims({0}), dims({1, 2}), dims({2, 3})});
    shape.push_back(weight.size(0));
    const Value out = reshape(product, shape);
    return d.has("bias") ? out + d.in("bias") : out;
}
Values decomposeVecdot(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    if (a.dtype() != b.dtype()) return refuse(d, "operands of different dtypes");
    if (isIntegral(a.dtype(), true)) return refuse(d, "needs floating-point tensors, not " + a.type().text());
    if (a.rank() == 1 && b.rank() == 1) return d.call("aten.vdot.default", {a, b});
    return d.call("aten.sum.dim_IntList", {conjugated(a) * b, Argument(std::vector<Argument>{d.arg("dim")})});
}

constexpr OpDef kGemmShorthandOps[] = {
    // beta * self + alpha * (matrix times vector)
    {.schema = "aten.addmv.default(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferAddmv,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeAddmv,
     .derive =
         [](Derivation& d) {
             const auto alpha = d.scalar("alpha");
             if (d.needs(1)) d.input(1) = scaled(d.call("aten.outer.default", {d.dy(), conjugated(d.in(2))}), alpha);
             if (d.needs(0)) d.input(0) = scaled(d.dy(), d.scalar("beta"));
             if (d.needs(2))
                 d.input(2) = scaled(d.call("aten.mv.default", {transposedShort(conjugated(d.in(1))), d.dy()}), alpha);
         },
     .samples =
         "f32[3], f32[3, 4], f32[4]\nf32[3], f32[3, 4], f32[4], beta=2, alpha=3\nf32[3], f32[3, 4][1, 3], f32[4], beta=0\nf64[], f64[3, 4], f64[4]\nbf16[3], bf16[3, 4], bf16[4]\nf32[3], f32[3, 0], f32[0]\ni64[3], i64[3, 4], i64[4]\ni64[], i64[3, 4], i64[4], beta=0.5, alpha=2.75"},
    // beta * self + alpha * (column times row)
    {.schema = "aten.addr.default(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferAddr,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeAddr,
     .derive =
         [](Derivation& d) {
             const auto alpha = d.scalar("alpha");
             if (d.needs(0)) d.input(0) = scaled(d.dy(), d.scalar("beta"));
             if (d.needs(1)) d.input(1) = scaled(d.call("aten.mv.default", {d.dy(), conjugated(d.in(2))}), alpha);
             if (d.needs(2))
                 d.input(2) = scaled(d.call("aten.mv.default", {transposedShort(d.dy()), conjugated(d.in(1))}), alpha);
         },
     .samples =
         "f32[3, 4], f32[3], f32[4]\nf32[3, 4], f32[3], f32[4], beta=2, alpha=3\nf32[4], f32[3], f32[4], beta=0\nf64[], f64[2], f64[2]\ni64[2, 2], i64[2], i64[2]\nf32[0, 4], f32[0], f32[4]"},
    // beta * self + alpha * (sum of the products of a batch)
    {.schema =
         "aten.addbmm.default(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .tags = Tag::Heavy | Tag::Inplace,
     .infer = inferAddbmm,
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = expandAddbmm,
     .derive = deriveAddbmm,
     .samples =
         "f32[3, 5], f32[2, 3, 4], f32[2, 4, 5]\nf32[5], f32[2, 3, 4], f32[2, 4, 5], beta=2, alpha=3\nf64[3, 5], f64[2, 3, 4], f64[2, 4, 5], beta=0\nf32[3, 5], f32[0, 3, 4], f32[0, 4, 5]"},
    // Of complex vectors the first one's conjugate.
    {.schema = "aten.vdot.default(Tensor self, Tensor other) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType a, c.tensor(size_t{0}));
         CT_TRY(const TensorType b, c.tensor(1));
         if (a.rank() != 1 || b.rank() != 1 || a.dtype != b.dtype || differ(a.sizes[0], b.sizes[0]))
             return c.fail("needs two vectors of one dtype and size");
         return ValueType(TensorType::contiguous(a.dtype, {}, a.device));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.dot.default", {conjugated(d.in(0)), d.in(1)});
     },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy() * d.in(0);
             if (d.needs(0)) d.input(0) = conjugated(d.dy()) * d.in(1);
         },
     .samples = "f32[5], f32[5]\nf64[0], f64[0]\ni64[3], i64[3]"},
    shorthand(
        "aten.ger.default(Tensor self, Tensor vec2) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.outer.default", {d.in(0), d.in(1)});
        },
        "f32[3], f32[4]\nf32[0], f32[2]"),
    // Sums over the last dims.
    shorthand("aten.inner.default(Tensor self, Tensor other) -> Tensor", decomposeInner,
              "f32[3], f32[3]\nf32[2, 3], f32[4, 3]\nf32[2, 3], f32[]\nf64[2, 1, 3], f64[3]\ni64[2, 3], i64[3]",
              Tag::Heavy),
    shorthand("aten.tensordot.default(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
              decomposeNamedDims, R"(
f32[2, 3, 4], f32[4, 3, 5], [1, 2], [1, 0]
f32[2, 3], f32[2, 3], [0, 1], [0, 1]
f32[2, 1], f32[3, 1], [1], [1]
f32[2, 3], f32[4], [], []
f64[2, 3], f64[3, 2], [-1], [0]
f32[2, 1], f32[3, 4], [1], [1]
)",
              Tag::Heavy),
    shorthand("aten.kron.default(Tensor self, Tensor other) -> Tensor", decomposeKron,
              "f32[2, 3], f32[4, 5]\nf32[3], f32[4, 5]\nf32[], f32[2]\ni64[2, 2], i64[2, 1]\nf32[0, 2], f32[3, 1]"),
    shorthand(
        "aten.linalg_multi_dot.default(Tensor[] tensors) -> Tensor",
        [](Decomposition& d) { return decomposeChain(d, "tensors"); },
        "[f32[2, 3], f32[3, 4], f32[4, 5]]\n[f32[9, 2], f32[2, 9], f32[9, 2]]\n[f32[2, 3], f32[3, 2]]\n[f32[3], f32[3, 4], f32[4, 5], f32[5]]\n[f64[2, 3], f64[3, 4], f64[4, 5], f64[5, 2]]",
        Tag::Heavy),
    shorthand(
        "aten.chain_matmul.default(Tensor[] matrices) -> Tensor",
        [](Decomposition& d) { return decomposeChain(d, "matrices"); },
        "[f32[2, 3], f32[3, 4], f32[4, 5]]\n[f32[2, 3]]", Tag::Heavy),
    shorthand("aten.linalg_vecdot.default(Tensor x, Tensor y, *, int dim=-1) -> Tensor", decomposeVecdot,
              "f32[2, 3], f32[2, 3]\nf32[2, 3], f32[3], dim=0\nf32[3], f32[3]\nc64[2, 3], c64[2, 3]"),
    shorthand(
        "aten.linalg_matmul.default(Tensor self, Tensor other) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.matmul.default", {d.in(0), d.in(1)});
        },
        "f32[2, 3], f32[3, 2]\nf32[2, 2, 3], f32[3]", Tag::Heavy),
    // Sums of products of three tensors.
    {.schema =
         "aten._trilinear.default(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferTrilinear,
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = expandTrilinear,
     .derive = deriveTrilinear,
     .samples =
         "f32[2, 3], f32[4, 3, 5], f32[2, 5], [1, 3], [0], [1, 2], [2, 3]\nf64[2, 3], f64[2, 3], f64[2, 3], [], [], [], [1]"},
    shorthand(
        "aten.bilinear.default(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        decomposeBilinear,
        "f32[2, 3], f32[2, 5], f32[4, 3, 5], f32[4]\nf32[2, 2, 3], f32[2, 2, 5], f32[4, 3, 5]\nf64[3], f64[5], f64[4, 3, 5], f64[4]",
        Tag::Heavy),
    // addmm, then relu or gelu, which the GPU computes in its tanh form.
    {.schema =
         "aten._addmm_activation.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Never,
     .decompose = [](Decomposition& d) -> Values {
         const Value product = d.call("aten.addmm.default", {d.in(0), d.in(1), d.in(2)},
                                      {{"beta", d.arg("beta")}, {"alpha", d.arg("alpha")}});
         if (!d.flag("use_gelu")) return unary("aten.relu.default", product);
         return d.call("aten.gelu.default", {product},
                       {{"approximate", d.in(0).type().device.type == DeviceType::Cuda ? "tanh" : "none"}});
     },
     .samples = "f32[4], f32[2, 3], f32[3, 4]\nf32[4], f32[2, 3], f32[3, 4], beta=2, alpha=0.5, use_gelu=True"},
};

}  // namespace

std::span<const OpDef> gemmShorthandOps() { return kGemmShorthandOps; }

}  // namespace cutaway
