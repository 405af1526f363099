#pragma once
// 128-bit streaming hash for fingerprints and cache keys; stable across runs and machines (little-endian).
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace cutaway {

struct Hash128 {
    uint64_t high = 0, low = 0;
    bool operator==(const Hash128&) const = default;
    std::string hex() const;
};

/// Not cryptographic. Two independently mixed 64-bit lanes (splitmix64 finalizer).
class Hasher {
  public:
    Hasher& add(uint64_t value) {
        m_low = mix(m_low ^ (value * 0x9E3779B97F4A7C15ull));
        m_high = mix(m_high + (value ^ 0xC2B2AE3D27D4EB4Full));
        return *this;
    }
    Hasher& add(int64_t value) { return add(static_cast<uint64_t>(value)); }
    Hasher& add(int value) { return add(static_cast<uint64_t>(static_cast<int64_t>(value))); }
    Hasher& add(bool value) { return add(static_cast<uint64_t>(value)); }
    Hasher& add(double value) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        return add(bits);
    }
    Hasher& add(std::string_view text) { return addBytes(text.data(), text.size()); }
    Hasher& addBytes(const void* data, size_t size);
    Hash128 finish() const { return {mix(m_high), mix(m_low)}; }

  private:
    static uint64_t mix(uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    uint64_t m_low = 0x243F6A8885A308D3ull, m_high = 0x13198A2E03707344ull;
};

}  // namespace cutaway
