// torch.nn.functional.multi_head_attention_forward, which nn.MultiheadAttention and the transformer layers call.
#include <array>
#include <cmath>

#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

using Ints = std::vector<Argument>;
Argument ints(std::initializer_list<Argument> items) { return Argument(Ints(items)); }

/// One attention: sizes, and the calls that its parts are made of. Sequence first, then batch, then features.
class MultiHead {
  public:
    explicit MultiHead(PythonCall& call) : c(call) {}

    Argument run() {
        if (c.given("static_k") || c.given("static_v"))
            return c.fail("static_k and static_v", {"call scaled_dot_product_attention with the keys and values"});
        m_query = c["query"];
        m_key = c["key"];
        m_value = c["value"];
        if (!tensorOf(m_query) || !tensorOf(m_key) || !tensorOf(m_value))
            return c.fail("query, key and value are tensors");
        m_unbatched = tensorOf(m_query)->rank() == 2;
        Argument padding = c["key_padding_mask"];
        const bool same = m_key.node() == m_value.node(), self = same && m_query.node() == m_key.node();
        if (m_unbatched) {
            m_query = unsqueeze(m_query, 1);
            m_key = self ? m_query : unsqueeze(m_key, 1);
            m_value = same ? m_key : unsqueeze(m_value, 1);
            if (!padding.isNone()) padding = unsqueeze(padding, 0);
        }
        if (c.failed()) return {};
        const TensorType query = *tensorOf(m_query);
        const auto width = query.rank() == 3 ? query.sizes[2].asInt() : std::nullopt;
        const auto heads = c["num_heads"].asInt();
        if (!width || !heads || *heads <= 0 || *width % *heads != 0)
            return c.fail("the features are a whole multiple of num_heads", {});
        m_heads = *heads;
        m_width = *width;
        m_length = query.sizes[0];
        m_batch = query.sizes[1];
        const bool weights = c.flag("need_weights");
        bool causal = c.flag("is_causal");
        padding = added(padding);
        if (causal && c["attn_mask"].isNone())
            return c.fail("is_causal without attn_mask", {"give the causal mask as attn_mask"});
        m_mask = causal && padding.isNone() && !weights ? Argument() : added(c["attn_mask"]);
        if (!padding.isNone()) causal = false;
        project(self, same);
        if (c.failed()) return {};
        widenKeys(padding);
        splitHeads();
        if (!padding.isNone()) addPadding(padding);
        if (c.failed()) return {};
        return weights ? withWeights() : fused(causal);
    }

  private:
    Argument unsqueeze(const Argument& x, int64_t dim) { return c.aten("unsqueeze", {x, Argument(dim)}); }
    Argument linear(const Argument& x, const Argument& weight, const Argument& bias) {
        return c.aten("linear", {x, weight, bias});
    }
    Argument view(const Argument& x, Argument sizes) { return c.aten("view", {x, std::move(sizes)}); }
    Argument transpose(const Argument& x, int64_t a, int64_t b) {
        return c.aten("transpose", {x, Argument(a), Argument(b)});
    }
    Argument packed(const Argument& x) {
        return tensorOf(x) && !tensorOf(x)->isContiguous() ? c.aten("contiguous", {x}) : x;
    }
    Argument part(const Argument& x, int64_t position) {
        return c.aten("select", {x, Argument(0), Argument(position)});
    }
    /// Parts of a projection's weight or bias, by the calls that PyTorch takes it apart with.
    std::vector<Argument> partsOf(const Argument& x, size_t count) {
        if (x.isNone() || c.failed()) return std::vector<Argument>(count, x);
        const Argument all = count == 3
                                 ? c.aten("chunk", {x, Argument(3)})
                                 : c.aten("split_with_sizes", {x, ints({Argument(m_width), Argument(2 * m_width)})});
        std::vector<Argument> parts(count);
        for (size_t i = 0; i < count && !c.failed(); ++i)
            parts[i] = Argument(c.builder().call("operator.getitem", {all, Argument(static_cast<int64_t>(i))}).node());
        return parts;
    }
    SymInt sizeOf(const Argument& x, size_t dim) const { return tensorOf(x) ? tensorOf(x)->sizes[dim] : SymInt(0); }

