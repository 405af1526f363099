#include "engine/session/measuring.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>

#include "engine/cache/value_store.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/libraries/table.h"
#include "engine/schedule/decisions.h"
#include "engine/session/time_graph.h"
#include "engine/support/log.h"

namespace cutaway {
namespace {

/// The GPU, looked for once per program; none if there is no usable one.
const std::optional<CudaFound>& gpu() {
    static const std::optional<CudaFound> cudaFound = [] {
        auto found = findCuda();
        return found && !found->figures.empty() ? std::optional(std::move(*found)) : std::nullopt;
    }();
    return cudaFound;
}

std::string processorName() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name") && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    return "unknown processor";
}

/// The device and library versions for which measured numbers hold.
std::string systemOf(Target target) {
    if (target == Target::Cpu) return processorName() + ", oneDNN " + oneDnnVersion();
    if (!gpu()) return "no GPU";
    std::string system = gpu()->device;
    for (const DevicesFound::Part& part : gpu()->all.parts) system += ", " + part.name + " " + part.version;
    return system;
}

std::shared_ptr<ValueStore> openStore(const std::string& path) {
    if (path.empty() || path == "off") return nullptr;
    auto store = ValueStore::open(path);
    if (!store) {
        logWarning(store.error().text());
        return nullptr;
    }
    return std::move(*store);
}

/// One store for all compilations of a program that name the file, opened when first asked for.
std::shared_ptr<ValueStore> storeAt(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<ValueStore>> open;
    const std::lock_guard lock(mutex);
    const auto found = open.find(path);
    return found != open.end() ? found->second : open.emplace(path, openStore(path)).first->second;
}

/// Numbers of one target in a store, or in memory where there is no store.
class Numbers {
  public:
    Numbers(std::string path, Target target) : m_path(std::move(path)), m_target(target) {}

    std::optional<double> recall(const std::string& key) {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_known.find(key); found != m_known.end()) return found->second;
        if (m_target == Target::Cuda && !gpu()) return std::nullopt;
        const auto store = storeAt(m_path);
        if (!store) return std::nullopt;
        const auto text = store->find(space(), key);
        if (!text) report(text.error().text());
        else if (!store->remark().empty()) report(store->remark());
        return text && *text ? number(**text) : std::nullopt;
    }
    void remember(const std::string& key, double value) {
        const std::lock_guard lock(m_mutex);
        m_known[key] = value;
        const auto store = storeAt(m_path);
        if (!store) return;
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", value);
        if (const auto kept = store->keep(space(), key, text); !kept) report(kept.error().text());
    }

  private:
    std::string space() {
        if (m_space.empty()) m_space = "measured on " + systemOf(m_target);
        return m_space;
    }
    static std::optional<double> number(const std::string& text) {
        double value = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
        return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && std::isfinite(value)
                   ? std::optional(value)
                   : std::nullopt;
    }
    void report(const std::string& problem) {
        if (!std::exchange(m_reported, true)) logWarning(problem);
    }

    std::mutex m_mutex;
    std::string m_path, m_space;
    Target m_target;
    std::map<std::string, double> m_known;
    bool m_reported = false;
};

}  // namespace

Result<void> lendMeasuring(const CompileRequest& request, CompileHooks& hooks) {
    const bool onGpu = request.target == Target::Cuda;
    if (!hooks.timeGraph) {
        CompileRequest timed = request;
        if (const OptionalPass* padding = request.enabled("pad_mm"); padding && padding->flag("tf32", false))
            timed.tf32 = Tf32::All;
        hooks.timeGraph = [target = &targetOf(timed), onGpu](const std::string& graph) -> std::optional<double> {
            if (onGpu && !gpu()) return std::nullopt;
            return timeOn(*target, graph);
        };
    }
    if (!hooks.deviceFact && onGpu)
        hooks.deviceFact = [](const std::string& fact) -> std::optional<double> {
            if (!gpu()) return std::nullopt;
            const auto found = gpu()->figures.find(fact);
            return found == gpu()->figures.end() ? std::nullopt : std::optional(found->second);
        };
    if (hooks.recall || hooks.remember) return {};
    if (!hooks.cacheFile.empty() && hooks.cacheFile != "off") CT_TRY_VOID(ValueStore::check(hooks.cacheFile));
    const auto numbers = std::make_shared<Numbers>(
        hooks.cacheFile.empty() ? ValueStore::defaultPath() : hooks.cacheFile, request.target);
    hooks.recall = [numbers](const std::string& key) { return numbers->recall(key); };
    hooks.remember = [numbers](const std::string& key, double value) { numbers->remember(key, value); };
    return {};
}

}  // namespace cutaway
