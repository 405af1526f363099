#include "engine/passes/post_grad/split_cat_aten.h"

#include <algorithm>
#include <numeric>

#include "engine/ir/infer.h"
#include "engine/ops/view_rules.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

std::optional<int64_t> dimOf(const Node& call, std::string_view name, int64_t rank) {
    const auto dim = InferContext(call.op(), call.args()).dim(name, rank);
    return dim ? std::optional(*dim) : std::nullopt;
}

// ---------------------------------------------------------------- normalization_aten_pass

std::string_view unlessPiecesAreKnown(const Match& m) {
    const TupleType* pieces = m.root().type().tuple();
    if (pieces == nullptr || !m.isTensor("x")) return "the pieces of {x}, {x:type}, are not known";
    const auto dim = dimOf(m.root(), "dim", m.tensor("x").rank());
    if (!dim) return "the dim is out of range for {x}, {x:type}";
    for (const ValueType& piece : *pieces) {
        if (piece.tensor() && piece.tensor()->sizes[static_cast<size_t>(*dim)].isInt()) continue;
        m.note(piece.text());
        return "a piece of {x} has no known size";
    }
    return "";
}
Values buildWithSizes(const Match& m, GraphBuilder& builder) {
    const int64_t dim = *dimOf(m.root(), "dim", m.tensor("x").rank());
    std::vector<Argument> sizes;
    for (const ValueType& piece : *m.root().type().tuple())
        sizes.emplace_back(piece.tensor()->sizes[static_cast<size_t>(dim)]);
    return builder.call("aten.split_with_sizes.default",
                        {m["x"], Argument(std::move(sizes)), dim});  // its readers stay
}
std::string_view unlessCountedFromBehind(const Match& m) {
    const auto dim = m["dim"].asInt();
    return dim && *dim < 0 ? "" : "the dim, {dim}, counts from the front already";
}
std::string_view unlessPiecesAreCountedFromBehind(const Match& m) {
    const std::string_view refusal = unlessCountedFromBehind(m);
    return refusal.empty() ? unlessPiecesAreKnown(m) : refusal;
}
std::string_view unlessJoinedFromBehind(const Match& m) {
    const std::string_view refusal = unlessCountedFromBehind(m);
    if (!refusal.empty()) return refusal;
    return m.isTensor("y") && dimOf(m.root(), "dim", m.root().tensor().rank())
               ? ""
               : "the dim {dim} is out of range for {y:type}";
}
Values buildCatFromFront(const Match& m, GraphBuilder& builder) {
    return builder.call("aten.cat.default", {m["items"], *dimOf(m.root(), "dim", m.root().tensor().rank())});
}

constexpr std::string_view kOneSpelling = "one spelling is enough for the passes that follow";
constexpr Rule kNormalize[] = {
    {.name = "normalize_split",
     .find = "y = aten.split.Tensor(x, _, _); return y",
     .build = buildWithSizes,
     .unless = unlessPiecesAreKnown,
     .why = kOneSpelling},
    {.name = "normalize_split_with_sizes",
     .find = "y = aten.split_with_sizes.default(x, _, $dim); return y",
     .build = buildWithSizes,
     .unless = unlessPiecesAreCountedFromBehind,
     .why = kOneSpelling},
    {.name = "normalize_cat",
     .find = "y = aten.cat.default(items, $dim); return y",
     .build = buildCatFromFront,
     .unless = unlessJoinedFromBehind,
     .why = kOneSpelling},
};

// ---------------------------------------------------------------- the concatenations

/// A concatenation: its operands, which are all calls or inputs, and its dim, from the front and as it is written.
struct Concatenation {
    Node* node;
    std::vector<Node*> items;
    int64_t dim;
    std::optional<int64_t> written;
};
/// PyTorch's patterns compare dims as they are written: -1 and 1 are two.
bool sameDim(const Node& call, const Concatenation& cat) { return call.arg("dim").asInt() == cat.written; }

std::optional<Concatenation> concatenationAt(Node& node, const Refusing& refuse) {
    if (!node.isCall("aten.cat.default")) return std::nullopt;
    const auto* items = node.arg("tensors").list();
    const auto dim = node.type().tensor() ? dimOf(node, "dim", node.tensor().rank()) : std::nullopt;
    if (items == nullptr || items->empty() || !dim) {
        refuse("what it joins, or along which dim, is not known");
        return std::nullopt;
    }
    Concatenation out{&node, {}, *dim, node.arg("dim").asInt()};
    for (const Argument& item : *items) {
        const Node* value = item.node();
        if (value == nullptr || !value->type().tensor()) refuse("its operand ", item, " is not a tensor");
        else if (value->tensor().dtype != node.tensor().dtype)
            refuse("it converts ", value, " from ", value->tensor(), " to the dtype of ", node.tensor());
        else out.items.push_back(item.node());
    }
    return out.items.size() == items->size() ? std::optional(std::move(out)) : std::nullopt;
}

