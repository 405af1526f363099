#include "engine/runtime/remote_values.h"

#include <algorithm>

#include "engine/support/process_memory.h"

namespace cutaway {

std::shared_ptr<Storage> RemoteValues::add(uint64_t address, size_t bytes) {
    auto storage = Storage::deferred(
        bytes, [own = shared_from_this(), address](std::span<std::byte> into) { return own->read(address, into); });
    const std::lock_guard lock(m_mutex);
    m_values[storage.get()] = {storage, address};
    return storage;
}

std::optional<uint64_t> RemoteValues::find(const Storage& storage) const {
    const std::lock_guard lock(m_mutex);
    const auto found = m_values.find(&storage);
    // Another storage may lie where one has been.
    if (found == m_values.end() || found->second.storage.expired()) return std::nullopt;
    return found->second.address;
}

void RemoteValues::keepOnly(const std::vector<Tensor>& tensors) {
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_values, [&](const auto& value) {
        return std::none_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
            return tensor.defined() && tensor.storage().get() == value.first;
        });
    });
}

Result<void> RemoteValues::read(uint64_t address, std::span<std::byte> into) const {
    const std::lock_guard lock(m_mutex);  // until it is read, it stays
    const bool there = std::any_of(m_values.begin(), m_values.end(),
                                   [&](const auto& value) { return value.second.address == address; });
    if (there) return readProcess(m_process, address, into);
    return Error{ErrorCode::ToolFailed, "a value that a run has left in its worker is gone", {}, {"run it again"}};
}

}  // namespace cutaway
