#include "engine/session/export_check.h"

#include <algorithm>
#include <filesystem>

#include "engine/exporting/export_folder.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/runtime/reference.h"
#include "engine/session/output_report.h"
#include "engine/session/ties.h"
#include "engine/support/number_text.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

using CheckOutcome = ExportCheck::Outcome;

ExportCheck checkEnded(CheckOutcome outcome, std::string why) {
    ExportCheck check;
    check.outcome = outcome;
    check.why = std::move(why);
    return check;
}

std::string firstSaid(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Runs main.c of the folder, which writes its results to `results`. Empty on success, else what went wrong.
Result<std::string> runExported(const std::string& folder, const CheckedExport& exported, const TempDir& space,
                                const std::string& results, const Progress& progress) {
    // The program finds the library beside itself.
    const std::string library = "lib" + exported.name + ".so", program = space.file("main");
    std::error_code failed;
    std::filesystem::create_symlink(std::filesystem::path(folder) / library, space.file(library), failed);
    if (failed) return Error{ErrorCode::ToolFailed, failed.message(), space.file(library), {}};
    progress.say(0.9, "compiling main.c");
    if (const auto made =
            compileMain(folder + "/main.c", exported.name, program, {{}, exported.timeoutSeconds}, progress);
        !made) {
        if (made.error().code == ErrorCode::Cancelled) return made.error();
        return "main.c does not compile: " + made.error().message;
    }
    progress.say(0.95, "running the exported library");
    ProcessOptions run;
    run.argv = {program, "--outputs", results};
    run.workingDirectory = folder;
    run.wallSeconds = exported.timeoutSeconds;
    if (exported.form.weights == ExportForm::Weights::None) {
        const std::string weights = space.file("weights.safetensors");
        CT_TRY_VOID(writeSafeTensors(weights, {*exported.weights, {}}));
        run.argv.insert(run.argv.end(), {"--weights", weights});
    }
    CT_TRY(const ProcessEnd end, runProcess(run, {}, progress));
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "cancelled", "", {}};
    if (end.ok()) return std::string();
    const std::string said = firstSaid(end.errors);
    return "its program " + end.text() + (said.empty() ? "" : ": " + said);
}

/// The results of the program beside the reference's, by their names.
ExportCheck comparedWith(const NamedTensors& got, const ReferenceRun& reference, const CheckedExport& exported,
                         const Progress& progress) {
    const std::vector<Argument> returned = exported.module->graph().outputs();
    ExportCheck check = checkEnded(CheckOutcome::Agrees, {});
    const auto wrong = [&](const std::string& why) {
        if (check.outcome == CheckOutcome::Agrees) check.why = why;
        check.outcome = CheckOutcome::Differs;
    };
    for (size_t i = 0; i < reference.outputs.size(); ++i) {
        const Tensor& wanted = reference.outputs[i];
        if (!wanted.defined()) continue;
        const std::string& name = exported.outputs->at(i);
        const auto found = std::find_if(got.begin(), got.end(), [&](const auto& each) { return each.first == name; });
        ++check.results;
        if (found == got.end()) {
            wrong("it returns no '" + name + "'");
            continue;
        }
        OutputReport row = reportOf(name, returned[i], found->second, &wanted);
        sayTies(*exported.module, *exported.bound, i, found->second, wanted, progress, row);
        check.largestError = std::max(check.largestError, row.maxAbsoluteError);
        if (!row.remark.empty()) check.note = "'" + name + "': " + row.remark;
        if (!row.within) wrong("'" + name + "' differs from the reference: " + row.problem);
    }
    return check;
}

}  // namespace

Result<ExportCheck> checkExported(const std::string& folder, const CheckedExport& exported, const Progress& progress) {
    if (const std::string lacking = lackingFor(exported.form.target); !lacking.empty())
        return checkEnded(CheckOutcome::Impossible, "its kernels are for " + std::string(exported.form.target) +
                                                        ", and this processor lacks " + lacking);
    CT_TRY(const TempDir space, TempDir::create("check"));
    const std::string results = space.file("results.safetensors");
    CT_TRY(const std::string wrong, runExported(folder, exported, space, results, progress));
    progress.say(0.98, "comparing with the reference");
    const auto reference =
        runReference(*exported.module, *exported.bound,
                     {.timeoutSeconds = exported.timeoutSeconds, .faultSide = FaultSide::After}, progress);
    if (!reference) {
        if (reference.error().code == ErrorCode::Cancelled) return reference.error();
        const std::string why = "the reference does not run on these inputs: " + reference.error().text();
        // Where neither runs, the inputs are to blame: random ones may lie outside of what they index.
        return checkEnded(CheckOutcome::Impossible, wrong.empty() ? why : why + "; " + wrong);
    }
    if (!wrong.empty()) return checkEnded(CheckOutcome::Failed, wrong);
    auto written = readSafeTensors(results);
    if (!written) return checkEnded(CheckOutcome::Failed, "its results cannot be read: " + written.error().text());
    for (const auto& [name, tensor] : written->tensors) CT_TRY_VOID(tensor.storage()->load());
    return comparedWith(written->tensors, *reference, exported, progress);
}

std::string_view wordOf(CheckOutcome outcome) {
    switch (outcome) {
        case CheckOutcome::Agrees: return "agrees";
        case CheckOutcome::Differs: return "differs";
        case CheckOutcome::Failed: return "failed";
        case CheckOutcome::Impossible: return "impossible";
        case CheckOutcome::LeftOut: break;
    }
    return "left out";
}

std::string sentenceOf(const ExportCheck& check) {
    switch (check.outcome) {
        case CheckOutcome::Agrees:
            return "Loaded and run: " + std::to_string(check.results) +
                   (check.results == 1 ? " result agrees" : " results agree") + " with the reference, largest error " +
                   shortNumber(check.largestError) + (check.note.empty() ? "" : "; " + check.note) + ".";
        case CheckOutcome::Differs: return "Loaded and run, and wrong: " + check.why + ".";
        case CheckOutcome::Failed: return "It does not run: " + check.why + ".";
        case CheckOutcome::Impossible: return "Not checked: " + check.why + ".";
        case CheckOutcome::LeftOut: break;
    }
    return "Not checked: that was left out.";
}

}  // namespace cutaway
