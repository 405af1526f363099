// Distances between all pairs of rows of two matrices, or of batches of them, by the p-norm.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

struct Pairs {
    SymDims batch;
    SymInt first, second, width;
    DType dtype = DType::F32;
    Device device;
};
Result<Pairs> readPairs(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor("x1"));
    CT_TRY(const TensorType b, c.tensor("x2"));
    if (a.rank() < 2 || b.rank() < 2)
        return c.fail("needs tensors of at least two dims, not " + a.text() + " and " + b.text());
    if (!isFloating(a.dtype) || a.dtype != b.dtype) return c.fail("needs two tensors of one floating-point dtype");
    const SymInt &width = a.sizes.back(), &other = b.sizes.back();
    if (differ(width, other)) return c.fail("rows of " + width.text() + " and " + other.text() + " elements");
    if (c.op().schema()->find("p") >= 0 && c.real("p") < 0) return c.fail("p must not be negative");
    const SymDims shapes[] = {SymDims(a.sizes.begin(), a.sizes.end() - 2), SymDims(b.sizes.begin(), b.sizes.end() - 2)};
    auto batch = broadcastSizes(shapes);
    if (!batch) return c.fail(batch.error().message);
    return Pairs{std::move(*batch), a.sizes[a.sizes.size() - 2], b.sizes[b.sizes.size() - 2], width, a.dtype, a.device};
}
Result<ValueType> inferDistances(const InferContext& c) {
    CT_TRY(Pairs pairs, readPairs(c));
    if (c.op().schema()->find("compute_mode") >= 0) {
        CT_TRY(const int64_t mode, c.integer("compute_mode", 0));
        if (mode < 0 || mode > 2) return c.fail("compute_mode is 0, 1 or 2");
    }
    pairs.batch.insert(pairs.batch.end(), {pairs.first, pairs.second});
    return ValueType(TensorType::contiguous(pairs.dtype, std::move(pairs.batch), pairs.device));
}

/// The operand with its batch spread, row-major.
template <class T>
std::vector<T> spreadRows(const Tensor& x, const SymDims& batch) {
    Dims sizes = toInts(batch);
    sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
    return packElements<T>(broadcastTo(x, sizes));
}
template <class T>
T distance(const T* a, const T* b, size_t width, double p) {
    T total = 0;
    for (size_t i = 0; i < width; ++i) {
        const T apart = std::fabs(a[i] - b[i]);
        if (std::isinf(p)) total = std::max(total, apart);
        else if (p == 0) total += apart != 0 ? 1 : 0;
        else if (p == 1) total += apart;
        else if (p == 2) total += apart * apart;
        else total += std::pow(apart, static_cast<T>(p));
    }
    if (p == 2) return std::sqrt(total);
    return std::isinf(p) || p == 0 || p == 1 ? total : std::pow(total, static_cast<T>(1 / p));
}
/// Derivative of the distance `whole` by the difference `apart` of one pair of elements; 0 where there is none.
template <class T>
T slope(T apart, T whole, double p) {
    const T sign = static_cast<T>((apart > 0) - (apart < 0)), size = std::fabs(apart);
    if (p == 0 || whole == 0 || apart == 0) return p == 1 ? sign : T(0);
    if (p == 1) return sign;
    if (std::isinf(p)) return size == whole ? sign : T(0);
    return sign * std::pow(size / whole, static_cast<T>(p - 1));
}

EvalResult evalDistances(const EvalContext& c) {
    Tensor out = c.result();
    const Pairs pairs = *readPairs(c);
    const double p = c.real("p");
    const auto rows = static_cast<size_t>(pairs.first.value()), columns = static_cast<size_t>(pairs.second.value()),
               width = static_cast<size_t>(pairs.width.value());
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> a = spreadRows<T>(c.in("x1"), pairs.batch), b = spreadRows<T>(c.in("x2"), pairs.batch);
        std::vector<T> distances(static_cast<size_t>(out.numel()));
        for (size_t i = 0; i < distances.size(); ++i) {
            const size_t row = i / columns, batch = row / rows;
            distances[i] =
                distance(a.data() + row * width, b.data() + (batch * columns + i % columns) * width, width, p);
        }
        unpackElements(distances, out);
    });
    return out;
}
Expr sizeOf(const Expr& x) { return call1("abs", x); }
Expr powerOfDistance(const Expr& x, double p) { return Expr::call("pow", {x, constantLike(x, p)}, x->dtype); }

