#include "engine/passes/freezing/pack_weights.h"

#include <map>

#include "engine/ir/infer.h"
#include "engine/ir/live_nodes.h"
#include "engine/passes/freezing/options.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

bool isPackable(DType dtype) { return dtype == DType::F32 || isHalf(dtype); }
bool onCpu(const TensorType& type) { return type.device.type == DeviceType::Cpu; }
bool isConstantWeight(const Node& node) { return node.kind() == NodeKind::GetAttr; }

// ---------------------------------------------------------------- convolutions

bool isTransposed(const Node& convolution) { return convolution.arg("transposed").asInt().value_or(0) != 0; }

/// What the library's transposed convolution cannot do, or PyTorch does not ask of it.
std::string_view unlessTransposedFits(const Match& m) {
    const Node& call = m.root();
    if (!allInts(m.tensor("x").sizes)) return "{x}, {x:type}, has sizes that are known only at run time";
    const int64_t groups = call.arg("groups").asInt().value_or(1);
    if (groups > 1 && m.tensor("w").sizes[0] == SymInt(groups)) return "each input channel is a group of its own";
    const auto *extra = call.arg("output_padding").list(), *stride = call.arg("stride").list();
    if (extra == nullptr || stride == nullptr) return "its padding is known only at run time";
    for (size_t i = 0; i < std::min(extra->size(), stride->size()); ++i)
        if ((*extra)[i].asInt().value_or(0) >= (*stride)[i].asInt().value_or(1)) {
            m.note(constantText(call.arg("output_padding")) + " and " + constantText(call.arg("stride")));
            return "the output padding is not smaller than the stride";
        }
    return "";
}
std::string_view unlessConvolutionPacks(const Match& m) {
    if (!m.isTensor("x") || !m.isTensor("w")) return "an operand is not a tensor";
    if (!isConstantWeight(m.node("w"))) return "the weight, {w}, is not a constant";
    const TensorType &x = m.tensor("x"), &w = m.tensor("w");
    if (!onCpu(x) || !onCpu(w)) return "{x}, {x:type}, is not on the CPU";
    if ((x.rank() != 4 && x.rank() != 5) || x.rank() != w.rank())
        return "the library packs weights of four and five dims, and {w} is {w:type}";
    if (!isPackable(x.dtype) || x.dtype != w.dtype) return "{x}, {x:type}, is neither float32, bfloat16 nor float16";
    return isTransposed(m.root()) ? unlessTransposedFits(m) : "";
}
/// The result has channels last, whatever it had before. Where the graph's layouts were left alone, it is laid out as
/// it was.
Value inLayoutOf(const Match& m, const Value& packed) {
    const TensorType& before = m.root().tensor();
    if (!packed || freezingOptions(m.request()).layoutOptimization || packed.type().strides == before.strides)
        return packed;
    return packed.builder().call("prims.inductor_force_stride_order.default", {packed, Argument(before.strides)});
}
Values packConvolution(const Match& m, GraphBuilder& builder) {
    const Node& call = m.root();
    const bool transposed = isTransposed(call);
    std::vector<Argument> shape = {call.arg("padding")};
    if (transposed) shape.push_back(call.arg("output_padding"));
    for (const std::string_view param : {"stride", "dilation", "groups"}) shape.push_back(call.arg(param));
    Value weight = builder.value(m.node("w"));
    if (const SymDims& sizes = m.tensor("x").sizes; allInts(sizes)) {
        std::vector<Argument> pack = {weight};
        pack.insert(pack.end(), shape.begin(), shape.end());
        pack.emplace_back(sizes);
        weight = builder.call(transposed ? "mkldnn._reorder_convolution_transpose_weight.default"
                                         : "mkldnn._reorder_convolution_weight.default",
                              std::move(pack));
    }
    std::vector<Argument> args = {m["x"], weight, call.arg("bias")};
    args.insert(args.end(), shape.begin(), shape.end());
    for (Argument function : {Argument("none"), Argument(std::vector<Argument>{}), Argument("")})
        args.push_back(std::move(function));
    return inLayoutOf(m, builder.call(transposed ? "mkldnn._convolution_transpose_pointwise.default"
                                                 : "mkldnn._convolution_pointwise.default",
                                      std::move(args)));
}

