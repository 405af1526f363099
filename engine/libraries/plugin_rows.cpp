#include "engine/libraries/plugin_rows.h"

#include <list>
#include <mutex>

namespace cutaway {
namespace {

struct PluginLibraryEntry {
    PluginLibrary plugin;
    Library library;
    std::list<std::string> ops;
    std::list<LibraryRow> rows;
};

}  // namespace

const LibraryRow& pluginRow(const PluginLibrary& library, std::string_view op) {
    static std::mutex mutex;
    static auto& all = *new std::list<PluginLibraryEntry>();
    const std::lock_guard lock(mutex);
    auto kept =
        std::find_if(all.begin(), all.end(), [&](const PluginLibraryEntry& one) { return one.plugin == library; });
    if (kept == all.end()) {
        all.push_back({library, {}, {}, {}});
        kept = std::prev(all.end());
        kept->library = {kept->plugin.name, {}, DeviceType::Cpu, LinkedWith::Nothing, {}, &kept->plugin};
    }
    for (const LibraryRow& row : kept->rows)
        if (row.op == op) return row;
    // What it takes is asked of the plugin, once for each call of a graph.
    const auto taken = [](const Node&, const TargetInfo&) { return std::string(); };
    return kept->rows.emplace_back(
        LibraryRow{.op = kept->ops.emplace_back(op), .library = kept->library, .whyNot = taken});
}

}  // namespace cutaway