/// Row `row` of an operand whose batch broadcasts, in the batch of the wanted element.
Expr rowElement(LowerContext& c, std::string_view param, const Expr& row, const Expr& column) {
    const SymDims sizes = c.in(param).sizes;
    const size_t skipped = c.index().size() - sizes.size();
    std::vector<Expr> at;
    for (size_t d = 0; d + 2 < sizes.size(); ++d)
        at.push_back(sizes[d] == SymInt(1) ? Expr::integer(0) : c.index()[skipped + d]);
    at.push_back(row);
    at.push_back(column);
    return c.loadAt(static_cast<size_t>(c.position(param)), at);
}
/// As distance() computes it: for p = inf, differences that are NaN are left out.
Expr lowerDistances(LowerContext& c) {
    const double p = c.real("p");
    const size_t rank = c.index().size();
    const Expr first = c.index()[rank - 2], second = c.index()[rank - 1];
    const auto body = [&](const std::vector<Expr>& r) {
        const Expr apart = sizeOf(rowElement(c, "x1", first, r[0]) - rowElement(c, "x2", second, r[0]));
        const Expr zero = constantLike(apart, 0);
        if (std::isinf(p)) return Expr::where(Expr::call("isnan", {apart}, DType::Bool), zero, apart);
        if (p == 0) return Expr::where(compare(ExprKind::Ne, apart, zero), constantLike(apart, 1), zero);
        return p == 1 ? apart : p == 2 ? apart * apart : powerOfDistance(apart, p);
    };
    const SymInt width = c.in("x1").sizes.back();
    if (std::isinf(p) && !(width.isInt() && width.value() > 0)) return Expr();
    const Expr total = c.reduce(std::isinf(p) ? ReduceKind::Max : ReduceKind::Sum, {width}, body);
    if (p == 2) return call1("sqrt", total);
    return std::isinf(p) || p == 0 || p == 1 ? total : powerOfDistance(total, 1 / p);
}

Result<ValueType> inferDistanceBackward(const InferContext& c) {
    CT_TRY(Pairs pairs, readPairs(c));
    SymDims distances = pairs.batch;
    distances.insert(distances.end(), {pairs.first, pairs.second});
    for (const char* param : {"grad", "cdist"}) {
        CT_TRY(const TensorType type, c.tensor(param));
        if (!(type.sizes == distances) || type.dtype != pairs.dtype)
            return c.fail("'" + std::string(param) + "' " + type.text() + " does not hold the distances of all pairs");
    }
    pairs.batch.insert(pairs.batch.end(), {pairs.first, pairs.width});
    return ValueType(TensorType::contiguous(pairs.dtype, std::move(pairs.batch), pairs.device));
}
EvalResult evalDistanceBackward(const EvalContext& c) {
    Tensor out = c.result();
    const Pairs pairs = *readPairs(c);
    const double p = c.real("p");
    const auto rows = static_cast<size_t>(pairs.first.value()), columns = static_cast<size_t>(pairs.second.value()),
               width = static_cast<size_t>(pairs.width.value());
    withFloat(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> a = spreadRows<T>(c.in("x1"), pairs.batch), b = spreadRows<T>(c.in("x2"), pairs.batch);
        const std::vector<T> g = packElements<T>(c.in("grad")), distances = packElements<T>(c.in("cdist"));
        std::vector<T> sums(static_cast<size_t>(out.numel()), T(0));
        for (size_t i = 0; i < distances.size(); ++i) {
            const size_t row = i / columns, other = row / rows * columns + i % columns;
            for (size_t k = 0; k < width; ++k)
                sums[row * width + k] += g[i] * slope(a[row * width + k] - b[other * width + k], distances[i], p);
        }
        unpackElements(sums, out);
    });
    return out;
}
Value swappedArguments(Derivation& d, const Value& x) {
    return d.call("aten.clone.default", {d.call("aten.transpose.int", {x, -2, -1})},
                  {{"memory_format", MemoryFormat::Contiguous}});
}

