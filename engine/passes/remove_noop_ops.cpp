#include "engine/passes/remove_noop_ops.h"

#include <numeric>

#include "engine/ir/infer.h"
#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// `start` is absent or 0, `end` is absent or at least the dim's size, `step` is 1.
bool coversDim(const Node& node, const TensorType& source, const Refusing& no) {
    const InferContext c(node.op(), node.args());
    const auto dim = c.dim("dim", source.rank());
    if (!dim || source.rank() == 0) return no("the slice has no dim");
    const auto start = node.arg("start").isNone() ? SymInt(0) : symIntOf(node.arg("start")).value_or(SymInt(1));
    const auto end = node.arg("end").isNone() ? SymInt(kToTheEnd) : symIntOf(node.arg("end")).value_or(SymInt(0));
    const SymInt& size = source.sizes[static_cast<size_t>(*dim)];
    const bool whole = end == SymInt(kToTheEnd) || knownLessEqual(size, end);
    if (!(start == SymInt(0))) return no("the slice begins at ", node.arg("start"), " of dim ", *dim);
    if (!whole) return no("the slice ends at ", node.arg("end"), " of dim ", *dim, ", whose size is ", size);
    return node.arg("step").asInt() == 1 || no("the slice takes every ", node.arg("step"), " of dim ", *dim);
}

bool allEqual(const Node& node, std::string_view param, int64_t value, const Refusing& no) {
    const auto* items = node.arg(param).list();
    return (items &&
            std::all_of(items->begin(), items->end(), [&](const Argument& item) { return item.asInt() == value; })) ||
           no("its ", param, " are ", node.arg(param), ", not all ", value);
}

bool always(const Node&, const TensorType&, const Refusing&) { return true; }
bool isInteger(const Node& node, const TensorType& source, const Refusing& no) {
    return isIntegral(source.dtype, true) || no(*node.arg(0).node(), " is ", source, ", not of integers");
}

/// What is written is the piece of the operand that is there already, as functionalization leaves it behind a split.
bool writesOwnPiece(const Node& node, const TensorType& into, const Refusing& no) {
    const Node& self = *node.arg(0).node();
    const Node* piece = node.arg(1).node();
    const Node* split = piece && piece->isCall("operator.getitem") ? piece->arg(0).node() : nullptr;
    if (!split || !split->isCall("aten.split_with_sizes.default") || split->arg(0).node() != &self)
        return no("what is written is not a piece of ", self);
    const InferContext scatter(node.op(), node.args()), cut(split->op(), split->args());
    const auto dim = scatter.dim("dim", into.rank()), along = cut.dim("dim", into.rank());
    const auto sizes = cut.integers("split_sizes");
    const auto index = piece->arg(1).asInt();
    if (!dim || !along || *dim != *along || !sizes || !index || *index < 0 ||
        *index >= static_cast<int64_t>(sizes->size()))
        return no("the piece is not cut along the dim that is written");
    const int64_t start = std::accumulate(sizes->begin(), sizes->begin() + *index, int64_t{0});
    const auto at = [&](std::string_view param, int64_t missing) {
        return node.arg(param).isNone() ? std::optional<int64_t>(missing) : node.arg(param).asInt();
    };
    return (at("start", 0) == start && at("end", kToTheEnd) == start + (*sizes)[static_cast<size_t>(*index)] &&
            node.arg("step").asInt() == 1) ||
           no("the piece comes from another place of ", self);
}

