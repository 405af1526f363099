// The tangent of fused attention. PyTorch has none; what the kernel computes is written out beside it.
#include <cmath>
#include <limits>

#include "engine/autograd/tangent_rules.h"

namespace cutaway {
namespace {

/// The weights of each row before dropout: softmax(q k^T scale + mask).
struct Weights {
    Value query, keyT, softmax;
    double scale = 1;
};

void refusedTangent(TangentCall& c, std::string why) {
    Error error = noTangentRule(c.node());
    error.notes.insert(error.notes.begin(), std::move(why));
    c.builder().fail(std::move(error));
}

Value matmul(const Value& a, const Value& b) { return a.builder().call("aten.matmul.default", {a, b}); }

std::string_view maskName(const TangentCall& c) {
    return c.op().schema()->find("attn_bias") >= 0 ? "attn_bias" : "attn_mask";
}

Value causal(TangentCall& c, const Value& scores) {
    const Device device = scores.type().device;
    const Value ones = c.call("aten.ones.default", {Argument(SymDims{scores.size(-2), scores.size(-1)})},
                              {{"dtype", DType::Bool}, {"device", device}});
    const Value low = c.call("aten.scalar_tensor.default", {-std::numeric_limits<double>::infinity()},
                             {{"dtype", scores.dtype()}, {"device", device}});
    return where(unary("aten.tril.default", ones), scores, low);
}

/// Keys and values of fewer heads are shared by neighbouring ones of the queries.
Value forEachHead(TangentCall& c, const Value& x, DType dtype) {
    const SymInt heads = c.in(0).size(1), own = x.size(1);
    if (own == heads) return convert(x, dtype);
    if (!own.isInt() || !heads.isInt() || own.value() < 1) {
        refusedTangent(c, "how many heads share a key is not known");
        return x;
    }
    return convert(c.call("aten.repeat_interleave.self_int", {x, heads.value() / own.value(), 1}), dtype);
}

Weights weightsOf(TangentCall& c, DType dtype) {
    Weights w;
    w.query = convert(c.in(0), dtype);
    w.keyT = c.call("aten.transpose.int", {forEachHead(c, c.in(1), dtype), -2, -1});
    const auto size = c.in(0).size(-1).asInt();
    if (!c.has("scale") && !size) refusedTangent(c, "its scale depends on a symbolic size");
    w.scale = c.has("scale") ? c.real("scale") : 1 / std::sqrt(static_cast<double>(size.value_or(1)));
    Value scores = c.call("aten.mul.Scalar", {matmul(w.query, w.keyT), w.scale});
    if (const std::string_view mask = maskName(c); c.op().schema()->find(mask) >= 0 && c.has(mask))
        scores = scores + convert(c.in(mask), dtype);
    if (c.flag("is_causal")) scores = causal(c, scores);
    w.softmax = c.call("aten._safe_softmax.default", {scores, -1});
    return w;
}

/// How the scores move; null if nothing but the value does.
Value scoresTangent(TangentCall& c, const Weights& w) {
    const DType dtype = w.query.dtype();
    Value moved;
    if (const Value query = c.tangent(0)) moved = matmul(convert(query, dtype), w.keyT);
    if (const Value key = c.tangent(1)) {
        const Value along = matmul(w.query, c.call("aten.transpose.int", {forEachHead(c, key, dtype), -2, -1}));
        moved = moved ? moved + along : along;
    }
    if (moved) moved = c.call("aten.mul.Scalar", {moved, w.scale});
    const int position = c.op().schema()->find(maskName(c));
    const Value mask = position < 0 ? Value() : c.tangent(static_cast<size_t>(position));
    if (!mask) return moved;
    return moved ? moved + convert(mask, dtype) : expand(convert(mask, dtype), w.softmax.sizes());
}

}  // namespace

Tangents attentionTangent(TangentCall& c) {
    Tangents tangents(c.results().size());
    if (c.real("dropout_p") > 0) {
        refusedTangent(c, "which elements it drops is not known outside of it: run with dropout_p=0");
        return tangents;
    }
    const Value& out = c.results()[0];
    const DType dtype = isHalf(out.dtype()) ? DType::F32 : out.dtype();
    const Weights w = weightsOf(c, dtype);
    Value moved;
    if (const Value scores = scoresTangent(c, w)) {
        const Value weighted = w.softmax * scores;
        moved = matmul(weighted - w.softmax * sum(weighted, {-1}, true), forEachHead(c, c.in(2), dtype));
    }
    if (const Value value = c.tangent(2)) {
        const Value along = matmul(w.softmax, forEachHead(c, value, dtype));
        moved = moved ? moved + along : along;
    }
    tangents[0] = moved ? convert(moved, out.dtype()) : moved;
    return tangents;
}

}  // namespace cutaway
