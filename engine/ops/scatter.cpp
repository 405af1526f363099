// gather and the scatter family: one index per element, along one dim.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

/// The index tensor of a call on `self`: integers, of the same rank (0-d counts as 1-d).
Result<TensorType> elementIndex(const InferContext& c, const TensorType& self) {
    CT_TRY(const TensorType index, c.tensor("index"));
    if (index.dtype != DType::I64 && index.dtype != DType::I32 && !(numel(index.sizes) == SymInt(0)))
        return c.fail("the index must be int64 or int32");
    if (std::max<int64_t>(index.rank(), 1) != std::max<int64_t>(self.rank(), 1) && !(numel(index.sizes) == SymInt(0)))
        return c.fail("the index has " + std::to_string(index.rank()) + " dims, the tensor " +
                      std::to_string(self.rank()));
    return index;
}

/// The index may be smaller than `bound` in every dim but `dim` (or in all, if that is -1).
Result<bool> fitsInside(const InferContext& c, SymDims index, SymDims bound, int64_t dim, const char* what) {
    for (SymDims* sizes : {&index, &bound})
        if (sizes->empty()) sizes->push_back(1);  // a number counts as one element
    for (size_t i = 0; i < index.size() && i < bound.size(); ++i)
        if (static_cast<int64_t>(i) != dim && exceeds(index[i], bound[i]))
            return c.fail("the index is larger than the " + std::string(what) + " in dim " + std::to_string(i));
    return true;
}

Result<ValueType> inferGather(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const TensorType index, elementIndex(c, self));
    CT_TRY(const bool fits, fitsInside(c, index.sizes, self.sizes, dim, "tensor"));
    (void)fits;
    return ValueType(TensorType::contiguous(self.dtype, index.sizes, self.device));
}

Result<ValueType> inferScatter(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    CT_TRY(const TensorType index, elementIndex(c, self));
    CT_TRY(const bool fits, fitsInside(c, index.sizes, self.sizes, dim, "tensor"));
    (void)fits;
    if (c.op().schema()->find("src") >= 0) {
        CT_TRY(const TensorType source, c.tensor("src"));
        if (source.dtype != self.dtype) return c.fail("self and src have different dtypes");
        if (std::max<int64_t>(source.rank(), 1) != std::max<int64_t>(index.rank(), 1) &&
            !(numel(index.sizes) == SymInt(0)))
            return c.fail("the index has " + std::to_string(index.rank()) + " dims, the source " +
                          std::to_string(source.rank()));
        CT_TRY(const bool inside, fitsInside(c, index.sizes, source.sizes, -1, "source"));
        (void)inside;
    } else {
        CT_TRY_VOID(checkNumber(c, "value", self.dtype));
    }
    return ValueType(TensorType::contiguous(self.dtype, self.sizes, self.device));
}

/// Visits every element of the index: body(position in the target, position in the source), both row-major over their
/// own sizes. False (with the offending index) if one lies outside.
class ElementWalk {
  public:
    ElementWalk(Dims target, Dims source, const Tensor& index, int64_t dim)
        : m_target(pad(std::move(target))),
          m_source(pad(std::move(source))),
          m_sizes(pad(index.sizes())),
          m_values(packElements<int64_t>(index)),
          m_dim(static_cast<size_t>(dim)) {}

    template <class Body>
    std::optional<int64_t> visit(Body&& body) const {
        const Dims targetStrides = contiguousStrides(m_target), sourceStrides = contiguousStrides(m_source);
        Dims at(m_sizes.size(), 0);
        for (int64_t value : m_values) {
            const int64_t size = m_target[m_dim];
            if (value < 0 || value >= size) return value;
            int64_t to = 0, from = 0;
            for (size_t i = 0; i < at.size(); ++i) {
                to += (i == m_dim ? value : at[i]) * targetStrides[i];
                from += at[i] * sourceStrides[i];
            }
            body(static_cast<size_t>(to), static_cast<size_t>(from));
            for (size_t i = at.size(); i-- > 0;) {
                if (++at[i] < m_sizes[i]) break;
                at[i] = 0;
            }
        }
        return std::nullopt;
    }