/// Through the squares: |a|^2 - 2 ab + |b|^2 as one product.
Values decomposeEuclidean(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    const auto square = [&](const Value& x) {
        return d.call("aten.sum.dim_IntList",
                      {d.call("aten.pow.Tensor_Scalar", {x, 2}), Argument(std::vector<int64_t>{-1}), true});
    };
    const auto ones = [&](const Value& x) {
        return d.call("aten.ones_like.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    };
    const Value aSquare = square(a), aOne = ones(aSquare), bSquare = square(b), bOne = ones(bSquare);
    const Value left = cat(d.builder(), {a * -2, aSquare, aOne}, -1), right = cat(d.builder(), {b, bOne, bSquare}, -1);
    const Value squares = d.call("aten.matmul.default", {left, d.call("aten.transpose.int", {right, -2, -1})});
    return unary("aten.sqrt.default", d.call("aten.clamp_min.default", {squares, 0}));
}
void deriveEuclidean(Derivation& d) {
    const Value a = d.in(0), b = d.in(1), y = d.out();
    const Value ratio = d.call("aten.masked_fill.Scalar", {d.dy() / y, d.call("aten.eq.Scalar", {y, 0}), 0});
    if (d.needs(0)) d.input(0) = a * sum(ratio, {y.rank() - 1}, true) - d.call("aten.matmul.default", {ratio, b});
    if (d.needs(1))
        d.input(1) = b * unsqueeze(sum(ratio, {y.rank() - 2}, false), -1) -
                     d.call("aten.matmul.default", {d.call("aten.transpose.int", {ratio, -2, -1}), a});
}
/// PyTorch takes the detour through the squares for more than 25 rows, unless told (1: always, 2: never).
Values decomposeDistances(Decomposition& d) {
    const auto pairs = read(d, readPairs(d));
    const auto mode = read(d, d.integer("compute_mode"));
    if (!pairs || !mode) return Value(d.builder(), nullptr);
    if (*mode < 0 || *mode > 2) return refuse(d, "compute_mode is 0, 1 or 2");
    return d.call("aten._cdist_forward.default", {d.in(0), d.in(1), d.arg("p"), d.arg("compute_mode")});
}

constexpr OpDef kDistanceOps[] = {
    {.schema = "aten._cdist_forward.default(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferDistances,
     .eval = evalDistances,
     .derive =
         [](Derivation& d) {
             if (d.needs(0))
                 d.input(0) = d.call("aten._cdist_backward.default", {d.dy(), d.in(0), d.in(1), d.arg("p"), d.out()});
             if (d.needs(1))
                 d.input(1) = d.call("aten._cdist_backward.default", {swappedArguments(d, d.dy()), d.in(1), d.in(0),
                                                                      d.arg("p"), swappedArguments(d, d.out())});
         },
     .lower = lowerDistances,
     .samples = R"(
f32[3, 4], f32[5, 4], 2.0, None
f32[2, 3, 4], f32[5, 4], 1.0, None
f64[2, 3, 4], f64[2, 2, 4], 3.0, 2
f32[3, 4], f32[5, 4], inf, None
f32[3, 4], f32[5, 4], 0.0, None
f64[3, 4], f64[5, 4], 1.5, None
f32[3, 0], f32[5, 0], 2.0, None
)"},
    {.schema = "aten._cdist_backward.default(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
     .tags = Tag::Heavy,
     .infer = inferDistanceBackward,
     .eval = evalDistanceBackward,
     .samples =
         "f32[3, 5], f32[3, 4], f32[5, 4], 2.0, f32[3, 5]>0\nf64[2, 3, 5], f64[2, 3, 4], f64[5, 4], 3.0, f64[2, 3, 5]>0\nf32[3, 5], f32[3, 4], f32[5, 4], 1.0, f32[3, 5]>0"},
    {.schema = "aten._euclidean_dist.default(Tensor x1, Tensor x2) -> Tensor",
     .infer = inferDistances,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeEuclidean,
     .derive = deriveEuclidean,
     .samples = "f32[3, 4], f32[5, 4]\nf64[2, 3, 4], f64[2, 5, 4]"},
    shorthand("aten.cdist.default(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
              decomposeDistances, "f32[3, 4], f32[5, 4]\nf32[2, 3, 4], f32[5, 4], 1.0\nf64[3, 4], f64[5, 4], 2.0, 2",
              Tag::Heavy),
};

}  // namespace

std::span<const OpDef> distanceOps() { return kDistanceOps; }

}  // namespace cutaway
