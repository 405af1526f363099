#pragma once
// Value structs that describe graphs to windows and the command line. Plain data: no pointers into the engine.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/certainty.h"
#include "cutaway/node_key.h"

namespace cutaway {

enum class NodeRole : uint8_t { Input, Parameter, Buffer, Constant, Call, Output };
/// What kind of work a call does, coarsely enough to have a colour. Other: it moves data, makes it, or is not known.
enum class OpClass : uint8_t { Other, Product, Pointwise, Reduction, View };

/// One node of one graph.
struct NodeInfo {
    NodeKey id = NodeKey::None;
    NodeRole role = NodeRole::Call;
    std::string name;         // "mul_3"
    std::string op;           // "aten.mul.Tensor"; empty for inputs and the output
    std::string type;         // "f32[8, 64]"; several results are joined by ", "
    std::string module;       // "encoder.layer.0", may be empty
    std::string tensor;       // what files and programs call an input or constant: "layer.weight", "_frozen_param2"
    int64_t bytes = 0;        // of the results; 0 if unknown
    bool scalarLike = false;  // one element or less: drawn as a chip on its users when it has many
    bool backward = false;
    OpClass opClass = OpClass::Other;  // of calls
    std::vector<NodeKey> inputs;       // each once, in argument order
    std::vector<NodeKey> users;
};

/// Of a node whose value is the same in every run: a weight, or what was folded from weights.
struct ConstantInfo {
    /// The program's own tensors that it is computed from, with their types; if it is one of them, itself.
    std::vector<std::pair<std::string, std::string>> sources;
    std::vector<std::string> recipe;  // how, as FX text, a call a line; empty for the program's own tensors
    int64_t bytes = 0;
    bool shared = false;  // it lies in the memory of what it is made from
};

/// What the numbers of a constant are like. Of complex numbers their absolute values.
struct ValueSummary {
    int64_t elements = 0, zeros = 0, notFinite = 0;
    double least = 0, most = 0, mean = 0;  // of the finite ones
    std::vector<int64_t> histogram;        // of the finite ones, bars of equal width from least to most
    std::vector<double> first;             // the first elements, row by row
    bool madeUp = false;                   // the file has no data for it, or for what it is made from
    std::vector<ValueSummary> sources;  // of what was folded: of the tensors in ConstantInfo::sources, in their order
};

/// Everything the Node window shows.
struct NodeDetails {
    NodeInfo node;
    std::string schema;                                          // PyTorch's notation; empty for unknown ops
    std::vector<std::pair<std::string, std::string>> arguments;  // parameter -> text
    std::vector<std::pair<std::string, std::string>>
        tensor;                       // "shape" -> "[8, 64]", "dtype", "strides", "device", "bytes", "guards"
    std::vector<std::string> frames;  // source frames, outermost first: "file.py:12 in forward: code"
    std::string moduleType;
    std::string line;  // its FX text
    struct Life {
        int step = -1;     // -1: read from the file
        std::string what;  // "created by fuse_bias_add (mm_add_to_addmm) from mm, add"
        std::vector<NodeKey> related;
    };
    std::vector<Life> history;
    std::optional<ConstantInfo> constant;
    /// What computes it; from the schedule on.
    struct Kernel {
        std::string library;               // that computes the call alone; empty: generated code
        std::vector<NodeKey> nodes;        // that are computed together, in the order of the graph
        std::vector<std::string> reasons;  // each yes and no that concerned the node
    };
    std::optional<Kernel> kernel;
};

enum class Change : uint8_t { Unchanged, Added, Removed, Edited };

/// The graphs before and after a step merged into one. The order of the nodes is topological for both.
struct UnionGraph {
    struct Node {
        Change change = Change::Unchanged;
        NodeInfo info;                          // after, or before for removed nodes
        std::string beforeOp, beforeType;       // where edited
        NodeKey before = NodeKey::None;         // its key in the graph before, where that is another than info.id
        Certainty certainty = Certainty::Sure;  // that a node of both is one and the same
        bool moved = false;                     // of both: it stands elsewhere among those that both have
        int kernel = -1;  // from fuse_nodes on: nodes with one number share a kernel; -1: it has one to itself, or none

        NodeKey keyBefore() const { return before == NodeKey::None ? info.id : before; }
    };
    struct Edge {
        NodeKey from, to;
        Change change = Change::Unchanged;  // Added or Removed where a node that stays reads another value
    };
    std::vector<Node> nodes;
    std::vector<Edge> edges;
    int added = 0, removed = 0, edited = 0, moved = 0;
};

/// FX text of one side, with the node that each line defines.
struct GraphText {
    std::string text;
    std::vector<NodeKey> lineNodes;  // one per line of `text`; NodeKey::None for lines that define no node
};

}  // namespace cutaway
