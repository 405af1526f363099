#include "engine/passes/joint/attention.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

/// The first call of this op among the matched ones.
const Node* firstMatched(const Match& m, std::string_view op) {
    for (const Node* node : m.nodes())
        if (node->isCall(op)) return node;
    return nullptr;
}

/// Check C (SDP-1).
std::string_view unlessOperandsAgree(const Match& m) {
    if (!m.isTensor("query") || !m.isTensor("key") || !m.isTensor("value"))
        return "{query}, {key} and {value} are not all tensors";
    const TensorType &q = m.tensor("query"), &k = m.tensor("key"), &v = m.tensor("value");
    if (q.dtype != k.dtype || q.dtype != v.dtype) {
        m.note(q.text() + ", " + k.text() + " and " + v.text());
        return "{query}, {key} and {value} differ in dtype";
    }
    if (!(q.device == k.device) || !(q.device == v.device))
        return "{query}, {key} and {value} are on different devices: {query:type}, {key:type} and {value:type}";
    if (q.device.type == DeviceType::Cuda && q.dtype == DType::F32 && m.request().tf32 != Tf32::All)
        return "{query} is {query:type}, and f32 products on the GPU are fused only where they may be rounded (--tf32 all)";
    const Node* sum = firstMatched(m, "aten.add.Tensor");
    if (sum == nullptr) return "";
    // The mask is the operand of the addition that is not among the matched calls.
    const std::vector<Node*> matched = m.nodes();
    const bool second = std::find(matched.begin(), matched.end(), sum->arg(1).node()) == matched.end();
    const Node* mask = sum->arg(second ? 1 : 0).node();
    const TensorType* type = mask ? mask->type().tensor() : nullptr;
    m.note(constantText(sum->arg(second ? 1 : 0)) + (type ? ", " + type->text() : ""));
    if (type == nullptr || type->rank() == 0) return "the mask is not a tensor with dims";
    if (!(type->device == q.device)) return "the mask is on another device than {query}, {query:type}";
    if (type->dtype != q.dtype && type->dtype != DType::Bool && type->dtype != DType::F32)
        return "the mask has another dtype than {query}, {query:type}";
    m.note({});
    return "";
}
/// In PyTorch the check of #24 is a function that returns a check, which is always true (H-2).
std::string_view unlessOperandsAgreeExceptParity(const Match& m) { return m.parity() ? "" : unlessOperandsAgree(m); }
std::string_view unlessScaleIsNumber(const Match& m, std::string_view op) {
    const Node* scaling = firstMatched(m, op);
    if (scaling && scaling->arg(1).asReal()) return unlessOperandsAgree(m);
    if (scaling) m.note("`" + scaling->name() + "` scales by " + constantText(scaling->arg(1)));
    return "the scale is not a plain number";
}
std::string_view unlessDivides(const Match& m) { return unlessScaleIsNumber(m, "aten.div.Tensor"); }
std::string_view unlessMultiplies(const Match& m) { return unlessScaleIsNumber(m, "aten.mul.Tensor"); }

/// Both factors of the scale are this number.
std::string_view unlessMultipliesBoth(const Match& m) { return unlessScaleIsNumber(m, "aten.mul.Scalar"); }

std::string_view unlessOffGpu(const Match& m) {
    if (m.isTensor("query") && m.tensor("query").device.type == DeviceType::Cuda)
        return "{query} is {query:type}, and this form is not fused on the GPU";
    return unlessOperandsAgree(m);
}
std::string_view unlessDividesOffGpu(const Match& m) {
    const std::string_view refusal = unlessDivides(m);
    return refusal.empty() ? unlessOffGpu(m) : refusal;
}

constexpr std::string_view kWhyAttention = "one kernel never writes the scores to memory";

// Inputs laid out batch, heads, length, width; and with heads behind the length, as projections leave them.
#define QKV "query T[B, 4, 8, 16] grad; key T[B, 4, 8, 16] grad; value T[B, 4, 8, 16] grad"
#define P                                             \
    "q = aten.permute.default(query, [0, 2, 1, 3]); " \
    "k = aten.permute.default(key, [0, 2, 1, 3]); "   \
    "v = aten.permute.default(value, [0, 2, 1, 3]); "
