#pragma once
// Philox 4x32-10: a counter-based generator. The same key and counter give the same four numbers on every machine, in
// any order, so that a kernel, a reference run and a recomputation agree. Exported programs carry this file.
#include <array>
#include <cmath>
#include <cstdint>

namespace cutaway {

inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter, uint64_t stream = 0) {
    std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                                 static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
        c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
             static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/// The first half of what Philox gives, as one number.
inline uint64_t wideBits(const std::array<uint32_t, 4>& bits) { return static_cast<uint64_t>(bits[0]) << 32 | bits[1]; }
/// The key of the n-th call of a run that draws (`draw` = n). A graph's seeds are such keys, too, so that a call that
/// draws by a seed gives the numbers of the call that it replaces.
inline uint64_t keyOfDraw(uint64_t seed, uint64_t draw) {
    return wideBits(philox(seed, draw, ~uint64_t{0})) >> 1;  // seeds are not negative
}
/// The numbers of a key in order, as a generator for the standard library's distributions.
class KeyBits {
  public:
    using result_type = uint64_t;
    explicit KeyBits(uint64_t key) : m_key(key) {}
    static constexpr uint64_t min() { return 0; }
    static constexpr uint64_t max() { return ~uint64_t{0}; }
    uint64_t operator()() { return wideBits(philox(m_key, m_counter++)); }

  private:
    uint64_t m_key, m_counter = 0;
};
/// 0 <= u < 1 with 53 bits.
inline double uniform(const std::array<uint32_t, 4>& bits) {
    return static_cast<double>(wideBits(bits) >> 11) * 0x1.0p-53;
}
/// Box-Muller.
inline double normal(const std::array<uint32_t, 4>& bits) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(bits)));
    return radius * std::cos(6.283185307179586 * uniform({bits[2], bits[3], 0, 0}));
}
/// How many integers there are from `low` to below `high`; unsigned, since it may exceed int64.
inline uint64_t integersBetween(int64_t low, int64_t high) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
}
/// One of `count` integers from `low` on; a count of 0 stands for 2^64.
inline int64_t integerFrom(const std::array<uint32_t, 4>& bits, int64_t low, uint64_t count) {
    const uint64_t wide = wideBits(bits);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (count == 0 ? wide : wide % count));
}
inline int64_t integerBetween(const std::array<uint32_t, 4>& bits, int64_t low, int64_t high) {
    return integerFrom(bits, low, integersBetween(low, high));
}

}  // namespace cutaway
