#include "engine/ops/attention_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/ops/expanded.h"

namespace cutaway {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What the forward and the backward kernels have in common.
class Attention {
  public:
    explicit Attention(Decomposition& d)
        : m_d(&d), m_query(d.in("query")), m_key(d.in("key")), m_value(d.in("value")), m_dtype(m_query.dtype()) {
        for (const std::string_view param : {"attn_mask", "attn_bias"})
            if (d.op().schema()->find(param) >= 0 && d.has(param)) m_bias = d.in(param);
        m_scale = d.has("scale") ? d.real("scale")
                                 : 1.0 / std::sqrt(static_cast<double>(m_query.size(3).asInt().value_or(1)));
    }
    /// Sizes of heads decide the scale and, with the numbers of heads, the shapes.
    bool isCovered() const {
        return (m_d->op().schema()->find("dropout_p") < 0 || m_d->real("dropout_p") == 0) && m_query.size(3).isInt() &&
               m_query.size(1).isInt() && m_key.size(1).isInt() && m_value.size(1).isInt() && isFloating(m_dtype) &&
               m_key.size(1).value() > 0 && m_value.size(1).value() > 0 &&
               m_query.size(1).value() % m_key.size(1).value() == 0 &&
               m_query.size(1).value() % m_value.size(1).value() == 0;
    }

    const Value& query() const { return m_query; }
    const Value& key() const { return m_key; }
    const Value& value() const { return m_value; }
    const Value& bias() const { return m_bias; }
    double scale() const { return m_scale; }
    DType sums() const { return m_dtype == DType::F64 ? DType::F64 : DType::F32; }

    /// [batch * heads, rows, size], with each head of keys once for each head of queries that reads it.
    Value folded(const Value& x) const {
        const SymDims& s = x.sizes();
        const int64_t heads = m_query.size(1).value(), own = s[1].value();
        Value all = x;
        if (own != heads) {
            all = expand(unsqueeze(x, 2), {s[0], own, heads / own, s[2], s[3]});
            all = reshape(all, {s[0], heads, s[2], s[3]});
        }
        return reshape(all, {s[0] * SymInt(heads), s[2], s[3]});
    }
    Value unfolded(const Value& x) const {
        return reshape(x, {m_query.size(0), m_query.size(1), x.size(1), x.size(2)});
    }
    /// Sums of the heads of queries that read one head of `like`.
    Value shared(const Value& x, const Value& like) const {
        const int64_t heads = m_query.size(1).value(), own = like.size(1).value();
        if (own == heads) return x;
        return sum(reshape(x, {x.size(0), own, heads / own, x.size(2), x.size(3)}), {2}, false);
    }
    /// a b, as f32 for halves.
    Value product(const Value& a, const Value& b) const {
        return isHalf(m_dtype) ? m_d->call("aten.bmm.dtype", {a, b, DType::F32})
                               : m_d->call("aten.bmm.default", {a, b});
    }
    Value narrow(const Value& x) const { return convert(x, m_dtype); }
    Value rounded(const Value& a, const Value& b) const {
        return m_d->call("aten.bmm.default", {narrow(a), narrow(b)});
    }

    /// [batch, heads, queries, keys]
    Value scores() const {
        Value made = unfolded(product(folded(m_query), transposeLast(folded(m_key)))) * m_scale;
        if (m_bias) made = made + convert(m_bias, sums());
        if (!m_d->flag("is_causal")) return made;
        const Device device = m_query.type().device;
        const Value rows = unsqueeze(iota(m_d->builder(), m_query.size(2), device), -1),
                    columns = iota(m_d->builder(), m_key.size(2), device);
        const Value seen = m_d->call("aten.le.Tensor", {columns, rows});
        return where(seen, made, constant(-kInfinity));
    }
    Value constant(double value) const { return full(m_d->builder(), {}, value, sums(), m_query.type().device); }
    Value is(std::string_view op, const Value& x, double value) const {
        return m_d->call("aten." + std::string(op) + ".Scalar", {x, value});
    }
    /// With the strides of the type, if its elements lie densely in some order of the dims; else nothing.
    Value laidOut(const Value& x, const TensorType& type) const {
        if (x.type().strides == type.strides) return x;
        std::vector<int64_t> order(type.sizes.size()), back(order.size());
        std::iota(order.begin(), order.end(), 0);
        const auto stride = [&](int64_t d) { return type.strides[static_cast<size_t>(d)].asInt().value_or(0); };
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
        for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
        const Value copy = permute(
            m_d->call("aten.clone.default", {permute(x, order)}, {{"memory_format", MemoryFormat::Contiguous}}), back);
        return copy.type().strides == type.strides ? copy : Value();
    }
    /// The result's number is asked for, as a tensor.
    const TensorType* result(size_t number) const {
        const TupleType& types = *m_d->outType().tuple();
        return number < types.size() ? types[number].tensor() : nullptr;
    }

