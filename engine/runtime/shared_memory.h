#pragma once
// Memory without a file name, which a child process gets by its descriptor, so that nothing is left of it when both are
// gone. It is filled by writing, so that a lack of memory is an error and not a bus error.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cutaway/result.h"

namespace cutaway {

class SharedMemory {
  public:
    /// Empty. `what` is for messages: "the inputs".
    static Result<SharedMemory> create(std::string what);
    /// Somebody else's, by its descriptor.
    SharedMemory(int descriptor, std::string what) : m_descriptor(descriptor), m_what(std::move(what)) {}
    SharedMemory(SharedMemory&& other) noexcept
        : m_descriptor(std::exchange(other.m_descriptor, -1)), m_what(std::move(other.m_what)) {}
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    ~SharedMemory();

    int descriptor() const { return m_descriptor; }
    /// Errors: not enough memory; `bytes` lie in a file that has become shorter.
    Result<void> write(size_t offset, std::string_view bytes);
    /// Everything that was written, as a private copy: later changes are seen only by the process that makes them.
    Result<std::span<std::byte>> map(std::shared_ptr<const void>& owner) const;
    /// Gives the memory of a part back to the system: whole pages that lie in it, which read as zeros from then on.
    void forget(size_t offset, size_t bytes) const;
    /// Another descriptor of the same memory.
    Result<SharedMemory> duplicate() const;
    /// The first `bytes`, seen by both processes at once.
    Result<std::span<std::byte>> share(size_t bytes, std::shared_ptr<const void>& owner) const;

  private:
    int m_descriptor = -1;
    std::string m_what;
};

}  // namespace cutaway