  private:
    static Dims pad(Dims sizes) { return sizes.empty() ? Dims{1} : sizes; }
    Dims m_target, m_source, m_sizes;
    std::vector<int64_t> m_values;
    size_t m_dim;
};

Error outside(const InferContext& c, const Tensor& self, int64_t value) {
    const int64_t dim = *c.dim("dim", self.rank());
    return c.fail("index " + std::to_string(value) + " is out of range for dim " + std::to_string(dim) + " of size " +
                  std::to_string(self.rank() ? self.size(dim) : 1));
}

EvalResult evalGather(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}), index = c.in("index");
    Tensor out = c.result();
    std::optional<int64_t> wrong;
    withComplex(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        const std::vector<T> elements = packElements<T>(self);
        std::vector<T> picked(static_cast<size_t>(out.numel()));
        const ElementWalk walk(self.sizes(), out.sizes(), index, c.dimOf("dim", self.rank()));
        wrong = walk.visit([&](size_t at, size_t to) { picked[to] = elements[at]; });
        unpackElements(picked, out);
    });
    if (wrong) return outside(c, self, *wrong);
    return out;
}

/// What happens where an element lands.
enum class Landing { Replace, Add, Multiply, Mean, Max, Min };

EvalResult evalLanding(const EvalContext& c, Landing landing, bool includeSelf) {
    const Tensor self = c.in(size_t{0}), index = c.in("index");
    const bool hasSource = c.op().schema()->find("src") >= 0;
    const Tensor source =
        hasSource ? c.in("src") : broadcastTo(Tensor::scalar(self.dtype(), c.number("value")), index.sizes());
    Tensor out = c.result();
    std::optional<int64_t> wrong;
    withComplex(self.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> target = packElements<T>(self);
        const std::vector<T> landed = packElements<T>(source);
        std::vector<int64_t> count(target.size(), includeSelf ? 1 : 0);
        const ElementWalk walk(self.sizes(), source.sizes(), index, c.dimOf("dim", self.rank()));
        wrong = walk.visit([&](size_t to, size_t from) {
            const bool first = count[to]++ == 0;
            T& value = target[to];
            const T& given = landed[from];
            if (first || landing == Landing::Replace) value = given;
            else if (landing == Landing::Multiply) value = wrapMul(value, given);
            else if (landing == Landing::Add || landing == Landing::Mean) value = wrapAdd(value, given);
            else if constexpr (!kIsComplex<T>)
                value = landing == Landing::Max ? maximumOf(value, given) : minimumOf(value, given);
        });
        if (landing == Landing::Mean)
            for (size_t i = 0; i < target.size(); ++i)
                if (count[i] > 1) {
                    if constexpr (std::is_integral_v<T>) target[i] = floorDivide<T>(target[i], count[i]);
                    else target[i] = target[i] / static_cast<T>(static_cast<double>(count[i]));
                }
        unpackElements(target, out);
    });
    if (wrong) return outside(c, self, *wrong);
    return out;
}

std::optional<Landing> landingOf(std::string_view reduce) {
    if (reduce == "sum" || reduce == "add") return Landing::Add;
    if (reduce == "prod" || reduce == "multiply") return Landing::Multiply;
    if (reduce == "mean") return Landing::Mean;
    if (reduce == "amax") return Landing::Max;
    if (reduce == "amin") return Landing::Min;
    return std::nullopt;
}
Result<ValueType> inferReduce(const InferContext& c) {
    if (!landingOf(c.text("reduce")))
        return c.fail("unknown reduction '" + c.text("reduce") + "'; sum, prod, mean, amax and amin are known");
    return inferScatter(c);
}

Result<ValueType> inferAddOrMultiply(const InferContext& c) {
    if (c.text("reduce") != "add" && c.text("reduce") != "multiply")
        return c.fail("unknown reduction '" + c.text("reduce") + "'; add and multiply are known");
    return inferScatter(c);
}

