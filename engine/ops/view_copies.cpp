// Views as functional traces write them: the view's elements in memory of their own, row by row.
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/renamed.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct ViewCopy {
    std::string_view schema, view, samples;
};
constexpr ViewCopy kCopies[] = {
    {"aten.alias_copy.default(Tensor self) -> Tensor", "aten.alias.default", "f32[2, 3]\nf32[2, 3][1, 2]"},
    {"aten.detach_copy.default(Tensor self) -> Tensor", "aten.detach.default", "f32[2, 3]"},
    {"aten.as_strided_copy.default(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
     "aten.as_strided.default", "f32[4, 3], [2, 2], [3, 1], 1\nf64[6], [3], [2]"},
    {"aten.diagonal_copy.default(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", "aten.diagonal.default",
     "f32[3, 4]\nf64[2, 3, 4], 1, 1, 2"},
    {"aten.expand_copy.default(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", "aten.expand.default",
     "f32[3, 1], [3, 4]\nf64[1, 3], [2, -1, 3]"},
    {"aten.permute_copy.default(Tensor self, int[] dims) -> Tensor", "aten.permute.default",
     "f32[2, 3, 4], [2, 0, 1]\nf64[2, 3], [1, 0]"},
    {"aten.select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", "aten.select.int",
     "f32[2, 3], 0, 1\nf64[2, 3, 4], -1, -2"},
    {"aten.slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
     "aten.slice.Tensor", "f32[5, 3], 0, 1, 4, 2\nf64[2, 6], 1, -3"},
    {"aten.narrow_copy.default(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", "aten.narrow.default",
     "f32[5, 3], 0, 1, 3\nf64[2, 6], -1, 2, 2"},
    {"aten.split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", "aten.split.Tensor",
     "f32[5, 3], 2\nf64[2, 6], 3, 1"},
    {"aten.split_with_sizes_copy.default(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
     "aten.split_with_sizes.default", "f32[5, 3], [2, 3]\nf64[2, 6], [1, 2, 3], 1"},
    {"aten.unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", "aten.unbind.int", "f32[2, 3]\nf64[2, 3], 1"},
    {"aten.squeeze_copy.default(Tensor self) -> Tensor", "aten.squeeze.default", "f32[2, 1, 3, 1]"},
    {"aten.squeeze_copy.dim(Tensor self, int dim) -> Tensor", "aten.squeeze.dim", "f32[2, 1, 3], 1\nf64[2, 3], 0"},
    {"aten.squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", "aten.squeeze.dims", "f32[2, 1, 3, 1], [1, 3]"},
    {"aten.unsqueeze_copy.default(Tensor self, int dim) -> Tensor", "aten.unsqueeze.default",
     "f32[2, 3], 1\nf64[2, 3][1, 2], -1"},
    {"aten.t_copy.default(Tensor self) -> Tensor", "aten.t.default", "f32[2, 3]\nf64[3]"},
    {"aten.transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", "aten.transpose.int",
     "f32[2, 3, 4], 0, 2\nf64[2, 3], -1, 0"},
    {"aten.unfold_copy.default(Tensor self, int dimension, int size, int step) -> Tensor", "aten.unfold.default",
     "f32[6, 2], 0, 3, 2\nf64[2, 5], -1, 2, 1"},
    {"aten.view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", "aten.view.dtype",
     "f32[2, 3], torch.int32\nf64[2, 2], torch.float32"},
    {"aten.view_as_real_copy.default(Tensor self) -> Tensor", "aten.view_as_real.default", "c64[2, 3]"},
    {"aten.view_as_complex_copy.default(Tensor self) -> Tensor", "aten.view_as_complex.default", "f32[3, 2]"},
};

Value copiedView(const Value& x) {
    if (!x) return x;
    return x.builder().call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
}
/// Parameters go over by their place; those that only a keyword gives by their name.
Values copyOfView(Decomposition& d) {
    const Value view = sameCall(d, rowOf(kCopies, d.op().name()).view);
    if (!view) return view;
    if (view.node()->type().tuple() == nullptr) return copiedView(view);
    std::vector<Value> items = itemsOf(view);
    for (Value& item : items) item = copiedView(item);
    return items;
}
/// Unlike a view, it takes any strides.
Values copyInSizes(Decomposition& d) {
    const auto sizes = read(d, d.sizes("size"));
    if (!sizes) return Value(d.builder(), nullptr);
    return copiedView(d.call("aten.reshape.default", {d.arg(size_t{0}), d.arg("size")}));
}

constexpr auto kViewCopiesOps = [] {
    std::array<OpDef, std::size(kCopies) + 1> ops;
    size_t at = 0;
    for (const ViewCopy& row : kCopies) ops[at++] = shorthand(row.schema, copyOfView, row.samples);
    ops[at++] = shorthand("aten.view_copy.default(Tensor self, SymInt[] size) -> Tensor", copyInSizes,
                          "f32[2, 6], [3, 4]\nf64[2, 3, 4], [6, -1]");
    return ops;
}();

}  // namespace

std::span<const OpDef> viewCopyOps() { return kViewCopiesOps; }

}  // namespace cutaway
