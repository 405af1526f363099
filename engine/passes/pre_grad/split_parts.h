#pragma once
// Splits and their parts, as the split/cat passes see them.
#include <numeric>
#include <set>

#include "engine/passes/pre_grad/torch_graph.h"
#include "engine/rewrite/refusing.h"

namespace cutaway::pregrad {

/// torch.split(input, [sizes], dim=dim), every reader of which takes one part, each part once.
struct NormalSplit {
    Node* input = nullptr;
    std::vector<int64_t> sizes;
    int64_t dim = 0, rank = 0;

    /// Where a part begins along the dim; for part number `sizes.size()`, the end of the input.
    int64_t begin(int64_t part) const { return std::accumulate(sizes.begin(), sizes.begin() + part, int64_t{0}); }
};
std::optional<NormalSplit> normalSplit(const Node& node, const Refusing& no = {});
/// The sizes of the parts of any split, from its type.
std::optional<std::vector<int64_t>> splitSizes(const Node& split);

/// Which item of a tuple the node takes; nothing for other nodes and for items counted from the back.
std::optional<int64_t> partNumber(const Node& node);

/// x[:, begin:end] for the parts first..last.
Node& sliceOf(TorchBuilder& builder, const NormalSplit& split, int64_t first, int64_t last);

/// Erases those of the nodes that nobody reads, and splits that thereby lose their last reader.
void eraseUnread(Graph& graph, const std::vector<Node*>& nodes);

}  // namespace cutaway::pregrad