/// Gradients of scatter_reduce, with PyTorch's rule for each reduction: ties share an extreme's gradient equally, a
/// mean is divided by the count, and a product is differentiated as result / element (elements must not be 0).
void deriveReduce(Derivation& d) {
    const Value self = d.in(0), index = d.in("index"), source = d.in("src"), dy = d.dy(), y = d.out();
    const std::string reduce = d.text("reduce");
    const bool include = d.flag("include_self", true);
    const Argument dim = d.arg("dim");
    auto gather = [&](const Value& x) { return d.call("aten.gather.default", {x, dim, index}); };
    auto zeroed = [&](const Value& x) { return include ? x : d.call("aten.scatter.value", {x, dim, index, 0}); };
    if (reduce == "sum") {
        if (d.needs(0)) d.input(0) = zeroed(dy);
        if (d.needs(3)) d.input(3) = gather(dy);
    } else if (reduce == "mean") {
        const Value ones = full(d.builder(), self.sizes(), Scalar(1.0), dy.dtype(), dy.type().device);
        const Value start = zeroed(ones);
        const Value one = full(d.builder(), source.sizes(), Scalar(1.0), dy.dtype(), dy.type().device);
        Value count = d.call("aten.scatter_add.default", {start, dim, index, one});
        count = d.call("aten.clamp_min.default", {count, 1});
        if (d.needs(0)) d.input(0) = zeroed(dy / count);
        if (d.needs(3)) {
            const Value picked = gather(dy), shares = gather(count);
            d.input(3) = picked / shares;
        }
    } else if (reduce == "amax" || reduce == "amin") {
        const Value value = gather(y);
        const Value isSelf = convert(d.call("aten.eq.Tensor", {self, y}), dy.dtype());
        const Value isSource = convert(d.call("aten.eq.Tensor", {source, value}), dy.dtype());
        const Value count = d.call("aten.scatter_add.default", {zeroed(isSelf), dim, index, isSource});
        const Value share = dy / count;
        if (d.needs(0)) d.input(0) = zeroed(d.call("aten.eq.Tensor", {self, y}) * share);
        if (d.needs(3)) {
            const Value arrived = gather(share);
            d.input(3) = d.call("aten.eq.Tensor", {source, value}) * arrived;
        }
    } else {  // prod
        if (d.needs(0)) d.input(0) = zeroed(dy * y / self);
        if (d.needs(3)) {
            const Value product = gather(dy * y);
            d.input(3) = product / source;
        }
    }
}

