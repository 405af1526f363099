#include "engine/partition/options.h"

#include <algorithm>
#include <charconv>

namespace cutaway {
namespace {

constexpr std::pair<std::string_view, Solver> kSolvers[] = {{"greedy", Solver::Greedy},
                                                            {"ilp", Solver::Ilp},
                                                            {"dp", Solver::Dp},
                                                            {"dp_knapsack_sliding_hirschberg", Solver::Hirschberg},
                                                            {"dynamic_memory_budget_dp", Solver::DynamicDp}};
constexpr std::pair<std::string_view, Estimator> kEstimators[] = {
    {"flops", Estimator::Flops}, {"profile", Estimator::Profile}, {"testing", Estimator::Testing}};

/// The value of a word. Requests from the command line hold only words that there are (settings_table.cpp).
template <class Value, size_t N>
Result<Value> lookUp(const std::pair<std::string_view, Value> (&table)[N], const std::string& word,
                     const std::string& what) {
    const auto found =
        std::find_if(std::begin(table), std::end(table), [&](const auto& one) { return one.first == word; });
    if (found != std::end(table)) return found->second;
    std::string known;
    for (const auto& [name, value] : table) known += (known.empty() ? "" : ", ") + std::string(name);
    return Error{ErrorCode::InvalidInput, "no " + what + " '" + word + "'", {}, {"there are " + known}};
}

std::string settingOf(const OptionalPass& given, std::string_view key, std::string_view fallback) {
    for (const auto& [name, value] : given.settings)
        if (name == key) return value;
    return std::string(fallback);
}

Result<std::vector<int>> numbers(const std::string& text) {
    std::vector<int> out;
    for (const char *at = text.data(), *end = at + text.size(); at != end;) {
        if (*at == ' ') {
            ++at;
            continue;
        }
        int number = 0;
        const auto [stop, status] = std::from_chars(at, end, number);
        if (status != std::errc() || number < 0)
            return invalidInput("static_lifetime_input_indices takes numbers of inputs from 0 on, not '" + text + "'");
        out.push_back(number);
        at = stop;
    }
    return out;
}

}  // namespace

Result<PartitionOptions> partitionOptions(const CompileRequest& request) {
    PartitionOptions options;
    options.budget = request.memoryBudget;
    CT_TRY(options.solver, lookUp(kSolvers, request.solver, "solver of memory budgets"));
    const OptionalPass* found = request.enabled("partition");
    const OptionalPass given = found ? *found : OptionalPass{};
    CT_TRY(options.estimator,
           lookUp(kEstimators, settingOf(given, "activation_memory_budget_runtime_estimator", "flops"),
                  "estimator of runtimes"));
    options.defaultPartition = settingOf(given, "partitioner", "min_cut") == "default";
    options.cse = given.flag("cse", true);
    options.recomputeViews = given.flag("recompute_views", false);
    options.parametersAreFree = given.flag("treat_parameters_as_free_to_save", true);
    options.includeCustomOps = given.flag("is_non_builtin_to_include", false);
    options.maxDistance = static_cast<int64_t>(given.number("max_dist_from_bw", 1000));
    const bool careful = !given.flag("aggressive_recomputation", false);
    options.bans.usedFarApart = careful && given.flag("ban_recompute_used_far_apart", true);
    options.bans.longFusibleChains = careful && given.flag("ban_recompute_long_fusible_chains", true);
    options.bans.materializedBackward = careful && given.flag("ban_recompute_materialized_backward", true);
    options.bans.notInAllowlist = careful && given.flag("ban_recompute_not_in_allowlist", true);
    options.bans.reductions = given.flag("ban_recompute_reductions", true);
    CT_TRY(options.staticInputs, numbers(settingOf(given, "static_lifetime_input_indices", "")));
    return options;
}

}  // namespace cutaway
