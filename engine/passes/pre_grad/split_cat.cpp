// The smaller rules of the split/cat family.
#include "engine/passes/pre_grad/split_cat.h"

#include "engine/ir/live_nodes.h"
#include "engine/passes/pre_grad/split_parts.h"

namespace cutaway {
namespace {

using namespace pregrad;

// ---------------------------------------------------------------- remove_split_with_size_one_pass

bool isOnePart(const Node& split, const Refusing& no) {
    const auto sizes = splitSizes(split);
    if (!sizes) return no("the sizes of its parts are not known");
    if (sizes->size() != 1) return no("it makes ", sizes->size(), " parts, not one");
    for (const Node* part : split.users())
        if (partNumber(*part) != 0)
            return no.about(part, NodeWithKind{part}, " does not take the part from it, but reads it as it is");
    return split.hasUsers() || no("nobody reads it");
}

Result<bool> removeOnePart(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isFunction(*node, {"torch.split", "torch.functional.split"}) && !isMethod(*node, "split")) continue;
        Node* input = operand(*node, 0, "tensor");
        if (!input || !isOnePart(*node, {rewriter, "remove_split_with_size_one_pass", *node})) continue;
        const std::vector<Node*> parts = node->users();
        if (rewriter.begin("remove_split_with_size_one_pass", *node, "the only part is the whole") != Go::Yes)
            return changed;
        for (Node* part : parts) rewriter.replace(*part, *input);
        graph.erase(*node);
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- merge_splits_pass

/// The part that the inner split reads, if both are plain splits of one dim.
bool mergeOne(Node& inner, Rewriter& rewriter) {
    if (!isFunction(inner, {"torch.functional.split", "torch.split"})) return false;
    const Refusing no(rewriter, "merge_splits_pass", inner);
    const auto innerSplit = normalSplit(inner, no);
    if (!innerSplit) return false;
    Node* part = innerSplit->input;
    if (!part->isCall("operator.getitem"))
        return no.about(part, "what it splits, ", NodeWithKind{part}, ", is not part of another split");
    if (part->users().size() != 1) return no.about(part, OtherReader{*part, &inner});
    Node* outer = part->arg(0).node();
    const auto outerSplit = outer ? normalSplit(*outer, no) : std::nullopt;
    if (!outerSplit) return false;
    if (outerSplit->dim != innerSplit->dim)
        return no.about(outer, "it splits along dim ", innerSplit->dim, ", but ", *outer, " along dim ",
                        outerSplit->dim);
    if (!inner.hasUsers()) return no("nobody reads it");
    if (rewriter.begin("merge_splits_pass", inner, "a part is split again along the same dim") != Go::Yes) return false;
    Refusing(rewriter, "merge_splits_pass", *outer)("it becomes one split with ", inner, ", where the rewrite starts");
    const auto at = static_cast<size_t>(*partNumber(*part));
    std::vector<int64_t> sizes = outerSplit->sizes;
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(at));
    sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(at), innerSplit->sizes.begin(), innerSplit->sizes.end());
    TorchBuilder builder(rewriter, *outer, inner);
    Node& merged = builder.function("torch.functional.split", {Argument(outerSplit->input), Argument(sizes)},
                                    {{"dim", outerSplit->dim}});
    Graph& graph = inner.graph();
    const auto extra = static_cast<int64_t>(innerSplit->sizes.size()) - 1;
    const std::vector<Node*> outerParts = outer->users(), innerParts = inner.users();
    for (Node* each : outerParts) {
        if (each == part) continue;
        const int64_t number = *partNumber(*each);
        graph.setArgs(*each,
                      {Argument(&merged), Argument(number > static_cast<int64_t>(at) ? number + extra : number)});
    }
    for (Node* each : innerParts)
        graph.setArgs(*each, {Argument(&merged), Argument(*partNumber(*each) + static_cast<int64_t>(at))});
    graph.erase(inner);
    graph.erase(*part);
    graph.erase(*outer);
    return true;
}

