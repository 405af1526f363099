#pragma once
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

struct JoinedCollectives {
    std::vector<Node*> made;  // in the order in which they were made
    Node *start = nullptr, *wait = nullptr;
};
/// Whether the collective is of a kind that can be joined, and only its wait reads it.
bool isJoinable(const Node& collective);
/// One collective in place of several of one kind and group that do not need each other, behind the last of the list;
/// gathers may differ in dtype. The graph is in order afterwards. The caller has asked the rewriter.
Result<JoinedCollectives> joinCollectives(Graph& graph, Rewriter& rewriter, const std::vector<Node*>& collectives);

/// Collectives of one kind, group, reduction and dtype that are waited for one after the other become one on the joined
/// operands (PyTorch's bucket_*_fx, off by default; spec: passes 6.2, step 22). `bucket_cap_mb` (2000) limits what one
/// joins; a collective that depends on one in the bucket is left out. The order of other collectives stays, because all
/// members of a group must agree on it. Gathers are joined in functional form (PyTorch's mode "functional"; its default
/// writes into a buffer of its own). Leaves alone: symbolic sizes, results that are read by more than the wait,
/// conversions before a gather.
Result<bool> bucketReduceScatters(Module& module, Rewriter& rewriter);
Result<bool> bucketAllReduces(Module& module, Rewriter& rewriter);
Result<bool> bucketAllGathers(Module& module, Rewriter& rewriter);

}  // namespace cutaway
