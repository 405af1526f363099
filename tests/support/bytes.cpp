#include "tests/support/bytes.h"

#include <algorithm>

namespace cutaway::testing {

std::shared_ptr<Storage> storageOf(const std::string& bytes) {
    auto* memory = new char[std::max<size_t>(bytes.size(), 1)];
    bytes.copy(memory, bytes.size());
    std::shared_ptr<const void> owner(memory, [](const void* at) { delete[] static_cast<const char*>(at); });
    return Storage::view(memory, bytes.size(), std::move(owner));
}

}  // namespace cutaway::testing
