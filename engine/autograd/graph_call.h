#pragma once
// A call that runs graphs of the module as its derivatives see it, and what they are built of.
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/stacked.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Operands in the lists in which the call takes them, and its graphs.
struct GraphCall {
    enum class Kind : uint8_t { Cond, Map, While, Scan, AssociativeScan };
    Kind kind = Kind::Cond;
    std::vector<const Module*> graphs;  // of while_loop the condition first
    std::vector<std::string> names;
    std::vector<std::vector<Argument>> lists;
    /// The lists that a graph takes, one behind the other: of associative_scan the first one twice.
    std::vector<size_t> taken;
    TupleType results;

    bool isLoop() const { return kind != Kind::Cond && kind != Kind::Map; }
    /// Results that go into the next step, first among all.
    size_t carried() const { return isLoop() ? lists[0].size() : 0; }
    /// Of `count` results: those that are carried on, and those that are collected.
    std::array<std::pair<size_t, size_t>, 2> parts(size_t count) const {
        return {{{0, carried()}, {carried(), count}}};
    }
    bool isStacked(size_t list) const {
        return (kind == Kind::Map && list == 0) || (kind == Kind::Scan && list == 1) ||
               (kind == Kind::AssociativeScan && list == 0);
    }
    /// The number of values that a graph takes.
    size_t count() const {
        size_t all = 0;
        for (const size_t list : taken) all += lists[list].size();
        return all;
    }
    /// The graph of a step: of while_loop not the condition.
    size_t body() const { return kind == Kind::While ? 1 : 0; }
};

std::optional<GraphCall::Kind> kindOfGraphCall(const Node& call);
/// Errors: a call that is not written as such calls are, results of unknown types.
Result<GraphCall> readGraphCall(const Module& module, const Node& call);
Error refuseGraphCall(const Node& call, const std::string& why);
/// An error where a graph draws random numbers: where it is computed again, they would be drawn anew. `nested`: only
/// where a graph of the graph does.
Result<void> refuseDraws(const Node& call, const GraphCall& read, bool nested = false);

/// Whether a value can have a derivative: it is of floating or complex numbers.
bool moves(const ValueType& type);
/// Row by row.
TensorType dense(const TensorType& type);

/// The inputs of a graph, by list of GraphCall::taken.
std::vector<std::vector<Node*>> inputsByList(const GraphCall& read, const Module& graph);
/// The node in front of which inputs behind those of this list go.
Node* behindList(const Graph& graph, const std::vector<std::vector<Node*>>& lists, size_t list);
/// What a graph returns has memory of its own, and one layout whichever graph ran.
Node* returned(GraphBuilder& builder, const Value& value);
/// The graph with these results, without what none of them needs.
Result<std::unique_ptr<Module>> finishedGraph(std::unique_ptr<Module> graph, const std::vector<Argument>& outputs,
                                              Rewriter& rewriter);

/// A call of graphs, which become graphs of the module under names like these. `leading`: operands in front of them.
struct NamedGraph {
    std::string name;
    std::unique_ptr<Module> graph;
};
Value callGraphs(Module& module, const Op& op, std::vector<Argument> leading, std::vector<NamedGraph> graphs,
                 std::vector<std::vector<Argument>> lists, TupleType types, GraphBuilder& builder);
/// Makes it a graph of the module; its name there, which is this one where that is free.
std::string addGraph(Module& module, const std::string& wanted, std::unique_ptr<Module> graph);
/// Drops a graph that no call names any more.
void dropUnnamedGraph(Module& module, const std::string& name);

}  // namespace cutaway
