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

}  // namespace cutaway
