#include "engine/runtime/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cutaway/words.h"

namespace cutaway {
namespace {

Error systemError(const std::string& what, size_t bytes) {
    const int reason = errno;
    if (reason == ENOSPC || reason == ENOMEM || reason == EFBIG)
        return {ErrorCode::Limit,
                "out of memory: " + bytesText(static_cast<int64_t>(bytes)) + " for " + what + " could not be had",
                {},
                {"give smaller inputs, or close other programs"}};
    if (reason == EFAULT)
        return {
            ErrorCode::InvalidInput, "the file that " + what + " are read from became shorter", {}, {"open it again"}};
    return {ErrorCode::ToolFailed,
            "no memory to share for " + what + ": " + std::generic_category().message(reason),
            {},
            {}};
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::string what) {
    const int made = ::memfd_create("cutaway", MFD_CLOEXEC);
    if (made < 0) return systemError(what, 0);
    // A descriptor above those of the standard streams, even if one of these is closed, since a child puts its own
    // there.
    const int descriptor = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(made);
    if (descriptor < 0) return systemError(what, 0);
    return SharedMemory(descriptor, std::move(what));
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(m_descriptor, other.m_descriptor);
    std::swap(m_what, other.m_what);
    return *this;
}

SharedMemory::~SharedMemory() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Result<void> SharedMemory::write(size_t offset, std::string_view bytes) {
    const size_t all = bytes.size();
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(m_descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return systemError(m_what, all);
        offset += static_cast<size_t>(written);
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
}

Result<std::span<std::byte>> SharedMemory::map(std::shared_ptr<const void>& owner) const {
    struct stat facts {};
    if (::fstat(m_descriptor, &facts) != 0) return systemError(m_what, 0);
    const auto bytes = static_cast<size_t>(facts.st_size);
    if (bytes == 0) return std::span<std::byte>();
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, m_descriptor, 0);
    if (memory == MAP_FAILED) return systemError(m_what, bytes);
    owner = std::shared_ptr<const void>(memory,
                                        [bytes](const void* mapped) { ::munmap(const_cast<void*>(mapped), bytes); });
    return std::span(static_cast<std::byte*>(memory), bytes);
}

void SharedMemory::forget(size_t offset, size_t bytes) const {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
    // A system that cannot do it keeps the memory.
    if (begin < end)
        static_cast<void>(::fallocate(m_descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      static_cast<off_t>(begin), static_cast<off_t>(end - begin)));
}

Result<SharedMemory> SharedMemory::duplicate() const {
    const int descriptor = ::fcntl(m_descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (descriptor < 0) return systemError(m_what, 0);
    return SharedMemory(descriptor, m_what);
}

Result<std::span<std::byte>> SharedMemory::share(size_t bytes, std::shared_ptr<const void>& owner) const {
    struct stat facts {};
    if (::fstat(m_descriptor, &facts) != 0 ||
        (static_cast<size_t>(facts.st_size) < bytes && ::ftruncate(m_descriptor, static_cast<off_t>(bytes)) != 0))
        return systemError(m_what, bytes);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m_descriptor, 0);
    if (memory == MAP_FAILED) return systemError(m_what, bytes);
    owner = std::shared_ptr<const void>(memory,
                                        [bytes](const void* mapped) { ::munmap(const_cast<void*>(mapped), bytes); });
    return std::span(static_cast<std::byte*>(memory), bytes);
}

}  // namespace cutaway
