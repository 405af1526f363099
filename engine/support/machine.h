#pragma once
// What the machine has left.
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

struct AvailableMemory {
    int64_t bytes = 0;
    std::string
        limitedBy;  // "this machine", "the memory limit of the container", "the limit on address space (ulimit -v)"
};
/// What this process, or one that it starts, may still get before the system refuses or swaps: the least of the
/// machine's free memory, the limits of its control groups and RLIMIT_AS. Nothing where the system does not say.
enum class ForProcess : uint8_t { This, NewChild };
std::optional<AvailableMemory> availableMemory(ForProcess process = ForProcess::This);

/// The most memory that this process has held, in bytes; 0 where the system does not say.
int64_t peakMemory();
/// Starts peakMemory() anew from what is held now.
void resetPeakMemory();
/// touchPages() maps the pages in, so that their memory counts from the start and not when they are first used;
/// populatePages() does so for memory that is going to be written.
/// forgetPages() gives whole pages of private memory back, which read as zeros from then on. Results need neither.
void touchPages(std::span<const std::byte> bytes);
void populatePages(std::span<std::byte> bytes);
void forgetPages(std::span<std::byte> bytes);
/// Gives back pages of code and of its tables, which lie in the files of programs and libraries and are read from there
/// when they are wanted again: for when much of what has run will not run again. Not under a debugger, which has set
/// breakpoints in them.
void forgetCode();
/// Asks for large pages for memory that is about to be written, which take a tenth of the time to get.
void wantLargePages(std::span<std::byte> bytes);
constexpr size_t kLargePage = size_t{2} << 20;
/// Bytes of the largest cache of a core; 32 MiB if the system does not tell.
int64_t cacheBytes();
/// Keeps the C library's heap small: one for all threads, without room ahead, of which 2 MiB at most lie free at its
/// end. Blocks that libraries take and free in each call stay in it. To be called before there are threads.
void keepHeapSmall();
/// Gives memory that was freed, and that the allocator keeps for later, back to the system.
void returnFreeMemory();

/// One thing that memory is wanted for: "the inputs".
struct MemoryRequest {
    std::string what;
    double bytes = 0;
};
/// An error, with all figures and what to do, if together they are more than is available. `doing` begins the sentence:
/// "the run".
Result<void> checkMemory(const std::string& doing, const std::vector<MemoryRequest>& wishes,
                         ForProcess process = ForProcess::This);

}  // namespace cutaway
