#pragma once
// Seeded random numbers that are the same on every machine.
#include <cmath>
#include <cstdint>

namespace cutaway {

/// splitmix64: small, fast, good enough for inputs and fuzzing (not for the random ops, which use Philox).
class Random {
  public:
    static constexpr uint64_t kPerNormal = 2;  // numbers that one normal() takes

    explicit Random(uint64_t seed) : m_state(seed) {}
    /// As if next() had been called so many times.
    void skip(uint64_t count) { m_state += count * kStep; }
    uint64_t next() {
        uint64_t z = (m_state += kStep);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    /// 0 <= result < bound; bound > 0.
    uint64_t below(uint64_t bound) { return next() % bound; }
    /// 0 <= result < 1.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    /// Standard normal (Box-Muller).
    double normal() {
        const double u = 1.0 - uniform(), v = uniform();
        return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
    }

  private:
    static constexpr uint64_t kStep = 0x9E3779B97F4A7C15ull;
    uint64_t m_state;
};

}  // namespace cutaway