/// Piece `index` of a split_with_sizes with known sizes; no node for anything else.
struct Piece {
    Node* split = nullptr;
    int64_t index = 0;
};
Piece pieceAt(const Node& node) {
    if (!node.isCall("operator.getitem")) return {};
    Node* split = node.arg(0).node();
    const auto index = node.arg(1).asInt();
    if (split == nullptr || !index || *index < 0 || !split->isCall("aten.split_with_sizes.default")) return {};
    const auto* sizes = split->arg("split_sizes").list();
    if (sizes == nullptr || *index >= static_cast<int64_t>(sizes->size())) return {};
    for (const Argument& size : *sizes)
        if (size.get<int64_t>() == nullptr) return {};
    return {split, *index};
}
std::vector<int64_t> sectionsOf(const Node& split) {
    std::vector<int64_t> sections;
    for (const Argument& size : *split.arg("split_sizes").list()) sections.push_back(*size.get<int64_t>());
    return sections;
}
std::optional<int64_t> splitDim(const Node& split) { return dimOf(split, "dim", split.arg(0).node()->tensor().rank()); }

/// Replaces the item; erases nodes that nobody reads any more.
Result<bool> exchange(Rewriter& rewriter, const Concatenation& cat, const GraphBuilder& builder, Node& made) {
    if (builder.error()) return *builder.error();
    Graph& graph = cat.node->graph();
    std::vector<NodeId> items;
    for (const Node* item : cat.items) items.push_back(item->id());
    rewriter.replace(*cat.node, made);
    for (const NodeId id : items)
        if (Node* item = graph.find(id); item && item->isCall() && !item->hasUsers()) rewriter.eraseDead(*item);
    return true;
}

using OnConcatenation = Result<bool> (*)(Graph& graph, Rewriter& rewriter, const Concatenation& cat,
                                         const Refusing& refuse);

Result<bool> onEveryConcatenation(Module& module, Rewriter& rewriter, std::string_view rule, OnConcatenation apply) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, onEveryConcatenation(*body, rewriter, rule, apply));
        changed |= inner;
    }
    Graph& graph = module.graph();
    std::vector<NodeId> nodes;
    for (const Node& node : graph.nodes()) nodes.push_back(node.id());
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
        Node* node = graph.find(*id);
        if (node == nullptr || rewriter.outOfFuel() || rewriter.cancelled()) continue;
        const Refusing refuse(rewriter, rule, *node);
        const auto cat = concatenationAt(*node, refuse);
        if (!cat) continue;
        CT_TRY(const bool applied, apply(graph, rewriter, *cat, refuse));
        changed |= applied;
    }
    return changed;
}

/// Where a run of neighbouring pieces of one split begins and ends among the operands; `end` is behind it.
struct Run {
    size_t begin, end;
    Piece first;
};
std::vector<Run> longRuns(const Concatenation& cat, size_t threshold) {
    std::vector<Run> runs;
    for (size_t at = 0; at < cat.items.size();) {
        const Piece first = pieceAt(*cat.items[at]);
        size_t end = at + 1;
        if (first.split && !sameDim(*first.split, cat)) break;  // as PyTorch, which ends its search here
        if (first.split) {
            while (end < cat.items.size()) {
                const Piece next = pieceAt(*cat.items[end]);
                if (next.split != first.split || next.index != first.index + static_cast<int64_t>(end - at)) break;
                ++end;
            }
            if (end - at >= threshold || end - at == sectionsOf(*first.split).size()) runs.push_back({at, end, first});
        }
        at = end;
    }
    return runs;
}

