#include "engine/runtime/plugin_io.h"

namespace cutaway {

void writePlugin(ByteWriter& out, const PluginLibrary& plugin) {
    for (const std::string* text : {&plugin.name, &plugin.title, &plugin.file, &plugin.hash}) out.text(*text);
    out.pod(plugin.stamp);
    out.pod(plugin.index);
    out.pod(plugin.starts);
}

PluginLibrary readPlugin(ByteReader& in) {
    PluginLibrary plugin;
    for (std::string* text : {&plugin.name, &plugin.title, &plugin.file, &plugin.hash}) *text = in.text();
    plugin.stamp = in.pod<FileStamp>();
    plugin.index = in.pod<uint64_t>();
    plugin.starts = in.pod<bool>();
    return plugin;
}

std::string takenPluginUse() {
    const auto all = takePluginUse();
    if (all.empty()) return {};
    ByteWriter out;
    out.count(all.size());
    for (const auto& [file, counts] : all) {
        out.text(file);
        out.pod(counts.calls);
        out.pod(counts.faults);
        out.pod(counts.milliseconds);
        out.count(counts.lastFaults.size());
        for (const PluginFault& fault : counts.lastFaults) {
            out.pod(fault.milliseconds);
            out.text(fault.sentence);
        }
    }
    return std::move(out.bytes);
}

void addPluginUse(std::string_view taken) {
    ByteReader in(taken);
    in.each([&] {
        const std::string file(in.text());
        PluginCounts counts;
        counts.calls = in.pod<int>();
        counts.faults = in.pod<int>();
        counts.milliseconds = in.pod<double>();
        in.each([&] {
            const auto when = in.pod<int64_t>();
            counts.lastFaults.push_back({when, std::string(in.text())});
        });
        if (!in.failed()) addPluginUse(file, counts);
    });
}

}  // namespace cutaway
