#pragma once
// Reads little-endian values with bounds checks. Every binary format is read through it, so that no length is trusted.
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace cutaway {

/// A position in a block of bytes. A read past the end gives nullopt and leaves the position.
class ByteCursor {
  public:
    explicit ByteCursor(std::span<const std::byte> bytes, size_t at = 0) : m_bytes(bytes), m_at(at) {}

    size_t position() const { return m_at; }
    size_t remaining() const { return m_at <= m_bytes.size() ? m_bytes.size() - m_at : 0; }

    template <class Integer>
    std::optional<Integer> read() {
        if (remaining() < sizeof(Integer)) return std::nullopt;
        uint64_t value = 0;
        for (size_t i = sizeof(Integer); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(m_bytes[m_at + i]);
        m_at += sizeof(Integer);
        return static_cast<Integer>(value);
    }
    std::optional<std::string_view> text(uint64_t length) {
        if (length > remaining()) return std::nullopt;
        const auto* start = reinterpret_cast<const char*>(m_bytes.data()) + m_at;
        m_at += static_cast<size_t>(length);
        return std::string_view(start, static_cast<size_t>(length));
    }
    /// Up to the next newline, which is skipped and not part of the result.
    std::optional<std::string_view> line() {
        const auto* start = reinterpret_cast<const char*>(m_bytes.data()) + m_at;
        const std::string_view rest(start, remaining());
        const size_t end = rest.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        m_at += end + 1;
        return rest.substr(0, end);
    }

  private:
    std::span<const std::byte> m_bytes;
    size_t m_at;
};

}  // namespace cutaway
