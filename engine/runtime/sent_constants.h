#pragma once
// Weights go to a worker once: requests after the first name what it has already.
#include <map>
#include <optional>

#include "engine/runtime/message.h"
#include "engine/runtime/wire.h"

namespace cutaway {

/// The program's side, one for each worker. A storage counts as the same while it lives: what may not be written never
/// changes.
class SentConstants {
  public:
    /// Takes out of `tensors` what the worker has or gets as a constant, leaving undefined ones, and says in `head`
    /// what to put in their places. What it does not have yet is written to memory of its own, which is sent with the
    /// request; nothing if there is none.
    Result<std::optional<SharedMemory>> take(std::vector<Tensor>& tensors, ByteWriter& head);

  private:
    struct SentConstant {
        std::weak_ptr<Storage> storage;
        uint64_t number = 0;
    };
    std::map<const Storage*, SentConstant> m_sent;  // looked up by address, never iterated
    uint64_t m_next = 0;
};

/// The worker's side.
class ReceivedConstants {
  public:
    /// Puts constants into their places. `memory`: those that came with the request, if any did. False if what was said
    /// is damaged.
    Result<bool> restore(ByteReader& head, const SharedMemory* memory, std::vector<Tensor>& tensors);

  private:
    std::map<uint64_t, std::shared_ptr<Storage>> m_received;  // by number
};

}  // namespace cutaway
