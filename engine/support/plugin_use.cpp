#include "engine/support/plugin_use.h"

#include <chrono>
#include <mutex>

namespace cutaway {
namespace {

constexpr size_t kMostFaults = 20;

std::mutex s_useMutex;
std::map<std::string, PluginCounts> s_use;

}  // namespace

void PluginCounts::add(const PluginCounts& more) {
    calls += more.calls;
    faults += more.faults;
    milliseconds += more.milliseconds;
    lastFaults.insert(lastFaults.end(), more.lastFaults.begin(), more.lastFaults.end());
    if (lastFaults.size() > kMostFaults) lastFaults.erase(lastFaults.begin(), lastFaults.end() - kMostFaults);
}

void PluginCounts::addFault(const std::string& sentence) {
    using namespace std::chrono;
    const auto now = duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch());
    PluginCounts one;
    one.faults = 1;
    one.lastFaults.push_back({now.count(), sentence});
    add(one);
}

void addPluginUse(const std::string& file, const PluginCounts& counts) {
    const std::lock_guard lock(s_useMutex);
    s_use[file].add(counts);
}

PluginCounts pluginUse(const std::string& file) {
    const std::lock_guard lock(s_useMutex);
    const auto found = s_use.find(file);
    return found == s_use.end() ? PluginCounts() : found->second;
}

std::map<std::string, PluginCounts> takePluginUse() {
    const std::lock_guard lock(s_useMutex);
    return std::exchange(s_use, {});
}

}  // namespace cutaway
