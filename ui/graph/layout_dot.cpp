// Graphviz behind layout_problem.h. Runs in the cutaway-layout process, so that a hang or an abort in it costs a
// layout, not the window.
#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "ui/graph/layout_problem.h"

namespace cutaway::ui {
namespace {

constexpr double kPointsPerInch = 72;
/// Above this many nodes clusters and curved splines cost more time than they give order.
constexpr size_t kManyLaidOut = 1200;

/// cgraph's interface takes char*, but does not write to it.
char* text(const char* literal) { return const_cast<char*>(literal); }
std::string dotNumber(double value) { return std::to_string(value); }

struct GraphCloser {
    void operator()(Agraph_t* graph) const { agclose(graph); }
};
struct ContextCloser {
    void operator()(GVC_t* context) const { gvFreeContext(context); }
};
using GraphHandle = std::unique_ptr<Agraph_t, GraphCloser>;

struct DotGraph {
    GraphHandle graph;
    std::vector<Agnode_t*> nodes;
    std::vector<Agedge_t*> edges;  // null for stubs
    std::vector<Agraph_t*> clusters;
};

void setGraphAttributes(Agraph_t* graph, size_t nodeCount) {
    agattr(graph, AGRAPH, text("nodesep"), text(dotNumber(kNodeGap / kPointsPerInch).c_str()));
    agattr(graph, AGRAPH, text("ranksep"), text(dotNumber(kRankGap / kPointsPerInch).c_str()));
    // Nearly all time goes into placing nodes within ranks by network simplex, whose iterations are limit * nodes and
    // cost time in proportion to nodes: the limit falls with the square to keep the whole below seconds.
    const double count = static_cast<double>(nodeCount);
    const std::string placing = dotNumber(std::min(2.0, 4.5e5 / (count * count)));
    agattr(graph, AGRAPH, text("nslimit"), text(placing.c_str()));
    agattr(graph, AGRAPH, text("nslimit1"), text("2"));
    agattr(graph, AGRAPH, text("searchsize"), text("30"));
    agattr(graph, AGRAPH, text("mclimit"), text(nodeCount > kManyLaidOut ? "0.4" : "1"));
    agattr(graph, AGRAPH, text("splines"), text(nodeCount > kManyLaidOut ? "polyline" : "spline"));
}

DotGraph buildGraph(const LayoutProblem& problem, bool withClusters) {
    DotGraph dot;
    dot.graph.reset(agopen(text("g"), Agdirected, nullptr));
    Agraph_t* graph = dot.graph.get();
    setGraphAttributes(graph, problem.nodes.size());
    agattr(graph, AGNODE, text("shape"), text("box"));
    agattr(graph, AGNODE, text("fixedsize"), text("true"));
    agattr(graph, AGNODE, text("label"), text(""));
    Agsym_t* width = agattr(graph, AGNODE, text("width"), text("1"));
    Agsym_t* height = agattr(graph, AGNODE, text("height"), text("0.5"));
    Agsym_t* ordering = agattr(graph, AGNODE, text("ordering"), text(""));
    agattr(graph, AGEDGE, text("dir"), text("none"));
    Agsym_t* weight = agattr(graph, AGEDGE, text("weight"), text("1"));
    if (withClusters)
        for (size_t i = 0; i < problem.clusters.size(); ++i) {
            const int parent = problem.clusters[i].parent;
            Agraph_t* above = parent < 0 ? graph : dot.clusters[static_cast<size_t>(parent)];
            if (i == 0) {  // a line of text, to keep room for the title that the canvas paints
                agattr(graph, AGRAPH, text("fontsize"), text("9"));
                agattr(graph, AGRAPH, text("label"), text(""));
            }
            dot.clusters.push_back(agsubg(above, text(("cluster_" + std::to_string(i)).c_str()), 1));
            agset(dot.clusters.back(), text("label"), text("title"));
        }
    for (size_t i = 0; i < problem.nodes.size(); ++i) {
        const auto& node = problem.nodes[i];
        Agnode_t* made = agnode(graph, text(std::to_string(i).c_str()), 1);
        agxset(made, width, text(dotNumber(node.width / kPointsPerInch).c_str()));
        agxset(made, height, text(dotNumber(node.height / kPointsPerInch).c_str()));
        if (node.inOrder) agxset(made, ordering, text("out"));
        if (withClusters && node.cluster >= 0) agsubnode(dot.clusters[static_cast<size_t>(node.cluster)], made, 1);
        dot.nodes.push_back(made);
    }
    const std::vector<int> rank = layoutRanks(problem);
    for (size_t i = 0; i < problem.edges.size(); ++i) {
        const auto& edge = problem.edges[i];
        dot.edges.push_back(nullptr);
        if (edge.from == edge.to || std::abs(rank[edge.to] - rank[edge.from]) > problem.longEdgeRanks) continue;
        Agedge_t* made = agedge(graph, dot.nodes[edge.from], dot.nodes[edge.to], text(std::to_string(i).c_str()), 1);
        if (edge.weight != 1) agxset(made, weight, text(std::to_string(edge.weight).c_str()));
        dot.edges.back() = made;
    }
    return dot;
}

/// From tail to head, as dot hands every curve out.
std::vector<LayoutPoint> routeOf(Agedge_t* edge, double top) {
    std::vector<LayoutPoint> route;
    const splines* curve = ED_spl(edge);
    if (!curve || curve->size < 1) return route;
    const bezier& piece = curve->list[0];
    for (size_t i = 0; i < static_cast<size_t>(piece.size); ++i)
        route.push_back({piece.list[i].x, top - piece.list[i].y});
    if (route.size() % 3 != 1) route.clear();
    return route;
}

/// An edge that dot laid out but gave no curve becomes a straight one: a stub would claim that it is long.
std::vector<LayoutPoint> straight(LayoutPoint from, LayoutPoint to) {
    const auto between = [&](double t) {
        return LayoutPoint{from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t};
    };
    return {from, between(1.0 / 3), between(2.0 / 3), to};
}

LayoutAnswer readLayout(const DotGraph& dot, const LayoutProblem& problem) {
    LayoutAnswer answer;
    const boxf box = GD_bb(dot.graph.get());
    const double top = box.UR.y;
    answer.width = box.UR.x - box.LL.x;
    answer.height = box.UR.y - box.LL.y;
    for (Agnode_t* node : dot.nodes) answer.centres.push_back({ND_coord(node).x - box.LL.x, top - ND_coord(node).y});
    answer.clusters.resize(problem.clusters.size());
    for (size_t i = 0; i < dot.clusters.size(); ++i) {
        if (agnnodes(dot.clusters[i]) == 0) continue;
        const boxf inner = GD_bb(dot.clusters[i]);
        answer.clusters[i] = {inner.LL.x - box.LL.x, top - inner.UR.y, inner.UR.x - inner.LL.x,
                              inner.UR.y - inner.LL.y};
    }
    for (size_t i = 0; i < dot.edges.size(); ++i) {
        std::vector<LayoutPoint> route;
        if (dot.edges[i]) {
            const auto& edge = problem.edges[i];
            route = routeOf(dot.edges[i], top);
            if (route.empty()) route = straight(answer.centres[edge.from], answer.centres[edge.to]);
        }
        answer.routes.push_back(std::move(route));
    }
    return answer;
}

}  // namespace

/// Graphviz finds its layouts through a list of plugins that its installation writes.
static bool knowsDot(GVC_t* context) {
    int count = 0;
    char** const names = gvPluginList(context, "layout", &count, nullptr);
    bool found = false;
    for (int i = 0; i < count; ++i) {
        found |= std::string_view(names[i]) == "dot";
        free(names[i]);
    }
    free(names);
    return found;
}

Result<LayoutAnswer> layoutWithDot(const LayoutProblem& problem) {
    if (problem.nodes.empty()) return LayoutAnswer{};
    std::unique_ptr<GVC_t, ContextCloser> context(gvContext());
    if (!knowsDot(context.get()))
        return Error{ErrorCode::ToolFailed,
                     "Graphviz does not know dot: its list of plugins is missing",
                     "layout",
                     {"`dot -c`, run as root, writes it"}};
    const bool clusters = !problem.clusters.empty() && problem.nodes.size() <= kManyLaidOut;
    DotGraph dot = buildGraph(problem, clusters);
    if (gvLayout(context.get(), dot.graph.get(), "dot") != 0)
        return Error{ErrorCode::ToolFailed, "Graphviz dot gave up on the graph", "layout", {}};
    LayoutAnswer answer = readLayout(dot, problem);
    gvFreeLayout(context.get(), dot.graph.get());
    return answer;
}

}  // namespace cutaway::ui
