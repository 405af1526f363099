#include "engine/runtime/device_memory.h"

#include <chrono>
#include <cstring>
#include <vector>

#include "engine/runtime/cpu/thread_pool.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

class HostMemory final : public DeviceMemory {
  public:
    bool isHost() const override { return true; }
    Result<std::shared_ptr<Storage>> allocate(size_t bytes) override { return Storage::allocateUninitialized(bytes); }
    Result<void> toDevice(void* to, const void* from, size_t bytes) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    Result<void> toHost(void* to, const void* from, size_t bytes) override { return toDevice(to, from, bytes); }
    Result<void> wait() override { return {}; }
    void emptyCaches(const ThreadPool& pool) override {
        constexpr int64_t kLine = 64;
        const int64_t lines = 4 * cacheBytes() / kLine;
        m_elsewhere.resize(static_cast<size_t>(lines * kLine));
        pool.run(lines, 1, pool.size(), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) ++m_elsewhere[static_cast<size_t>(i * kLine)];
        });
    }
    Mark mark() override {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        return {std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
    }
    double microseconds(const Mark& from, const Mark& to) override {
        return static_cast<double>(to.nanoseconds - from.nanoseconds) / 1000;
    }
    void forget(const Mark&) override {}
    Result<Replay> record(const std::function<Result<void>()>&) override { return Replay(); }
    void* stream() const override { return nullptr; }

  private:
    std::vector<unsigned char> m_elsewhere;
};

Tensor in(const std::shared_ptr<Storage>& storage, const Tensor& like) {
    return Tensor(storage, like.dtype(), like.sizes(), like.strides(), 0, like.device());
}

}  // namespace

std::shared_ptr<DeviceMemory> hostMemory() { return std::make_shared<HostMemory>(); }

size_t spannedBytes(const Tensor& tensor) {
    return static_cast<size_t>(extent(tensor.sizes(), tensor.strides()) * byteSize(tensor.dtype()));
}

Result<Tensor> onDevice(DeviceMemory& device, const Tensor& tensor) {
    const size_t bytes = spannedBytes(tensor);
    CT_TRY(const auto storage, device.allocate(std::max<size_t>(bytes, 1)));
    Tensor made = in(storage, tensor);
    if (bytes > 0) CT_TRY_VOID(device.toDevice(made.address(), tensor.data(), bytes));
    return made;
}

Result<Tensor> onHost(DeviceMemory& device, const Tensor& tensor) {
    if (!tensor.defined() || !tensor.storage()->isForeign()) return tensor;
    const size_t bytes = spannedBytes(tensor);
    Tensor made = in(Storage::allocateUninitialized(std::max<size_t>(bytes, 1)), tensor);
    if (bytes > 0) CT_TRY_VOID(device.toHost(made.data(), tensor.address(), bytes));
    return made;
}

}  // namespace cutaway