Result<bool> mergeSplitsIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<NodeId> ids;
    for (const Node& node : graph.nodes()) ids.push_back(node.id());
    for (auto at = ids.rbegin(); at != ids.rend(); ++at)
        if (Node* node = graph.find(*at)) changed |= mergeOne(*node, rewriter);
    return changed;
}

// ---------------------------------------------------------------- merge_getitem_cat_pass and mutate_cat_pass

/// Neighbouring parts of a split, `first` to `last`, that one concatenation joins along the split's dim.
struct Run {
    std::vector<Node*> parts;
    int64_t first = 0, last = 0;
};
struct CutAndRun {
    Node* split = nullptr;
    NormalSplit facts;
    Run run;
};
std::optional<Run> runOf(const Node& cat, const Node& split, const NormalSplit& facts, const Refusing& no) {
    if (wrappedDim(argument(cat, 1, "dim"), facts.rank) != facts.dim) {
        const Argument* dim = argument(cat, 1, "dim");
        no.about(&split, "it joins along dim ", dim ? *dim : Argument(0), ", but ", split, " splits along dim ",
                 facts.dim);
        return std::nullopt;
    }
    const auto* tensors = cat.arg(0).list();
    Run run;
    for (const Argument& item : *tensors) {
        Node* part = item.node();
        const auto number = part && part->isCall("operator.getitem") && part->arg(0).node() == &split
                                ? partNumber(*part)
                                : std::nullopt;
        if (!number) {
            no.about(part, NodeWithKind{part}, " is not part of ", split);
            return std::nullopt;
        }
        if (!run.parts.empty() && *number != run.last + 1) {
            no.about(part, "part ", *number, " of ", split, " (", *part, ") does not follow part ", run.last);
            return std::nullopt;
        }
        if (run.parts.empty()) run.first = *number;
        run.last = *number;
        run.parts.push_back(part);
    }
    return run;
}

/// The split whose run of parts the concatenation joins.
std::optional<CutAndRun> joinedRun(const Node& cat, const Refusing& no) {
    const auto* tensors = cat.args().empty() ? nullptr : cat.arg(0).list();
    if (!tensors || tensors->empty()) {
        no("its tensors are not written as a list in the first place");
        return std::nullopt;
    }
    Node* part = (*tensors)[0].node();
    Node* split = part && part->isCall("operator.getitem") ? part->arg(0).node() : nullptr;
    if (!split) {
        no.about(part, "the first of its tensors, ", NodeWithKind{part}, ", is not part of a split");
        return std::nullopt;
    }
    auto facts = normalSplit(*split, no);
    auto run = facts ? runOf(cat, *split, *facts, no) : std::nullopt;
    if (!run) return std::nullopt;
    return CutAndRun{split, std::move(*facts), std::move(*run)};
}
bool readByNobodyElse(const Node& cat, const Run& run, const Refusing& no) {
    for (const Node* part : run.parts)
        if (part->users().size() != 1) return no.about(part, OtherReader{*part, &cat});
    return true;
}

/// The parts of the run become one; the others are renumbered.
void widen(Node& split, Node& cat, const NormalSplit& facts, const Run& run, Rewriter& rewriter) {
    Graph& graph = split.graph();
    std::vector<int64_t> sizes = facts.sizes;
    const auto first = sizes.begin() + run.first, last = sizes.begin() + run.last + 1;
    const int64_t total = std::accumulate(first, last, int64_t{0});
    sizes.erase(first + 1, last);
    sizes[static_cast<size_t>(run.first)] = total;
    TorchBuilder builder(rewriter, split, cat);
    Node& wider =
        builder.function("torch.functional.split", {Argument(facts.input), Argument(sizes)}, {{"dim", facts.dim}});
    Node& joined = builder.item(wider, run.first);
    rewriter.replace(cat, joined);
    for (Node* part : run.parts) graph.erase(*part);
    const std::vector<Node*> others = split.users();
    for (Node* other : others) {
        const int64_t number = *partNumber(*other);
        graph.setArgs(*other,
                      {Argument(&wider), Argument(number > run.last ? number - (run.last - run.first) : number)});
    }
    graph.erase(split);
}

