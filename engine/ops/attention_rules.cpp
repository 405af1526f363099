#include "engine/ops/attention_rules.h"

#include <cmath>

#include "engine/ops/counts.h"

namespace cutaway {

Result<AttentionOperands> readAttention(const InferContext& c) {
    AttentionOperands o;
    CT_TRY(o.query, c.tensor("query"));
    CT_TRY(o.key, c.tensor("key"));
    CT_TRY(o.value, c.tensor("value"));
    if (o.query.rank() != 4 || o.key.rank() != 4 || o.value.rank() != 4)
        return c.fail("needs query, key and value of four dims");
    if (o.query.dtype != o.key.dtype || o.query.dtype != o.value.dtype)
        return c.fail("query, key and value have different dtypes");
    if (!isFloating(o.query.dtype)) return c.fail("needs floating-point tensors");
    if (differ(o.query.sizes[3], o.key.sizes[3])) return c.fail("query and key have different last sizes");
    if (differ(o.key.sizes[2], o.value.sizes[2])) return c.fail("key and value have different lengths");
    if (differ(o.query.sizes[0], o.key.sizes[0]) || differ(o.query.sizes[0], o.value.sizes[0]) ||
        differ(o.key.sizes[1], o.value.sizes[1]))
        return c.fail("batch or head counts do not fit");
    const SymInt &heads = o.query.sizes[1], &keyHeads = o.key.sizes[1];
    if (keyHeads == SymInt(0) || leavesRemainder(heads, keyHeads))
        return c.fail("the key's " + keyHeads.text() + " heads do not divide the query's " + heads.text());
    return o;
}

Result<void> checkAttentionMask(const InferContext& c, std::string_view param, const AttentionOperands& o,
                                bool takesFloat) {
    if (!c.has(param)) return {};
    CT_TRY(const TensorType mask, c.tensor(param));
    const SymDims whole{o.query.sizes[0], o.query.sizes[1], o.query.sizes[2], o.key.sizes[2]};
    const SymDims both[] = {whole, mask.sizes};
    const auto sizes = broadcastSizes(both);
    if (!sizes || sizes->size() != 4 || (allInts(*sizes) && allInts(whole) && !(*sizes == whole)))
        return c.fail("the mask " + mask.text() + " does not broadcast to queries by keys");
    if (const std::string wrong = wrongMaskType(mask, o.query, takesFloat); !wrong.empty()) return c.fail(wrong);
    return {};
}
std::string wrongMaskType(const TensorType& mask, const TensorType& query, bool takesFloat) {
    if (mask.dtype == query.dtype || (takesFloat && mask.dtype == DType::F32)) return {};
    const std::string own(info(query.dtype).torchName);
    return "the mask is " + std::string(info(mask.dtype).torchName) + ", not " + own +
           (takesFloat && query.dtype != DType::F32 ? " or float32" : "");
}
Argument halfScale(const CallView& c, const SymInt& headSize) {
    if (c.has("scale")) return std::sqrt(std::fabs(c.real("scale")));
    if (headSize.isInt()) return std::sqrt(1.0 / std::sqrt(static_cast<double>(headSize.value())));
    return Argument(
        Expr::call("FloatPow", {Expr::cast(headSize.expr(), DType::F64), Expr::real(-0.25, DType::F64)}, DType::F64));
}
Result<void> checkAttended(const InferContext& c, std::string_view gradient, const SymDims& sizes) {
    for (const std::string_view param : {gradient, std::string_view("out")}) {
        CT_TRY(const TensorType tensor, c.tensor(param));
        if (differ(tensor.sizes, sizes))
            return c.fail("'" + std::string(param) + "' " + tensor.text() + " does not have the result's sizes");
    }
    CT_TRY(const TensorType sums, c.tensor("logsumexp"));
    const bool fits = sums.rank() == 3 && !differ(sums.sizes[0], sizes[0]) && !differ(sums.sizes[1], sizes[1]);
    if (!fits || exceeds(sizes[2], sums.sizes[2]))
        return c.fail("'logsumexp' " + sums.text() + " does not have a number per query");
    return {};
}

}  // namespace cutaway
