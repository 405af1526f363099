#include "engine/passes/post_grad/reinplace.h"

#include <algorithm>
#include <set>

#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/ops/foreach.h"
#include "engine/passes/post_grad/inplace.h"
#include "engine/passes/post_grad/scatter_places.h"
#include "engine/rewrite/refusing.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

struct Inplaceable {
    std::string_view op, inplace;
};
constexpr Inplaceable kInplaceable[] = {
    {"aten.index_put.default", "aten.index_put_.default"},
    {"aten._unsafe_index_put.default", "prims._unsafe_index_put_.default"},
    {"_c10d_functional.all_reduce.default", "_c10d_functional.all_reduce_.default"},
};
/// A call on lists: all tensors of the first list are written, or none. Who read a result of _foreach_* reads the
/// tensor itself afterwards. PyTorch keeps the getitems of the call instead, read or not, so that its graphs have more
/// of them: the call gives nothing any more (its schema ends in "-> ()"), and only PyTorch's lowering, which answers
/// with a list, can take such a graph.
struct InplaceableList {
    const Op* inplace;
    bool onlyInputs;  // only where every result is copied into the input that it comes from
};
std::optional<InplaceableList> inplaceableList(const Node& node) {
    if (!node.isCall()) return std::nullopt;
    if (node.isCall("_c10d_functional.all_reduce_coalesced.default"))
        return InplaceableList{&requireOp("_c10d_functional.all_reduce_coalesced_.default"), false};
    const Op* twin = reinplacedListOp(node.op());
    return twin ? std::optional(InplaceableList{twin, true}) : std::nullopt;
}
const Inplaceable* findRow(const Node& node) {
    for (const Inplaceable& row : kInplaceable)
        if (node.isCall(row.op)) return &row;
    return nullptr;
}

class Reinplacing {
  public:
    Reinplacing(Graph& graph, Rewriter& rewriter)
        : m_graph(graph), m_rewriter(rewriter), m_writes(graph, rewriter.request().parity) {}

    Result<bool> run() {
        bool changed = false;
        for (Node* node : LiveNodes(m_graph)) {
            const Inplaceable* plain = findRow(*node);
            const std::optional<InplaceableList> list = inplaceableList(*node);
            const bool scatter = scatterOp(*node) != nullptr;
            if (plain == nullptr && !scatter && !list) {
                if (node->isCall())
                    Refusing(m_rewriter, kRule, *node)(node->op().name(),
                                                       " is not in PyTorch's list of calls that may write in place");
                continue;
            }
            const std::optional<ScatterPlace> place = scatter ? std::optional(scatterPlace(*node)) : std::nullopt;
            const Refusing refuse(m_rewriter, kRule, *node);
            bool inPlace =
                list ? mayWriteList(*node, *list, refuse) : mayWriteInPlace(*node, place ? &*place : nullptr, refuse);
            if (inPlace && place && !place->always && !isCopiedBack(*node)) inPlace = isWorthAWrite(*node, refuse);
            if (!inPlace && !(place && place->always && isTypeOfClone(*node))) continue;
            if (m_rewriter.begin(kRule, *node,
                                 inPlace ? "nobody reads the old value any more"
                                         : "a write into this place is a copy in any case") != Go::Yes)
                return changed;
            CT_TRY_VOID(list    ? makeListInplace(*node, *list->inplace)
                        : plain ? makeInplace(*node, requireOp(plain->inplace))
                                : writeThroughViews(*node, *place, inPlace));
            changed = true;
        }
        return changed;
    }

  private:
    /// The copy_ of the node's value into the input that it was written to.
    Node* copyBack(const Node& node, Node& target) const {
        Node* back = m_writes.copyInto(InplaceWrites::written(target));
        return back && back->arg(1).node() == &node ? back : nullptr;
    }
    bool isCopiedBack(const Node& node) const {
        return node.arg(0).node()->isPlaceholder() && copyBack(node, *node.arg(0).node());
    }

