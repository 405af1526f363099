#include "engine/session/lent_hooks.h"

#include "engine/passes/defined_operators.h"
#include "engine/plugins/plugin_passes.h"
#include "engine/session/measuring.h"

namespace cutaway {

Result<void> lendHooks(const Module& input, CompileRequest& request, CompileHooks& hooks) {
    addDefinitionsOf(input, request);
    if (!request.plugins.empty()) {
        CT_TRY(request, withPlugins(request));
        CT_TRY_VOID(lendPlugins(request, hooks));
        CT_TRY_VOID(checkPluginOrder(request, hooks, input.origin.stage));
    }
    return lendMeasuring(request, hooks);
}

}  // namespace cutaway
