// Operators of ONNX's standard that PyTorch has as its own (torch.onnx.ops), written with ATen's.
#include <cmath>

#include "engine/ops/attention_rules.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Value sliceOf(const Value& x, int64_t dim, const SymInt& from, std::optional<SymInt> to = std::nullopt,
              int64_t step = 1) {
    return x.builder().call("aten.slice.Tensor",
                            {x, dim, Argument(from), to ? Argument(*to) : Argument(), Argument(step)});
}
/// [batch, length, heads * size] as [batch, length, heads, size].
Value withHeads(const Value& x, const SymInt& heads) {
    return reshape(x, {x.size(0), x.size(1), heads, floorDiv(x.size(2), heads)});
}

// -- RotaryEmbedding

/// Whether the cosines or sines have a row for each place of `x` [batch, length, heads, size], half of `rotated` long.
bool checkTurns(Decomposition& d, std::string_view param, const Value& turns, const Value& x, const SymInt& rotated) {
    const SymInt half = floorDiv(rotated, SymInt(2));
    if (turns.rank() == 3 && !differ(turns.size(0), x.size(0)) && !differ(turns.size(1), x.size(1)) &&
        !differ(turns.size(2), half))
        return true;
    refuse(d, "needs '" + std::string(param) + "' with rows of " + half.text() +
                  ": by place of the sequence with position_ids, else by batch and place, not " + turns.type().text());
    return false;
}
/// Pairs of elements of each head, next to each other or half the head apart, turned by the angle of their place.
Values rotaryEmbedding(Decomposition& d) {
    const Value given = d.in(size_t{0});
    const auto heads = read(d, d.size("num_heads")), limit = read(d, d.size("rotary_embedding_dim"));
    if (!heads || !limit) return Value(d.builder(), nullptr);
    if (given.rank() != 3 && given.rank() != 4) return refuse(d, "needs 3 or 4 dims, not " + given.type().text());
    if (given.rank() == 3 && *heads == SymInt(0)) return refuse(d, "needs num_heads where the input has 3 dims");
    const Value x = given.rank() == 4 ? permute(given, {0, 2, 1, 3}) : withHeads(given, *heads);
    const SymInt rotated = *limit == SymInt(0) ? x.size(3) : *limit;
    if (leavesRemainder(rotated, SymInt(2))) return refuse(d, "turns pairs; " + rotated.text() + " is odd");
    Value cosines = d.in("cos_cache"), sines = d.in("sin_cache");
    if (d.has("position_ids")) {
        const Value places = d.in("position_ids");
        if (places.rank() != 2 || cosines.rank() != 2 || sines.rank() != 2)
            return refuse(d, "needs position_ids, cos_cache and sin_cache of 2 dims where position_ids are given");
        const auto rowsOf = [&](const Value& table) {
            return d.call("aten.index.Tensor", {table, Argument(std::vector<Argument>{places})});
        };
        cosines = rowsOf(cosines);
        sines = rowsOf(sines);
    }
    if (!checkTurns(d, "cos_cache", cosines, x, rotated) || !checkTurns(d, "sin_cache", sines, x, rotated))
        return Value(d.builder(), nullptr);
    cosines = unsqueeze(cosines, 2);
    sines = unsqueeze(sines, 2);
    const bool interleaved = d.flag("interleaved");
    const SymInt half = floorDiv(rotated, SymInt(2));
    const Value turned = sliceOf(x, 3, 0, rotated), rest = sliceOf(x, 3, rotated);
    const Value first = interleaved ? sliceOf(turned, 3, 0, std::nullopt, 2) : sliceOf(turned, 3, 0, half);
    const Value second = interleaved ? sliceOf(turned, 3, 1, std::nullopt, 2) : sliceOf(turned, 3, half);
    const Value real = cosines * first - sines * second, imaginary = sines * first + cosines * second;
    const Value pairs =
        interleaved ? reshape(cat(d.builder(), {unsqueeze(real, -1), unsqueeze(imaginary, -1)}, -1), turned.sizes())
                    : cat(d.builder(), {real, imaginary}, -1);
    const Value out = cat(d.builder(), {pairs, rest}, -1);
    return given.rank() == 3 ? reshape(out, given.sizes()) : permute(out, {0, 2, 1, 3});
}