#define SCORES(q, k) "t = aten.transpose.int(" k ", -2, -1); s = aten.matmul.default(" q ", t); "
#define SOFTMAX(x) "p = aten.softmax.int(" x ", -1); "
#define SDPA(q, k, v, more) "o = aten.scaled_dot_product_attention.default(" q ", " k ", " v more "); "
// A 2-D mask of zeros and ones over the keys.
#define MASKED(scores)                                                                                                                          \
    "z = aten.eq.Scalar(mask, 0); zv = aten.view.default(z, [size(query, 0), 1, 1, size(key, 1)]); "                                            \
    "ze = aten.expand.default(zv, [size(query, 0), size(query, 2), size(query, 1), size(key, 1)]); "                                            \
    "low = aten.full.default([], -inf, dtype=dtype_of(query), device=device_of(query), pin_memory=False); x = aten.where.self(ze, low, " scores \
    "); "
#define KEEP_MASK                                                                                    \
    "e = aten.ne.Scalar(mask, 0); ev = aten.view.default(e, [size(query, 0), 1, 1, size(key, 1)]); " \
    "ke = aten.expand.default(ev, [size(query, 0), size(query, 2), size(query, 1), size(key, 1)]); "

#define DIVIDED(s, by) "d = aten.div.Tensor(" s ", " by "); "
#define ADDED(to, mask) "a = aten.add.Tensor(" to ", " mask "); "
#define HALF(x) "h = aten.to.dtype(" x ", torch.float16); "
#define WIDE(x) "w = aten.to.dtype(" x ", torch.float32); "
#define NARROW(x) "h = aten.to.dtype(" x ", dtype_of(query)); "
#define DROPPED(x) "r = aten.dropout.default(" x ", dropout_p, True); "
#define TIMES(p, v) "o = aten.matmul.default(" p ", " v "); "
#define OWN_MASK "m = aten.to.dtype(mask, dtype_of(query)); "
#define SQRT_VALUE \
    "aten.full.default([], sqrt_size(value, -1), dtype=dtype_of(query), device=device_of(query), pin_memory=False)"
// The scale split between both factors, as the operator's own formula does it.
#define SPLIT_SCORES                      \
    "n = aten.mul.Scalar(q, factor); "    \
    "t = aten.transpose.int(k, -2, -1); " \
    "c = aten.mul.Scalar(t, factor); "    \
    "s = aten.matmul.default(n, c); "
#define SAFE_SOFTMAX(x) "p = aten._safe_softmax.default(" x ", -1); "
#define LOWEST \
    "low = aten.full.default([], lowest(query), dtype=dtype_of(query), device=device_of(query), pin_memory=False); "

