#include "engine/support/characters.h"

#include <algorithm>

namespace cutaway {
namespace {

struct CodeRange {
    uint32_t first, last;
};
/// Punctuation, symbols, blanks, surrogates and private use, by Unicode's blocks; a few signs inside blocks of letters
/// pass as letters. Ascending.
constexpr CodeRange kNoLetters[] = {
    {0x80, 0xA9},       {0xAB, 0xB4},       {0xB6, 0xB6},       {0xB8, 0xB9},       {0xBB, 0xBF},     {0xD7, 0xD7},
    {0xF7, 0xF7},       {0x037E, 0x037E},   {0x1680, 0x1680},   {0x2000, 0x203E},   {0x2041, 0x2053}, {0x2055, 0x2070},
    {0x207A, 0x207E},   {0x208A, 0x208F},   {0x20A0, 0x20CF},   {0x2190, 0x2BFF},   {0x2E00, 0x2E7F}, {0x2FF0, 0x3004},
    {0x3008, 0x3020},   {0x3030, 0x3030},   {0x3036, 0x3037},   {0x303D, 0x3040},   {0x30FB, 0x30FB}, {0x3190, 0x319F},
    {0x3200, 0x33FF},   {0x4DC0, 0x4DFF},   {0xD800, 0xF8FF},   {0xFE10, 0xFE1F},   {0xFE35, 0xFE4C}, {0xFE50, 0xFE70},
    {0xFEFF, 0xFF0F},   {0xFF1A, 0xFF20},   {0xFF3B, 0xFF3E},   {0xFF40, 0xFF40},   {0xFF5B, 0xFF65}, {0xFFE0, 0xFFFF},
    {0x1D000, 0x1D3FF}, {0x1F000, 0x1FBEF}, {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF}};

bool isLetterBeyondAscii(uint32_t code) {
    const auto* after = std::upper_bound(std::begin(kNoLetters), std::end(kNoLetters), code,
                                         [](uint32_t value, const CodeRange& range) { return value < range.first; });
    return after == std::begin(kNoLetters) || code > std::prev(after)->last;
}

}  // namespace

Character firstCharacter(std::string_view text) {
    if (text.empty()) return {};
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1};
    const size_t count = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
    if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < count) return {};
    uint32_t code = byte(0) & (0xFFu >> (count + 1));
    for (size_t i = 1; i < count; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3Fu);
    }
    // Longer than it need be, a surrogate, or beyond Unicode.
    const bool overlong = (count == 3 && code < 0x800) || (count == 4 && code < 0x10000);
    if (overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {};
    return {code, count};
}

size_t nameCharacter(std::string_view text) {
    if (text.empty()) return 0;
    const char c = text[0];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') return 1;
    if (static_cast<unsigned char>(c) < 0x80) return 0;
    const Character character = firstCharacter(text);
    return character.bytes != 0 && isLetterBeyondAscii(character.code) ? character.bytes : 0;
}

std::string visibleText(std::string_view text, bool lines) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character character = firstCharacter(text);
        const bool kept = lines && (text[0] == '\n' || text[0] == '\t');
        // C1 controls are two bytes in UTF-8; terminals obey them, too.
        const bool control = character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0);
        const size_t count = std::max<size_t>(character.bytes, 1);
        if (character.bytes != 0 && (kept || !control)) out += text.substr(0, count);
        else
            for (const char c : text.substr(0, count)) {
                out += "\\x";
                out += kHex[static_cast<unsigned char>(c) >> 4];
                out += kHex[static_cast<unsigned char>(c) & 15];
            }
        text.remove_prefix(count);
    }
    return out;
}

std::string_view clipped(std::string_view text, size_t bytes) {
    if (text.size() <= bytes) return text;
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
    return text.substr(0, bytes);
}

}  // namespace cutaway
