#pragma once
// What the user, or a transformation of the user's, says of single values: to be saved, or computed again (spec:
// autograd B.3 step 4, B.10).
#include "engine/partition/joint_facts.h"

namespace cutaway {

/// Settles contradictions between the marks, in the facts. A value that leaves one checkpointed region for another is
/// saved; so is what a collective or a call with an effect returns, and what the forward writes to an input that the
/// backward writes to, too. Draws of random numbers are saved even if they are marked to be computed again, which gives
/// the same numbers as PyTorch's way of keeping the generator's state. With `defaultPartition` what enters a region is
/// saved, too.
void settleRecomputeTags(JointFacts& facts, bool defaultPartition);

}  // namespace cutaway
