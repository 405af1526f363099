#pragma once
// Memory of the first GPU, and the stream in which a process does all its work there.
#include <map>
#include <mutex>

#include "engine/runtime/cuda/device.h"
#include "engine/runtime/device_memory.h"

namespace cutaway::cuda {

class Memory final : public DeviceMemory, public std::enable_shared_from_this<Memory> {
  public:
    /// That of this process, opened when first asked for; shared by all its programs. Errors: no driver, no GPU.
    static Result<std::shared_ptr<Memory>> ofProcess();
    ~Memory() override;

    const Device& device() const { return m_device; }
    /// Loads cuBLASLt when first asked for.
    Result<const CublasLt*> products();
    /// An error that names the call, unless it succeeded; notes those after which nothing works any more.
    Result<void> check(int status, const char* call) const;

    bool isHost() const override { return false; }
    Result<std::shared_ptr<Storage>> allocate(size_t bytes) override;
    Result<void> toDevice(void* to, const void* from, size_t bytes) override;
    Result<void> toHost(void* to, const void* from, size_t bytes) override;
    Result<void> wait() override;
    void emptyCaches(const ThreadPool& pool) override;
    Mark mark() override;
    double microseconds(const Mark& from, const Mark& to) override;
    void forget(const Mark& mark) override;
    Result<Replay> record(const std::function<Result<void>()>& work) override;
    void* stream() const override { return m_stream; }
    bool isBroken() const override { return m_broken; }

  private:
    explicit Memory(Device device) : m_device(std::move(device)) {}
    const Driver& driver() const { return m_device.driver(); }
    Result<void*> take(size_t bytes);
    void giveBack(void* place, size_t bytes);
    /// Frees what waits to be used again.
    void drain();

    Device m_device;
    Stream* m_stream = nullptr;
    mutable bool m_broken = false;
    bool m_hasProducts = false;
    /// Freed memory, by its size: what is enqueued next may have it, being behind all that used it.
    std::multimap<size_t, void*> m_free;
    std::vector<void*> m_events;  // to be used again
    std::shared_ptr<Storage> m_elsewhere;
};

}  // namespace cutaway::cuda
