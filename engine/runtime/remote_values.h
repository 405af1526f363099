#pragma once
// Values that a worker has computed and that stay with it until somebody wants their bytes: a backward that runs there
// reads what its forward has saved where it lies.
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/tensor/tensor.h"

namespace cutaway {

class RemoteValues : public std::enable_shared_from_this<RemoteValues> {
  public:
    explicit RemoteValues(int process) : m_process(process) {}

    /// What lies at `address` there, read when it is asked for; by then it may be gone: an error.
    std::shared_ptr<Storage> add(uint64_t address, size_t bytes);
    /// Where the process has it, while it has it.
    std::optional<uint64_t> find(const Storage& storage) const;
    /// The process gives up all that the tensors do not lie in.
    void keepOnly(const std::vector<Tensor>& tensors);
    /// It gives up all, or is gone itself.
    void end() { keepOnly({}); }

  private:
    struct Value {
        std::weak_ptr<const Storage> storage;
        uint64_t address = 0;
    };
    Result<void> read(uint64_t address, std::span<std::byte> into) const;

    int m_process;
    mutable std::mutex m_mutex;
    std::map<const Storage*, Value> m_values;  // looked up by address, never iterated
};

}  // namespace cutaway
