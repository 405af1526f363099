#pragma once
// What the partitioner knows of a joint graph, whatever its options are: which side needs a node, how far it is from
// the backward, how large it is (spec: autograd B.5, B.6). Nodes are numbered in the order of the graph.
#include <vector>

#include "engine/interpret/specialize.h"
#include "engine/ir/module.h"

namespace cutaway {

/// How far from the backward a node counts that the backward does not need.
constexpr int kNotNeeded = 1'000'000'000;

struct JointNode {
    const Node* node = nullptr;
    std::vector<int> inputs, users;  // each once; the output node is a user
    int64_t bytes = 0;               // of its tensors; symbols without an example count as 4096
    int distance = 0;                // steps to the nearest reader in the backward; 0: not of the forward
    int forwardOrder = -1;           // among the nodes that the forward needs
    bool requiredBackward = false;   // depends on a tangent, or is returned as a gradient
    bool tangentsClosure = false;    // depends on a tangent
    bool forwardInput = false;       // primal, or seed of the forward
    bool stays = false;              // parameter or buffer: its memory is there anyway (static lifetime input)
    bool view = false, recomputable = false, random = false, heavy = false, fusible = false, concatenates = false;
    bool multipleResults = false, symbolic = false;
    bool drawsAnew = false;  // run again, it would give other random numbers
    bool collective = false;
    bool fusesWithAllUsers = true;  // not materialized
    int8_t recompute = 0;           // Provenance::recompute
    int region = 0;                 // Provenance::region

    bool requiredForward() const { return forwardOrder >= 0; }
    /// Must or prefer to be computed again, as the user has said.
    bool tagged() const { return recompute > 0; }
};

struct JointFacts {
    std::vector<JointNode> nodes;  // the output is the last
    std::vector<int> inputs;       // forward inputs: primals, then seeds
    std::vector<int> tangents;     // backward inputs: tangents, then seeds
    size_t forwardOutputs = 0;     // of the returned values, those that are the forward's
    std::vector<int> atId;         // by node id, its number in `nodes`; -1: none
    bool hasBackward = false;      // something depends on a tangent
    bool hasTags = false;          // something must or prefers to be recomputed

    int at(const Node& node) const { return atId[index(node.id())]; }
    const Node& output() const { return *nodes.back().node; }
    bool fusible(int value, int reader) const {
        return nodes[static_cast<size_t>(reader)].concatenates ||
               (nodes[static_cast<size_t>(value)].fusible && nodes[static_cast<size_t>(reader)].fusible);
    }
    const JointNode& operator[](int number) const { return nodes[static_cast<size_t>(number)]; }
};

/// `hints`: example values of size symbols. Errors: the graph has no output, or returns fewer values than it has
/// primals, so that it is not a joint graph.
Result<JointFacts> jointFacts(const Module& joint, const SymbolValues& hints);

/// How many of the values that a joint graph returns are the forward's (A6.3). Errors: as jointFacts.
Result<size_t> countForwardOutputs(const Module& joint);

/// Bytes of a value, all tensors of a tuple together; symbols without an example count as 4096, opaque values nothing.
int64_t bytesOf(const ValueType& type, const SymbolValues& hints);

/// Whether a node may be in the forward (or the backward) alone (B5.4).
bool mustBeInForward(const Node& node);
bool mustBeInBackward(const Node& node);

}  // namespace cutaway
