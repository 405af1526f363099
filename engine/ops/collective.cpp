// What the processes of a group do together. The kernels stand for rank 0, whose values alone count: a reduction gives
// them as they are, whatever it is, and where values of others arrive, they are those of rank 0 (kOneProcess).
#include <algorithm>

#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<int64_t> groupSize(const InferContext& c) {
    CT_TRY(const int64_t size, c.integer("group_size", 1));
    return size >= 1 ? Result<int64_t>(size) : c.fail("a group has at least one member");
}
bool isKnownReduction(std::string_view name) {
    static constexpr std::string_view kNames[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}
Result<void> checkReduction(const InferContext& c) {
    if (c.op().schema()->find("reduce_op") < 0 || isKnownReduction(c.text("reduce_op"))) return {};
    return c.fail("does not know the reduction '" + c.text("reduce_op") + "'");
}

Result<ValueType> inferSame(const InferContext& c) {
    CT_TRY_VOID(checkReduction(c));
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    return ValueType(TensorType::contiguous(input.dtype, input.sizes, input.device));
}
Result<ValueType> inferSameLists(const InferContext& c) {
    CT_TRY_VOID(checkReduction(c));
    CT_TRY(const std::vector<TensorType> inputs, c.tensors("inputs"));
    TupleType types;
    for (const TensorType& input : inputs)
        types.emplace_back(TensorType::contiguous(input.dtype, input.sizes, input.device));
    return ValueType(std::move(types));
}
Result<TensorType> gathered(const InferContext& c, const TensorType& input) {
    CT_TRY(const int64_t members, groupSize(c));
    SymDims sizes = input.sizes;
    if (sizes.empty()) sizes.emplace_back(1);
    sizes[0] = sizes[0] * members;
    return TensorType::contiguous(input.dtype, std::move(sizes), input.device);
}
Result<TensorType> scatteredOverMembers(const InferContext& c, const TensorType& input) {
    CT_TRY_VOID(checkReduction(c));
    CT_TRY(const int64_t members, groupSize(c));
    SymDims sizes = input.sizes;
    if (sizes.empty()) return c.fail("the tensor has no dim to scatter along");
    if (leavesRemainder(sizes[0], members)) return c.fail("the first size is not a multiple of the group's");
    sizes[0] = floorDiv(sizes[0], SymInt(members));
    return TensorType::contiguous(input.dtype, std::move(sizes), input.device);
}
template <auto Share>
Result<ValueType> inferOne(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(TensorType type, Share(c, input));
    return ValueType(std::move(type));
}
template <auto Share>
Result<ValueType> inferEach(const InferContext& c) {
    CT_TRY(const std::vector<TensorType> inputs, c.tensors("inputs"));
    TupleType types;
    for (const TensorType& input : inputs) {
        CT_TRY(TensorType type, Share(c, input));
        types.emplace_back(std::move(type));
    }
    return ValueType(std::move(types));
}

Tensor packedCopy(const EvalContext& c, const Tensor& source, size_t result) {
    Tensor out = c.result(result);
    copyInto(out, source);
    return out;
}
EvalResult evalSame(const EvalContext& c) { return packedCopy(c, c.in(size_t{0}), 0); }
EvalResult evalSameLists(const EvalContext& c) {
    TensorList out;
    for (const Tensor& input : c.list("inputs")) out.push_back(packedCopy(c, input, out.size()));
    return out;
}
/// Everybody's values, one after the other, into `out`.
void fillWithShares(const Tensor& out, const Tensor& input) {
    const Tensor share = input.rank() == 0 ? input.view({1}, {1}, input.offset()) : input;
    const int64_t rows = share.size(0);
    for (int64_t at = 0; rows > 0 && out.numel() > 0 && at < out.size(0); at += rows) {
        Tensor part = out.view(share.sizes(), out.strides(), out.offset() + at * out.stride(0));
        copyInto(part, share);
    }
}
Tensor gather(const EvalContext& c, const Tensor& input, size_t result) {
    Tensor out = c.result(result);
    fillWithShares(out, input);
    return out;
}
Tensor scatter(const EvalContext& c, const Tensor& input, size_t result) {
    Tensor out = c.result(result);
    copyInto(out, input.view(out.sizes(), input.strides(), input.offset()));
    return out;
}
template <auto Share>
EvalResult evalOne(const EvalContext& c) {
    return Share(c, c.in(size_t{0}), 0);
}
template <auto Share>
EvalResult evalEach(const EvalContext& c) {
    TensorList out;
    for (const Tensor& input : c.list("inputs")) out.push_back(Share(c, input, out.size()));
    return out;
}

Result<ValueType> inferExchanged(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor("input"));
    if (input.sizes.empty()) return c.fail("the tensor has no dim to exchange along");
    CT_TRY(const SymDims received, c.sizes("output_split_sizes"));
    CT_TRY(const SymDims sent, c.sizes("input_split_sizes"));
    if (received.size() != sent.size()) return c.fail("as many shares are received as are sent");
    SymDims sizes = input.sizes;
    SymInt rows = 0, given = 0;
    for (const SymInt& share : received) rows = rows + share;
    for (const SymInt& share : sent) given = given + share;
    if (differ(given, sizes[0])) return c.fail("the shares are not the whole tensor");
    sizes[0] = rows;
    return ValueType(TensorType::contiguous(input.dtype, std::move(sizes), input.device));
}
/// Everybody sends rank 0 what rank 0 sends itself.
EvalResult evalExchanged(const EvalContext& c) {
    Tensor out = c.result(0);
    const Tensor input = c.in("input");
    const Dims received = c.integersOf("output_split_sizes"), sent = c.integersOf("input_split_sizes");
    int64_t at = 0;
    for (const int64_t rows : received) {
        if (rows != sent[0])
            return invalidInput(
                "_c10d_functional.all_to_all_single: members that hold the same values send shares of the same size");
        std::vector<int64_t> sizes = input.sizes();
        sizes[0] = rows;
        Tensor part = out.view(sizes, out.strides(), out.offset() + at * out.stride(0));
        copyInto(part, input.view(sizes, input.strides(), input.offset()));
        at += rows;
    }
    return out;
}

