#include "engine/passes/post_grad/scatter_places.h"

#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/rewrite/pattern.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr ScatterOp kScatters[] = {
    {"aten.slice_scatter.default", "aten.slice.Tensor", false},
    {"aten.select_scatter.default", "aten.select.int", false},
    {"aten.diagonal_scatter.default", "aten.diagonal.default", true},
    {"aten.as_strided_scatter.default", "aten.as_strided.default", true},
};

std::vector<Argument> viewArgs(const Node& scatter) { return {scatter.args().begin() + 2, scatter.args().end()}; }

bool sameArgs(const std::vector<Argument>& view, const std::vector<Argument>& args) {
    if (view.size() != args.size() + 1) return false;
    for (size_t i = 0; i < args.size(); ++i)
        if (!sameConstant(view[i + 1], args[i])) return false;
    return true;
}
/// Whether `view` is the part of the scatter's operand that the scatter writes.
bool showsPlaceOf(const Node* view, const Node& scatter, const ScatterOp& row) {
    return view && view->isCall(row.view) && view->arg(0).node() == scatter.arg(0).node() &&
           sameArgs(view->args(), viewArgs(scatter));
}

/// The views that lead to a node from the tensor that they begin with, the last one first.
struct ViewChain {
    const Node* base;
    std::vector<const Node*> views;

    explicit ViewChain(const Node& node) : base(&node) {
        for (; base->isCall() && base->is(Tag::View) && base->arg(0).node(); base = base->arg(0).node())
            views.push_back(base);
    }
};
/// As showsPlaceOf, but also where view and scatter reach the same operand through equal chains of views.
bool leadsToPlaceOf(const Node& view, const Node& scatter, const ScatterOp& row) {
    if (!view.isCall(row.view) || !sameArgs(view.args(), viewArgs(scatter))) return false;
    if (view.arg(0).node() == scatter.arg(0).node()) return true;
    const ViewChain one(*view.arg(0).node()), other(*scatter.arg(0).node());
    if (one.base != other.base || one.views.size() != other.views.size()) return false;
    for (size_t i = 0; i < one.views.size(); ++i) {
        const Node &a = *one.views[i], &b = *other.views[i];
        if (&a.op() != &b.op() || !sameArgs(a.args(), {b.args().begin() + 1, b.args().end()})) return false;
    }
    return true;
}

class Merging {
  public:
    Merging(Graph& graph, Rewriter& rewriter) : m_graph(graph), m_rewriter(rewriter) {}

    Result<bool> run() {
        bool changed = false;
        for (Node* outer : LiveNodes(m_graph)) {
            const ScatterOp* row = scatterOp(*outer);
            if (row == nullptr) continue;
            const Refusing refuse(m_rewriter, kRule, *outer);
            Node* inner = outer->arg(1).node();
            if (!mayMerge(*outer, *row, inner, refuse)) continue;
            if (isMerged(*outer)) {
                refuse("its views and writes stand together already");
                continue;
            }
            if (m_rewriter.begin(kRule, *outer, "it writes what another write has made of the same place") != Go::Yes)
                return changed;
            CT_TRY_VOID(merge(*outer, *row, *inner));
            changed = true;
        }
        return changed;
    }

  private:
    bool mayMerge(const Node& outer, const ScatterOp& row, const Node* inner, const Refusing& refuse) const {
        if (inner == nullptr || !scatterOp(*inner))
            return refuse("it writes ", outer.arg(1), ", which no write into a place has made");
        const Node *whole = outer.arg(0).node(), *part = inner->arg(0).node();
        if (inner == whole) return refuse("it writes ", inner, " into itself");
        if (whole == nullptr || part == nullptr || !leadsToPlaceOf(*part, outer, row))
            return refuse(inner, " is made of ", part, ", which does not show the place of ", whole,
                          " that it writes to");
        // Other readers of the inner result will read a view of the outer one.
        if (inner->users().size() > 1 && !mayReplace(*inner, outer))
            return refuse(inner, " has other readers, and an output would come to share memory with another value");
        for (const Node* input : outer.inputs())
            if (input != inner && !m_graph.isBefore(*input, *inner))
                return refuse("it reads ", input, ", which stands behind ", inner);
        return true;
    }

