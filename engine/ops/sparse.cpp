// Sparse tensors (COO) as the dense ones that they stand for: what a program computes with them is the same, and zeros
// that are not stored are zeros. What shows how they are stored (indices, values, the number of stored elements) is not
// here.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// Elements at the columns of `indices` ([dims that are sparse, stored elements]) are added up; the rest is 0.
Values fromElements(Decomposition& d) {
    const Value indices = d.in("indices"), values = d.in("values");
    if (indices.rank() != 2 || !indices.size(0).isInt() || isFloating(indices.dtype()))
        return refuse(d, "needs integer indices of 2 dims, not " + indices.type().text());
    const auto sizes = read(d, d.sizes("size"));
    if (!sizes) return Value(d.builder(), nullptr);
    const int64_t sparse = indices.size(0).value();
    if (values.rank() < 1 || static_cast<int64_t>(sizes->size()) != sparse + values.rank() - 1)
        return refuse(d, "has indices of " + std::to_string(sparse) + " dims, values " + values.type().text() +
                             " and " + std::to_string(sizes->size()) + " sizes, which do not fit");
    const DType dtype = d.dtype("dtype").value_or(values.dtype());
    const Value zeros = full(d.builder(), *sizes, Scalar(int64_t{0}), dtype, values.type().device);
    if (sparse == 0) return zeros + sum(convert(values, dtype), {0}, false);
    std::vector<Argument> at;
    for (int64_t dim = 0; dim < sparse; ++dim)
        at.push_back(convert(d.call("aten.select.int", {indices, int64_t{0}, dim}), DType::I64));
    return d.call("aten.index_put.default", {zeros, Argument(at), convert(values, dtype), true});
}
Values withoutElements(Decomposition& d) {
    const auto sizes = read(d, d.sizes("size"));
    if (!sizes) return Value(d.builder(), nullptr);
    return full(d.builder(), *sizes, Scalar(int64_t{0}), d.dtype("dtype").value_or(DType::F32), Device{});
}
Values asItIs(Decomposition& d) { return unary("aten.alias.default", d.in(size_t{0})); }
Values asDense(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto dtype = d.dtype("dtype");
    return dtype && *dtype != x.dtype() ? convert(x, *dtype) : unary("aten.alias.default", x);
}
Values product(Decomposition& d) { return d.call("aten.mm.default", {d.in(size_t{0}), d.in(1)}); }
Values productAdded(Decomposition& d) {
    return d.call("aten.addmm.default", {d.in(size_t{0}), d.in(1), d.in(2)},
                  {{"beta", d.arg("beta")}, {"alpha", d.arg("alpha")}});
}

#define CT_SPARSE_OPTIONS \
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor"
constexpr OpDef kSparseOps[] = {
    shorthand("aten.sparse_coo_tensor.indices_size(Tensor indices, Tensor values, SymInt[] size, *, " CT_SPARSE_OPTIONS,
              fromElements, {}),
    shorthand(
        "aten._sparse_coo_tensor_unsafe.default(Tensor indices, Tensor values, SymInt[] size, *, " CT_SPARSE_OPTIONS,
        fromElements, {}),
    shorthand(
        "aten._sparse_coo_tensor_with_dims_and_tensors.default(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, " CT_SPARSE_OPTIONS,
        fromElements, {}),
    shorthand(
        "aten.sparse_coo_tensor.size(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor",
        withoutElements, {}),
    shorthand("aten.coalesce.default(Tensor self) -> Tensor", asItIs, {}),
    shorthand("aten._coalesce.default(Tensor self) -> Tensor", asItIs, {}),
    shorthand("aten.to_dense.default(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
              asDense, {}),
    shorthand("aten._to_dense.default(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", asDense,
              {}),
    shorthand("aten.to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", asItIs, {}),
    shorthand(
        "aten.to_sparse.default(Tensor self, *, Layout? layout=None, SymInt[2]? blocksize=None, int? dense_dim=None) -> Tensor",
        asItIs, {}),
    shorthand("aten._to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", asItIs, {}),
    shorthand(
        "aten._to_sparse.default(Tensor self, *, Layout? layout=None, SymInt[2]? blocksize=None, int? dense_dim=None) -> Tensor",
        asItIs, {}),
    shorthand("aten._sparse_mm.default(Tensor sparse, Tensor dense) -> Tensor", product, {}),
    shorthand("aten.smm.default(Tensor self, Tensor mat2) -> Tensor", product, {}),
    shorthand("aten.hspmm.default(Tensor mat1, Tensor mat2) -> Tensor", product, {}),
    shorthand(
        "aten._sparse_addmm.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        productAdded, {}),
    shorthand(
        "aten.sspaddmm.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        productAdded, {}),
};
#undef CT_SPARSE_OPTIONS

}  // namespace

std::span<const OpDef> sparseOps() { return kSparseOps; }

}  // namespace cutaway
