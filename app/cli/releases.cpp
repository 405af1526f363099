// releases: what changed in PyTorch's compiler from release to release.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "app/cli/release_report.h"
#include "cutaway/release_table.h"

namespace cutaway::cli {

Result<int> showReleases(const std::string& release, const std::string& json) {
    Json rows = Json::array();
    const std::vector<ReleaseEntry> table = releaseTable();
    const ReleaseEntry* above = nullptr;
    for (const ReleaseEntry& entry : table) {
        const std::string name(releaseName(entry.release));
        if (!release.empty() && name != release) continue;
        rows.push_back({{"release", name},
                        {"stage", entry.stage},
                        {"kind", entry.kind},
                        {"name", entry.name},
                        {"what", entry.what}});
        if (!json.empty()) continue;
        if (above == nullptr || above->release != entry.release) std::cout << "PyTorch " << name << "\n";
        if (above == nullptr || above->release != entry.release || above->stage != entry.stage)
            std::cout << "  " << (entry.stage.empty() ? "settings and options" : entry.stage) << "\n";
        std::cout << "    " << entry.name << " (" << entry.kind << "): " << entry.what << "\n";
        above = &entry;
    }
    if (!json.empty()) return writeText(json, dump(rows));
    if (above == nullptr)
        std::cout << "PyTorch " << release << ": the oldest release, with which others are compared\n";
    return 0;
}

std::vector<JsonReport> releaseReports() {
    const Json row{{"release", "string: 2.15"},
                   {"stage", "string: of the compiler; empty of a setting or an option"},
                   {"kind", "string: decomposition, rule, pass, setting, formula or option (of PyTorch)"},
                   {"name", "string: of the operator, rule, pass, setting or option"},
                   {"what", "string: what the release changed"}};
    return {{"--json", Json::array({row})}};
}

namespace {

void addReleasesOptions(CLI::App& command, Context& context) {
    struct Arguments {
        std::string release, json;
    };
    auto arguments = std::make_shared<Arguments>();
    std::vector<std::string> names;
    for (const Release release : kReleaseList) names.emplace_back(releaseName(release));
    command.add_option("RELEASE", arguments->release, "Only what this release changed: 2.15")
        ->check(CLI::IsMember(names));
    addJson(command, arguments->json);
    command.callback(
        [arguments, &context] { context.status = statusOf(showReleases(arguments->release, arguments->json)); });
}

}  // namespace

extern const Command releasesCommand{
    .name = "releases",
    .summary = "What changed in PyTorch's compiler from release to release, by stage, with the rows that carry it",
    .add = addReleasesOptions,
    .reports = releaseReports};

}  // namespace cutaway::cli
