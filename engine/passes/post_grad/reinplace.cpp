#include "engine/passes/post_grad/reinplace.h"

#include "engine/ir/live_nodes.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/pattern.h"
#include "engine/rewrite/storage_roots.h"

namespace cutaway {
namespace {

struct Inplaceable {
    std::string_view op, inplace;
};
constexpr Inplaceable kInplaceable[] = {
    {"aten.index_put.default", "aten.index_put_.default"},
};
/// Scatters, with the view that they write to; their arguments behind the source are the view's.
struct Scatter {
    std::string_view op, view;
    bool always;   // written in place even if the operand would never be in memory
};
constexpr Scatter kScatters[] = {
    {"aten.slice_scatter.default", "aten.slice.Tensor", false},
    {"aten.select_scatter.default", "aten.select.int", false},
    {"aten.diagonal_scatter.default", "aten.diagonal.default", true},
    {"aten.as_strided_scatter.default", "aten.as_strided.default", true},
};

template <class Row, size_t N>
const Row* findRow(const Row (&rows)[N], const Node& node) {
    for (const Row& row : rows)
        if (node.isCall(row.op)) return &row;
    return nullptr;
}

/// A scatter, and the scatters into the same place that make what it writes: `views` lead from the operand to the place where `source`
/// belongs. slice_scatter(x, select_scatter(slice(x), v)) has two views.
struct Place {
    struct View {
        std::string_view op;
        std::vector<Argument> args;   // behind the tensor
    };
    std::vector<View> views;
    Argument source;
    std::vector<NodeId> inner;   // scatters that are not needed any more
    bool always = false;
};
std::vector<Argument> viewArgs(const Node& scatter) { return {scatter.args().begin() + 2, scatter.args().end()}; }
/// `view` shows of the scatter's operand what the scatter writes.
bool showsPlaceOf(const Node* view, const Node& scatter, const Scatter& row) {
    if (view == nullptr || !view->isCall(row.view) || view->arg(0).node() != scatter.arg(0).node()) return false;
    const std::vector<Argument> args = viewArgs(scatter);
    if (view->args().size() != args.size() + 1) return false;
    for (size_t i = 0; i < args.size(); ++i)
        if (!sameConstant(view->args()[i + 1], args[i])) return false;
    return true;
}
Place placeOf(const Node& scatter, const Scatter& row) {
    Place place{{{row.view, viewArgs(scatter)}}, scatter.arg(1), {}, row.always};
    const Node* outer = &scatter;
    const Scatter* outerRow = &row;
    for (const Node* inner = place.source.node(); inner && inner->users().size() == 1; inner = place.source.node()) {
        const Scatter* innerRow = findRow(kScatters, *inner);
        if (innerRow == nullptr || !showsPlaceOf(inner->arg(0).node(), *outer, *outerRow)) break;
        place.views.push_back({innerRow->view, viewArgs(*inner)});
        place.source = inner->arg(1);
        place.inner.push_back(inner->id());
        place.always |= innerRow->always;
        outer = inner;
        outerRow = innerRow;
    }
    return place;
}

class Reinplacing {
  public:
    Reinplacing(Graph& graph, Rewriter& rewriter) : m_graph(graph), m_rewriter(rewriter) {}

    Result<bool> run() {
        bool changed = false;
        for (Node* node : LiveNodes(m_graph)) {
            const Inplaceable* plain = findRow(kInplaceable, *node);
            const Scatter* scatter = findRow(kScatters, *node);
            if (plain == nullptr && scatter == nullptr) continue;
            const std::optional<Place> place = scatter ? std::optional(placeOf(*node, *scatter)) : std::nullopt;
            if (!mayWriteInPlace(*node, place ? &*place : nullptr)) continue;
            if (place && !place->always && !isCopiedBack(*node) && !(isInMemory(*node->arg(0).node()) && isInMemory(*node))) continue;
            if (findOp(plain ? plain->inplace : "aten.copy_.default") == nullptr) continue;
            if (!m_rewriter.begin("reinplace", *node, "nobody reads the old value any more")) return changed;
            CT_TRY_VOID(plain ? makeInplace(*node, requireOp(plain->inplace)) : writeThroughViews(*node, *place));
            changed = true;
        }
        return changed;
    }