// ---------------------------------------------------------------- parameters of which every member keeps a share
// (FSDP)

Result<ValueType> inferNoResult(const InferContext&) { return ValueType(); }
Result<ValueType> inferCopyForEffect(const InferContext& c) {
    CT_TRY(const TensorType target, c.tensor(size_t{0}));
    CT_TRY(const TensorType source, c.tensor(1));
    return target.sizes == source.sizes ? Result<ValueType>(ValueType()) : c.fail("the sizes differ");
}
EvalResult evalCopyForEffect(const EvalContext& c) {
    Tensor target = c.in(size_t{0});
    copyInto(target, c.in(1));
    return TensorList{};
}
/// The member's part of the buffer, and the buffer.
Result<ValueType> inferCopyIn(const InferContext& c) {
    CT_TRY(const TensorType buffer, c.tensor("all_gather_output"));
    const auto count = symIntOf(c.arg("all_gather_input_numel"));
    CT_TRY_VOID(c.tensors("all_gather_inputs"));
    if (buffer.rank() != 1 || !count) return c.fail("the buffer has one dim, and its parts have equally many elements");
    return ValueType(TupleType{ValueType(TensorType::contiguous(buffer.dtype, {*count}, buffer.device)),
                               ValueType(TensorType::contiguous(buffer.dtype, buffer.sizes, buffer.device))});
}
EvalResult evalCopyIn(const EvalContext& c) {
    Tensor buffer = packedCopy(c, c.in("all_gather_output"), 1);
    const int64_t count = c.integerOr("all_gather_input_numel", 0), first = checkedMul(count, c.integerOr("rank", 0));
    if (count < 0 || first < 0 || checkedAdd(first, count) > buffer.numel())
        return c.fail("the buffer has no part for this member");
    const Tensor tensor = buffer.view({count}, {1}, buffer.offset() + first);
    int64_t at = 0;
    for (const Tensor& input : c.list("all_gather_inputs")) {
        if (at + input.numel() > count) return c.fail("the tensors have more elements than the member's part");
        Tensor part = tensor.view(input.sizes(), contiguousStrides(input.sizes()), tensor.offset() + at);
        copyInto(part, input);
        at += input.numel();
    }
    return TensorList{tensor, buffer};
}
Result<ValueType> inferGatherInto(const InferContext& c) {
    CT_TRY(const TensorType input, c.tensor(size_t{0}));
    CT_TRY(TensorType out, c.tensor("out"));
    CT_TRY(const TensorType expected, gathered(c, input));
    return expected.sizes == out.sizes ? Result<ValueType>(std::move(out))
                                       : c.fail("the shares of all members do not fill 'out'");
}
EvalResult evalGatherInto(const EvalContext& c) {
    const Tensor out = c.in("out");
    fillWithShares(out, c.in(size_t{0}).clone());  // a share may be a part of what is written
    return out;
}

