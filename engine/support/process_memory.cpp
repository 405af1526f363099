#include "engine/support/process_memory.h"

#include <sys/uio.h>

#include <cerrno>
#include <system_error>

namespace cutaway {

bool mayReadProcess(int process) {
    std::byte byte{};
    const iovec into{&byte, 1}, nowhere{nullptr, 1};
    // It may, if the system goes on to look at the address.
    return ::process_vm_readv(process, &into, 1, &nowhere, 1, 0) < 0 && errno == EFAULT;
}

Result<void> readProcess(int process, uint64_t address, std::span<std::byte> into) {
    while (!into.empty()) {
        const iovec here{into.data(), into.size()}, there{reinterpret_cast<void*>(address), into.size()};
        const ssize_t got = ::process_vm_readv(process, &here, 1, &there, 1, 0);
        if (got <= 0)
            return Error{ErrorCode::ToolFailed,
                         "the memory of a worker could not be read: " + std::generic_category().message(errno),
                         {},
                         {}};
        address += static_cast<uint64_t>(got);
        into = into.subspan(static_cast<size_t>(got));
    }
    return {};
}

}  // namespace cutaway