// Numbers as PyTorch counts them. Without dropout 3, 4, 6, 8, 10, 12, 16 and 17 are 1, 2, 5, 7, 9, 11, 14 and 15.
#define DROPOUT "; dropout_p number"
#define ONE "return (o,)"
#define ALL "return (o, k, v)"
#define DROPS ", dropout_p=dropout_p"
constexpr TracedRule kFormulas[] = {
    {"sfdp_pattern_1", QKV "; inv_scale f32[]",
     SCORES("query", "key") DIVIDED("s", "inv_scale") SOFTMAX("d") TIMES("p", "value") ONE,
     SDPA("query", "key", "value", ", scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_2", QKV "; factor f32[]",
     SCORES("query", "key") "d = aten.mul.Tensor(s, factor); " SOFTMAX("d") TIMES("p", "value") ONE,
     SDPA("query", "key", "value", ", scale=factor") ONE, unlessMultiplies, kWhyAttention},
    {"sfdp_pattern_3", QKV "; inv_scale f32[]" DROPOUT,
     SCORES("query", "key") DIVIDED("s", "inv_scale") SOFTMAX("d") DROPPED("p") TIMES("r", "value") ONE,
     SDPA("query", "key", "value", DROPS ", scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_4", QKV "; factor f32[]" DROPOUT,
     SCORES("query", "key") "d = aten.mul.Tensor(s, factor); " SOFTMAX("d") DROPPED("p") TIMES("r", "value") ONE,
     SDPA("query", "key", "value", DROPS ", scale=factor") ONE, unlessMultiplies, kWhyAttention},
    {"sfdp_pattern_5", QKV "; mask T[1, 1, 8, 8]",
     SCORES("query", "key") DIVIDED("s", "sqrt_size(query, -1)") ADDED("d", "mask") SOFTMAX("a") TIMES("p", "value")
         ONE,
     OWN_MASK SDPA("query", "key", "value", ", attn_mask=m") ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_6", QKV "; mask T[1, 1, 8, 8]" DROPOUT,
     SCORES("query", "key") DIVIDED("s", "sqrt_size(query, -1)") ADDED("d", "mask") SOFTMAX("a") DROPPED("p")
         TIMES("r", "value") ONE,
     OWN_MASK SDPA("query", "key", "value", ", attn_mask=m" DROPS) ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_7", QKV DROPOUT,
     P SCORES("q", "k") DIVIDED("s", "sqrt_size(query, -1)") WIDE("d") SOFTMAX("w") DROPPED("p") HALF("r")
         TIMES("h", "v") ONE,
     P SDPA("q", "k", "v", DROPS) ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_8", QKV,
     P SCORES("q", "k") DIVIDED("s", "sqrt_size(query, -1)") WIDE("d") SOFTMAX("w") HALF("p") TIMES("h", "v") ONE,
     P SDPA("q", "k", "v", "") ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_9", QKV DROPOUT,
     P "n = aten.div.Tensor(q, sqrt_size(query, -1)); " SCORES("n", "k") WIDE("s") SOFTMAX("w") DROPPED("p") HALF("r")
         TIMES("h", "v") ONE,
     P SDPA("q", "k", "v", DROPS) ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_10", QKV,
     P "n = aten.div.Tensor(q, sqrt_size(query, -1)); " SCORES("n", "k") WIDE("s") SOFTMAX("w") HALF("p")
         TIMES("h", "v") ONE,
     P SDPA("q", "k", "v", "") ONE, unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_11", QKV "; inv_scale f32[]",
     P SCORES("q", "k") DIVIDED("s", "inv_scale") SOFTMAX("d") TIMES("p", "v") ONE,
     P SDPA("q", "k", "v", ", scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_12", QKV "; inv_scale f32[]" DROPOUT,
     P SCORES("q", "k") DIVIDED("s", "inv_scale") SOFTMAX("d") DROPPED("p") TIMES("r", "v") ONE,
     P SDPA("q", "k", "v", DROPS ", scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_13", "query T[4, 8, 8] grad; key T[4, 8, 8] grad; value T[4, 8, 8] grad" DROPOUT,
     "t = aten.transpose.int(key, 1, 2); s = aten.bmm.default(query, t); " SOFTMAX("s")
         DROPPED("p") "o = aten.bmm.default(r, value); " ONE,
     "q = aten.unsqueeze.default(query, 0); k = aten.unsqueeze.default(key, 0); v = aten.unsqueeze.default(value, 0); " SDPA(
         "q", "k", "v", DROPS ", scale=1.0") "r = aten.squeeze.dim(o, 0); return (r,)",
     unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_14", QKV "; mask T[2, 1, 1, 4]; inv_scale f32[]",
     P SCORES("q", "k") DIVIDED("s", "inv_scale") ADDED("d", "mask") SOFTMAX("a") TIMES("p", "v") ONE,
     P OWN_MASK SDPA("q", "k", "v", ", attn_mask=m, scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_15", QKV "; mask T[2, 4]; inv_scale f32[]",
     P SCORES("q", "k") DIVIDED("s", "inv_scale") MASKED("d") SOFTMAX("x") TIMES("p", "v") ONE,
     P KEEP_MASK SDPA("q", "k", "v", ", attn_mask=ke, scale=inverse(inv_scale)") ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_16", QKV "; mask T[B, 1, 1, 4]; inv_scale f32[]" DROPOUT,
     P SCORES("q", "k") DIVIDED("s", "inv_scale") ADDED("d", "mask") SOFTMAX("a") DROPPED("p") NARROW("r")
         TIMES("h", "v") ONE,
     P OWN_MASK SDPA("q", "k", "v", ", attn_mask=m, scale=inverse(inv_scale)" DROPS) ONE, unlessDividesOffGpu,
     kWhyAttention, "bs1 mask_fp32"},
    {"sfdp_pattern_17", QKV "; mask T[2, 4]; inv_scale f32[]" DROPOUT,
     P SCORES("q", "k") DIVIDED("s", "inv_scale") MASKED("d") SOFTMAX("x") DROPPED("p") TIMES("r", "v") ONE,
     P KEEP_MASK SDPA("q", "k", "v", ", attn_mask=ke, scale=inverse(inv_scale)" DROPS) ONE, unlessDivides,
     kWhyAttention},
    {"sfdp_pattern_18", QKV "; causal b8[B, 1, 1, 4]" DROPOUT,
     P SCORES("q", "k") "c = " SQRT_VALUE "; " DIVIDED("s", "c") LOWEST
     "x = aten.where.self(causal, d, low); " SOFTMAX("x") DROPPED("p") TIMES("r", "v") ALL,
     P SDPA("q", "k", "v", ", attn_mask=causal, scale=inverse(sqrt_size(value, -1))" DROPS) ALL, unlessOperandsAgree,
     kWhyAttention, "bs1"},
    {"sfdp_pattern_19", QKV "; causal b8[1, 1, 8, 8]; mask T[1, 1, 8, 8]" DROPOUT,
     SCORES("query", "key") "c = " SQRT_VALUE "; " DIVIDED("s", "c") LOWEST
     "x = aten.where.self(causal, d, low); " ADDED("x", "mask")
         SOFTMAX("a") "h = aten.to.dtype(p, dtype_of(value)); " DROPPED("h") TIMES("r", "value") ONE,
     "low = aten.full.default([], -inf, dtype=dtype_of(query), device=device_of(query), pin_memory=False); m = aten.where.self(causal, mask, low); " SDPA(
         "query", "key", "value", ", attn_mask=m, scale=inverse(sqrt_size(value, -1))" DROPS) ONE,
     unlessOperandsAgree, kWhyAttention},
    {"sfdp_pattern_20", QKV "; mask T[2, 4]" DROPOUT,
     P "n = aten.div.Tensor(q, sqrt_size(query, -1)); " SCORES("n", "k") MASKED("s") SOFTMAX("x") DROPPED("p")
         TIMES("r", "v") ONE,
     P KEEP_MASK SDPA("q", "k", "v", ", attn_mask=ke" DROPS) ONE, unlessDivides, kWhyAttention},
    {"sfdp_pattern_21", QKV "; mask f32[B, 1, 1, 4]",
     P SCORES("q", "k") ADDED("s", "mask") "b = aten.to.dtype(a, dtype_of(query)); " WIDE("b") SOFTMAX("w") NARROW("p")
         TIMES("h", "v") ONE,
     P OWN_MASK SDPA("q", "k", "v", ", attn_mask=m, scale=1.0") ONE, unlessOperandsAgree, kWhyAttention, "bs1"},
    {"sfdp_pattern_22", QKV "; mask f32[B, 1, 1, 4]",
     P SCORES("q", "k") ADDED("s", "mask") "b = aten.to.dtype(a, dtype_of(query)); " WIDE("b") SOFTMAX("w") NARROW("p")
         TIMES("h", "v") ALL,
     P OWN_MASK SDPA("q", "k", "v", ", attn_mask=m, scale=1.0") ALL, unlessOperandsAgree, kWhyAttention, "bs1"},
    {"sfdp_pattern_23", QKV,
     P SCORES("q", "k")
         WIDE("s") "b = aten.to.dtype(w, dtype_of(query)); wide = aten.to.dtype(b, torch.float32); " SOFTMAX("wide")
             NARROW("p") TIMES("h", "v") ALL,
     P SDPA("q", "k", "v", ", scale=1.0") ALL, unlessOperandsAgree, kWhyAttention, "bs1"},
    {"sfdp_pattern_24", QKV "; mask f32[1, 1, 8, 8]",
     "q = aten.view.default(query, [size(query, 0, 1), size(query, 2), size(query, 3)]); k = aten.reshape.default(key, [size(key, 0, 1), size(key, 2), size(key, 3)]); "
     "v = aten.reshape.default(value, [size(value, 0, 1), size(value, 2), size(value, 3)]); t = aten.transpose.int(k, 1, 2); s = aten.bmm.default(q, t); "
     "f = aten.view.default(s, [size(query, 0), size(query, 1), size(query, 2), size(key, 2)]); " ADDED(
         "f", "mask") "b = aten.view.default(a, [size(query, 0, 1), size(query, 2), size(key, 2)]); " SOFTMAX("b")
         NARROW(
             "p") "o = aten.bmm.default(h, v); "
                  "r = aten.view.default(o, [size(query, 0), size(query, 1), size(query, 2), size(query, 3)]); return (r,)",
     OWN_MASK SDPA("query", "key", "value", ", attn_mask=m, scale=1.0") ONE, unlessOperandsAgreeExceptParity,
     kWhyAttention},
    {"sfdp_pattern_25", QKV "; mask T[B, 1, 1, 4]" DROPOUT,
     P SCORES("q", "k") ADDED("s", "mask") WIDE("a") SOFTMAX("w") NARROW("p") DROPPED("h") TIMES("r", "v") ONE,
     P SDPA("q", "k", "v", ", attn_mask=mask, scale=1.0" DROPS) ONE, unlessOffGpu, kWhyAttention, "bs1"},
    {"sfdp_pattern_26", QKV "; mask T[B, 1, 1, 4]" DROPOUT,
     P SCORES("q", "k") ADDED("s", "mask") WIDE("a") SOFTMAX("w") NARROW("p") DROPPED("h") TIMES("r", "v") ALL,
     P SDPA("q", "k", "v", ", attn_mask=mask, scale=1.0" DROPS) ALL, unlessOffGpu, kWhyAttention, "bs1"},
    {"sfdp_pattern_27", QKV DROPOUT,
     P SCORES("q", "k") WIDE("s") SOFTMAX("w") NARROW("p") DROPPED("h") TIMES("r", "v") ALL,
     P SDPA("q", "k", "v", ", scale=1.0" DROPS) ALL, unlessOffGpu, kWhyAttention, "bs1"},
    {"sfdp_pattern_28",
     "query T[B, 6, 16, 8][2304, 128, 1, 16] grad; key T[B, 6, 16, 8][2304, 128, 1, 16] grad; "
     "value T[B, 6, 16, 8][2304, 128, 1, 16] grad; factor f32[]" DROPOUT,
     SCORES("query", "key") "d = aten.mul.Tensor(s, factor); " SOFTMAX("d") DROPPED("p") TIMES("r", "value") ONE,
     "q = aten.contiguous.default(query); k = aten.contiguous.default(key); v = aten.contiguous.default(value); " SDPA(
         "q", "k", "v", DROPS ", scale=factor") ONE,
     unlessMultiplies, kWhyAttention, "", TraceKind::Forward, sinceRelease(Release::V2_12)},
    {"sfdp_pattern_29",
     "query T[B, 8, 4, 16] grad; key T[B, 8, 4, 16] grad; "
     "value T[B, 8, 4, 16] grad; mask T[1, 1, 8, 8]; factor scalar",
     P SPLIT_SCORES ADDED("s", "mask") SAFE_SOFTMAX("a") TIMES("p", "v") ONE,
     P OWN_MASK SDPA("q", "k", "v", ", attn_mask=m, scale=square(factor)") ONE, unlessMultipliesBoth, kWhyAttention,
     "bs1", TraceKind::Forward, sinceRelease(Release::V2_13)},
    {"sfdp_pattern_30",
     "query T[B, 8, 4, 16] grad; key T[B, 8, 4, 16] grad; "
     "value T[B, 8, 4, 16] grad; factor scalar",
     P SPLIT_SCORES SAFE_SOFTMAX("s") TIMES("p", "v") ONE, P SDPA("q", "k", "v", ", scale=square(factor)") ONE,
     unlessMultipliesBoth, kWhyAttention, "bs1", TraceKind::Forward, sinceRelease(Release::V2_13)},
};

}  // namespace

const TracedRules& attentionFormulas(TracedForms forms) {
    static std::map<std::pair<bool, bool>, TracedRules> traced;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const std::pair key(forms.training, forms.half);
    auto found = traced.find(key);
    if (found == traced.end()) found = traced.emplace(key, traceRules(kFormulas, forms)).first;
    return found->second;
}

}  // namespace cutaway