constexpr OpDef kScatterOps[] = {
    // out[i][j] = self[index[i][j]][j] for dim 0; the index has the shape of the result and may be smaller than self.
    {.schema = "aten.gather.default(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     .infer = inferGather,
     .eval = evalGather,
     .derive =
         [](Derivation& d) {
             const Value zeros =
                 full(d.builder(), d.in(0).sizes(), Scalar(int64_t{0}), d.dy().dtype(), d.dy().type().device);
             d.input(0) = d.call("aten.scatter_add.default", {zeros, d.arg("dim"), d.in("index"), d.dy()});
         },
     .lower =
         [](LowerContext& c) {
             const TensorType self = c.in(size_t{0});
             if (self.rank() == 0) return c.loadAt(0, {});
             const auto dim = static_cast<size_t>(c.dimOf("dim", self.rank()));
             if (c.in("index").rank() == 0)
                 return c.loadAt(0,
                                 {LowerContext::checkedIndex(Expr::cast(c.loadAt(2, {}), DType::I64), self.sizes[0])});
             if (c.in("index").rank() != self.rank()) return Expr();  // no elements, so of any shape
             std::vector<Expr> at = c.index();
             at[dim] = LowerContext::checkedIndex(Expr::cast(c.loadAt(2, c.index()), DType::I64), self.sizes[dim]);
             return c.loadAt(0, at);
         },
     .samples = R"(
f32[4, 5], 0, i64[2, 5]<4
f32[4, 5], 1, i64[3, 2]<5
f32[4, 5][1, 4], -1, i64[4, 1]<5
i64[6], 0, i64[3]<6
bf16[2, 3, 4], 1, i64[2, 2, 3]<3
b8[4], 0, i64[4]<4
f32[], 0, i64[]<1
f32[4, 5], 0, i64[0, 5]<4
)"},
    // self with src written at the indexed places; where an index repeats, the last element in row-major order wins.
    {.schema = "aten.scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferScatter,
     .eval = [](const EvalContext& c) { return evalLanding(c, Landing::Replace, true); },
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.call("aten.scatter.value", {d.dy(), d.arg("dim"), d.in("index"), 0});
             if (d.needs(3)) d.input(3) = d.call("aten.gather.default", {d.dy(), d.arg("dim"), d.in("index")});
         },
     .samples =
         "f32[4, 5], 0, i64[1, 5]<4, f32[1, 5]\nf32[4, 5], 1, i64[4, 1]<5, f32[4, 3]\ni64[5], -1, i64[1]<5, i64[2]\nf32[5, 4][1, 5], 0, i64[1, 4]<5, f32[1, 4]"},
    {.schema = "aten.scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferScatter,
     .eval = [](const EvalContext& c) { return evalLanding(c, Landing::Replace, true); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.scatter.value", {d.dy(), d.arg("dim"), d.in("index"), 0});
         },
     .samples = "f32[4, 5], 0, i64[2, 5]<4, 1.5\ni64[4, 5], 1, i64[4, 3]<5, -1\nbf16[5], 0, i64[3]<5, 2"},
    // What lands is added to or multiplied with what is there.
    {.schema = "aten.scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferAddOrMultiply,
     .eval = [](const EvalContext& c) { return evalLanding(c, *landingOf(c.text("reduce")), true); },
     .samples =
         "f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], reduce='add'\nf32[4, 5], 1, i64[4, 3]<5, f32[4, 3], reduce='multiply'\ni64[5], -1, i64[7]<5, i64[7], reduce='add'"},
    {.schema = "aten.scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferAddOrMultiply,
     .eval = [](const EvalContext& c) { return evalLanding(c, *landingOf(c.text("reduce")), true); },
     .samples =
         "f32[4, 5], 0, i64[3, 5]<4, 1.5, reduce='add'\nf32[4, 5], 1, i64[4, 3]<5, 2, reduce='multiply'\ni64[5], 0, i64[7]<5, 3, reduce='add'"},
    // self with src added at the indexed places.
    {.schema = "aten.scatter_add.default(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferScatter,
     .eval = [](const EvalContext& c) { return evalLanding(c, Landing::Add, true); },
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.dy();
             if (d.needs(3)) d.input(3) = d.call("aten.gather.default", {d.dy(), d.arg("dim"), d.in("index")});
         },
     .samples =
         "f32[4, 5], 0, i64[3, 5]<4, f32[3, 5]\nf64[4, 5], 1, i64[4, 7]<5, f64[4, 7]\ni64[5], 0, i64[9]<5, i64[9]\nf32[4], 0, i64[0]<4, f32[0]"},
    // self (or, without include_self, only what lands) reduced with src at the indexed places.
    {.schema =
         "aten.scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferReduce,
     .eval =
         [](const EvalContext& c) {
             return evalLanding(c, *landingOf(c.text("reduce")), c.flag("include_self", true));
         },
     .derive = deriveReduce,
     .samples = R"(
f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], 'sum'
f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], 'mean'
f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], 'amax'
f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], 'amin', include_self=False
f32[4, 5], 1, i64[4, 6]<5, f32[4, 6], 'prod'
i64[5], 0, i64[9]<5, i64[9], 'sum', include_self=False
f32[4, 5], 0, i64[3, 5]<4, f32[3, 5], 'mean', include_self=False
)"},
};

}  // namespace

std::span<const OpDef> scatterOps() { return kScatterOps; }

}  // namespace cutaway
