#include "engine/support/machine.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cutaway/words.h"

// mimalloc's, in programs that use it.
extern "C" __attribute__((weak)) void mi_collect(bool force) noexcept;

namespace cutaway {
namespace {

/// The number after `key` in a file of "key number" lines; with an empty key the number that the file starts with.
std::optional<int64_t> numberIn(const std::string& path, const std::string& key = {}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        int64_t value = 0;
        if (!key.empty() && (!(words >> word) || word != key)) continue;
        if (words >> value) return value;
        return std::nullopt;
    }
    return std::nullopt;
}

/// What the limits of one hierarchy of control groups leave, from the process's group up to the root.
struct GroupFiles {
    std::string root;
    const char *limit, *usage, *cached;
};
std::optional<int64_t> leftByGroups(const GroupFiles& files, const std::string& group) {
    std::optional<int64_t> least;
    // Strings, not filesystem paths: the library's paths free what they do not own when they run out of memory.
    for (std::string folder = group == "/" ? "" : group;; folder.resize(folder.find_last_of('/'))) {
        const std::string here = files.root + folder + "/";
        const auto limit = numberIn(here + files.limit), usage = numberIn(here + files.usage);
        if (limit && usage) {
            // Cached files are given up when memory is wanted.
            const int64_t left = *limit - *usage + numberIn(here + "memory.stat", files.cached).value_or(0);
            least = std::min(least.value_or(left), left);
        }
        if (folder.find('/') == std::string::npos) return least;
    }
}

std::optional<int64_t> leftByGroups() {
    const GroupFiles second{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
    const GroupFiles first{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                           "total_inactive_file"};
    std::optional<int64_t> least;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b", "0::/a/b"
        const size_t kind = line.find(':'), path = line.find(':', kind + 1);
        if (kind == std::string::npos || path == std::string::npos) continue;
        const std::string controllers = "," + line.substr(kind + 1, path - kind - 1) + ",";
        const bool unified = controllers == ",,";
        if (!unified && controllers.find(",memory,") == std::string::npos) continue;
        if (const auto left = leftByGroups(unified ? second : first, line.substr(path + 1)))
            least = std::min(least.value_or(*left), *left);
    }
    return least;
}

std::optional<int64_t> leftOfAddressSpace(ForProcess process) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
    const int64_t used =
        process == ForProcess::This ? numberIn("/proc/self/statm").value_or(0) * ::sysconf(_SC_PAGESIZE) : 0;
    return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX)) - used;
}

/// Capped, since the sizes that a file states may multiply to more bytes than int64 can count.
std::string shown(double bytes) { return bytesText(static_cast<int64_t>(std::min(bytes, 9e18))); }

}  // namespace

std::optional<AvailableMemory> availableMemory(ForProcess process) {
    std::optional<AvailableMemory> least;
    const auto consider = [&](std::optional<int64_t> bytes, const char* by) {
        if (bytes && (!least || *bytes < least->bytes)) least = {std::max<int64_t>(*bytes, 0), by};
    };
    if (const auto free = numberIn("/proc/meminfo", "MemAvailable:")) consider(*free * 1024, "this machine");
    consider(leftByGroups(), "the memory limit of the container");
    consider(leftOfAddressSpace(process), "the limit on address space (ulimit -v)");
    return least;
}

int64_t peakMemory() { return numberIn("/proc/self/status", "VmHWM:").value_or(0) * 1024; }

void resetPeakMemory() { std::ofstream("/proc/self/clear_refs") << 5; }

namespace {
/// Whole pages: those at the borders, too.
[[maybe_unused]] void populate(const std::byte* data, size_t bytes, int how) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), first = reinterpret_cast<uintptr_t>(data);
    const uintptr_t begin = first / page * page;
    if (bytes > 0) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), first + bytes - begin, how));
}
}  // namespace

void touchPages([[maybe_unused]] std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
    populate(bytes.data(), bytes.size(), MADV_POPULATE_READ);
#endif
}

void populatePages([[maybe_unused]] std::span<std::byte> bytes) {
#ifdef MADV_POPULATE_WRITE
    populate(bytes.data(), bytes.size(), MADV_POPULATE_WRITE);
#endif
}

void forgetPages(std::span<std::byte> bytes) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes.size()) / page * page;
    if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
}

void forgetCode() {
    if (numberIn("/proc/self/status", "TracerPid:").value_or(0) != 0) return;
    const auto forgetFile = [](dl_phdr_info* file, size_t, void*) {
        const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
        for (int i = 0; i < file->dlpi_phnum; ++i) {
            const ElfW(Phdr)& part = file->dlpi_phdr[i];
            // What is never written lies in the file as it is in memory.
            if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
            const uintptr_t begin = (file->dlpi_addr + part.p_vaddr) / page * page,
                            end = file->dlpi_addr + part.p_vaddr + part.p_memsz;
            static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED));
        }
        return 0;
    };
    static_cast<void>(::dl_iterate_phdr(forgetFile, nullptr));
}

void wantLargePages(std::span<std::byte> bytes) {
#ifdef MADV_HUGEPAGE
    const auto first = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t begin = (first + kLargePage - 1) / kLargePage * kLargePage,
                    end = (first + bytes.size()) / kLargePage * kLargePage;
    if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
#else
    static_cast<void>(bytes);
#endif
}

int64_t cacheBytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
    for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
        if (const long bytes = ::sysconf(level); bytes > 0) return bytes;
#endif
    return int64_t{32} << 20;
}

void keepHeapSmall() {
    constexpr int kMebibyte = 1 << 20;
    ::mallopt(M_ARENA_MAX, 1);
    ::mallopt(M_TOP_PAD, 0);
    // The buffers of oneDNN's products are smaller: to map each of them anew takes a fifth of attention's time.
    ::mallopt(M_MMAP_THRESHOLD, kMebibyte);
    ::mallopt(M_TRIM_THRESHOLD, 2 * kMebibyte);
}

void returnFreeMemory() {
    if (mi_collect != nullptr) mi_collect(true);
    ::malloc_trim(0);
}

Result<void> checkMemory(const std::string& doing, const std::vector<MemoryRequest>& wishes, ForProcess process) {
    constexpr double kNoQuestion = 64e6;  // below this nothing is checked: any machine has it, and asking costs time
    double sum = 0;
    std::string parts;
    for (const MemoryRequest& wish : wishes) {
        sum += wish.bytes;
        if (wish.bytes > 0) parts += (parts.empty() ? "" : ", ") + wish.what + " " + shown(wish.bytes);
    }
    if (sum < kNoQuestion) return {};
    const auto available = availableMemory(process);
    if (!available || sum <= static_cast<double>(available->bytes)) return {};
    return Error{ErrorCode::Limit,
                 doing + " needs about " + shown(sum) + " of memory (" + parts + "), and " + available->limitedBy +
                     " leaves " + bytesText(available->bytes),
                 {},
                 {"give smaller inputs or sizes, close other programs, or raise the limit"}};
}

}  // namespace cutaway
