#include "engine/partition/saved_values.h"

#include <algorithm>

#include "engine/ops/alias.h"
#include "engine/partition/runtime_estimate.h"

namespace cutaway {
namespace {

constexpr double kGigabyte = 1e9;  // PyTorch compares gigabytes; the quotients are rounded the same this way

}  // namespace

SavedValuesSearch::SavedValuesSearch(const JointFacts& facts, const PartitionOptions& options, bool parity,
                                     const PassContext& context)
    : m_facts(facts), m_options(options), m_bans(options.bans), m_parity(parity), m_context(context) {}

double SavedValuesSearch::bytes(const std::vector<int>& values) const {
    double sum = 0;
    for (const int value : values) sum += static_cast<double>(m_facts[value].bytes);
    return sum / kGigabyte;
}

Result<const SavedValuesSearch::Attempt*> SavedValuesSearch::attempt(std::optional<Attempt>& kept,
                                                                     const BanOptions& bans) {
    if (!kept) {
        auto network = std::make_shared<BannedNetwork>(banRecomputation(m_facts, m_options, bans, m_parity));
        CT_TRY(std::vector<int> saved, network->network.minimumCut());
        kept = Attempt{std::move(network), std::move(saved)};
    }
    return &*kept;
}
Result<const SavedValuesSearch::Attempt*> SavedValuesSearch::fastest() { return attempt(m_fastest, m_bans); }
Result<const SavedValuesSearch::Attempt*> SavedValuesSearch::lessBanned() {
    BanOptions bans = m_bans;
    bans.usedFarApart = bans.longFusibleChains = bans.materializedBackward = false;
    return attempt(m_lessBanned, bans);
}
BanOptions SavedValuesSearch::leastBans() const {
    BanOptions bans = m_bans;
    bans.usedFarApart = bans.longFusibleChains = bans.materializedBackward = bans.notInAllowlist = false;
    return bans;
}
Result<const SavedValuesSearch::Attempt*> SavedValuesSearch::leastBanned() {
    return attempt(m_leastBanned, leastBans());
}

SavedValues SavedValuesSearch::made(double budget, const Attempt& attempt, std::string_view name) const {
    return {budget, attempt.saved, attempt.network, name, 0};
}

/// The value, or of a call with several results each of them.
void SavedValuesSearch::saveResults(int node, std::vector<int>& saved) const {
    if (!m_facts[node].multipleResults) return saved.push_back(node);
    for (const int user : m_facts[node].users)
        if (m_facts[user].node->isCall("operator.getitem")) saveResults(user, saved);
}

SavedValues SavedValuesSearch::inputsAlone(double budget, const std::vector<int>& also) const {
    SavedValues only{budget, m_facts.inputs, nullptr, "the inputs alone", 0};
    // PyTorch draws again, and its gradients are those of other numbers.
    for (size_t i = 0; i + 1 < m_facts.nodes.size() && !m_parity; ++i)
        if (m_facts.nodes[i].drawsAnew && m_facts.nodes[i].requiredForward()) {
            saveResults(static_cast<int>(i), only.saved);
            only.attempt = "the inputs, and draws of random numbers";
        }
    only.saved.insert(only.saved.end(), also.begin(), also.end());
    std::sort(only.saved.begin() + static_cast<std::ptrdiff_t>(m_facts.inputs.size()), only.saved.end());
    return only;
}

void SavedValuesSearch::findCandidates(const Attempt& leastBanned) {
    const StorageRoots roots(m_facts.output().graph());
    for (const int node : leastBanned.network->banned) {
        if (m_facts[node].distance >= kNotNeeded || roots.isInput(*m_facts[node].node)) continue;
        if (m_facts[node].drawsAnew && !m_parity) continue;  // stays banned
        if (m_facts[node].recompute < 0) m_mustSave.push_back(node);
        else m_candidates.push_back(node);
    }
    std::stable_sort(m_candidates.begin(), m_candidates.end(),
                     [&](int a, int b) { return m_facts[a].bytes > m_facts[b].bytes; });
    KnapsackItems items;
    for (const int node : m_candidates) {
        items.memory.push_back(static_cast<double>(m_facts[node].bytes) / kGigabyte / (m_most - m_least));
        items.runtime.push_back(runtimeOf(*m_facts[node].node, m_options.estimator, m_context.sizeHints, m_context));
    }
    m_runtimes = items.runtime;
    m_knapsack = makeKnapsack(m_options.solver, std::move(items));
}

Result<double> SavedValuesSearch::allRecomputed() {
    CT_TRY(const Attempt* first, fastest());
    m_least = bytes(m_facts.inputs);
    m_most = bytes(first->saved);
    if (m_most <= m_least) return 0.0;
    CT_TRY(const Attempt* third, leastBanned());
    if (!m_knapsack) findCandidates(*third);
    double sum = 0;
    for (const double runtime : m_runtimes) sum += runtime;
    return sum;
}

Result<SavedValues> SavedValuesSearch::choose(double budget) {
    if (!(budget >= 0 && budget <= 1))
        return Error{ErrorCode::InvalidInput,
                     "a memory budget is a number from 0 to 1, not " + std::to_string(budget),
                     {},
                     {"0 saves the inputs alone, 1 what makes the backward fastest"}};
    if (budget == 0) return inputsAlone(budget);
    CT_TRY(const Attempt* first, fastest());
    if (budget == 1) return made(budget, *first, "the fastest backward");
    m_least = bytes(m_facts.inputs);
    m_most = bytes(first->saved);
    if (m_most <= m_least) return made(budget, *first, "the fastest backward, which saves no more than the inputs");
    CT_TRY(const Attempt* second, lessBanned());
    if (ratio(second->saved) < budget) return made(budget, *second, "more is computed again where it is cheap");
    CT_TRY(const Attempt* third, leastBanned());
    if (ratio(third->saved) < budget)
        return made(budget, *third, "all is computed again but products and random numbers");
    if (!m_knapsack) findCandidates(*third);
    if (m_candidates.empty()) return inputsAlone(budget, m_mustSave);
    std::vector<bool> allowed(m_facts.nodes.size());
    for (const int node : m_candidates) allowed[static_cast<size_t>(node)] = true;
    double recomputed = 0;
    for (const double runtime : m_runtimes) recomputed += runtime;
    for (const int item : m_knapsack->solve(budget)) {
        allowed[static_cast<size_t>(m_candidates[static_cast<size_t>(item)])] = false;
        recomputed -= m_runtimes[static_cast<size_t>(item)];
    }
    auto network =
        std::make_shared<BannedNetwork>(banRecomputation(m_facts, m_options, leastBans(), m_parity, allowed));
    CT_TRY(std::vector<int> saved, network->network.minimumCut());
    return SavedValues{budget, std::move(saved), std::move(network), "what fits into the budget is saved", recomputed};
}

}  // namespace cutaway
