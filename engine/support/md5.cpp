#include "engine/support/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace cutaway {
namespace {

using State = std::array<uint32_t, 4>;

/// The integer parts of 2^32 |sin(i + 1)|, as RFC 1321 defines its table.
const std::array<uint32_t, 64>& sines() {
    static const std::array<uint32_t, 64> table = [] {
        std::array<uint32_t, 64> out{};
        for (size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<uint32_t>(
                static_cast<uint64_t>(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
        return out;
    }();
    return table;
}

void addBlock(State& state, const unsigned char* block) {
    static constexpr int kTurns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    std::array<uint32_t, 16> words{};
    for (size_t i = 0; i < 16; ++i)
        for (size_t byte = 4; byte-- > 0;) words[i] = words[i] << 8 | block[4 * i + byte];
    auto [a, b, c, d] = state;
    for (uint32_t i = 0; i < 64; ++i) {
        uint32_t mixed = 0, word = 0;
        switch (i / 16) {
            case 0:
                mixed = (b & c) | (~b & d);
                word = i;
                break;
            case 1:
                mixed = (d & b) | (~d & c);
                word = (5 * i + 1) % 16;
                break;
            case 2:
                mixed = b ^ c ^ d;
                word = (3 * i + 5) % 16;
                break;
            default: mixed = c ^ (b | ~d); word = (7 * i) % 16;
        }
        const uint32_t turned = std::rotl(a + mixed + sines()[i] + words[word], kTurns[i / 16][i % 4]);
        a = d;
        d = c;
        c = b;
        b += turned;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

}  // namespace

std::string md5Hex(std::string_view bytes) {
    State state = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u};
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    const size_t whole = bytes.size() / 64 * 64;
    for (size_t at = 0; at < whole; at += 64) addBlock(state, data + at);
    // The rest, a one bit, zeros, and the length in bits.
    std::array<unsigned char, 128> tail{};
    const size_t rest = bytes.size() - whole, padded = rest < 56 ? 64 : 128;
    if (rest > 0) std::memcpy(tail.data(), data + whole, rest);
    tail[rest] = 0x80;
    const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
    for (size_t i = 0; i < 8; ++i) tail[padded - 8 + i] = static_cast<unsigned char>(bits >> (8 * i));
    for (size_t at = 0; at < padded; at += 64) addBlock(state, tail.data() + at);
    std::string out;
    for (uint32_t word : state)
        for (int byte = 0; byte < 4; ++byte) {
            const uint32_t value = word >> (8 * byte) & 0xFF;
            out += "0123456789abcdef"[value >> 4];
            out += "0123456789abcdef"[value & 15];
        }
    return out;
}

}  // namespace cutaway
