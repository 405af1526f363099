#pragma once
// What can be batched, and how: the rules of batch_fusion.
#include <span>

#include "engine/rewrite/refusing.h"

namespace cutaway::batching {

/// Settings of a rule.
struct Search {
    Search(const CompileRequest& options, std::string_view rule);
    int least, most, depth;
    int64_t largestGrouped;  // the largest size of what group_linear takes
    bool sameUsers, sameParent, broadcastBias, parity;
};

struct BatchRule {
    std::string_view name;
    std::string_view function;  // what is batched, by the name that Python or ATen gives it; where there are several,
                                // as CodeRule::starts
    /// Calls with equal keys may be fused. Nothing for calls of other rules, and for calls that cannot be fused, after
    /// saying why.
    std::optional<std::string> (*key)(const Node& node, const BatchRule& rule, const Search& search,
                                      const Refusing& no);
    /// Replaces the calls. The graph's order may be wrong afterwards; the driver sorts it.
    Result<void> (*fuse)(const std::vector<Node*>& subset, const BatchRule& rule, const Search& search,
                         Rewriter& rewriter);
};

std::span<const BatchRule> batchRules();

}  // namespace cutaway::batching
