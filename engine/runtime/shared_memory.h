#pragma once
// Memory without a file name, which a child process gets by its descriptor, so that nothing is left of it when both are
// gone. It is filled by writing, so that a lack of memory is an error and not a bus error.
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cutaway/jobs.h"
#include "engine/runtime/wire.h"
#include "engine/tensor/tensor.h"

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

/// Writes a text and tensors at an offset of shared memory. Bytes that several tensors share are written once; the
/// reader's tensors lie in the memory itself. Deferred tensors are read or computed on the way and not kept, at most
/// one for each thread at a time. Errors: of reading and computing; no memory; Cancelled.
Result<void> writeMessage(SharedMemory& memory, size_t offset, std::string_view text,
                          const std::vector<Tensor>& tensors, int threads = 1, const Progress& progress = {});

struct Message {
    std::string text;
    std::vector<Tensor> tensors;
    std::span<const std::byte> bytes = {};  // where all of it is mapped, while one of the tensors is there
    int64_t peakBytes = 0;                  // of a reply: the most memory that the process has held
};
Result<Message> readMessage(const SharedMemory& memory, size_t offset);

/// The bytes that writeMessage would write for the tensors.
int64_t bytesOf(const std::vector<Tensor>& tensors);

}  // namespace cutaway