std::string_view unlessRecurrentPacks(const Match& m) {
    for (const char* operand : {"w", "v", "x", "h", "c"}) {
        if (!m.isTensor(operand)) return "an operand is not a tensor";
        if (!onCpu(m.tensor(operand))) return "the layer is not computed on the CPU";
    }
    if (!isConstantWeight(m.node("w"))) return "a weight, {w}, is not a constant";
    return isConstantWeight(m.node("v")) ? "" : "a weight, {v}, is not a constant";
}
/// Two tensors, which the layer reads in the places of its weights.
Values packRecurrent(const Match& m, GraphBuilder& builder) {
    const Node& call = m.root();
    const Value packed = builder.call("mkldnn._reorder_mkldnn_rnn_layer_weight.default",
                                      {m["w"], m["v"], call.arg("hidden_size"), call.arg("reverse"),
                                       call.arg("has_biases"), call.arg("batch_first")});
    if (!packed) return Value();
    std::vector<Argument> args = call.args();
    args[1] = Argument(packed[0]);
    args[2] = Argument(packed[1]);
    return builder.call(call.op().name(), std::move(args));
}

constexpr Rule kConvolutions[] = {
    {.name = "pack_convolution",
     .find = "y = aten.convolution.default(x, w, ...); return y",
     .build = packConvolution,
     .unless = unlessConvolutionPacks,
     .why = "the library reads a weight that never changes in a layout of its own"},
    {.name = "pack_recurrent_layer",
     .find = "y = aten.mkldnn_rnn_layer.default(x, w, v, p, q, h, c, ...); return y",
     .build = packRecurrent,
     .unless = unlessRecurrentPacks,
     .why = "the library reads weights that never change in a layout of its own"},
};

// ---------------------------------------------------------------- linear layers

bool isConstantOrJoined(const Node& weight) {
    if (isConstantWeight(weight)) return true;
    const auto* items = weight.isCall("aten.cat.default") ? weight.arg(0).list() : nullptr;
    return items && std::all_of(items->begin(), items->end(),
                                [](const Argument& each) { return each.node() && isConstantWeight(*each.node()); });
}
std::string_view unlessLinearPacks(const Match& m) {
    if (!m.isTensor("x") || !m.isTensor("w")) return "an operand is not a tensor";
    if (!isConstantOrJoined(m.node("w"))) return "the weight, {w}, is not a constant";
    const TensorType &x = m.tensor("x"), &w = m.tensor("w");
    if (x.rank() != 2 || w.rank() != 2) return "{x}, {x:type}, and {w}, {w:type}, are not both of two dims";
    if (!onCpu(x) || !onCpu(w)) return "{x}, {x:type}, is not on the CPU";
    if (!isPackable(x.dtype) || x.dtype != w.dtype) return "{x}, {x:type}, is neither float32, bfloat16 nor float16";
    return "";
}
std::string_view unlessBiasedLinearPacks(const Match& m) {
    if (const std::string_view why = unlessLinearPacks(m); !why.empty()) return why;
    const auto alpha = m["alpha"].asReal(), beta = m["beta"].asReal();
    if (alpha != 1.0 || (beta != 1.0 && beta != 0.0)) return "the product is scaled: alpha is {alpha}, beta is {beta}";
    if (!m.isTensor("b") || m.tensor("b").rank() != 1 || !(m.tensor("b").sizes[0] == m.tensor("w").sizes[1]))
        return "the bias, {b}, is {b:type}, not one number for each column";
    return "";
}

