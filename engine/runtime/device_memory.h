#pragma once
// The memory that a program's values lie in, and the order in which its device does what it is asked for. The host
// interpreter of programs (runtime/cpu/host_context.h) reaches values by this alone, so that one serves every device.
#include <functional>
#include <memory>

#include "cutaway/result.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

class ThreadPool;

/// Work is done in the order in which it was asked for. On devices beside the host it goes on after a function has
/// returned; what the host is given waits for it. One thread at a time.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    virtual bool isHost() const = 0;
    /// Uninitialized and aligned as the target says; given back with the storage. Error: there is not so much.
    virtual Result<std::shared_ptr<Storage>> allocate(size_t bytes) = 0;
    virtual Result<void> toDevice(void* to, const void* from, size_t bytes) = 0;
    virtual Result<void> toHost(void* to, const void* from, size_t bytes) = 0;
    /// Until all is done. Errors: what has failed since the last time, after which nothing may work (isBroken).
    virtual Result<void> wait() = 0;
    /// No cache has anything of the program's afterwards.
    virtual void emptyCaches(const ThreadPool& pool) = 0;

    /// A place in the order of the work.
    struct Mark {
        int64_t nanoseconds = 0;  // on the host
        void* event = nullptr;    // on other devices
    };
    virtual Mark mark() = 0;
    /// From one place to another, which are both over (wait).
    virtual double microseconds(const Mark& from, const Mark& to) = 0;
    virtual void forget(const Mark& mark) = 0;

    /// What `work` asks for, to be asked for again as a whole; null where the device cannot. Nothing is done yet.
    using Replay = std::function<Result<void>()>;
    virtual Result<Replay> record(const std::function<Result<void>()>& work) = 0;

    /// What libraries enqueue their work in; null on the host.
    virtual void* stream() const = 0;
    /// No request can be answered any more: the process should end.
    virtual bool isBroken() const { return false; }
};

/// The memory of this process.
std::shared_ptr<DeviceMemory> hostMemory();

/// From its first element to its last, with what lies between.
size_t spannedBytes(const Tensor& tensor);
/// The tensor in the device's memory, with its strides. Errors of allocate.
Result<Tensor> onDevice(DeviceMemory& device, const Tensor& tensor);
/// The tensor in the host's memory, with its strides; one that lies there is returned as it is.
Result<Tensor> onHost(DeviceMemory& device, const Tensor& tensor);

}  // namespace cutaway
