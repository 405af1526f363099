#pragma once
// How printed host programs write texts, lists and numbers. A namespace of its own: literals of FX text are quoted in
// another way (text/literal.h), by a function of the same name.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::host_words {

/// A literal of C++: anything that is not plain becomes an escape.
inline std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = byte >= ' ' && byte < 127 && c != '"' && c != '\\' && c != '?';
        if (plain) {
            result += c;
            continue;
        }
        const char digits[] = {'\\', static_cast<char>('0' + byte / 64), static_cast<char>('0' + byte / 8 % 8),
                               static_cast<char>('0' + byte % 8), 0};
        result += digits;
    }
    return result + "\"";
}
inline std::string listed(const std::vector<std::string>& items) {
    std::string all;
    for (const std::string& item : items) all += (all.empty() ? "" : ", ") + item;
    return all;
}
inline std::string integer(int64_t value) {
    if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807L - 1)";
    return std::to_string(value) + (value == static_cast<int32_t>(value) ? "" : "L");
}

}  // namespace cutaway::host_words
