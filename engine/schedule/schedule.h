#pragma once
// From a functional graph of ATen calls to a list of kernel, library and reference calls over values in memory.
#include "cutaway/jobs.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/program.h"

namespace cutaway {

/// The module with a schedule: its own, or a new one for the target that no fuel limits. Errors: its own is for another
/// target.
Result<std::shared_ptr<const Module>> scheduled(std::shared_ptr<const Module> module, const TargetInfo& target,
                                                const Progress& progress = {});

/// By the module's schedule (decisions.h), or by one that is made for the target. Errors: a call that nothing can
/// compute (no rule, no library, no reference kernel), named.
Result<ScheduledProgram> scheduleModule(std::shared_ptr<const Module> module, const TargetInfo& target,
                                        const Progress& progress = {});
/// Of a module with a schedule, for whoever asks only which call reads and writes what: kernels as they are before the
/// kernel rules, one for calls that are alike, without loop plans.
Result<ScheduledProgram> scheduleCalls(std::shared_ptr<const Module> module);

/// Errors: calls that are not as their operators' schemas say; views that lead out of their memory; a
/// call that nothing can compute. `schedule`: one in which nothing is decided yet.
Result<void> checkSchedulable(const Module& module, const Schedule& schedule);

/// Offsets of blocks in one arena such that blocks alive at the same time do not overlap. `begin` and `end` are
/// inclusive positions; a block of 0 bytes gets a place too. Returns the arena's size. Offsets are multiples of
/// the alignment (TargetInfo).
struct MemoryBlock {
    int64_t bytes = 0;
    int begin = 0, end = 0;
    int64_t offset = 0;
};
int64_t planMemory(std::vector<MemoryBlock>& blocks, int64_t alignment);

/// The memory of a program's temporaries and results: what kernels and libraries write.
struct ProgramMemory {
    struct Bar {
        size_t value = 0;  // index into ScheduledProgram::values
        MemoryBlock block;
    };
    std::vector<Bar> bars;    // in order of definition, without values that are written over others
    int64_t arena = 0;        // bytes
    int64_t largestLive = 0;  // bytes that live at once at the peak, in whole alignments: no plan needs fewer
    int peak = 0;             // the call at which they do
};
/// Errors: a size that is known only at run time.
Result<ProgramMemory> memoryOf(const ScheduledProgram& program);

}  // namespace cutaway
