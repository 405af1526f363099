#include "engine/passes/joint/misc_patterns.h"

#include "engine/ir/infer.h"
#include "engine/rewrite/matcher.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// The indices are a beginning of the permutation of x's rows.
std::string_view unlessRowsOfX(const Match& m) {
    if (!m.isTensor("x") || m.tensor("x").rank() == 0) return "{x}, {x:type}, has no rows";
    const auto rows = symIntOf(m["n"]);
    return rows && *rows == m.tensor("x").sizes[0] ? ""
                                                   : "the permutation is one of {n}, not of the rows of {x}, {x:type}";
}
std::string_view unlessRowsAreAdded(const Match& m) {
    if (!m.isTensor("x") || !m.isTensor("y")) return "{x} or {y}, {x:type} and {y:type}, is not a tensor";
    const SymDims &into = m.tensor("x").sizes, &rows = m.tensor("y").sizes;
    if (rows.size() != into.size() || !std::equal(into.begin() + 1, into.end(), rows.begin() + 1))
        return "{y}, {y:type}, does not hold whole rows of {x}, {x:type}";
    if (!(rows[0] == m.tensor("i").sizes[0])) return "{y}, {y:type}, has another number of rows than {i}, {i:type}";
    return unlessRowsOfX(m);
}

/// PyTorch intends to match the beginning of a permutation, too, but its traced pattern loses the slice, and so
/// compares the slice's length with the whole permutation (H-5).
Values buildUncheckedOrStop(const Match& m, GraphBuilder& builder) {
    if (m.parity() && !has(m.request().pytorch, ReleaseChange::PermutationRows))
        builder.fail(Error{ErrorCode::Unsupported,
                           "PyTorch stops here: its pattern wants the length of a slice that it lost itself",
                           m.root().name(),
                           {"compile without parity", "index by a slice of the permutation"}});
    return builder.call("aten._unsafe_index.Tensor", {m["x"], Argument(std::vector<Argument>{m["i"]})});
}
/// PyTorch's own rule never matches, so graphs agree with PyTorch's only without this one: off by default.
std::string_view unlessBeginningOfRows(const Match& m) {
    if (has(m.request().pytorch, ReleaseChange::PermutationRows)) return unlessRowsOfX(m);
    if (m.parity()) return "PyTorch's pattern has lost its slice (H-5)";
    if (!m.request().enabled("randperm_index_slice"))
        return "it is off by default, as PyTorch's pattern has lost its slice and never finds one (H-5): --enable randperm_index_slice";
    return unlessRowsOfX(m);
}

constexpr std::string_view kNoRowTwice = "no row is named twice, so adding needs no atomic accumulation";
constexpr Rule kMiscRules[] = {
    {.name = "randperm_index_add",
     .find =
         "p = aten.randperm.default(n, ...); i: shared = aten.slice.Tensor(p, 0, 0, k); r = aten.index_put.default(x, [i], y, True); return r",
     .replace =
         "g = aten._unsafe_index.Tensor(x, [i]); s = aten.add.Tensor(g, y); r = aten.index_put.default(x, [i], s); return r",
     .unless = unlessRowsAreAdded,
     .why = kNoRowTwice},
    {.name = "randperm_index_add_full",
     .find = "i: shared = aten.randperm.default(n, ...); r = aten.index_put.default(x, [i], y, True); return r",
     .replace =
         "g = aten._unsafe_index.Tensor(x, [i]); s = aten.add.Tensor(g, y); r = aten.index_put.default(x, [i], s); return r",
     .unless = unlessRowsAreAdded,
     .why = kNoRowTwice,
     .releases = sinceRelease(Release::V2_15)},
    {.name = "randperm_index",
     .find = "i: shared = aten.randperm.default(n, ...); r = aten.index.Tensor(x, [i]); return r",
     .build = buildUncheckedOrStop,
     .unless = unlessRowsOfX,
     .why = "a permutation is never out of range"},
    {.name = "randperm_index_slice",
     .find =
         "p = aten.randperm.default(n, ...); i: shared = aten.slice.Tensor(p, 0, 0, k); r = aten.index.Tensor(x, [i]); return r",
     .replace = "r = aten._unsafe_index.Tensor(x, [i]); return r",
     .unless = unlessBeginningOfRows,
     .why = "the beginning of a permutation is never out of range"},
};

/// The instruction exists from capability 10.0 on, in f32. PyTorch compares the whole device with "cuda", so that its
/// rules never apply on "cuda:0" (H-11: only with parity).
std::string_view unlessConvertsInHardware(const Match& m) {
    if (m.parity()) return "PyTorch has this rule for a device without an index only (H-11)";
    if (!m.isTensor("x") || m.tensor("x").device.type != DeviceType::Cuda) return "{x}, {x:type}, is not on the GPU";
    if (m.tensor("x").dtype != DType::F32) return "{x} is {x:type}, not f32";
    const OptionalPass* device = m.request().enabled("device");
    return device && device->number("capability", 0) >= 10.0
               ? ""
               : "the device is not said to have the instruction (--enable device=capability:10.0)";
}

constexpr std::string_view kOneInstruction = "one instruction rounds the exponent up";
constexpr Rule kExponentRules[] = {
    {.name = "e8m0_rceil",
     .find =
         "b = aten.view.dtype(x, torch.int32); s = aten.bitwise_right_shift.Tensor_Scalar(b, 23); e = aten.bitwise_and.Scalar(s, 255); "
         "m = aten.bitwise_and.Scalar(b, 8388607); n = aten.ne.Scalar(m, 0); i = prims.convert_element_type.default(n, torch.int32); "
         "a = aten.add.Tensor(e, i); l = aten.clamp_min.default(a, 0); h = aten.clamp_max.default(l, 255); "
         "y = prims.convert_element_type.default(h, torch.uint8); return y",
     .replace = "y = prims.inductor_cvt_e8m0_rceil.default(x); return y",
     .unless = unlessConvertsInHardware,
     .why = kOneInstruction},
    {.name = "e8m0_rceil_log2",
     .find =
         "g = aten.log2.default(x); c = aten.ceil.default(g); l = aten.clamp_min.default(c, -127); h = aten.clamp_max.default(l, 127); "
         "a = aten.add.Tensor(h, 127); y = prims.convert_element_type.default(a, torch.uint8); return y",
     .replace = "y = prims.inductor_cvt_e8m0_rceil.default(x); return y",
     .unless = unlessConvertsInHardware,
     .why = kOneInstruction},
};

}  // namespace

std::span<const Rule> exponentRules() { return kExponentRules; }
std::span<const Rule> randpermRules() { return kMiscRules; }

}  // namespace cutaway