/// How many rows the weight is packed for; None where that is known only at run time.
Argument rowsOf(const Match& m) {
    const SymInt& rows = m.tensor("x").sizes[0];
    if (rows.isInt()) return rows.value();
    const auto& hints = m.context().sizeHints;
    if (const auto hint = rows.expr()->kind == ExprKind::Symbol ? hints.find(rows.expr()->name) : hints.end();
        hint != hints.end())
        return hint->second;
    return {};
}
Values packLinear(const Match& m, GraphBuilder& builder, const Argument& bias) {
    const TensorType& x = m.tensor("x");
    const Value plain = permute(builder.value(m.node("w")), {1, 0});
    const Argument rows = rowsOf(m);
    if (x.dtype == DType::F32 && x.sizes[0].isInt() && !freezingOptions(m.request()).fuseFloat32Linear) {
        const Value packed = builder.call("mkl._mkl_reorder_linear_weight", {plain, rows});
        return builder.call("mkl._mkl_linear", {m["x"], packed, plain, bias, rows});
    }
    const Value packed = builder.call("mkldnn._reorder_linear_weight.default", {plain, rows});
    return builder.call("mkldnn._linear_pointwise.default",
                        {m["x"], packed, bias, "none", Argument(std::vector<Argument>{}), ""});
}

constexpr Rule kLinears[] = {
    {.name = "pack_mm",
     .find = "y = aten.mm.default(x, w); return y",
     .build = [](const Match& m, GraphBuilder& builder) { return packLinear(m, builder, {}); },
     .unless = unlessLinearPacks,
     .why = "the library reads a weight that never changes in a layout of its own"},
    {.name = "pack_addmm",
     .find = "y = aten.addmm.default(b, x, w, beta = $beta, alpha = $alpha); return y",
     .build =
         [](const Match& m, GraphBuilder& builder) {
             return packLinear(m, builder, m["beta"].asReal() == 0.0 ? Argument() : m["b"]);
         },
     .unless = unlessBiasedLinearPacks,
     .why = "the library reads a weight that never changes in a layout of its own"},
};

// ---------------------------------------------------------------- what stands around linear layers

std::string_view unlessReshapesCancel(const Match& m) {
    if (!m.isTensor("x")) return "{x} is not a tensor";
    const SymDims &before = m.tensor("x").sizes, &rows = m.tensor("a").sizes, &after = m.tensor("y").sizes;
    const bool same =
        before.size() == after.size() && !before.empty() && std::equal(before.begin(), before.end() - 1, after.begin());
    if (rows.size() != 2 || !same) return "the result, {y:type}, has other leading dims than {x}, {x:type}";
    // With the same leading dims a reshape must keep the last dim, else it moves elements between rows.
    return before.back() == rows[1] && after.back() == m.tensor("l").sizes[1]
               ? ""
               : "a reshape changes the last dim: {x:type}, {a:type}, {l:type}, {y:type}";
}
std::string_view unlessBiasFits(const Match& m) {
    if (!m.isTensor("c")) return "what is added, {c}, is not a tensor";
    if (!m.parity() && m["alpha"].asReal() != 1.0)
        return "what is added is scaled by {alpha}";  // PyTorch forgets alpha
    const TensorType &c = m.tensor("c"), &l = m.tensor("l");
    if (c.rank() != 1 || !(c.sizes[0] == l.sizes.back())) return "{c}, {c:type}, is not one number for each column";
    return c.dtype == l.dtype ? "" : "{c}, {c:type}, has another dtype than the weight";
}
constexpr Rule kRecover[] = {
    {.name = "reshape_linear_reshape",
     .find = "a: shared = aten.reshape.default(x, $rows); "
             "l = mkldnn._linear_pointwise.default(a, w, b, $attr, $scalars, $algorithm); "
             "y = aten.reshape.default(l, $sizes); return y",
     .replace = "y = mkldnn._linear_pointwise.default(x, w, b, $attr, $scalars, $algorithm); return y",
     .unless = unlessReshapesCancel,
     .why = "the library takes inputs of any number of dims",
     .countsRefused = true},
    {.name = "linear_bias",
     .find = "l = mkldnn._linear_pointwise.default(x, w, None, 'none', ...); "
             "y = aten.add.Tensor(l, c, alpha = $alpha); return y",
     .replace = "y = mkldnn._linear_pointwise.default(x, w, c, 'none', [], ''); return y",
     .unless = unlessBiasFits,
     .why = "the library adds a bias while it computes the product"},
};

