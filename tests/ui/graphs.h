#pragma once
// Graphs for the tests of layout, canvas and windows: by hand, or seeded and of any size.
#include <random>

#include "cutaway/snapshot.h"
#include "ui/graph/layout_problem.h"

namespace cutaway::testing {

/// A layered problem in topological order: chains with side branches, residual edges and a few edges that span far.
inline ui::LayoutProblem randomProblem(int nodes, unsigned seed) {
    std::mt19937 random(seed);
    ui::LayoutProblem problem;
    for (int i = 0; i < nodes; ++i) {
        problem.nodes.push_back({60.0 + random() % 90, 34, -1});
        if (i == 0) continue;
        problem.edges.push_back({i - 1 - static_cast<int>(random() % std::min(i, 3)), i, 1});
        if (random() % 3 == 0) problem.edges.push_back({static_cast<int>(i - 1 - random() % std::min(i, 12)), i, 1});
        if (random() % 20 == 0) problem.edges.push_back({static_cast<int>(random() % i), i, 1});
    }
    return problem;
}

/// Builds union graphs: nodes in order, edges with their state.
class UnionBuilder {
  public:
    NodeKey add(const std::string& name, const std::string& op, const std::vector<NodeKey>& inputs = {},
                Change change = Change::Unchanged, NodeRole role = NodeRole::Call) {
        UnionGraph::Node node;
        node.change = change;
        node.info.id = static_cast<NodeKey>(m_graph.nodes.size() + 10);  // not the index: ids must not be taken for one
        node.info.name = name;
        node.info.op = op;
        node.info.role = role;
        node.info.type = role == NodeRole::Output ? "" : "f32[8, 16]";
        node.info.bytes = 512;
        m_graph.nodes.push_back(node);
        for (NodeKey input : inputs)
            connect(input, node.info.id,
                    change == Change::Added || change == Change::Removed ? change : Change::Unchanged);
        m_graph.added += change == Change::Added;
        m_graph.removed += change == Change::Removed;
        m_graph.edited += change == Change::Edited;
        return node.info.id;
    }
    void connect(NodeKey from, NodeKey to, Change change) {
        m_graph.edges.push_back({from, to, change});
        node(to).info.inputs.push_back(from);
        node(from).info.users.push_back(to);
    }
    UnionGraph::Node& node(NodeKey id) { return m_graph.nodes[packed(id) - 10]; }
    const UnionGraph& graph() const { return m_graph; }

  private:
    UnionGraph m_graph;
};

/// A bias addition fused into its matrix product, between a short head and a tail of `tail` unchanged ops.
inline UnionGraph fusedBias(int tail) {
    UnionBuilder build;
    const NodeKey x = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
    const NodeKey w = build.add("w", "", {}, Change::Unchanged, NodeRole::Parameter);
    const NodeKey b = build.add("b", "", {}, Change::Unchanged, NodeRole::Parameter);
    const NodeKey t = build.add("t", "aten.permute.default", {w});
    const NodeKey m = build.add("m", "aten.mm.default", {x, t}, Change::Removed);
    const NodeKey y = build.add("y", "aten.add.Tensor", {m, b}, Change::Removed);
    const NodeKey z = build.add("addmm", "aten.addmm.default", {b, x, t}, Change::Added);
    NodeKey last = build.add("r0", "aten.relu.default");
    build.connect(y, last, Change::Removed);
    build.connect(z, last, Change::Added);
    for (int i = 1; i < tail; ++i) {
        last = build.add("r" + std::to_string(i), i % 2 ? "aten.sin.default" : "aten.relu.default", {last});
        build.node(last).info.module = "tail." + std::to_string(i / 10);
    }
    build.add("output", "", {last}, Change::Unchanged, NodeRole::Output);
    return build.graph();
}

/// So many equal layers, each of an attention and an mlp of three calls, and a head of two.
inline UnionGraph blocks(int layers) {
    UnionBuilder build;
    NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
    const auto call = [&](const std::string& name, const std::string& op, const std::string& module) {
        last = build.add(name, op, {last});
        build.node(last).info.module = module;
    };
    for (int i = 0; i < layers; ++i)
        for (const auto& [part, module] : {std::pair("a", ".attn"), std::pair("m", ".mlp")})
            for (int k = 0; k < 3; ++k)
                call("l" + std::to_string(i) + "_" + part + std::to_string(k),
                     k % 2 ? "aten.sin.default" : "aten.relu.default", "layer." + std::to_string(i) + module);
    call("h0", "aten.cos.default", "head");
    call("h1", "aten.exp.default", "head");
    build.add("output", "", {last}, Change::Unchanged, NodeRole::Output);
    return build.graph();
}

/// Any number of nodes with residual edges; every `every`-th is changed (0: none).
inline UnionGraph bigGraph(int nodes, int every, unsigned seed = 1) {
    std::mt19937 random(seed);
    UnionBuilder build;
    std::vector<NodeKey> made;
    for (int i = 0; i < nodes; ++i) {
        std::vector<NodeKey> inputs;
        if (i > 0) inputs.push_back(made[i - 1 - random() % std::min(i, 3)]);
        if (i > 12 && random() % 3 == 0) inputs.push_back(made[i - 1 - random() % 12]);
        const bool changed = every > 0 && i > 0 && i % every == 0;
        made.push_back(build.add("n" + std::to_string(i), i == 0 ? "" : "aten.mul.Tensor", inputs,
                                 changed ? Change::Edited : Change::Unchanged,
                                 i == 0 ? NodeRole::Input : NodeRole::Call));
    }
    return build.graph();
}

}  // namespace cutaway::testing
