#include "engine/runtime/cuda/candidates.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/runtime/cuda/memory.h"
#include "engine/runtime/cuda/requests.h"

namespace cutaway {
namespace {

/// The choices of a file with lines "GPU and version<tab>product<tab>choice". The last line of a product counts. A line
/// is added in one write, so that several processes may do so.
struct Choices {
    std::mutex mutex;
    std::string path;
    bool isRead = false;
    std::map<std::string, std::string> kept;

    std::optional<std::string> find(const std::string& key) {
        const std::lock_guard lock(mutex);
        if (!isRead) {
            isRead = true;
            std::ifstream file(path);
            for (std::string line; std::getline(file, line);)
                if (const size_t tab = line.rfind('\t'); tab != std::string::npos)
                    kept[line.substr(0, tab)] = line.substr(tab + 1);
        }
        const auto it = kept.find(key);
        return it == kept.end() ? std::nullopt : std::optional(it->second);
    }
    /// Where it cannot be written the product is measured again, which is all that is lost.
    void keep(const std::string& key, const std::string& choice) {
        const std::lock_guard lock(mutex);
        kept[key] = choice;
        if (path.empty()) return;
        std::error_code failed;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
        std::ofstream(path, std::ios::app) << key + "\t" + choice + "\n" << std::flush;
    }
};
Choices& choices() {
    static Choices one;
    return one;
}

}  // namespace

void keepCandidates(std::string file) {
    Choices& own = choices();
    const std::lock_guard lock(own.mutex);
    if (own.path == file) return;
    own.path = std::move(file);
    own.isRead = false;
    own.kept.clear();
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
    const std::string key = device.name() + " by cuBLASLt " + std::to_string(device.lt().getVersion()) + "\t" + product;
    const auto kept = choices().find(key);
    const auto known = kept ? algoOf(*kept) : std::nullopt;
    if (known && isValid(*known)) return *known;
    const MatmulAlgo* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const MatmulHeuristic& candidate : candidates) {
        const auto time = timeOf(**memory, candidate.algo, multiply);
        if (!time || *time >= least) continue;
        best = &candidate.algo;
        least = *time;
    }
    if (best == nullptr) return candidates.front().algo;
    choices().keep(key, textOf(*best));
    return *best;
}

}  // namespace cuda
}  // namespace cutaway