    /// Masks are added to the scores: what a boolean one hides becomes -inf.
    Argument added(const Argument& mask) {
        const TensorType* type = tensorOf(mask);
        if (type == nullptr || type->dtype != DType::Bool) return mask;
        const Argument zeros = c.aten("zeros_like", {mask}, {{"dtype", tensorOf(m_query)->dtype}});
        return c.aten("masked_fill", {zeros, mask, Argument(-std::numeric_limits<double>::infinity())});
    }

    /// `count` results of one product, [count, length, batch, features].
    Argument projectTogether(const Argument& x, const Argument& weight, const Argument& bias, int64_t count) {
        Argument y =
            c.aten("unflatten", {linear(x, weight, bias), Argument(-1), ints({Argument(count), Argument(m_width)})});
        y = c.aten("squeeze", {transpose(unsqueeze(y, 0), 0, -2), Argument(-2)});
        return packed(y);
    }
    void project(bool self, bool same) {
        const Argument weight = c["in_proj_weight"], bias = c["in_proj_bias"];
        if (c.flag("use_separate_proj_weight")) {
            projectApart({c["q_proj_weight"], c["k_proj_weight"], c["v_proj_weight"]}, partsOf(bias, 3));
        } else if (self) {
            const Argument all = projectTogether(m_query, weight, bias, 3);
            m_query = part(all, 0);
            m_key = part(all, 1);
            m_value = part(all, 2);
        } else if (same) {
            const std::vector<Argument> weights = partsOf(weight, 2), biases = partsOf(bias, 2);
            m_query = linear(m_query, weights[0], biases[0]);
            const Argument both = projectTogether(m_key, weights[1], biases[1], 2);
            m_key = part(both, 0);
            m_value = part(both, 1);
        } else {
            const std::vector<Argument> weights = partsOf(weight, 3);
            projectApart(weights, partsOf(bias, 3));
        }
    }
    void projectApart(const std::vector<Argument>& weights, const std::vector<Argument>& biases) {
        m_query = linear(m_query, weights[0], biases[0]);
        m_key = linear(m_key, weights[1], biases[1]);
        m_value = linear(m_value, weights[2], biases[2]);
    }

    Argument oneColumnMore(const Argument& mask) {
        return mask.isNone() ? mask
                             : c.aten("constant_pad_nd", {mask, ints({Argument(0), Argument(1)}), Argument(0.0)});
    }
    /// A learned key and value behind the others.
    void widenKeys(Argument& padding) {
        if (const TensorType* mask = tensorOf(m_mask); mask && mask->rank() == 2) m_mask = unsqueeze(m_mask, 0);
        if (!c.given("bias_k") || !c.given("bias_v")) return;
        const auto behind = [&](const Argument& x, const Argument& bias) {
            return c.aten("cat",
                          {ints({x, c.aten("repeat", {bias, ints({Argument(1), Argument(m_batch), Argument(1)})})})});
        };
        m_key = behind(m_key, c["bias_k"]);
        m_value = behind(m_value, c["bias_v"]);
        m_mask = oneColumnMore(m_mask);
        padding = oneColumnMore(padding);
    }
    Argument groups() const { return Argument(m_batch * m_heads); }
    void splitHeads() {
        const auto split = [&](const Argument& x) {
            return transpose(view(x, ints({Argument(sizeOf(x, 0)), groups(), Argument(m_width / m_heads)})), 0, 1);
        };
        m_query = split(m_query);
        m_key = split(m_key);
        m_value = split(m_value);
        if (c.flag("add_zero_attn") && !c.failed()) {
            const auto behind = [&](const Argument& x) {
                const Argument zeros =
                    c.aten("new_zeros", {x, ints({groups(), Argument(1), Argument(m_width / m_heads)})});
                return c.aten("cat", {ints({x, zeros}), Argument(1)});
            };
            m_key = behind(m_key);
            m_value = behind(m_value);
            m_mask = oneColumnMore(m_mask);
            m_zeroColumn = true;
        }
        m_source = sizeOf(m_key, 1);
    }
    void addPadding(Argument padding) {
        if (m_zeroColumn) padding = oneColumnMore(padding);
        padding = view(padding, ints({Argument(m_batch), Argument(1), Argument(1), Argument(m_source)}));
        padding = c.aten("expand", {padding, ints({Argument(-1), Argument(m_heads), Argument(-1), Argument(-1)})});
        padding = c.aten("reshape", {padding, ints({groups(), Argument(1), Argument(m_source)})});
        m_mask = m_mask.isNone() ? padding : c.aten("add", {m_mask, padding});
    }