  private:
    /// The copy_ of the node's value into this input at the end of the graph.
    Node* copyBack(const Node& node, const Node& input) const {
        for (Node* user : node.users())
            if (user->isCall("aten.copy_.default") && user->arg(0).node() == &input && user->arg(1).node() == &node) return user;
        return nullptr;
    }
    bool isCopiedBack(const Node& node) const { return node.arg(0).node()->isPlaceholder() && copyBack(node, *node.arg(0).node()); }

    bool mayWriteInPlace(const Node& node, const Place* place) const {
        const Node* target = node.arg(0).node();
        if (target == nullptr || !target->type().tensor() || target->kind() == NodeKind::GetAttr) return false;
        if (!sameType(target->type(), node.type()) || overlapsItself(target->tensor())) return false;
        const Node& owner = storageRoot(*target);
        const Node* back = nullptr;
        if (owner.isPlaceholder() || owner.kind() == NodeKind::GetAttr) {
            // Views of inputs are refused: the copy_ at the end writes the whole input.
            back = target->isPlaceholder() ? copyBack(node, *target) : nullptr;
            if (back == nullptr) return false;
        }
        for (size_t i = 1; i < node.args().size(); ++i) {
            bool shares = false;
            (place && i == 1 ? place->source : node.arg(i)).forEachNode([&](const Node* other) { shares |= &storageRoot(*other) == &owner; });
            if (shares) return false;
        }
        return !isReadLater(node, owner, back);
    }
    /// Two places of the tensor are one place in memory.
    static bool overlapsItself(const TensorType& type) {
        for (size_t i = 0; i < type.sizes.size(); ++i)
            if (type.strides[i] == SymInt(0) && !(type.sizes[i] == SymInt(1))) return true;
        return false;
    }
    bool isReadLater(const Node& write, const Node& owner, const Node* back) const {
        for (const Node* alias : sharersOf(owner))
            for (const Node* user : alias->users()) {
                if (user == &write || user == back || m_graph.isBefore(*user, write)) continue;
                if (back && !m_graph.isBefore(*user, *back)) continue;   // reads what was copied back
                if (user->is(Tag::Symbolic)) continue;   // reads the shape only
                if (user->is(Tag::View) && &storageRoot(*user) == &owner && !user->hasUsers()) continue;
                return true;
            }
        return false;
    }
    /// Whether the value surely gets memory of its own: it is an input, returned, or read by a library.
    static bool isInMemory(const Node& node) {
        if (node.isPlaceholder() || node.is(Tag::Heavy)) return true;
        if (node.isCall("operator.getitem")) return isInMemory(*node.arg(0).node());
        return std::any_of(node.users().begin(), node.users().end(), [](const Node* user) { return user->isOutput() || user->is(Tag::Heavy); });
    }

    Result<void> makeInplace(Node& node, const Op& op) {
        Node* target = node.arg(0).node();
        Node* back = target->isPlaceholder() ? copyBack(node, *target) : nullptr;
        const std::vector<Argument> args = node.args();
        CT_TRY(ValueType type, inferCall(op, args));
        m_graph.setOp(node, op, args, std::move(type));
        if (back) eraseCopy(*back, *target);
        return {};
    }
    Result<void> writeThroughViews(Node& node, const Place& place) {
        Node* target = node.arg(0).node();
        Node* back = target->isPlaceholder() ? copyBack(node, *target) : nullptr;
        GraphBuilder builder = m_rewriter.builder(m_graph, &node, node);
        Value part = builder.value(*target);
        for (const Place::View& view : place.views) {
            std::vector<Argument> args = {part};
            args.insert(args.end(), view.args.begin(), view.args.end());
            part = builder.call(view.op, std::move(args));
        }
        builder.call("aten.copy_.default", {part, place.source});
        if (builder.error()) return *builder.error();
        m_graph.replaceUses(node, *target);
        m_graph.erase(node);
        for (const NodeId id : place.inner)
            if (Node* inner = m_graph.find(id); inner && !inner->hasUsers()) m_rewriter.eraseDead(*inner);
        if (back) eraseCopy(*back, *target);
        return {};
    }
    void eraseCopy(Node& copy, Node& target) {
        m_graph.replaceUses(copy, target);
        m_graph.erase(copy);
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
};

}  // namespace

Result<bool> reinplaceOps(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, reinplaceOps(*body, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool outer, Reinplacing(module.graph(), rewriter).run());
    return changed || outer;
}

}  // namespace cutaway
