// Host programs of runs, as texts.
#include "cutaway/guarded.h"
#include "cutaway/host.h"
#include "engine/codegen/host_printer.h"
#include "engine/session/chosen_program.h"

namespace cutaway {

Result<HostTexts> hostTexts(Session& session, RunId id, const Progress& progress) {
    return guarded([&]() -> Result<HostTexts> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY(const auto chosen, chosenProgram(*run, {}, progress));
        if (chosen->program->whyNoHost) return *chosen->program->whyNoHost;
        const HostProgram& host = chosen->program->host;
        HostTexts texts{text(host), {}, {}};
        if (auto source = printHost(host)) texts.source = std::move(*source);
        else texts.noSource = source.error().message;
        return texts;
    });
}

}  // namespace cutaway
