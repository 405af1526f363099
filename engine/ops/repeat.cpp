// Elements repeated, each next to itself. Without output_size, repeats that are data decide how many there are.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Values decomposeRepeatEach(Decomposition& d) {
    const auto repeats = read(d, d.size("repeats"));
    if (!repeats) return Value(d.builder(), nullptr);
    if (repeats->isInt() && repeats->value() < 0) return refuse(d, "a negative number of repeats");
    const Value self = d.has("dim") ? d.in(0) : d.call("aten.flatten.using_ints", {d.in(0)});
    const auto dim = d.has("dim") ? read(d, d.dim("dim", self.rank())) : std::optional<int64_t>(0);
    if (!dim || !self) return Value(d.builder(), nullptr);
    if (self.rank() == 0) return refuse(d, "a 0-d tensor has no such dim");
    SymDims sizes = self.sizes();
    sizes.insert(sizes.begin() + *dim + 1, *repeats);
    const Value expanded = expand(unsqueeze(self, *dim + 1), sizes);
    return d.call(
        "aten.flatten.using_ints",
        {d.call("aten.clone.default", {expanded}, {{"memory_format", MemoryFormat::Contiguous}}), *dim, *dim + 1});
}
Error needsOutputSize(const InferContext& c) {
    return unsupported(c.op().name() + ": the size of the result depends on the values of 'repeats'", {},
                       {"give output_size, or annotate the result with a symbol (u0)"});
}
Values decomposeRepeatByTensor(Decomposition& d) {
    const Value self = d.has("dim") ? d.in(0) : d.call("aten.flatten.using_ints", {d.in(0)});
    const auto dim = d.has("dim") ? read(d, d.dim("dim", self.rank())) : std::optional<int64_t>(0);
    if (!dim || !self || d.builder().error()) return Value(d.builder(), nullptr);
    Value repeats = d.in("repeats");
    if (repeats.rank() > 1) return refuse(d, "'repeats' has more than one dim");
    if (repeats.rank() == 0) repeats = expand(reshape(repeats, {SymInt(1)}), {self.size(*dim)});
    if (!(repeats.size(0) == self.size(*dim)) && repeats.size(0).isInt() && self.size(*dim).isInt())
        return refuse(d, repeats.size(0).text() + " repeats for a dim of size " + self.size(*dim).text());
    const TensorType* out = d.outType().tensor();  // none while the type is inferred
    if (!d.has("output_size") && (out == nullptr || *dim >= out->rank())) {
        d.builder().fail(needsOutputSize(d));
        return Value(d.builder(), nullptr);
    }
    const Value at =
        d.has("output_size")
            ? d.call("aten.repeat_interleave.Tensor", {repeats}, {{"output_size", d.arg("output_size")}})
            : d.builder().callAs(TensorType::contiguous(repeats.dtype(), {out->sizes[static_cast<size_t>(*dim)]},
                                                        repeats.type().device),
                                 "aten.repeat_interleave.Tensor", {repeats, Argument()});
    return d.call("aten.index_select.default", {self, *dim, at});
}
/// Element i is the position whose repeats cover i.
Values decomposeRepeatPositions(Decomposition& d) {
    if (!d.has("output_size")) return Values::notHandled();  // there is no telling how long the range is
    const Value repeats = d.in(0);
    const SymInt length = *d.size("output_size");
    const Value ends = d.call("aten.cumsum.default", {repeats, 0});
    const Value range = iota(d.builder(), length, repeats.type().device);
    const Value at = d.call("aten.searchsorted.Tensor", {ends, range},
                            {{"out_int32", repeats.dtype() == DType::I32}, {"right", true}});
    return d.call("aten.clamp.default", {at, Argument(), Argument(repeats.size(0) - SymInt(1))});
}
/// For each slice of the result the slice that it repeats.
Result<std::vector<int64_t>> repeatedPositions(const EvalContext& c, const Tensor& given, int64_t dim) {
    std::vector<int64_t> out;
    const std::vector<int64_t> repeats = packElements<int64_t>(given);
    const auto told = c.has("output_size") ? std::optional(c.resultSizes().at(static_cast<size_t>(dim))) : std::nullopt;
    int64_t length = 0;
    for (const int64_t times : repeats) {
        if (times < 0) return c.fail("a negative number of repeats");
        length = checkedAdd(length, times);
    }
    if (told && length != *told) return c.fail("the repeats do not add up to output_size " + std::to_string(*told));
    out.reserve(static_cast<size_t>(length));
    for (size_t i = 0; i < repeats.size(); ++i)
        out.insert(out.end(), static_cast<size_t>(repeats[i]), static_cast<int64_t>(i));
    return out;
}
EvalResult evalRepeatPositions(const EvalContext& c) {
    CT_TRY(const std::vector<int64_t> out, repeatedPositions(c, c.in(size_t{0}), 0));
    Tensor result = Tensor::empty(c.in(size_t{0}).dtype(), {static_cast<int64_t>(out.size())});
    unpackElements(out, result);
    return result;
}
EvalResult evalRepeatByTensor(const EvalContext& c) {
    Tensor self = c.in(size_t{0}), repeats = c.in("repeats");
    if (!c.has("dim")) {
        self = self.contiguous();
        self = self.view({self.numel()}, {1}, self.offset());
    }
    CT_TRY(const int64_t dim, c.has("dim") ? c.dim("dim", self.rank()) : Result<int64_t>(0));
    if (repeats.rank() == 0) repeats = broadcastTo(repeats, {self.size(dim)});
    if (repeats.rank() != 1 || repeats.size(0) != self.size(dim))
        return c.fail(std::to_string(repeats.numel()) + " repeats for a dim of size " + std::to_string(self.size(dim)));
    CT_TRY(const std::vector<int64_t> positions, repeatedPositions(c, repeats, dim));
    Dims sizes = self.sizes(), part = self.sizes();
    sizes[static_cast<size_t>(dim)] = static_cast<int64_t>(positions.size());
    part[static_cast<size_t>(dim)] = 1;
    const Tensor out = Tensor::empty(self.dtype(), sizes);
    for (size_t i = 0; i < positions.size(); ++i) {
        Tensor to = out.view(part, out.strides(), out.offset() + static_cast<int64_t>(i) * out.stride(dim));
        copyInto(to, self.view(part, self.strides(), self.offset() + positions[i] * self.stride(dim)));
    }
    return out;
}

