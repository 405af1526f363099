// The joint graph becomes a forward and a backward (spec: autograd part B).
#include <algorithm>

#include "engine/passes/operator_rewrites.h"
#include "engine/passes/partition/merge_equal_calls.h"
#include "engine/passes/partition/split_joint_graph.h"
#include "engine/passes/stage.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {
namespace {

bool isPartitioned(const CompileRequest& request) { return request.mode == Mode::Training; }
bool mergesCalls(const CompileRequest& request) {
    if (!isPartitioned(request)) return false;
    const OptionalPass* given = request.enabled("partition");
    if (given == nullptr) return true;
    const bool minCut = std::none_of(given->settings.begin(), given->settings.end(), [](const auto& one) {
        return one.first == "partitioner" && one.second == "default";
    });
    return minCut && given->flag("cse", true);
}

constexpr CodeRewrite kSplitRewrites[] = {
    {"partition", "What the backward needs of the forward is saved, or computed again where that is cheaper"}};
constexpr Dependency kMergeAfter[] = {{"eliminate_dead_code", "dead calls need not be compared"}};

constexpr Row kPartitionRows[] = {Pass{.name = "eliminate_dead_code",
                                       .summary = "Drops nodes that nobody reads",
                                       .run = eliminateDeadCode,
                                       .when = isPartitioned,
                                       .rewrites = kDeadCodeRewrites},
                                  Pass{.name = "fx_graph_cse",
                                       .summary = "Merges calls that compute the same",
                                       .run = mergeEqualCallsBySide,
                                       .when = mergesCalls,
                                       .after = kMergeAfter,
                                       .rewrites = kEqualCallRewrites},
                                  Pass{.name = "min_cut_rematerialization_partition",
                                       .summary = "Splits the joint graph into forward and backward",
                                       .split = splitJointGraph,
                                       .when = isPartitioned,
                                       .required = true,
                                       .repeats = "the graph stays as it is, so it can be split again",
                                       .rewrites = kSplitRewrites}};
constexpr Dependency kPartitionAfter[] = {
    {"joint", "what is computed again is decided for the graph as its rules leave it"}};

}  // namespace

const Stage kPartition{.name = "partition", .rows = kPartitionRows, .after = kPartitionAfter};

}  // namespace cutaway
