#pragma once
// 128-bit streaming hash for fingerprints and cache keys; stable across runs and machines (little-endian).
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
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
    // Where only one lane is asked for, the other is left out.
    [[gnu::always_inline]] Hasher& add(uint64_t value) {
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

/// A hash that is worked out when it is first asked for and kept until reset. Several threads may ask for it and set it
/// at once, since they set the same; resetting is for the owner alone.
class CachedHash {
  public:
    CachedHash() = default;
    CachedHash(const CachedHash& other) { *this = other; }
    CachedHash& operator=(const CachedHash& other) {
        if (const auto known = other.get()) set(*known);
        else reset();
        return *this;
    }
    std::optional<Hash128> get() const {
        const uint64_t high = m_high.load(std::memory_order_acquire);
        if (high == 0) return std::nullopt;
        return Hash128{high, m_low.load(std::memory_order_relaxed)};
    }
    void set(const Hash128& hash) {
        m_low.store(hash.low, std::memory_order_relaxed);
        m_high.store(hash.high, std::memory_order_release);
    }
    void reset() { m_high.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> m_high{0}, m_low{0};  // high 0: not known
};

}  // namespace cutaway