constexpr OpDef kRepeatOps[] = {
    shorthand(
        "aten.repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
        decomposeRepeatEach, R"(
f32[2, 3, 4], 2, 1
f32[2, 3], 3
f32[2, 3], 2, -1
i64[3], 1, 0
f32[2, 3], 0, 0
f32[2, 3][1, 2], 2, 0
f32[], 3
b8[2, 0], 2, 1
)"),
    {.schema =
         "aten.repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = inferExpanded,
     .eval = evalRepeatByTensor,
     .expand = Expand::Composite,
     .decompose = decomposeRepeatByTensor,
     .samples =
         "f32[2, 3], i64[3]>0, 1, output_size=12\nf32[4], i64[4]>0, output_size=16\nf32[3, 2], i32[3]>0, 0, output_size=12"},
    {.schema = "aten.repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
     .tags = Tag::DataDependent,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType repeats, c.tensor(size_t{0}));
         if (!c.has("output_size")) return needsOutputSize(c);
         CT_TRY(const SymInt length, c.size("output_size"));
         if (repeats.rank() != 1) return c.fail("needs a vector");
         if (repeats.dtype != DType::I64 && repeats.dtype != DType::I32) return c.fail("needs int64 or int32");
         return ValueType(TensorType::contiguous(repeats.dtype, {length}, repeats.device));
     },
     .eval = evalRepeatPositions,
     .expand = Expand::Decompose,
     .decompose = decomposeRepeatPositions,
     .samples = "i64[3]>0, output_size=15\ni32[3]>0, output_size=15"},
};

}  // namespace

std::span<const OpDef> repeatOps() { return kRepeatOps; }

}  // namespace cutaway
