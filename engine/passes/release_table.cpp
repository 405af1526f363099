#include "cutaway/release_table.h"

#include <algorithm>
#include <functional>
#include <map>

#include "cutaway/settings.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/rule_tables.h"
#include "engine/support/pytorch_options.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

class Table {
  public:
    /// One entry for the release that first has the row, and one for the first that has it no more.
    void add(const Releases& releases, const ReleaseEntry& row, const std::string& comes, const std::string& goes) {
        if (releases.since != kOldestRelease) add(releases.since, row, comes);
        if (releases.until) add(*releases.until, row, goes);
    }
    void add(Release release, ReleaseEntry row, const std::string& what) {
        row.release = release;
        row.what = what;
        entries.push_back(std::move(row));
    }
    std::vector<ReleaseEntry> entries;
};

/// Passes of PyTorch that are not in our pipeline, and what they need.
struct AbsentPass {
    Release since;
    std::string_view name, why;
};
constexpr AbsentPass kAbsent[] = {
    {Release::V2_12, "spmd_check", "compares the graphs that the processes of a group compile"},
    {Release::V2_13, "chain_random_ops_ordering",
     "ties draws of random numbers together by control_deps, for fallback_random"},
    {Release::V2_13, "decomp_comms", "asks the process group for the rank"},
    {Release::V2_13, "replace_collectives_with_low_contention",
     "asks the process group whether it has symmetric memory"},
    {Release::V2_15, "slice_scatter_chunking", "makes one concatenation, or copies, of a chain of slice_scatters"},
};

/// What stands for an option here: the setting of its name, with the passes that have it.
std::string counterpart(std::string_view name) {
    const std::string_view key = name.substr(name.rfind('.') + 1);
    for (const Setting& setting : settings()) {
        if (setting.key != key) continue;
        if (setting.owners == kRequest) return "; here --" + std::string(key);
        return "; here a setting of " + (setting.owners.empty() ? "every optional pass" : std::string(setting.owners));
    }
    return "";
}
std::string described(const OptionRow& row) {
    const std::string value(row.value);
    switch (row.change) {
        case OptionChange::Added: return "is new, initially " + value;
        case OptionChange::Removed: return "is gone";
        case OptionChange::Changed: break;
    }
    return "is initially " + value + ", not " + std::string(row.before);
}

}  // namespace

std::vector<ReleaseEntry> releaseTable() {
    Table table;
    for (const Op* op : allOps())
        if (op->def() != nullptr)
            table.add(op->def()->decomposedIn, {{}, "capture", "decomposition", op->name(), {}},
                      "is decomposed into smaller operators", "stays whole: PyTorch has a kernel for it");
    std::map<std::string_view, std::string_view> stageOf;
    std::vector<std::string_view> stages;
    for (const StagePass& one : pipeline()) {
        if (std::find(stages.begin(), stages.end(), one.stage->name) == stages.end()) stages.push_back(one.stage->name);
        if (stageOf.emplace(one.pass->name, one.stage->name).second)
            table.add(one.pass->releases, {{}, std::string(one.stage->name), "pass", std::string(one.pass->name), {}},
                      std::string(one.pass->summary), "is gone");
    }
    for (const AbsentPass& each : kAbsent)
        table.add(each.since, {{}, "post_grad", "pass", std::string(each.name), {}},
                  "not here; in PyTorch it " + std::string(each.why));
    for (const RuleTable& rules : ruleTables())
        for (const Rule& rule : rules.rules)
            table.add(rule.releases, {{}, std::string(stageOf[rules.pass]), "rule", std::string(rule.name), {}},
                      std::string(rule.why), "is gone");
    for (const Setting& setting : settings())
        table.add(setting.releases, {{}, "", "setting", std::string(setting.key), {}}, std::string(setting.what),
                  "is gone");
    for (const Switch& each : switches())
        table.add(each.releases, {{}, "", "setting", std::string(each.name), {}}, std::string(each.what), "is gone");
    for (const ChangeRow& row : releaseChanges())
        table.add(row.since, {{}, std::string(row.stage), "formula", std::string(row.name), {}}, std::string(row.what));
    for (const OptionRow& row : pytorchOptions())
        table.add(row.release, {{}, "", "option", std::string(row.name), {}}, described(row) + counterpart(row.name));
    const auto place = [&](const ReleaseEntry& entry) {
        return std::pair(entry.release, std::find(stages.begin(), stages.end(), entry.stage) - stages.begin());
    };
    std::stable_sort(table.entries.begin(), table.entries.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return std::move(table.entries);
}

}  // namespace cutaway
