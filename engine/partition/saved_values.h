#pragma once
// Which values the forward saves for the backward (spec: autograd B.9). What does not depend on the memory budget is
// computed once, so that a slider may ask for one budget after the other.
#include <memory>

#include "engine/partition/knapsack.h"
#include "engine/partition/recompute_bans.h"
#include "engine/rewrite/pass_context.h"

namespace cutaway {

/// The saved values for one budget, by number in JointFacts, in the order of the graph. Where all inputs are saved,
/// whatever else is, they come first, in PyTorch's order (JointFacts::inputs).
struct SavedValues {
    double budget = 1;
    std::vector<int> saved;
    /// The flow network of which the values are the minimum cut; null where none was cut (budget 0, or nothing may be
    /// computed again).
    std::shared_ptr<const BannedNetwork> network;
    /// Which of PyTorch's attempts gave them: "the fastest", ...
    std::string_view attempt;
    /// Of what the knapsack computes again, in the estimator's unit; 0 where there was none.
    double recomputedRuntime = 0;
};

class SavedValuesSearch {
  public:
    /// Both live as long as the search. The context answers the estimator's questions.
    SavedValuesSearch(const JointFacts& facts, const PartitionOptions& options, bool parity,
                      const PassContext& context);

    /// Errors: a budget outside of 0 to 1; a value that can be neither saved nor computed again.
    Result<SavedValues> choose(double budget);

    /// What computing again costs if nothing is saved that a budget may choose. Errors: as choose.
    Result<double> allRecomputed();

    /// Values among which the knapsack chooses, by number; empty until a budget has needed a knapsack.
    const std::vector<int>& candidates() const { return m_candidates; }
    /// Bytes, as the budget counts them, at 0 and at 1.
    double leastBytes() const { return m_least; }
    double mostBytes() const { return m_most; }

  private:
    struct Attempt {
        std::shared_ptr<const BannedNetwork> network;
        std::vector<int> saved;
    };
    Result<const Attempt*> attempt(std::optional<Attempt>& kept, const BanOptions& bans);
    Result<const Attempt*> fastest();
    Result<const Attempt*> lessBanned();
    BanOptions leastBans() const;
    Result<const Attempt*> leastBanned();
    double bytes(const std::vector<int>& values) const;
    /// Where between the inputs alone (0) and what is fastest (1) these values are.
    double ratio(const std::vector<int>& values) const { return (bytes(values) - m_least) / (m_most - m_least); }
    SavedValues inputsAlone(double budget, const std::vector<int>& also = {}) const;
    void saveResults(int node, std::vector<int>& saved) const;
    void findCandidates(const Attempt& leastBanned);
    SavedValues made(double budget, const Attempt& attempt, std::string_view name) const;

    const JointFacts& m_facts;
    PartitionOptions m_options;
    BanOptions m_bans;
    bool m_parity;
    const PassContext& m_context;
    std::optional<Attempt> m_fastest, m_lessBanned, m_leastBanned;
    double m_least = 0, m_most = 0;
    std::vector<int> m_candidates, m_mustSave;
    std::vector<double> m_runtimes;
    std::unique_ptr<Knapsack> m_knapsack;
};

}  // namespace cutaway
