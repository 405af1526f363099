#include "engine/runtime/cuda/memory.h"

#include <algorithm>

namespace cutaway::cuda {
namespace {

// Values of the driver's public enumerations.
constexpr unsigned kNonBlocking = 1;
constexpr int kCaptureRelaxed = 2, kOutOfMemory = 2;
/// After these the context answers nothing any more: addresses, instructions, assertions, time, hardware.
constexpr int kSticky[] = {700, 702, 710, 714, 715, 716, 717, 718, 719};

DevicePtr place(const void* at) { return reinterpret_cast<DevicePtr>(at); }

/// Sizes of which memory is taken, so that what was freed fits again.
size_t rounded(size_t bytes) {
    constexpr size_t kSmall = 512, kLarge = size_t{2} << 20;
    const size_t unit = bytes < kLarge ? kSmall : kLarge;
    return std::max(kSmall, (bytes + unit - 1) / unit * unit);
}

std::string megabytes(size_t bytes) { return std::to_string((bytes + (size_t{1} << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Result<std::shared_ptr<Memory>> Memory::ofProcess() {
    static std::shared_ptr<Memory> opened;
    if (opened) return opened;
    CT_TRY(Device device, Device::open());
    std::shared_ptr<Memory> memory(new Memory(std::move(device)));
    CT_TRY_VOID(memory->check(memory->driver().streamCreate(&memory->m_stream, kNonBlocking), "cuStreamCreate"));
    return opened = memory;
}

/// The process ends with it, and the driver gives all back.
Memory::~Memory() = default;

Result<void> Memory::check(int status, const char* call) const {
    if (std::find(std::begin(kSticky), std::end(kSticky), status) != std::end(kSticky)) m_broken = true;
    return driver().check(status, call);
}

Result<const CublasLt*> Memory::products() {
    if (!m_hasProducts) CT_TRY_VOID(m_device.openProducts());
    m_hasProducts = true;
    return &m_device.lt();
}

Result<void*> Memory::take(size_t bytes) {
    if (const auto found = m_free.find(bytes); found != m_free.end()) {
        void* const memory = found->second;
        m_free.erase(found);
        return memory;
    }
    DevicePtr made = 0;
    int status = driver().memAlloc(&made, bytes);
    if (status == kOutOfMemory && !m_free.empty()) {
        drain();
        status = driver().memAlloc(&made, bytes);
    }
    if (status == kOutOfMemory) {
        size_t free = 0, total = 0;
        driver().memGetInfo(&free, &total);
        return Error{ErrorCode::Limit,
                     "the GPU has no " + megabytes(bytes) + " left: " + megabytes(free) + " of its " +
                         megabytes(total) + " are free",
                     "memory of the GPU",
                     {"use smaller inputs", "run it on the CPU"}};
    }
    CT_TRY_VOID(check(status, "cuMemAlloc"));
    return reinterpret_cast<void*>(made);
}

void Memory::giveBack(void* memory, size_t bytes) { m_free.emplace(bytes, memory); }

void Memory::drain() {
    driver().streamSynchronize(m_stream);
    for (const auto& [bytes, memory] : m_free) driver().memFree(place(memory));
    m_free.clear();
}

Result<std::shared_ptr<Storage>> Memory::allocate(size_t bytes) {
    const size_t whole = rounded(bytes);
    CT_TRY(void* const memory, take(whole));
    const std::shared_ptr<const void> owner(
        memory, [self = shared_from_this(), whole](const void* at) { self->giveBack(const_cast<void*>(at), whole); });
    return Storage::foreign(memory, bytes, owner);
}

Result<void> Memory::toDevice(void* to, const void* from, size_t bytes) {
    return check(driver().memcpyHtoDAsync(place(to), from, bytes, m_stream), "cuMemcpyHtoDAsync");
}

Result<void> Memory::toHost(void* to, const void* from, size_t bytes) {
    CT_TRY_VOID(check(driver().memcpyDtoHAsync(to, place(from), bytes, m_stream), "cuMemcpyDtoHAsync"));
    return wait();
}

Result<void> Memory::wait() { return check(driver().streamSynchronize(m_stream), "cuStreamSynchronize"); }

void Memory::emptyCaches(const ThreadPool&) {
    const auto cache = m_device.attribute(kL2CacheSize);
    const size_t bytes = 4 * static_cast<size_t>(cache ? *cache : int64_t{64} << 20);
    if (!m_elsewhere) {
        auto memory = allocate(bytes);
        if (!memory) return;
        m_elsewhere = std::move(*memory);
    }
    driver().memsetD8Async(place(m_elsewhere->address()), 0, m_elsewhere->size(), m_stream);
}

DeviceMemory::Mark Memory::mark() {
    Event* event = nullptr;
    if (!m_events.empty()) {
        event = static_cast<Event*>(m_events.back());
        m_events.pop_back();
    } else if (driver().eventCreate(&event, 0) != 0) {
        return {};
    }
    driver().eventRecord(event, m_stream);
    return {0, event};
}

double Memory::microseconds(const Mark& from, const Mark& to) {
    float milliseconds = 0;
    if (from.event == nullptr || to.event == nullptr) return 0;
    driver().eventElapsedTime(&milliseconds, static_cast<Event*>(from.event), static_cast<Event*>(to.event));
    return static_cast<double>(milliseconds) * 1000;
}

void Memory::forget(const Mark& mark) {
    if (mark.event != nullptr) m_events.push_back(mark.event);
}

Result<DeviceMemory::Replay> Memory::record(const std::function<Result<void>()>& work) {
    CT_TRY_VOID(check(driver().streamBeginCapture(m_stream, kCaptureRelaxed), "cuStreamBeginCapture"));
    const Result<void> asked = work();
    Graph* graph = nullptr;
    const int ended = driver().streamEndCapture(m_stream, &graph);
    CT_TRY_VOID(asked);
    CT_TRY_VOID(check(ended, "cuStreamEndCapture"));
    GraphExec* made = nullptr;
    const int status = driver().graphInstantiate(&made, graph, 0);
    driver().graphDestroy(graph);
    CT_TRY_VOID(check(status, "cuGraphInstantiate"));
    const std::shared_ptr<GraphExec> kept(
        made, [self = shared_from_this()](GraphExec* exec) { self->driver().graphExecDestroy(exec); });
    return Replay([this, kept] { return check(driver().graphLaunch(kept.get(), m_stream), "cuGraphLaunch"); });
}

}  // namespace cutaway::cuda