/// Refuses with the length of the longest run, or with a split along another dim. Always false.
bool refuseRuns(const Concatenation& cat, size_t threshold, const Refusing& refuse) {
    if (!refuse.watched()) return false;
    const Node* otherwise = nullptr;  // a split along another dim
    Run longest{0, 0, {}};
    for (size_t at = 0; at < cat.items.size(); ++at) {
        const Piece first = pieceAt(*cat.items[at]);
        if (first.split == nullptr) continue;
        if (!sameDim(*first.split, cat)) {
            otherwise = first.split;
            break;
        }
        size_t end = at + 1;
        for (; end < cat.items.size(); ++end)
            if (const Piece next = pieceAt(*cat.items[end]);
                next.split != first.split || next.index != first.index + static_cast<int64_t>(end - at))
                break;
        if (end - at > longest.end - longest.begin) longest = {at, end, first};
    }
    if (longest.end > 0)
        return refuse("its longest run of neighbouring pieces begins at ", cat.items[longest.begin], " and has ",
                      longest.end - longest.begin, " of the ", sectionsOf(*longest.first.split).size(), " pieces of ",
                      longest.first.split, "; it takes all of them or threshold_to_cat, ", threshold);
    if (otherwise)
        return refuse("its dim is ", cat.node->arg("dim"), ", that of ", otherwise, ", whose pieces it joins, ",
                      otherwise->arg("dim"));
    return refuse("none of its operands is a piece of an aten.split_with_sizes with known sizes: the first is ",
                  NodeWithKind{cat.items[0]});
}

Result<bool> mergePieces(Graph& graph, Rewriter& rewriter, const Concatenation& cat, const Refusing& refuse) {
    const OptionalPass* settings = rewriter.request().enabled("split_cat_aten_pass");
    const auto threshold = static_cast<size_t>(std::max(1.0, settings ? settings->number("threshold_to_cat", 10) : 10));
    if (cat.items.size() < threshold)
        return refuse("it joins ", Counted{cat.items.size(), "tensor"}, ", fewer than threshold_to_cat, ", threshold);
    const std::vector<Run> runs = longRuns(cat, threshold);
    if (runs.empty()) return refuseRuns(cat, threshold, refuse);
    if (rewriter.begin("merge_split_cat_aten", *cat.node, "neighbouring pieces of a split are one slice") != Go::Yes)
        return false;
    GraphBuilder builder = rewriter.builder(graph, cat.node, *cat.node);
    std::vector<Argument> items;
    size_t at = 0;
    for (const Run& run : runs) {
        for (; at < run.begin; ++at) items.emplace_back(cat.items[at]);
        const std::vector<int64_t> sections = sectionsOf(*run.first.split);
        const Value whole = builder.value(*run.first.split->arg(0).node());
        const auto from = sections.begin() + run.first.index, to = from + static_cast<int64_t>(run.end - run.begin);
        if (run.end - run.begin == sections.size()) items.push_back(whole);
        else
            items.push_back(
                builder.call("aten.slice.Tensor", {whole, cat.dim, std::accumulate(sections.begin(), from, int64_t{0}),
                                                   std::accumulate(sections.begin(), to, int64_t{0})}));
        at = run.end;
    }
    for (; at < cat.items.size(); ++at) items.emplace_back(cat.items[at]);
    const Value made = builder.call("aten.cat.default", {Argument(std::move(items)), cat.dim});
    if (builder.error()) return *builder.error();
    return exchange(rewriter, cat, builder, *made.node());
}

/// The tensor of which these nodes are all items along `dim`, in order, and that nobody else reads; else null.
Node* sourceOfAllItems(const std::vector<Node*>& selects, int64_t dim, const Refusing& refuse) {
    const auto isItem = [&](const Node& select, size_t position, const Node* first) {
        if (!select.isCall("aten.select.int")) return refuse(NodeWithKind{&select}, " is not aten.select.int");
        const Node* from = select.arg(0).node();
        if (from == nullptr || !from->type().tensor())
            return refuse("what ", select, " takes an item of is not a tensor");
        if (first && from != first)
            return refuse(select, " takes an item of ", from, ", ", selects[0], " takes one of ", first);
        const auto along = dimOf(select, "dim", from->tensor().rank());
        if (along != dim)
            return refuse(select, " takes an item along dim ", select.arg(1).asInt().value_or(0),
                          ", but they are joined along dim ", dim);
        const int64_t count = static_cast<int64_t>(selects.size());
        const SymInt& size = from->tensor().sizes[static_cast<size_t>(dim)];
        if (!(size == SymInt(count)))
            return refuse("it joins ", Counted{selects.size(), "item"}, " of ", from, ", which has ", size,
                          " along dim ", dim);
        auto index = select.arg(2).asInt();
        if (index && *index < 0) *index += count;
        return index == static_cast<int64_t>(position) ||
               refuse(select, " is item ", select.arg(2), " of ", from, " and stands as number ", position);
    };
    Node* source = nullptr;
    for (size_t i = 0; i < selects.size(); ++i) {
        if (!isItem(*selects[i], i, source)) return nullptr;
        source = selects[i]->arg(0).node();
    }
    if (source->users().size() == selects.size()) return source;
    const auto isItemTaken = [&](const Node* user) {
        return std::find(selects.begin(), selects.end(), user) != selects.end();
    };
    const auto other = std::find_if_not(source->users().begin(), source->users().end(), isItemTaken);
    if (other == source->users().end()) refuse("an item of ", source, " stands twice");
    else refuse(NodeWithKind{*other}, " reads ", source, ", too");
    return nullptr;
}

