#pragma once
// Philox 4x32-10: a counter-based generator. The same key and counter give the same four numbers on every machine, in
// any order, so that a kernel, a reference run and a recomputation agree.
#include <array>
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

}  // namespace cutaway
