#pragma once
// Which plugins there are, and their processes. Loaded from the folders for plugins alone: never from beside a model, a
// relative path, or a place where another user may write.
#include <memory>

#include "engine/support/plugin_process.h"

namespace cutaway {

struct Plugin {
    PluginInfo info;                         // as it was described; counts are the process's
    std::shared_ptr<PluginProcess> process;  // null for a file of rules

    /// With what has happened since.
    PluginInfo now() const;
    /// "plugin fuse_addcmul 1.0"
    std::string title() const;
};
using PluginPointer = std::shared_ptr<const Plugin>;

/// Of a file that is nobody's plugin yet: it is looked into, or checked.
inline constexpr const char* kFromFile = "file";
/// Of a file, as it is now: asked again only when the file is another.
Result<PluginPointer> pluginOfFile(const std::string& file, const std::string& from);
/// All that are installed, in the order of the folders; those with a problem, too.
std::vector<PluginPointer> allPlugins();
/// The one of this name that counts. Errors: none, with the nearest name; it is off; it has a problem.
Result<PluginPointer> findPlugin(const std::string& name);

/// A plugin and one thing that it gives, by "PLUGIN", where it gives one of the kind, or "PLUGIN.ITEM".
struct PluginItemRef {
    PluginPointer plugin;
    size_t index = 0;  // among those of its kind
    const PluginItem* item = nullptr;
};
Result<PluginItemRef> findItem(std::string_view kind, const std::string& name);
/// All of one kind that are on and have no problem.
std::vector<PluginItemRef> itemsOf(std::string_view kind);
/// Calls it. Errors say which plugin and which of its functions.
Result<PluginReply> callItem(const PluginItemRef& found, std::string_view work, const Stopped& stopped = {},
                             std::vector<std::string> settings = {}, double seconds = 0, const std::string& file = {});

}  // namespace cutaway
