#pragma once
// How much memory a kernel goes through, to estimate its time.
#include <functional>
#include <vector>

#include "engine/loops/kernel.h"

namespace cutaway {

/// For each buffer the elements that loads read of it: a gather from a table, a slice or a window reads some, whatever
/// the size of what it lies in. Elements that several loads read count for each, so the buffer's own size is the other
/// bound. Lengths that follow from data (rows of a bag) add up to their bound. `likely` gives numbers for sizes.
std::vector<int64_t> elementsRead(const Kernel& kernel, const std::function<int64_t(const SymInt&)>& likely);

}  // namespace cutaway