Result<bool> mergeGetitemCatIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* cat = graph.first(); cat; cat = cat->next()) {
        if (!isFunction(*cat, {"torch.cat"})) continue;
        const Refusing no(rewriter, "merge_getitem_cat_pass", *cat);
        const auto found = joinedRun(*cat, no);
        if (!found || !readByNobodyElse(*cat, found->run, no)) continue;
        if (rewriter.begin("merge_getitem_cat_pass", *cat, "only the concatenation reads these neighbouring parts") !=
            Go::Yes)
            return changed;
        widen(*found->split, *cat, found->facts, found->run, rewriter);
        changed = true;
        cat = graph.first();  // parts are renumbered, and later concatenations may have become runs
    }
    return changed;
}

Result<bool> mutateCatIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* cat : LiveNodes(graph)) {
        if (!isFunction(*cat, {"torch.cat"})) continue;
        const auto found = joinedRun(*cat, {rewriter, "mutate_cat_pass", *cat});
        if (!found) continue;
        const auto& [split, facts, run] = *found;
        if (rewriter.begin("mutate_cat_pass", *cat,
                           "the parts are neighbours, so together they are a piece of what was split") != Go::Yes)
            return changed;
        if (run.parts.size() == facts.sizes.size()) {
            rewriter.replace(*cat, *facts.input);
        } else {
            TorchBuilder builder(rewriter, *split, *cat);
            rewriter.replace(*cat, sliceOf(builder, facts, run.first, run.last));
        }
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- einsum_to_pointwise_pass

/// "abc,abcd->abd" in any letters.
bool isWeightedSum(const std::string& equation) {
    std::string letters;
    for (char c : equation)
        if (c != ' ') letters += c;
    const size_t comma = letters.find(','), arrow = letters.find("->");
    if (comma != 3 || arrow != 8 || letters.size() != 13) return false;
    const std::string a = letters.substr(0, 3), b = letters.substr(4, 4), c = letters.substr(10, 3);
    return a.substr(0, 2) == b.substr(0, 2) && b.substr(0, 2) == c.substr(0, 2) && a[2] == b[2] && b[3] == c[2];
}

bool isAddedSum(const Node& node, const Refusing& no) {
    if (node.args().size() != 3) return no("it is not given an equation and two tensors");
    const auto* equation = node.arg(0).get<std::string>();
    if (!equation || !isWeightedSum(*equation))
        return no("its equation is ", node.arg(0), ", not of the form abc,abcd->abd");
    for (const size_t position : {size_t{1}, size_t{2}})
        if (!tensorType(node.arg(position).node())) return no(node.arg(position), " is not known to be a tensor");
    const auto& readers = node.users();
    return std::any_of(
               readers.begin(), readers.end(),
               [](const Node* reader) { return isMethod(*reader, "add") || isFunction(*reader, {"operator.add"}); }) ||
           no("its result is not added to anything (operator.add or the method add)");
}

Result<bool> einsumIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    for (Node* node : LiveNodes(graph)) {
        if (!isFunction(*node, {"torch.functional.einsum", "torch.einsum"})) continue;
        if (!isAddedSum(*node, {rewriter, "einsum_to_pointwise_pass", *node})) continue;
        Node *input = node->arg(1).node(), *weights = node->arg(2).node();
        if (rewriter.begin("einsum_to_pointwise_pass", *node,
                           "its result is added to something, with which the sum can be fused") != Go::Yes)
            continue;
        GraphBuilder builder = rewriter.builder(graph, node, *node);
        const Value raised = unsqueeze(builder.value(*input), -1);
        const Value total = sum(raised * builder.value(*weights), {-2}, false);
        if (builder.error()) return *builder.error();
        rewriter.replace(*node, *total.node());
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> removeSplitWithSizeOne(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, removeOnePart);
}
Result<bool> mergeSplits(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, mergeSplitsIn); }
Result<bool> mergeGetitemCat(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, mergeGetitemCatIn);
}
Result<bool> mutateCat(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, mutateCatIn); }
Result<bool> einsumToPointwise(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, einsumIn); }

}  // namespace cutaway
