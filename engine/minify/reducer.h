#pragma once
// What the strategies of reduce() share: the best graph so far and how it is replaced.
#include "engine/minify/candidate.h"

namespace cutaway {

class Reducer {
  public:
    Reducer(const Candidate& start, Trials& trials) : m_best(start), m_trials(trials) {}

    const Candidate& best() const { return m_best; }
    const Module& graph() const { return *m_best.module; }
    Trials& trials() { return m_trials; }
    /// A graph of the best one's request and values.
    Candidate with(std::shared_ptr<const Module> module) const {
        return {std::move(module), m_best.request, m_best.values};
    }
    std::shared_ptr<Module> copy() const { return std::make_shared<Module>(*m_best.module); }

    /// Takes the candidate if it fails.
    Result<bool> take(const Candidate& candidate, const std::string& how);
    /// Takes what is known to fail.
    Result<void> accept(Candidate candidate, const std::string& how);
    /// Tries candidates 0 to `count` - 1: the first that fails is taken, and the search goes on with the next number.
    /// True if any was taken. `make` derives candidate i from the best graph at that time; nothing: there is none.
    Result<bool> sweep(size_t count, const Trials::Make& make, const std::string& how);

  private:
    Candidate m_best;
    Trials& m_trials;
};

/// Names of calls; of one that returns a tuple those of its items, too.
std::vector<std::string> namesOf(const Module& module, const std::vector<NodeId>& ids);

// The strategies: true if the graph became smaller.
Result<bool> keepNear(Reducer& reducer);
Result<bool> cutEnd(Reducer& reducer);
Result<bool> cutBegin(Reducer& reducer);
Result<bool> dropOutputs(Reducer& reducer);
Result<bool> bypassCalls(Reducer& reducer);
Result<bool> callsToInputs(Reducer& reducer);
Result<bool> mergeInputs(Reducer& reducer);
Result<bool> shrinkBodies(Reducer& reducer);
Result<bool> plainInputs(Reducer& reducer);
Result<bool> simplifyRequest(Reducer& reducer);
Result<bool> fixSizes(Reducer& reducer);
Result<bool> shrinkSizes(Reducer& reducer);
Result<bool> plainDtypes(Reducer& reducer);
Result<bool> plainLiterals(Reducer& reducer);
Result<bool> constantInputs(Reducer& reducer);
Result<bool> leaveOutPasses(Reducer& reducer);

}  // namespace cutaway
