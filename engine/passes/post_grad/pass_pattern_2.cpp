#include "engine/passes/post_grad/pass_pattern_2.h"

#include "engine/rewrite/matcher.h"
#include "engine/support/release_changes.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

constexpr std::string_view kSplit = "aten.split_with_sizes.default";

/// PyTorch's patterns name the dim, and a call along the default one does not.
constexpr std::string_view kNotAlongTheFirst = "PyTorch's pattern does not match calls along the default dim 0";

std::string named(const Node& node) { return "`" + node.name() + "`"; }

/// The items of the concatenation are all pieces of one split, in order, along the same dim.
std::string_view unlessAllPiecesInOrder(const Match& m) {
    const auto* items = m["items"].list();
    if (items == nullptr || items->empty()) return "what {y} puts together, {items}, is not known item by item";
    if (m["dim"].asInt() == 0) return kNotAlongTheFirst;
    const Node* split = nullptr;
    for (size_t i = 0; i < items->size(); ++i) {
        const Node* piece = (*items)[i].node();
        const Node* source = piece && piece->isCall("operator.getitem") ? piece->arg(0).node() : nullptr;
        if (source == nullptr || !source->isCall(kSplit)) {
            m.note(constantText((*items)[i]) + " is none");
            return "{y} does not put pieces of a split together";
        }
        if (split && split != source) {
            m.note(named(*split) + " and " + named(*source));
            return "{y} puts pieces of several splits together";
        }
        split = source;
        if (piece->arg(1).asInt() != static_cast<int64_t>(i)) {
            m.note(named(*piece) + " is piece " + printArgument(piece->arg(1)) + " of " + named(*split) +
                   " and stands as number " + std::to_string(i));
            return "the pieces are not in the order in which they were split";
        }
        if (piece->users().size() != 1) {
            m.note(named(*piece) + " has " + std::to_string(piece->users().size()));
            return "a piece has other readers than {y}";
        }
    }
    const auto* sizes = split->arg(1).list();
    if (sizes == nullptr || sizes->size() != items->size()) {
        m.note(named(*split) + " has " + std::to_string(sizes ? sizes->size() : 0) + ", " + named(m.root()) +
               " takes " + std::to_string(items->size()));
        return "some pieces of the split are missing";
    }
    if (sameConstant(split->arg(2), m["dim"])) return "";
    m.note(named(*split) + " is along " + printArgument(split->arg(2)));
    return "the split is not along dim {dim}";
}
Values buildSplitSource(const Match& m, GraphBuilder& builder) {
    const Node& split = *(*m["items"].list())[0].node()->arg(0).node();
    return builder.call("torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace", {split.arg(0)});
}

/// Each piece that is split off is one of the concatenated tensors.
std::string_view unlessPiecesAreTheItems(const Match& m) {
    const auto *items = m["items"].list(), *sizes = m["sizes"].list();
    const auto dim = m["dim"].asInt();
    if (items == nullptr || sizes == nullptr || !dim || items->size() != sizes->size())
        return "{y} does not split {c}, made of {items}, into as many pieces: {sizes}";
    if (*dim == 0) return kNotAlongTheFirst;
    for (size_t i = 0; i < items->size(); ++i) {
        const Node* item = (*items)[i].node();
        if (item == nullptr || !item->type().tensor()) {
            m.note(constantText((*items)[i]));
            return "a concatenated tensor is not known";
        }
        const int64_t rank = item->tensor().rank(), at = *dim < 0 ? *dim + rank : *dim;
        if (at < 0 || at >= rank) return "the dim {dim} is out of range";
        const auto* size = (*sizes)[i].get<int64_t>();
        if (size == nullptr || !(item->tensor().sizes[static_cast<size_t>(at)] == SymInt(*size))) {
            m.note("piece " + std::to_string(i) + " has " + printArgument((*sizes)[i]) + ", " + named(*item) + " has " +
                   item->tensor().sizes[static_cast<size_t>(at)].text());
            return "the pieces have other sizes than the tensors";
        }
        if (item->tensor().dtype != m.tensor("c").dtype) {
            m.note(named(*item));
            return "a tensor is converted while it is concatenated";
        }
    }
    return "";
}

/// The first reader that is not pointwise, looking through getitem and views; null if all are. The output is not.
const Node* otherReader(const Node& node) {
    for (const Node* user : node.users()) {
        if (user->isOutput()) return user;
        if (user->is(Tag::View) || user->isCall("aten.reshape.default") || user->isCall("operator.getitem")) {
            if (const Node* other = otherReader(*user)) return other;
        } else if (!user->is(Tag::Pointwise)) {
            return user;
        }
    }
    return nullptr;
}
bool allReadersPointwise(const Node& node) { return otherReader(node) == nullptr; }
bool isOnGpu(const Node& node) { return node.tensor().device.type == DeviceType::Cuda; }

