#pragma once
// What it is worth that two groups share a kernel: memory that is neither written nor read any more.
#include "engine/schedule/fusion.h"

namespace cutaway {

struct FusionScore {
    SymInt saved = 0;  // bytes
    /// "2.0 MiB of memory traffic", "512*s0 bytes of memory traffic".
    std::string text() const;
};
/// Counts each value once that one group reads and the other computes or reads, too, and once more if nobody else reads
/// it, since it then is not stored. Linear in what the two read.
FusionScore fusionScore(const Grouping& grouping, const FusionGroup& a, const FusionGroup& b);

/// Bytes of a value; 0 if it is no tensor.
SymInt bytesOf(const ValueKey& key);

}  // namespace cutaway
