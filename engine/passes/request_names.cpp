#include "engine/passes/request_names.h"

#include <algorithm>

#include "cutaway/settings.h"
#include "engine/passes/pipeline.h"
#include "engine/support/characters.h"
#include "engine/support/near_names.h"

namespace cutaway {
namespace {

Result<void> checkName(const std::string& what, const std::string& name, const std::vector<std::string_view>& names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return {};
    Error error{ErrorCode::InvalidInput, "no " + what + " named '" + visibleText(name) + "'", {}, {}};
    if (std::string near = suggestion(name, names); !near.empty()) error.notes.push_back(std::move(near));
    std::string all;
    for (const std::string_view each : names) all += (all.empty() ? "there are: " : ", ") + std::string(each);
    error.notes.push_back(std::move(all));
    return error;
}

Result<void> checkRelease(const std::string& what, const Releases& releases, Release release) {
    if (releases.hold(release)) return {};
    const bool early = release < releases.since;
    return invalidInput("PyTorch " + std::string(releaseName(release)) + " has no " + what + ": it is there " +
                        (early ? "since " + std::string(releaseName(releases.since))
                               : "before " + std::string(releaseName(*releases.until))) +
                        " (--pytorch)");
}

/// Errors: a pass, a switch or a setting that the release lacks.
Result<void> checkReleases(const OptionalPass& wanted, Release release) {
    const std::string what = "'" + wanted.name + "'";
    for (const StagePass& one : pipeline())
        if (one.pass->name == wanted.name && one.pass->onRequest)
            CT_TRY_VOID(checkRelease(what, one.pass->releases, release));
    for (const Switch& each : switches())
        if (each.name == wanted.name) CT_TRY_VOID(checkRelease(what, each.releases, release));
    for (const auto& [key, value] : wanted.settings)
        for (const Setting& setting : settings())
            if (setting.key == key && setting.belongsTo(wanted.name))
                CT_TRY_VOID(checkRelease("setting '" + key + "' of " + what, setting.releases, release));
    return {};
}

/// All names that can be switched off: passes, rules, and rules as "pass/rule".
std::vector<std::string> switchableNames(const UserPasses& passes) {
    std::vector<std::string> out, rules, both;
    const auto addRule = [&](std::string_view pass, std::string_view rule) {
        rules.emplace_back(rule);
        both.push_back(std::string(pass) + "/" + std::string(rule));
    };
    for (const std::string_view name : passNames()) out.emplace_back(name);
    for (const Pass* pass : passes.passes()) out.emplace_back(pass->name);
    for (const auto& tables : {passes.tables(), ruleTables()})
        for (const RuleTable& table : tables)
            for (const Rule& rule : table.rules) addRule(table.pass, rule.name);
    for (const CodeRule& rule : codeRules()) addRule(rule.pass, rule.name);
    for (auto* more : {&rules, &both}) out.insert(out.end(), more->begin(), more->end());
    return out;
}

}  // namespace

Result<void> checkNames(const CompileRequest& request) {
    CT_TRY_VOID(checkRequest(request));
    if (!request.onlyStage.empty()) {
        std::vector<std::string_view> stages;
        for (const Stage* stage : stagesOf(compiler())) stages.push_back(stage->name);
        CT_TRY_VOID(checkName("stage", request.onlyStage, stages));
    }
    if (request.enabledPasses.empty()) return {};
    std::vector<std::string_view> optional = passNames(true);
    for (const Switch& each : switches()) optional.push_back(each.name);
    for (const OptionalPass& wanted : request.enabledPasses) {
        CT_TRY_VOID(checkName("optional pass", wanted.name, optional));
        CT_TRY_VOID(checkSettings(wanted));
        CT_TRY_VOID(checkReleases(wanted, request.pytorch));
    }
    return {};
}

Result<void> checkDisabled(const CompileRequest& request, const UserPasses& userPasses) {
    std::vector<std::string> all;
    for (const std::string& name : request.disabledPasses) {
        const std::vector<std::string_view> passes = passNames();
        if (std::find(passes.begin(), passes.end(), name) != passes.end()) continue;
        // The rules come last: making their tables traces formulas.
        if (all.empty()) all = switchableNames(userPasses);
        if (std::find(all.begin(), all.end(), name) != all.end()) continue;
        Error error{ErrorCode::InvalidInput,
                    "no pass or rule named '" + visibleText(name) + "'",
                    {},
                    {"`cutaway-cli steps` lists the passes, `cutaway-cli rules` the rules"}};
        const std::vector<std::string_view> names(all.begin(), all.end());
        if (std::string near = suggestion(name, names); !near.empty())
            error.notes.insert(error.notes.begin(), std::move(near));
        return error;
    }
    return {};
}

}  // namespace cutaway
