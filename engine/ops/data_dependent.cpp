// Ops whose result depends on values: how many elements it has, or the number that it is. A graph may hold them where
// it gives the result's type by symbols of its own; without that, shape inference says what is missing.
#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/ops/unique.h"

namespace cutaway {
namespace {

/// The size is only known at run time; `instead` is what a program can do about it.
template <size_t Instead>
Result<ValueType> refuseSize(const InferContext& c) {
    static constexpr const char* kInstead[] = {
        "use where or masked_fill, which keep the shape, or annotate the result with a symbol (u0)",
        "use nonzero_static, which has a fixed size, or annotate the result with a symbol (u0)",
        "annotate the results with a symbol (u0)",
    };
    return unsupported(c.op().name() + ": the size of the result depends on the values", {}, {kInstead[Instead]});
}
Result<ValueType> refuseNumber(const InferContext& c) {
    return unsupported(c.op().name() + ": the result is a number that is read from a tensor at run time", {},
                       {"keep it a tensor, or annotate the result with a symbol (u0)"});
}

/// Row-major positions of the elements that are not 0.
std::vector<int64_t> nonzeroPositions(const Tensor& tensor) {
    std::vector<int64_t> out;
    if (isComplex(tensor.dtype())) {
        const auto values = packElements<std::complex<double>>(tensor);
        for (size_t i = 0; i < values.size(); ++i)
            if (values[i] != 0.0) out.push_back(static_cast<int64_t>(i));
        return out;
    }
    const std::vector<double> values = packElements<double>(tensor);
    for (size_t i = 0; i < values.size(); ++i)
        if (values[i] != 0) out.push_back(static_cast<int64_t>(i));
    return out;
}
/// Coordinates of those positions, one row each; column-major, as PyTorch lays them out.
Tensor coordinates(const Tensor& self, const std::vector<int64_t>& positions) {
    const auto count = static_cast<int64_t>(positions.size()), rank = self.rank();
    Tensor out = Tensor::empty(DType::I64, {count, rank}, {1, std::max<int64_t>(count, 1)});
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = positions[static_cast<size_t>(i)];
        for (int64_t dim = rank - 1; dim >= 0; --dim) {
            out.as<int64_t>()[dim * std::max<int64_t>(count, 1) + i] = rest % self.size(dim);
            rest /= self.size(dim);
        }
    }
    return out;
}
/// The coordinates one dim at a time; a 0-d tensor counts as a vector.
EvalResult evalColumns(const EvalContext& c) {
    Tensor self = c.in(size_t{0});
    if (self.rank() == 0) self = self.view({1}, {1}, self.offset());
    const Tensor all = coordinates(self, nonzeroPositions(self));
    TensorList columns;
    for (int64_t dim = 0; dim < self.rank(); ++dim)
        columns.push_back(all.view({all.size(0)}, {all.stride(0)}, all.offset() + dim * all.stride(1)));
    return columns;
}
EvalResult evalMaskedSelect(const EvalContext& c) {
    Tensor self = c.in(size_t{0}), mask = c.in(1);
    if (mask.dtype() != DType::Bool) return c.fail("the mask must be bool");
    const SymDims shapes[] = {toSymDims(self.sizes()), toSymDims(mask.sizes())};
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return c.fail(sizes.error().message);
    self = broadcastTo(self, toInts(*sizes)).contiguous();
    const std::vector<int64_t> positions = nonzeroPositions(broadcastTo(mask, toInts(*sizes)));
    Tensor out = Tensor::empty(self.dtype(), {static_cast<int64_t>(positions.size())});
    const auto bytes = static_cast<size_t>(byteSize(self.dtype()));
    for (size_t i = 0; i < positions.size(); ++i)
        std::memcpy(static_cast<std::byte*>(out.data()) + i * bytes,
                    static_cast<const std::byte*>(self.data()) + static_cast<size_t>(positions[i]) * bytes, bytes);
    return out;
}
EvalResult evalNumber(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    if (self.numel() != 1) return c.fail("a tensor of " + std::to_string(self.numel()) + " elements is not one number");
    return self.view({}, {}, self.offset());
}

Result<ValueType> inferNonzeroStatic(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymInt size, c.size("size"));
    if (exceeds(0, size)) return c.fail("a negative size");
    return ValueType(TensorType::contiguous(DType::I64, {size, SymInt(self.rank())}, self.device));
}
EvalResult evalNonzeroStatic(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    Tensor out = Tensor::full(DType::I64, c.resultSizes(), c.number("fill_value"));
    std::vector<int64_t> positions = nonzeroPositions(self);
    positions.resize(std::min(positions.size(), static_cast<size_t>(out.size(0))));
    if (positions.empty() || self.rank() == 0) return out;
    Tensor head = out.view({static_cast<int64_t>(positions.size()), self.rank()}, out.strides(), out.offset());
    copyInto(head, coordinates(self, positions));
    return out;
}