constexpr OpDef kCollectiveOps[] = {
    {.schema = "_c10d_functional.all_reduce.default(Tensor input, str reduce_op, str group_name) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferSame,
     .eval = evalSame},
    {.schema =
         "_c10d_functional.all_reduce_coalesced.default(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]",
     .tags = Tag::Inplace,
     .infer = inferSameLists,
     .eval = evalSameLists},
    {.schema = "_c10d_functional.broadcast.default(Tensor input, int src, str group_name) -> Tensor",
     .tags = Tag::Inplace,
     .infer = inferSame,
     .eval = evalSame},
    {.schema = "_c10d_functional.wait_tensor.default(Tensor tensor) -> Tensor",
     .infer = inferLikeFirst,
     .eval = evalSame},
    {.schema =
         "_c10d_functional.all_gather_into_tensor.default(Tensor input, int group_size, str group_name) -> Tensor",
     .infer = inferOne<gathered>,
     .eval = evalOne<gather>},
    {.schema =
         "_c10d_functional.all_gather_into_tensor_coalesced.default(Tensor[] inputs, int group_size, str group_name) -> Tensor[]",
     .infer = inferEach<gathered>,
     .eval = evalEach<gather>},
    {.schema =
         "_c10d_functional.reduce_scatter_tensor.default(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
     .infer = inferOne<scatteredOverMembers>,
     .eval = evalOne<scatter>},
    {.schema =
         "_c10d_functional.reduce_scatter_tensor_coalesced.default(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> Tensor[]",
     .infer = inferEach<scatteredOverMembers>,
     .eval = evalEach<scatter>},
    {.schema =
         "_c10d_functional.all_to_all_single.default(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor",
     .infer = inferExchanged,
     .eval = evalExchanged},
    {.schema =
         "_c10d_functional.all_gather_into_tensor_out.default(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> Tensor(a!)",
     .tags = Tag::Impure,
     .infer = inferGatherInto,
     .eval = evalGatherInto},
    {.schema =
         "fsdp.all_gather_copy_in.default(Tensor[] all_gather_inputs, Tensor all_gather_output, SymInt[] inp_split_sizes, SymInt all_gather_input_numel, SymInt rank) "
         "-> (Tensor, Tensor)",
     .infer = inferCopyIn,
     .eval = evalCopyIn},
    {.schema = "fsdp.copy_.default(Tensor(a!) tensor, Tensor data) -> ()",
     .tags = Tag::Impure,
     .infer = inferCopyForEffect,
     .eval = evalCopyForEffect},
    // Frees or allocates the variable's storage; no values change.
    {.schema = "inductor.resize_storage_bytes_.default(Tensor variable, SymInt new_size) -> ()",
     .tags = Tag::Impure,
     .infer = inferNoResult,
     .eval = [](const EvalContext&) -> EvalResult { return TensorList{}; }},
};

}  // namespace

std::span<const OpDef> collectiveOps() { return kCollectiveOps; }

}  // namespace cutaway
