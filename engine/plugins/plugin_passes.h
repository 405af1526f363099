#pragma once
// Plugins' passes as passes of a run.
#include "cutaway/plugins.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Adds the functions of the request's plugin passes that nobody has lent yet. The request is one that withPlugins has
/// written out.
Result<void> lendPlugins(const CompileRequest& request, CompileHooks& hooks);

/// The settings of a call as "key=value", those that a pass declares at their initial values.
std::vector<std::string> initialSettingsOf(const PluginItem& pass);

/// Whether some of its passes are functions that a program lends, which no other process has.
bool needsLender(const CompileRequest& request);

/// Whether each plugin's pass runs behind those that it says must run earlier. `next`: the stage that comes next for
/// the graph (ModuleOrigin::stage).
Result<void> checkPluginOrder(const CompileRequest& request, const CompileHooks& hooks, const std::string& next);

}  // namespace cutaway
