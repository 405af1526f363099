#pragma once
// What it is worth that two groups share a kernel: memory that is neither written nor read any more.
#include "engine/schedule/fusion.h"

namespace cutaway {

/// Bytes of a value; 0 if it is not a tensor.
SymInt bytesOf(const ValueKey& key);
/// Bytes that sharing a kernel saves. Counts each value once that one group reads and the other computes or reads, too,
/// and once more if nobody else reads it, since it then is not stored. Linear in what the two read.
SymInt bytesSaved(const Grouping& grouping, const FusionGroup& a, const FusionGroup& b);
/// "2.0 MiB of memory traffic", "512*s0 bytes of memory traffic".
std::string trafficText(const SymInt& bytes);

}  // namespace cutaway
