#include "engine/runtime/cuda/candidates.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cache/value_store.h"
#include "engine/runtime/cuda/memory.h"
#include "engine/runtime/cuda/requests.h"

namespace cutaway {
namespace {

struct Place {
    std::mutex mutex;
    std::string path = "off";
    std::shared_ptr<ValueStore> store;
};
Place& place() {
    static Place one;
    return one;
}
/// Null where choices are not kept: they are measured again then, which is all that is lost.
std::shared_ptr<ValueStore> candidateStore() {
    Place& own = place();
    const std::lock_guard lock(own.mutex);
    if (own.path == "off") return nullptr;
    if (!own.store) {
        const std::string path = own.path.empty() ? ValueStore::defaultPath() : own.path;
        if (path.empty()) return nullptr;
        if (auto opened = ValueStore::open(path)) own.store = std::move(*opened);
    }
    return own.store;
}

}  // namespace

void keepCandidates(std::string store) {
    Place& own = place();
    const std::lock_guard lock(own.mutex);
    if (own.path == store) return;
    own.path = std::move(store);
    own.store = nullptr;
}

namespace cuda {
namespace {

std::string textOf(const MatmulAlgo& algo) {
    std::string text;
    for (const uint64_t word : algo.data) text += (text.empty() ? "" : " ") + std::to_string(word);
    return text;
}
std::optional<MatmulAlgo> algoOf(const std::string& text) {
    MatmulAlgo algo{};
    const char* at = text.c_str();
    for (uint64_t& word : algo.data) {
        char* end = nullptr;
        word = std::strtoull(at, &end, 10);
        if (end == at) return std::nullopt;
        at = end;
    }
    return algo;
}

/// Microseconds of the fastest of a few runs; none if the algorithm fails.
std::optional<double> timeOf(Memory& memory, const MatmulAlgo& algo,
                             const std::function<int(const MatmulAlgo&)>& multiply) {
    constexpr int kRuns = 5;
    if (multiply(algo) != 0) return std::nullopt;
    std::vector<DeviceMemory::Mark> marks{memory.mark()};
    for (int i = 0; i < kRuns; ++i) {
        if (multiply(algo) != 0) return std::nullopt;
        marks.push_back(memory.mark());
    }
    if (!memory.wait()) return std::nullopt;
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kRuns; ++i) best = std::min(best, memory.microseconds(marks[i], marks[i + 1]));
    for (const DeviceMemory::Mark& mark : marks) memory.forget(mark);
    return best;
}

}  // namespace

bool isRecording() {
    const auto memory = Memory::ofProcess();
    int status = 0;
    return memory &&
           (*memory)->device().driver().streamIsCapturing(static_cast<Stream*>((*memory)->stream()), &status) == 0 &&
           status != 0;
}

MatmulAlgo chooseCandidate(const std::string& product, std::span<const MatmulHeuristic> candidates,
                           const std::function<bool(const MatmulAlgo&)>& isValid,
                           const std::function<int(const MatmulAlgo&)>& multiply) {
    const auto memory = Memory::ofProcess();
    if (!memory) return candidates.front().algo;
    const Device& device = (*memory)->device();
    const std::string space =
        "products on " + device.name() + " by cuBLASLt " + std::to_string(device.lt().getVersion());
    const auto store = candidateStore();
    if (store) {
        const auto kept = store->find(space, product);
        const auto algo = kept && *kept ? algoOf(**kept) : std::nullopt;
        if (algo && isValid(*algo)) return *algo;
    }
    const MatmulAlgo* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const MatmulHeuristic& candidate : candidates) {
        const auto time = timeOf(**memory, candidate.algo, multiply);
        if (!time || *time >= least) continue;
        best = &candidate.algo;
        least = *time;
    }
    if (best == nullptr) return candidates.front().algo;
    if (store) static_cast<void>(store->keep(space, product, textOf(*best)).has_value());
    return *best;
}

}  // namespace cuda
}  // namespace cutaway