constexpr OpDef kDataDependentOps[] = {
    {.schema = "aten.masked_select.default(Tensor self, Tensor mask) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = refuseSize<0>,
     .eval = evalMaskedSelect},
    {.schema = "aten.nonzero.default(Tensor self) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = refuseSize<1>,
     .eval = [](const EvalContext& c) { return coordinates(c.in(size_t{0}), nonzeroPositions(c.in(size_t{0}))); }},
    {.schema = "aten.argwhere.default(Tensor self) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = refuseSize<1>,
     .eval = [](const EvalContext& c) { return coordinates(c.in(size_t{0}), nonzeroPositions(c.in(size_t{0}))); }},
    {.schema = "aten.nonzero_numpy.default(Tensor self) -> Tensor[]",
     .tags = Tag::DataDependent,
     .infer = refuseSize<1>,
     .eval = evalColumns},
    {.schema = "aten.where.default(Tensor condition) -> Tensor[]",
     .tags = Tag::DataDependent,
     .infer = refuseSize<1>,
     .eval = evalColumns},
    // The first `size` of them, filled up with fill_value.
    {.schema = "aten.nonzero_static.default(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferNonzeroStatic,
     .eval = evalNonzeroStatic,
     .samples = "b8[4, 3], size=5\ni64[7], size=9\nf32[2, 2, 2], size=0, fill_value=7\ni64[6], size=3"},
    {.schema =
         "aten._unique2.default(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalUnique},
    {.schema = "aten._unique.default(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalUnique},
    {.schema =
         "aten.unique_dim.default(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalUniqueDim},
    {.schema =
         "aten.unique_consecutive.default(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalUniqueConsecutive},
    {.schema =
         "aten.unique_dim_consecutive.default(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalUniqueConsecutive},
    {.schema = "aten.bincount.default(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = refuseSize<2>,
     .eval = evalBincount},
    {.schema = "aten._local_scalar_dense.default(Tensor self) -> Scalar",
     .tags = Tag::DataDependent | Tag::Symbolic,
     .infer = refuseNumber,
     .eval = evalNumber},
    {.schema = "aten.item.default(Tensor self) -> Scalar",
     .tags = Tag::DataDependent | Tag::Symbolic,
     .infer = refuseNumber,
     .eval = evalNumber},
    {.schema = "prims.item.default(Tensor a) -> Scalar",
     .tags = Tag::DataDependent | Tag::Symbolic,
     .infer = refuseNumber,
     .eval = evalNumber},
    {.schema = "aten.is_nonzero.default(Tensor self) -> bool",
     .tags = Tag::DataDependent | Tag::Symbolic,
     .infer = refuseNumber,
     .eval = [](const EvalContext& c) -> EvalResult {
         EvalResult number = evalNumber(c);
         return number.ok() ? EvalResult(number.tensors()[0].to(DType::Bool)) : number;
     }},
};

}  // namespace

std::span<const OpDef> dataDependentOps() { return kDataDependentOps; }

}  // namespace cutaway
