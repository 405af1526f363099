#ifndef CUTAWAY_JSON_READER_H
#define CUTAWAY_JSON_READER_H
// As much of JSON as safetensors' headers and our manifests hold. C++17 and nothing of the engine.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ct {

/// Objects, lists, texts and whole numbers. Throws std::runtime_error.
class JsonReader {
  public:
    explicit JsonReader(std::string_view text) : m_text(text) {}

    bool take(char wanted) {
        if (!see(wanted)) return false;
        ++m_at;
        return true;
    }
    void expect(char wanted) {
        if (!take(wanted)) fail();
    }
    std::string text() {
        expect('"');
        std::string value;
        while (m_at < m_text.size() && m_text[m_at] != '"') value += m_text[m_at] == '\\' ? escaped() : next();
        expect('"');
        return value;
    }
    int64_t number() {
        skipSpace();
        int64_t value = 0;
        const size_t begin = m_at;
        for (; m_at < m_text.size() && m_text[m_at] >= '0' && m_text[m_at] <= '9'; ++m_at)
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, m_text[m_at] - '0', &value))
                fail();
        if (m_at == begin) fail();
        return value;
    }
    std::vector<int64_t> numbers() {
        std::vector<int64_t> all;
        expect('[');
        if (take(']')) return all;
        do all.push_back(number());
        while (take(','));
        expect(']');
        return all;
    }
    /// member(key) for each of an object.
    template <class Member>
    void object(Member&& member) {
        expect('{');
        if (take('}')) return;
        do {
            const std::string key = text();
            expect(':');
            member(key);
        } while (take(','));
        expect('}');
    }
    /// Whatever comes next.
    void skip() {
        if (see('"')) {
            text();
        } else if (see('{')) {
            object([this](const std::string&) { skip(); });
        } else if (take('[')) {
            if (take(']')) return;
            do skip();
            while (take(','));
            expect(']');
        } else {  // a number, true, false, null
            const size_t end = std::min(m_text.find_first_of(",]}", m_at), m_text.size());
            if (end == m_at) fail();
            m_at = end;
        }
    }
    bool see(char wanted) {
        skipSpace();
        return m_at < m_text.size() && m_text[m_at] == wanted;
    }
    [[noreturn]] static void fail() { throw std::runtime_error("it holds no JSON of safetensors or manifests"); }

  private:
    void skipSpace() {
        while (m_at < m_text.size() && std::strchr(" \t\r\n", m_text[m_at]) != nullptr) ++m_at;
    }
    std::string next() { return {m_text[m_at++]}; }
    std::string escaped() {
        if (m_at + 1 >= m_text.size()) fail();
        const char kind = m_text[m_at + 1];
        m_at += 2;
        constexpr char kLetters[] = "\"\\/bfnrt", kMeanings[] = "\"\\/\b\f\n\r\t";
        if (const char* found = std::strchr(kLetters, kind); found != nullptr && kind != 0)
            return {kMeanings[found - kLetters]};
        if (kind != 'u') fail();
        uint32_t letter = unit();
        if (letter >= 0xD800 && letter < 0xDC00 && m_text.substr(m_at, 2) == "\\u") {
            m_at += 2;
            letter = 0x10000 + ((letter - 0xD800) << 10) + (unit() - 0xDC00);
        }
        if (letter < 0x80) return {static_cast<char>(letter)};
        // How many bytes follow, and what the first one begins with.
        const int following = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
        const uint32_t first = following == 1 ? 0xC0 : following == 2 ? 0xE0 : 0xF0;
        std::string bytes{static_cast<char>(first | letter >> (6 * following))};
        for (int left = following; left-- > 0;) bytes += static_cast<char>(0x80 | (letter >> (6 * left) & 63));
        return bytes;
    }
    uint32_t unit() {
        uint32_t value = 0;
        for (int i = 0; i < 4; ++i) {
            const char digit = m_at < m_text.size() ? m_text[m_at++] : 0;
            constexpr char kDigits[] = "0123456789abcdef";
            const char* found = digit == 0 ? nullptr : std::strchr(kDigits, digit | (digit >= 'A' ? 32 : 0));
            if (found == nullptr) fail();
            value = value * 16 + static_cast<uint32_t>(found - kDigits);
        }
        return value;
    }

    std::string_view m_text;
    size_t m_at = 0;
};

}  // namespace ct
#endif
