#include "engine/runtime/left_values.h"

#include "engine/support/process_memory.h"

namespace cutaway {

std::shared_ptr<Storage> LeftValues::add(uint64_t address, size_t bytes) {
    auto storage = Storage::deferred(
        bytes, [own = shared_from_this(), address](std::span<std::byte> into) -> Result<void> {
            const Error gone{
                ErrorCode::ToolFailed, "a value that a run has left in its worker is gone", {}, {"run it again"}};
            if (own->m_ended) return gone;
            CT_TRY_VOID(readProcess(own->m_process, address, into));
            return own->m_ended ? Result<void>(gone) : Result<void>();
        });
    const std::lock_guard lock(m_mutex);
    m_values[storage.get()] = {storage, address};
    return storage;
}

std::optional<uint64_t> LeftValues::find(const Storage& storage) const {
    const std::lock_guard lock(m_mutex);
    const auto known = m_values.find(&storage);
    // Another storage may lie where one has been.
    if (m_ended || known == m_values.end() || known->second.storage.expired()) return std::nullopt;
    return known->second.address;
}

}  // namespace cutaway
