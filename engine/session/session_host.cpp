// Host programs of runs, as texts.
#include "cutaway/guarded.h"
#include "cutaway/host.h"
#include "engine/codegen/host_printer.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/session/execution.h"
#include "engine/session/schedules.h"

namespace cutaway {

Result<HostTexts> hostTexts(Session& session, RunId id, const Progress& progress) {
    return guarded([&]() -> Result<HostTexts> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY_VOID(checkLowered(run->trace));
        CT_TRY(const HostProgram host, hostProgramOf(*run, progress));
        HostTexts texts{text(host), {}, {}};
        if (auto source = printHost(host)) texts.source = std::move(*source);
        else texts.noSource = source.error().message;
        return texts;
    });
}

}  // namespace cutaway
