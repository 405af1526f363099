#pragma once
// What the partitioner can be told (spec: autograd B.2), by PyTorch's names of the options.
#include <string>

#include "cutaway/request.h"

namespace cutaway {

/// What may not be computed again in the backward; each is one of PyTorch's heuristics (B.8).
struct BanOptions {
    bool usedFarApart = true;          // ban_recompute_used_far_apart
    bool longFusibleChains = true;     // ban_recompute_long_fusible_chains
    bool materializedBackward = true;  // ban_recompute_materialized_backward
    bool notInAllowlist = true;        // ban_recompute_not_in_allowlist
    bool reductions = true;            // ban_recompute_reductions
};

enum class Solver : uint8_t { Greedy, Ilp, Dp, Hirschberg, DynamicDp };
enum class Estimator : uint8_t { Flops, Profile, Testing };

struct PartitionOptions {
    BanOptions bans;
    bool defaultPartition = false;  // partitioner: everything that the backward reads is saved
    bool cse = true;
    bool recomputeViews = false;
    bool parametersAreFree = true;  // treat_parameters_as_free_to_save
    bool includeCustomOps = false;  // is_non_builtin_to_include
    int64_t maxDistance = 1000;     // max_dist_from_bw
    double budget = 1;              // activation_memory_budget: 0 saves inputs only, 1 what is fastest
    Solver solver = Solver::Dp;
    Estimator estimator = Estimator::Flops;
    /// For functions without parameters whose joint graph does not say which inputs stay: indices of primals.
    std::vector<int> staticInputs;
};

/// Those of a request. Errors: a value that is not one of the option's, with what it may be; a budget outside 0 to 1.
Result<PartitionOptions> partitionOptions(const CompileRequest& request);

}  // namespace cutaway