    bool mayWriteInPlace(const Node& node, const ScatterPlace* place, const Refusing& refuse) const {
        Node* target = node.arg(0).node();
        if (target == nullptr || !target->type().tensor()) return refuse("what it would write to is not a tensor");
        if (!sameType(target->type(), node.type()))
            return refuse(target, " is ", target->tensor(), ", what is made of it is of another type");
        std::vector<const Node*> others;
        const bool trusts =
            m_rewriter.request().parity && place == nullptr;  // PyTorch does not look at what else the call reads
        for (size_t i = 1; !trusts && i < node.args().size(); ++i)
            (place && i == 1 ? place->source : node.arg(i)).forEachNode([&](const Node* other) {
                others.push_back(other);
            });
        const std::string why = m_writes.unlessWritable(node, *target, &node, others);
        return why.empty() || refuse(why);
    }

    /// Whether operand and result are certain to be in memory; else the scatter is computed in its reader's kernel.
    static bool isWorthAWrite(const Node& node, const Refusing& refuse) {
        const Node* target = node.arg(0).node();
        constexpr std::string_view kWhy =
            " may be computed where it is read: it is neither an input nor returned, and no library makes or reads it";
        if (!isInMemory(*target)) return refuse(target, kWhy);
        return isInMemory(node) || refuse("the result", kWhy);
    }

    /// A clone of the first operand may stand for the value: it has the same layout.
    static bool isTypeOfClone(const Node& node) {
        const Argument args[] = {node.arg(0), Argument()};
        const auto type = inferCall(requireOp("aten.clone.default"), args);
        return type && sameType(*type, node.type());
    }
    /// The readers of the results of a call on lists; nullopt if somebody reads them in another way.
    static std::optional<std::vector<std::pair<Node*, size_t>>> itemsOf(const Node& node, size_t count) {
        std::vector<std::pair<Node*, size_t>> items;
        for (Node* user : node.users()) {
            const auto position = user->isCall("operator.getitem") ? user->arg(1).asInt() : std::nullopt;
            if (!position || *position < 0 || *position >= static_cast<int64_t>(count)) return std::nullopt;
            items.emplace_back(user, static_cast<size_t>(*position));
        }
        return items;
    }
    bool mayWriteList(const Node& node, const InplaceableList& row, const Refusing& refuse) const {
        const auto* targets = node.arg(0).list();
        const TupleType* types = node.type().tuple();
        if (targets == nullptr || types == nullptr || types->size() != targets->size())
            return refuse("it does not give one tensor for each that it is given");
        const auto items = itemsOf(node, targets->size());
        if (!items) return refuse("its results are not read one by one");
        std::vector<const Node*> others;
        for (size_t i = 1; i < node.args().size(); ++i)
            node.arg(i).forEachNode([&](const Node* other) { others.push_back(other); });
        std::set<NodeId> memory;
        for (size_t i = 0; i < targets->size(); ++i) {
            Node* target = (*targets)[i].node();
            if (target == nullptr) return refuse("tensor ", i, " of its list is none");
            if (!sameType(target->type(), (*types)[i]))
                return refuse(target, " is of another type than what is made of it");
            if (!memory.insert(storageRoot(*target).id()).second)
                return refuse(target, " shares memory with a tensor before it in the list");
            const Node* result = nullptr;
            for (const auto& [reader, position] : *items)
                if (position == i && (result == nullptr || copyBack(*reader, *target))) result = reader;
            if (row.onlyInputs && !comesBack(*target, result, *items))
                return refuse("what is made of ", target,
                              " is not copied into it: lists are written to as a whole or not at all");
            if (const std::string why = m_writes.unlessWritable(node, *target, result, others); !why.empty())
                return refuse(why);
        }
        return true;
    }
    /// Whether the result is copied into its own input. PyTorch accepts any result of the call.
    bool comesBack(Node& target, const Node* result, const std::vector<std::pair<Node*, size_t>>& items) const {
        if (result && copyBack(*result, target)) return true;
        return m_rewriter.request().parity && std::any_of(items.begin(), items.end(), [&](const auto& item) {
                   return copyBack(*item.first, target) != nullptr;
               });
    }
    /// Whether the value surely gets memory of its own: it is an input, returned, or read by a library.
    static bool isInMemory(const Node& node) {
        if (node.isPlaceholder() || node.is(Tag::Heavy)) return true;
        if (node.isCall("operator.getitem")) return isInMemory(*node.arg(0).node());
        return std::any_of(node.users().begin(), node.users().end(),
                           [](const Node* user) { return user->isOutput() || user->is(Tag::Heavy); });
    }