// -- Attention

/// ONNX's numbers of the dtypes that a softmax may be asked to compute in.
std::optional<DType> softmaxDtype(int64_t number) {
    switch (number) {
        case 1: return DType::F32;
        case 10: return DType::F16;
        case 11: return DType::F64;
        case 16: return DType::BF16;
        default: return std::nullopt;
    }
}
/// What of the scores is the last result.
enum Scores : int64_t { kPlain, kMasked, kCapped, kWeights };

struct Heads {
    Value query, key, value;  // [batch, heads, length, size]
};
/// The heads of query, key and value, the keys and values of earlier steps before the new ones. Null if they do not
/// fit.
Heads headsOf(Decomposition& d) {
    Heads h{d.in(size_t{0}), d.in(1), d.in(2)};
    const auto queries = read(d, d.size("q_num_heads")), keys = read(d, d.size("kv_num_heads"));
    if (!queries || !keys) return {};
    if (h.query.rank() == 3 && h.key.rank() == 3 && h.value.rank() == 3) {
        if (*queries == SymInt(0) || *keys == SymInt(0)) {
            refuse(d, "needs q_num_heads and kv_num_heads where the inputs have 3 dims");
            return {};
        }
        const auto split = [&](const Value& x, const SymInt& heads) {
            return d.call("aten.clone.default", {permute(withHeads(x, heads), {0, 2, 1, 3})},
                          {{"memory_format", MemoryFormat::Contiguous}});
        };
        h = {split(h.query, *queries), split(h.key, *keys), split(h.value, *keys)};
    } else if (h.query.rank() != 4 || h.key.rank() != 4 || h.value.rank() != 4) {
        refuse(d, "needs queries, keys and values of 3 dims or of 4, not " + h.query.type().text());
        return {};
    }
    const auto after = [&](std::string_view past, const Value& now) {
        return d.has(past) ? cat(d.builder(), {d.in(past), now}, 2) : unary("aten.clone.default", now);
    };
    h.key = after("past_key", h.key);
    h.value = after("past_value", h.value);
    if (leavesRemainder(h.query.size(1), h.key.size(1).asInt().value_or(1))) {
        refuse(d, h.query.size(1).text() + " heads of queries cannot share " + h.key.size(1).text() + " of keys");
        return {};
    }
    return h;
}
/// Keys or values once for each head of queries.
Value forEachHead(const Value& x, const SymInt& heads) {
    if (x.size(1) == heads) return x;
    const auto repeats = floorDiv(heads, x.size(1));
    const Value groups = expand(unsqueeze(x, 2), {x.size(0), x.size(1), repeats, x.size(2), x.size(3)});
    return reshape(groups, {x.size(0), heads, x.size(2), x.size(3)});
}
/// What is added to the scores; null if nothing is.
Value scoreBias(Decomposition& d, const Heads& h) {
    const SymDims sizes{h.query.size(2), h.key.size(2)};
    const Value zeros = full(d.builder(), sizes, Scalar(0.0), h.query.dtype(), h.query.type().device);
    const auto without = [&](const Value& allowed) {
        return d.call("aten.masked_fill.Scalar", {zeros, unary("aten.logical_not.default", allowed), -INFINITY});
    };
    if (d.flag("is_causal"))
        return without(
            unary("aten.tril.default", full(d.builder(), sizes, Scalar(true), DType::Bool, h.query.type().device)));
    if (!d.has("attn_mask")) return {};
    const Value mask = d.in("attn_mask");
    return mask.dtype() == DType::Bool ? without(mask) : zeros + mask;
}
Values onnxAttention(Decomposition& d) {
    const int64_t rank = d.in(size_t{0}).rank();
    const auto mode = read(d, d.integer("qk_matmul_output_mode")), precision = read(d, d.integer("softmax_precision"));
    const Heads h = headsOf(d);
    if (!mode || !precision || !h.query || !h.value) return Value(d.builder(), nullptr);
    if (d.flag("is_causal") && d.has("attn_mask")) return refuse(d, "takes a mask or is_causal, not both");
    if (d.real("scale") < 0) return refuse(d, "takes the root of 'scale', which is negative; negate the queries");
    const double softcap = d.real("softcap");
    const Value keys = forEachHead(h.key, h.query.size(1));
    const OperandValue half(halfScale(d, h.query.size(3)));
    Value scores = d.call("aten.matmul.default", {h.query * half, transposeLast(keys * half)});
    Value shown = scores, out;
    const bool plain = softcap == 0 && *mode == kPlain && !d.has("softmax_precision") &&
                       (!d.has("attn_mask") || d.in("attn_mask").dtype() == DType::Bool);
    if (plain) {
        out = d.call("aten.scaled_dot_product_attention.default",
                     {h.query, h.key, h.value, d.arg("attn_mask"), 0.0, d.flag("is_causal")},
                     {{"scale", d.arg("scale")}, {"enable_gqa", h.key.size(1) != h.query.size(1)}});
    } else {
        if (const Value bias = scoreBias(d, h)) scores = scores + bias;
        if (*mode == kMasked) shown = scores;
        if (softcap > 0) scores = unary("aten.tanh.default", scores / softcap) * softcap;
        if (*mode == kCapped) shown = scores;
        const DType dtype = scores.dtype();
        const Value weights = convert(
            d.call("aten.softmax.int", {convert(scores, softmaxDtype(*precision).value_or(dtype)), int64_t{-1}}),
            dtype);
        if (*mode == kWeights) shown = weights;
        out = d.call("aten.matmul.default", {weights, forEachHead(h.value, h.query.size(1))});
    }
    if (rank == 3) out = reshape(permute(out, {0, 2, 1, 3}), {out.size(0), out.size(2), out.size(1) * out.size(3)});
    return {out, h.key, h.value, shown};
}