Result<bool> mergeItems(Graph& graph, Rewriter& rewriter, const Concatenation& cat, const Refusing& refuse) {
    Node* source = sourceOfAllItems(cat.items, cat.dim, refuse);
    if (source == nullptr) return false;
    if (!sameDim(*cat.items[0], cat))
        return refuse("its dim and that of ", cat.items[0],
                      " are written in two ways, which PyTorch does not see through");
    // A concatenation along the default dim is written without it until normalization_aten_pass spells it out; a select
    // never is.
    if (cat.dim == 0 && !rewriter.request().enabled("normalization_aten_pass"))
        return refuse("PyTorch's pattern needs the default dim spelled out by normalization_aten_pass");
    if (rewriter.begin("merge_select_cat_aten", *cat.node,
                       "all items, one behind the other, are the tensor in another shape") != Go::Yes)
        return false;
    GraphBuilder builder = rewriter.builder(graph, cat.node, *cat.node);
    // PyTorch writes a view, which not every layout allows.
    const SymDims& sizes = cat.node->tensor().sizes;
    const bool shares = viewStrides(source->tensor().sizes, source->tensor().strides, sizes).has_value();
    const Value made =
        builder.call(shares ? "aten.view.default" : "aten.reshape.default", {builder.value(*source), Argument(sizes)});
    if (builder.error()) return *builder.error();
    return exchange(rewriter, cat, builder, *made.node());
}

Result<bool> mergeStackedItems(Graph& graph, Rewriter& rewriter, const Concatenation& cat, const Refusing& refuse) {
    if (rewriter.request().parity)
        return refuse("PyTorch's pattern for stacked items never applies, and parity does as PyTorch");
    std::vector<Node*> selects;
    for (Node* item : cat.items) {
        if (!item->isCall("aten.unsqueeze.default"))
            return refuse(NodeWithKind{item}, " is not aten.unsqueeze: tensors are joined, not stacked");
        const auto dim = dimOf(*item, "dim", item->tensor().rank());
        if (dim != cat.dim)
            return refuse(item, " gets its new dim at ", item->arg(1).asInt().value_or(0),
                          ", but they are joined along dim ", cat.dim);
        selects.push_back(item->arg(0).node());
    }
    Node* source = sourceOfAllItems(selects, cat.dim, refuse);
    if (source == nullptr || rewriter.begin("merge_unbind_stack_aten", *cat.node,
                                            "all items, stacked where they came from, are the tensor") != Go::Yes)
        return false;
    return exchange(rewriter, cat, rewriter.builder(graph, cat.node, *cat.node), *source);
}

std::vector<int64_t> swappedDims(int64_t rank, int64_t a, int64_t b) {
    std::vector<int64_t> dims(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), int64_t{0});
    std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
    return dims;
}
/// The permutation that PyTorch puts before the reshape, even where it computes something else.
std::optional<std::vector<int64_t>> permutationAsInPyTorch(const TensorType& whole, const TensorType& shaped,
                                                           int64_t splitDim, int64_t catDim) {
    if (splitDim == catDim) return std::vector<int64_t>{};
    return whole.rank() == shaped.rank() + 1 ? std::optional(swappedDims(whole.rank(), splitDim, catDim))
                                             : std::nullopt;  // it fails on other ranks
}
/// Whether moving the reshape behind the concatenation computes the same, and with which permutation before it (empty:
/// none).
std::optional<std::vector<int64_t>> permutationFor(const TensorType& whole, const TensorType& piece,
                                                   const TensorType& shaped, int64_t splitDim, int64_t catDim) {
    const auto at = [](const SymDims& sizes, int64_t position) { return sizes.begin() + position; };
    if (splitDim == catDim) {
        const bool sameInFront =
            shaped.rank() > splitDim && std::equal(at(piece.sizes, 0), at(piece.sizes, splitDim), shaped.sizes.begin());
        return sameInFront ? std::optional(std::vector<int64_t>{}) : std::nullopt;
    }
    SymDims others = piece.sizes;
    others.erase(at(others, splitDim));
    const bool neighbours = splitDim - catDim == 1 || catDim - splitDim == 1;
    if (!neighbours || !(piece.sizes[static_cast<size_t>(splitDim)] == SymInt(1)) || !(others == shaped.sizes))
        return std::nullopt;
    return swappedDims(whole.rank(), splitDim, catDim);
}

