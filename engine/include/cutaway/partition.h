#pragma once
// What a training run's partition hands from the forward to the backward, as values for windows and the command line.
#include <cstdint>
#include <string>
#include <vector>

#include "cutaway/node_key.h"

namespace cutaway {

/// A value that the forward saves for the backward.
struct SavedTensor {
    NodeKey node = NodeKey::None;  // in the joint graph, and in the forward and the backward
    std::string name, op;          // "placeholder" for inputs
    std::string tensor;            // the model's name of a parameter, buffer or constant: "layer.0.weight"
    std::string type;              // "f32[8, 64]"
    std::string dtype;             // "float32"
    std::vector<std::string> sizes;
    int64_t bytes = 0;   // symbols without an example count as 4096
    bool input = false;  // of the forward: its memory is there anyway
    std::string why;     // a sentence without its full stop
};

/// What one memory budget means.
struct PartitionChoice {
    double budget = 1;
    std::string attempt;  // which of the attempts at a partition it is: "the fastest backward"
    std::vector<SavedTensor> saved;
    int64_t savedBytes = 0, activationBytes = 0;  // of all saved values; without inputs
    std::vector<NodeKey> recomputed;              // computed in the forward and again in the backward
    double recomputedRuntime = 0;  // of what the budget computes again, in the estimator's unit (flops, ms or nodes)
    double milliseconds = 0;       // that choosing took
};

/// A point of the curve of memory against recomputation.
struct BudgetPoint {
    double budget = 1;
    int64_t activationBytes = 0;
    double recomputedRuntime = 0;
    size_t recomputed = 0;  // nodes
};

/// Where a node of the joint graph is computed.
enum class Side : uint8_t { Forward, Backward, Both };
struct NodeSide {
    NodeKey node = NodeKey::None;
    Side side = Side::Forward;
    bool saved = false;
};

/// Bytes that are held for the backward after a call of the forward, and then of the backward.
struct SavedBytes {
    NodeKey node = NodeKey::None;
    std::string name;
    bool backward = false;
    int64_t bytes = 0;
};

}  // namespace cutaway
