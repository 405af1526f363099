#pragma once
// An allocation that failed, and how large it was.
#include <cstddef>
#include <cstdio>
#include <new>

namespace cutaway {

/// Thrown by every allocation of ours, so that whoever catches it can say what was asked for.
class OutOfMemory : public std::bad_alloc {
  public:
    explicit OutOfMemory(size_t bytes) noexcept : m_bytes(bytes) {
        std::snprintf(m_text, sizeof m_text, "out of memory: %zu bytes could not be had", bytes);
    }
    size_t bytes() const { return m_bytes; }
    const char* what() const noexcept override { return m_text; }

  private:
    size_t m_bytes;
    char m_text[64];
};

}  // namespace cutaway