  private:
    Decomposition* m_d;
    Value m_query, m_key, m_value, m_bias;
    DType m_dtype;
    double m_scale = 1;
};

/// Of a size that is padded to whole blocks of rows.
Value withRows(Decomposition& d, const Value& sums, const TensorType& type) {
    const SymInt rows = type.sizes[2], given = sums.size(2);
    if (rows == given) return sums;
    if (!rows.isInt() || !given.isInt()) return {};
    return d.call("aten.constant_pad_nd.default",
                  {sums, Argument(std::vector<int64_t>{0, rows.value() - given.value()}), kInfinity});
}

}  // namespace

Values attentionArithmetic(Decomposition& d) {
    const Attention a(d);
    if (!a.isCovered()) return Values::notHandled();
    const Value scores = a.scores();
    const Value largest = d.call("aten.amax.default", {scores, Argument(std::vector<int64_t>{-1}), true});
    // A row that sees nothing gives zeros.
    const Value nothing = a.is("eq", largest, -kInfinity);
    const Value shifted = scores - where(nothing, a.constant(0), largest);
    const Value powers = unary("aten.exp.default", shifted), total = sum(powers, {-1}, true);
    const Value weights = powers / where(nothing, a.constant(1), total);
    const SymInt all = d.in("query").size(0) * d.in("query").size(1);
    const Value out =
        a.unfolded(a.rounded(reshape(weights, {all, scores.size(2), scores.size(3)}), a.folded(a.value())));
    std::vector<Value> values;
    for (size_t i = 0; i < d.outType().tuple()->size(); ++i) {
        const TensorType* const type = a.result(i);
        Value made;
        if (i == 0) {
            made = a.laidOut(out, *type);
            if (!made) return Values::notHandled();
        } else if (i == 1 && type != nullptr) {
            Value sums = largest + unary("aten.log.default", total);
            if (type->rank() == 3) sums = squeezeDims(sums, {-1});
            if (type->sizes[2] == SymInt(0)) sums = full(d.builder(), type->sizes, 0.0, type->dtype, type->device);
            else sums = withRows(d, sums, *type);
            if (sums) made = a.laidOut(sums, *type);
            if (!made) return Values::notHandled();
        } else if (type != nullptr) {
            made = full(d.builder(), type->sizes, int64_t{0}, type->dtype, type->device);
        } else if ((*d.outType().tuple())[i].sym() != nullptr) {
            made = d.call("aten.sym_size.int", {i == 4 ? a.query() : a.key(), 2});
        }
        values.push_back(made);
    }
    return Values(std::move(values));
}

Values attentionBackwardArithmetic(Decomposition& d) {
    const Attention a(d);
    if (!a.isCovered()) return Values::notHandled();
    const Value dy = d.in(size_t{0}), y = d.in("out");
    Value sums = d.in("logsumexp");
    if (sums.rank() == 3) {
        if (!(sums.size(2) == y.size(2))) sums = d.call("aten.slice.Tensor", {sums, 2, 0, Argument(y.size(2))});
        sums = unsqueeze(sums, -1);
    }
    const Value none = unary("aten.isinf.default", sums);
    const Value weights =
        where(none, a.constant(0), unary("aten.exp.default", a.scores() - where(none, a.constant(0), sums)));
    const SymInt all = a.query().size(0) * a.query().size(1);
    const auto batched = [&](const Value& x) { return reshape(x, {all, x.size(2), x.size(3)}); };
    const Value gradient = a.folded(dy);
    const Value dv = a.shared(a.unfolded(a.rounded(transposeLast(batched(weights)), gradient)), a.value());
    // Softmax's gradient: p (dp - Σ p dp), where the sum is Σ dy y.
    const Value dp = a.unfolded(a.product(gradient, transposeLast(a.folded(a.value()))));
    const Value dot = sum(convert(dy, a.sums()) * convert(y, a.sums()), {-1}, true);
    const Value unscaled = weights * (dp - dot);
    const Value scores = batched(unscaled * a.scale());
    const Value dq = a.unfolded(a.rounded(scores, a.folded(a.key())));
    const Value dk = a.shared(a.unfolded(a.rounded(transposeLast(scores), a.folded(a.query()))), a.key());
    std::vector<Value> values;
    for (size_t i = 0; i < d.outType().tuple()->size(); ++i) {
        const TensorType* const type = a.result(i);
        Value made;
        if (type != nullptr && i == 3) {
            if (!a.bias()) return Values::notHandled();
            made = a.narrow(unscaled);
            std::vector<int64_t> repeated;
            for (int64_t dim = 0; dim < type->rank(); ++dim)
                if (const int64_t own = dim + made.rank() - type->rank();
                    type->sizes[static_cast<size_t>(dim)] == SymInt(1) && !(made.size(own) == SymInt(1)))
                    repeated.push_back(own);
            if (!repeated.empty()) made = sum(made, repeated, true);
            if (made.rank() != type->rank()) made = sum(made, {0, 1}, false);
            made = a.laidOut(made, *type);
        } else if (type != nullptr) {
            made = a.laidOut(i == 0 ? dq : i == 1 ? dk : dv, *type);
        }
        if (type != nullptr && !made) return Values::notHandled();
        values.push_back(made);
    }
    return Values(std::move(values));
}

}  // namespace cutaway
