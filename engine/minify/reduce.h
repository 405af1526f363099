#pragma once
// Our own minifier: few questions, and a graph of which nothing can be taken away. In order: where the failure is
// complete (a binary search from the end), where it begins (from there backwards, in growing steps), then calls between
// are bypassed or replaced by inputs in chunks of falling size; outputs, inputs, bodies, the request, sizes, dtypes and
// literals; and again until nothing changes.
#include "engine/minify/candidate.h"

namespace cutaway {

struct ReduceOptions {
    /// Strategies that are left out, by name (reduceStrategies()).
    std::vector<std::string> without;
};
struct ReduceStrategy {
    std::string_view name, summary;
};
/// In running order.
std::vector<ReduceStrategy> reduceStrategies();

/// Errors: the graph does not fail; those of `trials`.
Result<Candidate> reduce(const Candidate& start, Trials& trials, const ReduceOptions& options = {});

}  // namespace cutaway
