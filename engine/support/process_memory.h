#pragma once
// What another process of this user holds, read without a file between the two.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cutaway/result.h"

namespace cutaway {

/// Whether the system lets this process read that one's memory: its children's, as a rule, but in some containers and
/// with a strict ptrace_scope.
bool mayReadProcess(int process);

/// Fills `into` with what lies at `address` in the process, which must not change it meanwhile. Errors: ToolFailed if
/// the process has ended, or has nothing there.
Result<void> readProcess(int process, uint64_t address, std::span<std::byte> into);

}  // namespace cutaway