constexpr OpDef kOnnxOps[] = {
    shorthand(
        "onnx.RotaryEmbedding.opset23(Tensor x, Tensor cos_cache, Tensor sin_cache, Tensor? position_ids=None, *, bool interleaved=False, SymInt num_heads=0, SymInt rotary_embedding_dim=0) -> Tensor",
        rotaryEmbedding, R"(
f32[2, 3, 4, 8], f32[10, 4], f32[10, 4], i64[2, 4]<10
f32[2, 3, 4, 8], f32[2, 4, 4], f32[2, 4, 4], interleaved = True
f32[2, 4, 24], f32[10, 2], f32[10, 2], i64[2, 4]<10, num_heads = 3, rotary_embedding_dim = 4
f32[2, 4, 24], f32[2, 4, 3], f32[2, 4, 3], interleaved = True, num_heads = 3, rotary_embedding_dim = 6)"),
    shorthand(
        "onnx.Attention.opset23(Tensor Q, Tensor K, Tensor V, Tensor? attn_mask=None, Tensor? past_key=None, Tensor? past_value=None, *, bool is_causal=False, SymInt kv_num_heads=0, SymInt q_num_heads=0, SymInt qk_matmul_output_mode=0, float? scale=None, float softcap=0., SymInt? softmax_precision=None) -> (Tensor, Tensor, Tensor, Tensor)",
        onnxAttention, R"(
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8]
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8], b8[4, 6]
f32[2, 4, 4, 8]<1, f32[2, 2, 5, 8]<1, f32[2, 2, 5, 8], f32[4, 5]<1, qk_matmul_output_mode = 1
f32[2, 4, 4, 8], f32[2, 2, 3, 8], f32[2, 2, 3, 8], None, f32[2, 2, 2, 8], f32[2, 2, 2, 8], is_causal = True, softcap = 3.0, qk_matmul_output_mode = 2
f32[2, 4, 24], f32[2, 6, 8], f32[2, 6, 8], q_num_heads = 3, kv_num_heads = 1, qk_matmul_output_mode = 3, scale = 0.5, softmax_precision = 11
f32[2, 4, 24], f32[2, 6, 24], f32[2, 6, 24], q_num_heads = 3, kv_num_heads = 3, is_causal = True
f32[2, 3, 4, 8], f32[2, 3, 6, 8], f32[2, 3, 6, 8], softmax_precision = 10)",
        Tag::Heavy),
};

}  // namespace

std::span<const OpDef> onnxOps() { return kOnnxOps; }

}  // namespace cutaway