/// Read again for each row or column: an input, fewer dims, a size of 1 or a stride of 0.
bool isRepeated(const Node& bias, const TensorType& product) {
    if (!bias.isCall()) return true;
    const TensorType& type = bias.tensor();
    if (type.rank() != product.rank()) return true;
    if (type.sizes == product.sizes)
        return std::any_of(type.strides.begin(), type.strides.end(), [](const SymInt& s) { return s == SymInt(0); });
    for (size_t i = 0; i < type.sizes.size(); ++i)
        if (type.sizes[i] == SymInt(1) && differ(product.sizes[i], SymInt(1))) return true;
    return false;
}
std::string_view unlessUnfusedIsBetter(const Match& m) {
    const Node& product = m.root();
    if (!isOnGpu(product)) return "{y} is {y:type}, and on the CPU the library adds the bias";
    const OptionalPass* kept = m.request().enabled("keep_addmm_fused_for_half_dtypes");
    if (!m.isTensor("bias") || (isHalf(m.tensor("bias").dtype) && !(kept && !kept->flag("value", true))))
        return "{bias}, {bias:type}, is of reduced precision, which addmm rounds once";
    if (has(m.request().pytorch, ReleaseChange::BiasesAlone) && !isRepeated(m.node("bias"), product.tensor()))
        return "{bias}, {bias:type}, has an element for each of {y}, {y:type}: it is not a bias";
    const Node* other = otherReader(product);
    if (other == nullptr) return "";
    m.note(other->isOutput() ? "it is an output" : named(*other) + " is " + other->op().name());
    return "not all readers of {y} are pointwise";
}
/// add(bias * beta, mm(a, b) * alpha), factors of one left out.
Values buildUnfused(const Match& m, GraphBuilder& builder) {
    const bool batch = m.root().tensor().rank() == 3;
    Value product = builder.call(batch ? "aten.bmm.default" : "aten.mm.default", {m["a"], m["b"]});
    if (m["alpha"].asReal() != 1.0) product = builder.call("aten.mul.Tensor", {product, m["alpha"]});
    Value bias = builder.value(m.node("bias"));
    if (m["beta"].asReal() != 1.0) bias = builder.call("aten.mul.Tensor", {bias, m["beta"]});
    return bias + product;
}

bool expandsTo(const SymDims& from, const SymDims& to) {
    if (from.size() > to.size()) return false;
    for (size_t i = 0; i < from.size(); ++i) {
        const SymInt& size = from[from.size() - 1 - i];
        if (!(size == to[to.size() - 1 - i]) && !(size == SymInt(1))) return false;
    }
    return true;
}
std::string_view unlessBiasFits(const Match& m) {
    if (!m.isTensor("bias")) {
        m.note(constantText(m["bias"]));
        return "what is added to {p} is not a tensor";
    }
    const TensorType &bias = m.tensor("bias"), &product = m.tensor("p");
    if (m["bias"].node() == &m.node("p")) return "{p} is added to itself";
    if (bias.dtype != m.tensor("a").dtype || bias.dtype != m.tensor("b").dtype) {
        m.note(bias.text() + ", " + m.tensor("a").text() + " and " + m.tensor("b").text());
        return "{bias} has another dtype than the factors";
    }
    if (!expandsTo(bias.sizes, product.sizes)) {
        m.note(bias.text() + " and " + product.text());
        return "{bias} does not expand to the shape of {p}";
    }
    return isOnGpu(m.root()) && allReadersPointwise(m.root())
               ? "all readers of {y} are pointwise, and they take the addition in"
               : "";
}

/// As PyTorch traces its replacement with decompositions, a product of one row is decomposed here, too.
Values buildAddmm(const Match& m, GraphBuilder& builder) {
    const Value whole = builder.call("aten.addmm.default", {m["bias"], m["a"], m["b"]});
    if (!whole) return whole;
    Decomposition call(*whole.node(), builder);
    const Values pieces = whole.node()->op().def()->decompose(call);
    if (!pieces.handled()) return whole;
    builder.graph().erase(*whole.node());
    return pieces;
}

Values buildReuse(const Match& m, GraphBuilder& builder) {
    const Value part = builder.value(*const_cast<Node*>(&m.node("part")));
    return {builder.call(m.node("whole").op(), {part}), part};
}
std::string_view unlessLargeReduction(const Match& m) {
    if (&m.node("part") == &m.node("whole")) return "{part} and {whole} are one reduction";
    const SymInt count = numel(m.tensor("x").sizes);
    if (!count.isInt() || count.value() < 4096) {
        m.note(count.text());
        return "{x} is not known to have 4096 elements";
    }
    const auto* dims = m["dims"].list();
    return dims && !dims->empty() ? "" : "{part} reduces all dims itself";
}

std::string_view unlessFloatsOnGpu(const Match& m) {
    if (!isOnGpu(m.root())) return "{y} is {y:type}, not on the GPU";
    for (const std::string_view operand : {"x", "t1", "t2"})
        if (!m.isTensor(operand) || !isFloating(m.tensor(operand).dtype))
            return "{x}, {t1} and {t2} are not all tensors of floating-point numbers";
    return m["value"].isNumber() ? "" : "the factor {value} is not a number";
}