/// The split of which the operands are all pieces, in order, each behind a reshape, and that nobody else reads; else
/// null.
Node* splitOfReshapedPieces(const Concatenation& cat, const Refusing& refuse) {
    Node* split = nullptr;
    for (size_t i = 0; i < cat.items.size(); ++i) {
        const Node& item = *cat.items[i];
        const Node* reshaped = item.isCall("aten.reshape.default") ? item.arg(0).node() : nullptr;
        if (reshaped == nullptr) {
            refuse(NodeWithKind{&item}, " is not aten.reshape");
            return nullptr;
        }
        const Piece piece = pieceAt(*reshaped);
        if (piece.split == nullptr) {
            refuse(NodeWithKind{reshaped}, ", which ", item,
                   " reshapes, is not a piece of an aten.split_with_sizes with known sizes");
            return nullptr;
        }
        if (split && piece.split != split) {
            refuse(item, " is a piece of ", piece.split, ", ", cat.items[0], " is one of ", split);
            return nullptr;
        }
        if (piece.index != static_cast<int64_t>(i)) {
            refuse(item, " is piece ", piece.index, " of ", piece.split, " and stands as number ", i);
            return nullptr;
        }
        split = piece.split;
    }
    const size_t pieces = sectionsOf(*split).size();
    if (pieces != cat.items.size()) {
        refuse("it joins ", cat.items.size(), " of the ", Counted{pieces, "piece"}, " of ", split);
        return nullptr;
    }
    if (split->users().size() != cat.items.size()) {
        refuse(split, " has ", Counted{split->users().size(), "reader"}, " for its ", Counted{pieces, "piece"});
        return nullptr;
    }
    return split;
}

Result<bool> moveView(Graph& graph, Rewriter& rewriter, const Concatenation& cat, const Refusing& refuse) {
    Node* split = splitOfReshapedPieces(cat, refuse);
    if (split == nullptr) return false;
    Node& whole = *split->arg(0).node();
    const auto dim = splitDim(*split);
    if (!dim) return refuse("the dim of ", split, " is out of range");
    std::optional<std::vector<int64_t>> dims;
    for (Node* item : cat.items) {
        const TensorType& piece = item->arg(0).node()->tensor();
        dims = rewriter.request().parity ? permutationAsInPyTorch(whole.tensor(), item->tensor(), *dim, cat.dim)
                                         : permutationFor(whole.tensor(), piece, item->tensor(), *dim, cat.dim);
        if (!dims)
            return refuse("one reshape of ", whole, " puts other elements together: pieces ", piece, " along dim ",
                          *dim, " become ", item->tensor(), " and are joined along dim ", cat.dim);
    }
    if (rewriter.begin("move_view_after_cat_aten", *cat.node,
                       "one reshape of the whole does what one for each piece does") != Go::Yes)
        return false;
    GraphBuilder builder = rewriter.builder(graph, cat.node, *cat.node);
    const Value source = builder.value(whole);
    const Value made = builder.call(
        "aten.reshape.default", {dims->empty() ? source : permute(source, *dims), Argument(cat.node->tensor().sizes)});
    if (builder.error()) return *builder.error();
    rewriter.replace(*cat.node, *made.node());  // the pieces stay, as in PyTorch
    return true;
}

}  // namespace

std::span<const Rule> normalizeSplitRules() { return kNormalize; }
Result<bool> normalizeSplits(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kNormalize); }
Result<bool> mergeSplitCatAten(Module& module, Rewriter& rewriter) {
    return onEveryConcatenation(module, rewriter, "merge_split_cat_aten", mergePieces);
}
Result<bool> mergeSelectCatAten(Module& module, Rewriter& rewriter) {
    return onEveryConcatenation(module, rewriter, "merge_select_cat_aten", mergeItems);
}
Result<bool> mergeUnbindStackAten(Module& module, Rewriter& rewriter) {
    return onEveryConcatenation(module, rewriter, "merge_unbind_stack_aten", mergeStackedItems);
}
Result<bool> moveViewAfterCatAten(Module& module, Rewriter& rewriter) {
    return onEveryConcatenation(module, rewriter, "move_view_after_cat_aten", moveView);
}

}  // namespace cutaway
