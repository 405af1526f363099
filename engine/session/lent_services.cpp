#include "engine/session/lent_services.h"

#include "engine/passes/defined_operators.h"
#include "engine/plugins/plugin_passes.h"
#include "engine/session/measuring.h"

namespace cutaway {

Result<void> lendServices(const Module& input, CompileRequest& request, CompileServices& services) {
    addDefinitionsOf(input, request);
    if (!request.plugins.empty()) {
        CT_TRY(request, withPlugins(request));
        CT_TRY_VOID(lendPlugins(request, services));
        CT_TRY_VOID(checkPluginOrder(request, services, input.origin.stage));
    }
    return lendMeasuring(request, services);
}

}  // namespace cutaway
