#include "engine/support/hash.h"

#include <cstdio>

namespace cutaway {

Hasher& Hasher::addBytes(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    add(static_cast<uint64_t>(size));
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        std::memcpy(&word, bytes, 8);
        add(word);
    }
    if (size > 0) {
        uint64_t word = 0;
        std::memcpy(&word, bytes, size);
        add(word);
    }
    return *this;
}

std::string Hash128::hex() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                  static_cast<unsigned long long>(low));
    return text;
}

}  // namespace cutaway
