#pragma once
// From a functional graph of ATen calls to a list of kernel, library and reference calls over values in memory.
#include "cutaway/jobs.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/program.h"

namespace cutaway {

/// By the module's schedule (decisions.h), or by one that is made for it. Errors: a call that nothing can compute (no
/// rule, no library, no reference kernel), named.
Result<ScheduledProgram> scheduleModule(std::shared_ptr<const Module> module, const Progress& progress = {});

/// Errors: calls that are not as their operators' schemas say; views that lead out of their memory.
Result<void> checkSchedulable(const Module& module);

/// Offsets of blocks in one arena such that blocks alive at the same time do not overlap. `begin` and `end` are
/// inclusive positions; a block of 0 bytes gets a place too. Returns the arena's size. Offsets are multiples of 64.
struct MemoryBlock {
    int64_t bytes = 0;
    int begin = 0, end = 0;
    int64_t offset = 0;
};
int64_t planMemory(std::vector<MemoryBlock>& blocks);

}  // namespace cutaway