    /// The scatters of a place from the outside, the given one first.
    static std::vector<Node*> scattersOf(Node& outer) {
        std::vector<Node*> all = scatterPlace(outer).inner;
        all.insert(all.begin(), &outer);
        return all;
    }
    /// The views of this place and its scatters stand together already: views from the outside, scatters from the
    /// inside.
    static bool isMerged(Node& outer) {
        const std::vector<Node*> scatters = scattersOf(outer);
        if (scatters.size() == 1) return false;  // the scatter in question reads another view
        const Node* expected = &outer;
        for (const Node* scatter : scatters) {
            if (scatter != expected) return false;
            expected = expected->previous();
        }
        for (size_t i = scatters.size() - 1; i > 0; --i) {
            const Node* view = scatters[i]->arg(0).node();
            if (view != expected || view->users().size() != (i + 1 == scatters.size() ? 1 : 2)) return false;
            expected = expected->previous();
        }
        return true;
    }

    Result<void> merge(Node& outer, const ScatterOp& row, Node& inner) {
        // All scatters that are one place after merging: the inner scatter's source may be nested scatters already.
        std::vector<Node*> scatters = scattersOf(inner);
        scatters.insert(scatters.begin(), &outer);
        for (size_t i = scatters.size() - 1; i-- > 0;) m_graph.moveBefore(*scatters[i], *scatters[i + 1]->next());
        if (inner.users().size() > 1) {
            GraphBuilder behind = m_rewriter.builder(m_graph, outer.next(), inner);
            std::vector<Argument> args = {behind.value(outer)};
            for (const Argument& arg : viewArgs(outer)) args.push_back(arg);
            const Value part = behind.call(row.view, std::move(args));
            if (behind.error()) return *behind.error();
            m_graph.replaceUses(inner, *part.node(), [&](const Node& user) { return &user == &outer; });
        }
        GraphBuilder builder = m_rewriter.builder(m_graph, scatters.back(), outer);
        Value part = builder.value(*outer.arg(0).node());
        for (size_t i = 1; i < scatters.size(); ++i) {
            std::vector<Argument> args = {part};
            for (const Argument& arg : viewArgs(*scatters[i - 1])) args.push_back(arg);
            part = builder.call(scatterOp(*scatters[i - 1])->view, std::move(args));
            if (builder.error()) return *builder.error();
            m_graph.setArg(*scatters[i], 0, part);
        }
        return {};
    }

    static constexpr std::string_view kRule = "merge_scatters";
    Graph& m_graph;
    Rewriter& m_rewriter;
};

}  // namespace

const ScatterOp* scatterOp(const Node& node) {
    if (!node.isCall()) return nullptr;
    for (const ScatterOp& row : kScatters)
        if (node.isCall(row.op)) return &row;
    return nullptr;
}

ScatterPlace scatterPlace(const Node& scatter) {
    const ScatterOp* row = scatterOp(scatter);
    ScatterPlace place{{{row->view, viewArgs(scatter)}}, scatter.arg(1), {}, row->always};
    const Node* outer = &scatter;
    for (Node* inner = place.source.node(); inner && inner->users().size() == 1; inner = place.source.node()) {
        const ScatterOp* innerRow = scatterOp(*inner);
        if (innerRow == nullptr || !showsPlaceOf(inner->arg(0).node(), *outer, *row)) break;
        place.views.push_back({innerRow->view, viewArgs(*inner)});
        place.source = inner->arg(1);
        place.inner.push_back(inner);
        place.always |= innerRow->always;
        outer = inner;
        row = innerRow;
    }
    return place;
}

Result<bool> mergeScatters(Graph& graph, Rewriter& rewriter) { return Merging(graph, rewriter).run(); }

}  // namespace cutaway