std::string_view unlessOneDeviation(const Match& m) {
    if (!m.request().enabled("var_std_reduction_dedup"))
        return "it is off by default, as in PyTorch: --enable var_std_reduction_dedup";
    const auto correction = [&](const char* name) { return m[name].isNone() ? 1.0 : m[name].asReal(); };
    if (correction("correction") && correction("correction") == correction("other")) return "";
    m.note(constantText(m["correction"]) + " and " + constantText(m["other"]));
    return "the corrections are not equal numbers";
}
Values buildOneVariance(const Match& m, GraphBuilder& builder) {
    const Node &var = m.node("v"), &converted = m.node("s");
    const Value wide = builder.call("prims.convert_element_type.default", {m["x"], m["dtype"]});
    const Value one =
        builder.call(converted.op(), {wide, m["dims"]}, {{"correction", m["other"]}, {"keepdim", m["keepdim"]}});
    return {builder.call("prims.convert_element_type.default", {one, var.tensor().dtype}), one};
}

constexpr std::string_view kUnfused = "the addition fuses into the pointwise kernel that follows";
constexpr std::string_view kReuse = "the full reduction can start from the partial one";
// Splits and concatenations become calls that lowerCalls (passes/lowering_calls.h) decides about, as in PyTorch.
constexpr Rule kRules2[] = {
    {.name = "splitwithsizes_cat_replace",
     .find = "y = aten.cat.default(items, $dim); return y",
     .build = buildSplitSource,
     .unless = unlessAllPiecesInOrder,
     .why = "putting all pieces of a split together gives what was split"},
    {.name = "cat_splitwithsizes_replace",
     .find = "c = aten.cat.default(items, $dim); y = aten.split_with_sizes.default(c, $sizes, $dim); return y",
     .replace = "y = torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace(items); return y",
     .unless = unlessPiecesAreTheItems,
     .why = "the pieces are the tensors that were concatenated"},
    {.name = "unfuse_bias_add_to_pointwise",
     .find = "y = aten.addmm.default(bias, a, b, beta=$beta, alpha=$alpha); return y",
     .build = buildUnfused,
     .unless = unlessUnfusedIsBetter,
     .why = kUnfused},
    {.name = "unfuse_bias_baddbmm_to_pointwise",
     .find = "y = aten.baddbmm.default(bias, a, b, beta=$beta, alpha=$alpha); return y",
     .build = buildUnfused,
     .unless = unlessUnfusedIsBetter,
     .why = kUnfused,
     .releases = sinceRelease(Release::V2_14)},
    {.name = "addcdiv",
     .find = "q = aten.div.Tensor(t1, t2); p = aten.mul.Tensor(q, $value); y = aten.add.Tensor(x, p); return y",
     .replace = "y = aten.addcdiv.default(x, t1, t2, value=$value); return y",
     .unless = unlessFloatsOnGpu,
     .why = "one fused multiply-add rounds once",
     .releases = sinceRelease(Release::V2_14)},
    {.name = "var_std_reduction_dedup",
     .find = "v = aten.var.correction(x, $dims, correction=$correction, keepdim=$keepdim); "
             "c = prims.convert_element_type.default(x, $dtype); "
             "s = aten.var.correction(c, $dims, correction=$other, keepdim=$keepdim); return v, s",
     .build = buildOneVariance,
     .unless = unlessOneDeviation,
     .why = "one pass over the tensor gives both",
     .releases = sinceRelease(Release::V2_15)},
    {.name = "addmm",
     .find = "p = aten.mm.default(a, b); y = aten.add.Tensor(bias, p); return y",
     .build = buildAddmm,
     .unless = unlessBiasFits,
     .why = "the bias is added while the product is still in registers",
     .eitherOrder = true},
    {.name = "max_reuse",
     .find = "part = aten.amax.default(x, $dims, True); whole = aten.(max|amax).default(x); return whole, part",
     .build = buildReuse,
     .unless = unlessLargeReduction,
     .why = kReuse},
    {.name = "min_reuse",
     .find = "part = aten.amin.default(x, $dims, True); whole = aten.(min|amin).default(x); return whole, part",
     .build = buildReuse,
     .unless = unlessLargeReduction,
     .why = kReuse},
};

}  // namespace

std::span<const Rule> passPattern2Rules() { return kRules2; }
Result<bool> passPattern2(Module& module, Rewriter& rewriter) {
    // A pattern's list of pieces is not replaced with it, so pieces that lose their readers are erased here.
    std::vector<NodeId> pieces;
    for (const Node& node : module.graph().nodes())
        if (node.isCall("operator.getitem") && node.hasUsers()) pieces.push_back(node.id());
    CT_TRY(const bool changed, rewriter.applyRules(module, kRules2));
    for (const NodeId id : pieces)
        if (Node* piece = module.graph().find(id); piece && !piece->hasUsers()) rewriter.eraseDead(*piece);
    return changed;
}

}  // namespace cutaway