// ---------------------------------------------------------------- weights packed twice

constexpr std::string_view kMerge = "merge_packed_weights";
constexpr std::string_view kPackingOps[] = {"mkldnn._reorder_convolution_transpose_weight.default",
                                            "mkldnn._reorder_mkldnn_rnn_layer_weight.default",
                                            "mkldnn._reorder_convolution_weight.default",
                                            "mkldnn._reorder_linear_weight.default", "mkl._mkl_reorder_linear_weight"};
constexpr size_t kMergedByPyTorch = 2;  // the first ones

bool packs(const Node& node, bool parity) {
    const auto ops = std::span(kPackingOps).first(parity ? kMergedByPyTorch : std::size(kPackingOps));
    return node.isCall() && std::find(ops.begin(), ops.end(), node.op().name()) != ops.end();
}
/// A constant that is transposed only to be packed, as each linear layer does for itself.
bool isTransposedForPacking(const Node& node) {
    return node.isCall("aten.permute.default") && node.arg(0).node() && isConstantWeight(*node.arg(0).node()) &&
           std::any_of(node.users().begin(), node.users().end(), [](const Node* user) { return packs(*user, false); });
}
bool sameValue(const Node* a, const Node* b) {
    return a == b || (a && b && isConstantWeight(*a) && isConstantWeight(*b) && a->target() == b->target());
}
bool sameCalls(const Node& a, const Node& b) {
    if (&a.op() != &b.op()) return false;
    for (size_t i = 0; i < a.args().size(); ++i) {
        const Node *one = a.arg(i).node(), *other = b.arg(i).node();
        if (one || other ? !sameValue(one, other) : !sameConstant(a.arg(i), b.arg(i))) return false;
    }
    return true;
}

}  // namespace

std::span<const Rule> packConvolutionRules() { return kConvolutions; }
Result<bool> packConvolutions(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kConvolutions); }
std::span<const Rule> packLinearRules() { return kLinears; }
Result<bool> packLinears(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kLinears); }
std::span<const Rule> recoverLinearRules() { return kRecover; }
Result<bool> recoverLinears(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kRecover); }

Result<bool> mergePackedWeights(Module& module, Rewriter& rewriter) {
    const bool parity = rewriter.request().parity;
    Graph& graph = module.graph();
    std::map<std::string, std::vector<Node*>> seen;  // by what is packed
    for (Node* node : LiveNodes(graph)) {
        const bool packing = packs(*node, false);
        if (!packing && !node->isCall("aten.permute.default")) continue;
        const Refusing no(rewriter, kMerge, *node);
        if (parity && !packs(*node, true)) {
            no("PyTorch looks at transposed convolutions and recurrent layers only");
            continue;
        }
        if (!packing && !isTransposedForPacking(*node)) {
            no("it does not transpose a constant for packing");
            continue;
        }
        const Node& source = *node->arg(0).node();
        std::vector<Node*>& earlier = seen[isConstantWeight(source) ? source.target() : "%" + source.name()];
        const auto same =
            std::find_if(earlier.begin(), earlier.end(), [&](const Node* one) { return sameCalls(*one, *node); });
        if (same == earlier.end()) {
            earlier.push_back(node);
            no("nothing before it packs ", NodeWithKind{&source}, " in the same way");
            continue;
        }
        const Go go = rewriter.begin(kMerge, *node, "`" + (*same)->name() + "` packs the same weight in the same way");
        if (go == Go::Stop) break;
        if (go == Go::Yes) rewriter.replace(*node, **same);
    }
    return rewriter.changed();
}

}  // namespace cutaway