    /// The result back in the layout of the query, through the last product.
    Argument joined(Argument x) {
        x = linear(x, c["out_proj_weight"], c["out_proj_bias"]);
        x = view(x, ints({Argument(m_length), Argument(m_batch), Argument(sizeOf(x, 1))}));
        return m_unbatched ? c.aten("squeeze", {x, Argument(1)}) : x;
    }
    Argument pair(const Argument& output, const Argument& weights) const {
        return Argument(ArgumentList{{output, weights}, true});
    }
    Argument withWeights() {
        const Argument query =
            c.aten("mul", {m_query, Argument(std::sqrt(1.0 / static_cast<double>(m_width / m_heads)))});
        const Argument keys = transpose(m_key, -2, -1);
        const Argument scores =
            m_mask.isNone() ? c.aten("bmm", {query, keys}) : c.aten("baddbmm", {m_mask, query, keys});
        Argument weights = c.aten("softmax", {scores, Argument(-1)});
        if (dropout() > 0) weights = c.aten("dropout", {weights, Argument(dropout()), Argument(true)});
        Argument output = packed(transpose(c.aten("bmm", {weights, m_value}), 0, 1));
        output = joined(view(output, ints({Argument(m_length * m_batch), Argument(m_width)})));
        weights = view(weights, ints({Argument(m_batch), Argument(m_heads), Argument(m_length), Argument(m_source)}));
        if (c.flag("average_attn_weights")) weights = c.aten("mean", {weights, ints({Argument(1)})});
        return pair(output, m_unbatched ? c.aten("squeeze", {weights, Argument(0)}) : weights);
    }
    Argument fused(bool causal) {
        if (!m_mask.isNone()) {
            const bool shared = sizeOf(m_mask, 0) == SymInt(1);
            m_mask = shared
                         ? unsqueeze(m_mask, 0)
                         : view(m_mask, ints({Argument(m_batch), Argument(m_heads), Argument(-1), Argument(m_source)}));
        }
        const auto heads = [&](const Argument& x, const SymInt& length) {
            return view(x, ints({Argument(m_batch), Argument(m_heads), Argument(length), Argument(m_width / m_heads)}));
        };
        Argument output = c.aten("scaled_dot_product_attention",
                                 {heads(m_query, m_length), heads(m_key, m_source), heads(m_value, m_source), m_mask,
                                  Argument(dropout()), Argument(causal)});
        output = packed(c.aten("permute", {output, ints({Argument(2), Argument(0), Argument(1), Argument(3)})}));
        return pair(joined(view(output, ints({Argument(m_batch * m_length), Argument(m_width)}))), Argument());
    }
    double dropout() const { return c.flag("training") ? c.real("dropout_p") : 0; }

    PythonCall& c;
    Argument m_query, m_key, m_value, m_mask;
    int64_t m_heads = 0, m_width = 0;
    SymInt m_length, m_batch, m_source;
    bool m_unbatched = false, m_zeroColumn = false;
};

constexpr PythonFunction kAttentionFunctions[] = {
    {"torch.nn.functional.multi_head_attention_forward(Any query, Any key, Any value, Any embed_dim_to_check, Any num_heads, Any in_proj_weight, "
     "Any in_proj_bias, Any bias_k, Any bias_v, bool add_zero_attn, float dropout_p, Any out_proj_weight, Any out_proj_bias, bool training=True, "
     "Any key_padding_mask=None, bool need_weights=True, Any attn_mask=None, bool use_separate_proj_weight=False, Any q_proj_weight=None, "
     "Any k_proj_weight=None, Any v_proj_weight=None, Any static_k=None, Any static_v=None, bool average_attn_weights=True, bool is_causal=False) -> Any",
     [](PythonCall& c) { return MultiHead(c).run(); }},
};

}  // namespace

std::span<const PythonFunction> attentionFunctions() { return kAttentionFunctions; }

}  // namespace cutaway::torchcalls
