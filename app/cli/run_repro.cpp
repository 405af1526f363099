// run-repro: repeats what a reproducer says.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/reproducer.h"

namespace cutaway::cli {
namespace {

Result<int> runRunRepro(const std::string& folder, const std::string& json) {
    CT_TRY(const ReproducerReport report, runReproducer(folder));
    int status = 0;
    if (!json.empty()) {
        status = writeText(json, dump({{"operation", report.operation},
                                       {"repeated", report.repeated},
                                       {"recorded", report.recorded},
                                       {"now", report.now}}));
    } else {
        std::cout << report.operation << ": " << (report.now.empty() ? "nothing goes wrong" : report.now) << "\n";
    }
    if (report.repeated) return status;
    return Error{ErrorCode::NotFound,
                 report.now.empty() ? "the failure does not repeat" : "it fails in another way",
                 folder,
                 {"recorded was: " + report.recorded}};
}

void addRunReproOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string folder, json;
    };
    auto arguments = std::make_shared<Arguments>();
    command.add_option("DIR", arguments->folder, "The reproducer")->required();
    addJson(command, arguments->json);
    command.callback(
        [arguments, &context] { context.status = statusOf(runRunRepro(arguments->folder, arguments->json)); });
}

std::vector<JsonReport> runReproReports() {
    return {{"--json",
             {{"operation", "string: what was done when it failed"},
              {"repeated", "boolean: it fails in the same way"},
              {"recorded", "string: how it failed then"},
              {"now", "string: how it fails now; empty if it does not"}}}};
}

}  // namespace

extern const Command runReproCommand{
    .name = "run-repro",
    .summary = "Repeats a failure from the folder that its message names; status 0 if it fails in the same way",
    .add = addRunReproOptions,
    .refuses = "the failure does not repeat, or is another one",
    .reports = runReproReports};

}  // namespace cutaway::cli
