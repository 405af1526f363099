#pragma once
// Decides which part of a joint graph can be computed a few rows at a time, so that the result of a product much larger
// than its operands is never whole in memory (spec: passes §2.2, step 7). The rows of the product are cut; from there
// it follows values forward and backward as far as there are values of that size, and says of each how it is cut. Edits
// nothing.
#include <optional>
#include <string>
#include <vector>

#include "cutaway/request.h"
#include "engine/ir/graph.h"

namespace cutaway {

/// How a value is put together from the chunks' values.
struct Cut {
    int64_t dim = -1;  // the chunks' values are concatenated along this dim; -1: every chunk has the same whole value
    bool summed = false;          // the chunks' values are added up; `dim` is -1
    const Node* scale = nullptr;  // computed as if this incoming gradient (a single number) were 1, so it must still be
                                  // multiplied by it
    bool operator==(const Cut&) const = default;
};

/// Settings of `--enable auto_chunker=...`, with PyTorch's names and defaults.
struct ChunkSettings {
    explicit ChunkSettings(const CompileRequest& options);
    int64_t chunks;                // num_chunk: 8
    double outputSizeThreshold;    // output_size_threshold: bytes that the product's result must exceed, 1048576
    double amplifyRatioThreshold;  // amplify_ratio_threshold: how many times larger than the operands it must be, 8
};

struct ChunkPlan {
    Node* product = nullptr;
    std::vector<int64_t> rows;             // of each chunk; all but the last are equal
    int64_t count = 0;                     // the number of chunks asked for; there may be fewer
    std::vector<std::optional<Cut>> cuts;  // by node id; those of the part
    std::vector<Node*> inputs;             // of the part, in graph order: computed before it
    std::vector<Node*> tangents;           // incoming gradients, which are 1 within the part
    std::vector<Node*> body;               // computed in chunks, in graph order
    std::vector<Node*> outputs;            // those of the body that are read outside of it, cut or summed

    const std::optional<Cut>& cutOf(const Node& node) const { return cuts[static_cast<size_t>(node.id())]; }
};

/// The plan of a graph, or in `reason` a sentence that says why there is none. The sentence is about `product`, or
/// without it about the product that is largest compared with its operands.
struct ChunkPlanning {
    std::optional<ChunkPlan> plan;
    std::string reason;
};
ChunkPlanning planChunks(Graph& graph, const ChunkSettings& settings, const Node* product = nullptr);

/// A gradient that comes in from outside.
bool isTangent(const Node& node);

}  // namespace cutaway