struct Noop {
    std::string_view op;
    size_t source;  // operand that the call would return; for cat the first item of it
    bool (*condition)(const Node& node, const TensorType& source, const Refusing& no);
    std::string_view why;
    Releases releases = {};
};
// Packets whose overloads all share the rule are matched by packet.
constexpr Noop kNoops[] = {
    {"aten.slice.Tensor", 0, coversDim, "the slice covers the whole dim"},
    {"aten.slice_scatter.default", 1,
     [](const Node& node, const TensorType& source, const Refusing& no) {
         if (!node.arg(0).node() || !(node.arg(0).node()->tensor().sizes == source.sizes))
             return no("what is written is only part of ", NodeWithKind{node.arg(0).node()});
         return coversDim(node, source, no);
     },
     "the slice that is written covers the whole tensor"},
    {"aten.slice_scatter.default", 0, writesOwnPiece, "what is written is there already", sinceRelease(Release::V2_15)},
    {"aten.repeat.default", 0,
     [](const Node& node, const TensorType&, const Refusing& no) { return allEqual(node, "repeats", 1, no); },
     "every dim is repeated once"},
    {"aten.constant_pad_nd.default", 0,
     [](const Node& node, const TensorType&, const Refusing& no) { return allEqual(node, "pad", 0, no); },
     "the padding is empty"},
    {"prims.convert_element_type.default", 0, always, "it has that dtype already"},
    {"prims.device_put.default", 0, always, "it is on that device already"},
    {"aten.ceil.default", 0, isInteger, "integers are whole"},
    {"aten.floor.default", 0, isInteger, "integers are whole"},
    {"aten.round.default", 0, isInteger, "integers are whole"},
    {"aten.trunc.default", 0, isInteger, "integers are whole"},
    {"aten.pow.Tensor_Scalar", 0,
     [](const Node& node, const TensorType&, const Refusing& no) {
         const auto* exponent = node.arg("exponent").get<int64_t>();
         return (exponent && *exponent == 1) || no("the exponent is ", node.arg("exponent"), ", not 1");
     },
     "the exponent is 1"},
    {"aten.cat.default", 0,
     [](const Node& node, const TensorType&, const Refusing& no) {
         const auto* tensors = node.arg(0).list();
         return (tensors && tensors->size() == 1) || no("it joins ", tensors ? tensors->size() : 0, " tensors");
     },
     "there is one tensor to concatenate"},
    {"aten.view.default", 0, always, "the shape is the same"},
    {"aten.view.dtype", 0, always, "the dtype is the same"},
    {"aten.copy.default", 1, always, "a copy of the same type"},
    {"aten.alias.default", 0, always, "an alias is the tensor itself"},
    {"aten.clone.default", 0, always, "a copy of the same type"},
};

/// Whether PyTorch has only marked the value as conjugated: types do not tell, because our kernels conjugate at once.
bool isMarkedConjugate(const Node* node) {
    bool marked = false;
    for (; node != nullptr && node->isCall() && node->type().tensor() && isComplex(node->tensor().dtype);
         node = node->arg(0).node()) {
        if (node->isCall("aten._conj.default")) marked = !marked;
        else if (!node->is(Tag::View)) break;
    }
    return marked;
}

bool keepsType(const Node& node, const Node& source, const Refusing& no) {
    const TensorType &made = node.tensor(), &given = source.tensor();
    if (!made.sameMeta(given)) return no.about(&source, "it is ", made, ", but ", source, " is ", given);
    return isMarkedConjugate(&node) == isMarkedConjugate(&source) ||
           no.about(&source, source, " is only marked as conjugated, and it is not");
}

/// What the call would return unchanged; null if it does not.
Node* unchanged(const Node& node, const Noop& noop, const StorageRoots& storages, bool parity, const Refusing& no) {
    if (!node.type().tensor()) {
        no("its value is not a tensor");
        return nullptr;
    }
    const Argument& operand = node.arg(noop.source);
    Node* source = operand.list() && !operand.list()->empty() ? operand.list()->front().node() : operand.node();
    if (source == nullptr || !source->type().tensor()) {
        no("its operand is ", operand, ", no tensor");
        return nullptr;
    }
    if (!keepsType(node, *source, no) || !noop.condition(node, source->tensor(), no)) return nullptr;
    if (!storages.mayReplace(node, *source)) {
        no("it is an output, and would share the memory of ",
           storages.isInput(*source) ? "an input" : "another output");
        return nullptr;
    }
    // PyTorch does not check, and then reads elements from other places.
    if (!(node.tensor().offset == source->tensor().offset) && !parity && storageIsRead(node)) {
        no("as_strided counts from the beginning of its storage, where ", *source, " does not begin");
        return nullptr;
    }
    return source;
}

}  // namespace

std::vector<std::string_view> noopRules() {
    std::vector<std::string_view> names;
    for (const Noop& row : kNoops)
        if (names.empty() || names.back() != row.op) names.push_back(row.op);
    return names;
}

Result<bool> removeNoopOps(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, removeNoopOps(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    StorageRoots storages(graph);
    for (Node* node : LiveNodes(graph)) {
        if (!node->isCall() || node->op().isOpaque()) continue;
        const Noop* noop = nullptr;
        Node* source = nullptr;
        for (const Noop& row : kNoops) {
            if (source != nullptr || row.op != node->op().name() || !row.releases.hold(rewriter.request().pytorch))
                continue;
            noop = &row;
            source = unchanged(*node, row, storages, rewriter.request().parity, {rewriter, node->op().name(), *node});
        }
        if (source == nullptr) continue;
        const Go go = rewriter.begin(node->op().name(), *node, noop->why);
        if (go == Go::Stop) return changed;
        if (go == Go::Skip) continue;
        // PyTorch checks the storages as they were before the pass, so two outputs may come to share one; ours does so
        // only with parity.
        if (!rewriter.request().parity) storages.merge(*node, *source);
        rewriter.replace(*node, *source);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
