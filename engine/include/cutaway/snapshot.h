#pragma once
// Value structs that describe graphs to windows and the command line. Plain data: no pointers into the engine.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/node_key.h"

namespace cutaway {

enum class NodeRole : uint8_t { Input, Parameter, Buffer, Constant, Call, Output };

/// One node of one graph.
struct NodeInfo {
    NodeKey id = NodeKey::None;
    NodeRole role = NodeRole::Call;
    std::string name;         // "mul_3"
    std::string op;           // "aten.mul.Tensor"; empty for inputs and the output
    std::string type;         // "f32[8, 64]"; several results are joined by ", "
    std::string module;       // "encoder.layer.0", may be empty
    int64_t bytes = 0;        // of the results; 0 if unknown
    bool scalarLike = false;  // one element or less: drawn as a chip on its users when it has many
    bool backward = false;
    std::vector<NodeKey> inputs;  // each once, in argument order
    std::vector<NodeKey> users;
};

/// Everything the Node window shows.
struct NodeDetails {
    NodeInfo node;
    std::string schema;                                          // PyTorch's notation; empty for unknown ops
    std::vector<std::pair<std::string, std::string>> arguments;  // parameter -> text
    std::vector<std::pair<std::string, std::string>>
        tensor;                       // "shape" -> "[8, 64]", "dtype", "strides", "device", "bytes"
    std::vector<std::string> frames;  // source frames, outermost first: "file.py:12 in forward: code"
    std::string moduleType;
    std::string line;  // its FX text
    struct Life {
        int step = -1;     // -1: read from the file
        std::string what;  // "created by fuse_bias_add (mm_add_to_addmm) from mm, add"
        std::vector<NodeKey> related;
    };
    std::vector<Life> history;
};

enum class Change : uint8_t { Kept, Added, Removed, Edited };

/// The graphs before and after a step merged into one. The order of the nodes is topological for both.
struct UnionGraph {
    struct Node {
        Change change = Change::Kept;
        NodeInfo info;                     // after, or before for removed nodes
        std::string beforeOp, beforeType;  // where edited
    };
    struct Edge {
        NodeKey from, to;
        Change change = Change::Kept;  // Added or Removed: rewired
    };
    std::vector<Node> nodes;
    std::vector<Edge> edges;
    int added = 0, removed = 0, edited = 0;
};

/// FX text of one side, with the node that each line defines.
struct GraphText {
    std::string text;
    std::vector<NodeKey> lineNodes;  // one per line of `text`; NodeKey::None for lines that define no node
};

}  // namespace cutaway
