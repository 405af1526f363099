#pragma once
// Reading and writing graphs of Python calls, as the pre-grad passes do: arguments may be positional or named,
// functions may be methods, and new calls need types.
#include <initializer_list>

#include "engine/ir/readers.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway::pregrad {

/// A call of one of these functions by their Python names.
bool isFunction(const Node& node, std::initializer_list<std::string_view> names);
bool isMethod(const Node& node, std::string_view name);
/// "torch.relu" and "torch.nn.functional.linear" for every function and method that this is another name of.
bool isLinear(const Node& node);

/// The argument at a position or of a name; null where it is left out.
const Argument* argument(const Node& node, size_t position, std::string_view keyword);
/// The same as a node, null for everything else.
Node* operand(const Node& node, size_t position, std::string_view keyword);
std::optional<int64_t> integer(const Argument* argument);
const TensorType* tensorType(const Node* node);
/// Sizes that are all numbers.
std::optional<std::vector<int64_t>> knownSizes(const Node* node);
/// The dim counted from the front.
std::optional<int64_t> wrappedDim(const Argument* dim, int64_t rank, int64_t fallback = 0);

/// Writes Python calls before a node; each gets its type from its arguments.
class TorchBuilder {
  public:
    TorchBuilder(Rewriter& rewriter, Node& before, const Node& origin)
        : m_graph(&before.graph()),
          m_before(&before),
          m_provenance(rewriter.builder(before.graph(), &before, origin).sharedProvenance()) {}

    Node& function(std::string_view name, std::vector<Argument> args, NamedArguments keywords = {});
    Node& method(std::string_view name, std::vector<Argument> args, NamedArguments keywords = {});
    Node& item(Node& tuple, int64_t position);
    /// source[index] of a tensor.
    Node& subscript(Node& source, Argument index);

  private:
    Node& call(const Op& op, std::vector<Argument> args, NamedArguments keywords);
    Graph* m_graph;
    Node* m_before;
    std::shared_ptr<const Provenance> m_provenance;
};

/// Turns the node into another Python call, keeping its id, name and type.
void rewriteCall(Node& node, std::string_view function, std::vector<Argument> args, NamedArguments keywords);

/// Refuses all nodes of a subgraph: the pass does not look there.
void refuseAll(const Module& body, Rewriter& rewriter, std::string_view why);

/// Runs the pass on the subgraphs that are referenced, innermost first, then on the main graph (PRE-1).
Result<bool> onEveryGraph(Module& module, Rewriter& rewriter, Result<bool> (*pass)(Graph&, Rewriter&));

}  // namespace cutaway::pregrad