    Result<void> makeInplace(Node& node, const Op& op) {
        Node* target = node.arg(0).node();
        Node* back = copyBack(node, *target);
        const std::vector<Argument> args = node.args();
        CT_TRY(ValueType type, inferCall(op, args));
        m_graph.setOp(node, op, args, std::move(type));
        if (back) eraseCopy(*back, InplaceWrites::written(*target));
        return {};
    }
    /// Who reads a result reads the tensor that it was written to.
    Result<void> makeListInplace(Node& node, const Op& op) {
        const std::vector<Argument> targets = *node.arg(0).list();
        const auto items = itemsOf(node, targets.size());
        CT_CHECK(items.has_value(), "asked before");
        const std::vector<Argument> args = node.args();
        CT_TRY(ValueType type, inferCall(op, args));
        std::vector<std::pair<Node*, Node*>> copies;  // a copy_ and its target
        for (const Argument& target : targets)
            for (const auto& [reader, position] : *items)
                if (Node* back = copyBack(*reader, *target.node()))
                    copies.emplace_back(back, &InplaceWrites::written(*target.node()));
        for (const auto& [copy, target] : copies) eraseCopy(*copy, *target);
        for (const auto& [reader, position] : *items) {
            m_graph.replaceUses(*reader, *targets[position].node());
            m_graph.erase(*reader);
        }
        m_graph.setOp(node, op, args, std::move(type));
        return {};
    }
    /// Into the operand itself or, not in place, into a copy of it.
    Result<void> writeThroughViews(Node& node, const ScatterPlace& place, bool inPlace) {
        Node* target = node.arg(0).node();
        Node* back = inPlace ? copyBack(node, *target) : nullptr;
        GraphBuilder builder = m_rewriter.builder(m_graph, &node, node);
        if (!inPlace) target = builder.call("aten.clone.default", {target}).node();
        if (builder.error()) return *builder.error();
        Value part = builder.value(*target);
        for (const ScatterPlace::View& view : place.views) {
            std::vector<Argument> args = {part};
            args.insert(args.end(), view.args.begin(), view.args.end());
            part = builder.call(view.op, std::move(args));
        }
        builder.call("aten.copy_.default", {part, place.source});
        if (builder.error()) return *builder.error();
        std::vector<NodeId> inner;
        for (const Node* scatter : place.inner) {
            Refusing(m_rewriter, kRule, *scatter)("it is written together with ", node);
            inner.push_back(scatter->id());
        }
        m_graph.replaceUses(node, *target);
        m_graph.erase(node);
        for (const NodeId id : inner)
            if (Node* scatter = m_graph.find(id); scatter && !scatter->hasUsers()) m_rewriter.eraseDead(*scatter);
        if (back) eraseCopy(*back, InplaceWrites::written(*target));
        return {};
    }
    void eraseCopy(Node& copy, Node& target) {
        m_graph.replaceUses(copy, target);
        m_graph.erase(copy);
    }

    static constexpr std::string_view kRule = "reinplace";
    Graph& m_graph;
    Rewriter& m_rewriter;
    InplaceWrites m_writes;
};

}  // namespace

Result<bool> reinplaceOps(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, reinplaceOps(*body, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool merged, mergeScatters(module.graph(), rewriter));
    CT_TRY(const bool outer, Reinplacing(module.graph(), rewriter).run());
    return changed || merged || outer;
}

}  // namespace cutaway
