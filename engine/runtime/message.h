#pragma once
// Text and tensors that two processes give each other: in shared memory, or where they lie.
#include <functional>
#include <vector>

#include "cutaway/jobs.h"
#include "engine/runtime/remote_values.h"
#include "engine/runtime/result_memory.h"
#include "engine/runtime/shared_memory.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Bytes from which on a block has pages of its own, or stays where it lies.
inline constexpr size_t kLargeBlock = size_t{64} << 10;

/// What need not be written, since both know where it lies.
struct WriteOptions {
    /// Large blocks stay here, and the reader takes them from this process. To write them costs more: pages of shared
    /// memory are many and small.
    bool addresses = false;
    /// Values that the reader has itself.
    const RemoteValues* atReader = nullptr;
};

/// Writes a text and tensors at an offset of shared memory. Bytes that several tensors share are written once; the
/// reader's tensors lie in the memory itself. Deferred tensors are read or computed on the way and not kept, at most
/// one for each thread at a time. Errors: of reading and computing; no memory; Cancelled.
Result<void> writeMessage(SharedMemory& memory, size_t offset, std::string_view text,
                          const std::vector<Tensor>& tensors, int threads = 1, const Progress& progress = {},
                          const WriteOptions& options = {});

struct Message {
    std::string text;
    std::vector<Tensor> tensors;
    std::span<const std::byte> bytes = {};  // where all of it is mapped, while one of the tensors is there
    int64_t peakBytes = 0;                  // of a reply: the most memory that the process has held
    bool stayed = false;                    // blocks lie with who wrote it
};

/// Where to read blocks that stayed in the writer's process.
struct ReadOptions {
    int process = 0;  // that has written it
    /// Tensors, by their places, that are left there until their bytes are asked for.
    std::function<bool(size_t tensor)> leaves = {};
    std::shared_ptr<RemoteValues> left = nullptr;  // gets them
    ResultMemory* memory = nullptr;                // for what is read; null: new memory
    /// What keeps such memory of this process; null if nothing does.
    std::function<std::shared_ptr<const void>(uint64_t address, size_t bytes)> own = {};
};
/// Errors: damaged; those of readProcess.
Result<Message> readMessage(const SharedMemory& memory, size_t offset, const ReadOptions& options = {});

/// The bytes that writeMessage would write for the tensors.
int64_t bytesOf(const std::vector<Tensor>& tensors);

}  // namespace cutaway
