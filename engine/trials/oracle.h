#pragma once
// Answers the minifiers: from the journal, else by trials in child processes, several at once where the next questions
// are known.
#include "cutaway/minify.h"
#include "engine/trials/base_values.h"
#include "engine/trials/journal.h"
#include "engine/trials/testers.h"

namespace cutaway {

class Oracle : public Trials {
  public:
    /// What the caller wants to know as it happens.
    struct Listener {
        std::function<Result<void>(const Candidate&, const TrialJob&, const std::string& how)> accepted;
        std::function<void()> asked;
    };
    Oracle(const MinifyOptions& options, Journal journal, BaseValues values, Listener listener,
           const Progress& progress);

    /// Tries the whole graph and takes its failure for the one to keep, unless one is given. Errors: it does not fail,
    /// or in another way.
    Result<void> begin(const Candidate& start, const std::optional<FailureSignature>& wanted);

    Result<bool> fails(const Candidate& candidate) override;
    Result<std::optional<Hit>> firstFailing(size_t count, const Make& make) override;
    Result<void> accepted(const Candidate& candidate, const std::string& how) override;
    Result<void> computeValues(const std::vector<std::string>& names) override;
    std::optional<Tensor> valueOf(const Candidate& candidate, const std::string& input) override;
    Result<std::vector<std::string>> changingPasses(const Candidate& candidate) override;
    std::vector<std::vector<std::string>> near() const override { return m_near; }

    const FailureSignature& signature() const { return m_signature; }
    /// How the whole graph failed, and what was noted.
    const std::string& detail() const { return m_detail; }
    const std::vector<std::string>& remarks() const { return m_values.remarks(); }
    int trials() const { return m_trials; }
    int made() const { return m_made; }
    /// Whether the search was refused another trial, being at its limit: a normal end.
    bool isUsedUp() const { return m_usedUp; }
    double overheadMilliseconds() const;
    /// Whether the trials need the values of inputs: compiling does not.
    bool usesValues() const;
    /// Everything that a trial of the candidate needs, with values even if the check does without.
    Result<TrialJob> jobOf(const Candidate& candidate, bool withValues);

  private:
    struct Asked;
    Result<TrialOutcome> tryOnce(TrialJob job);
    Result<bool> verdict(const std::string& key, TrialJob job);
    Result<void> mayGoOn();
    /// From now on wrong numbers count as the same failure only if this pass makes them wrong; empty: any pass.
    void nameAs(const std::string& pass);
    std::string keyOf(const TrialJob& job) const;
    bool isWanted(const TrialOutcome& outcome) const;
    /// Counts a question. `known`: it was answered before in this search.
    void count(bool known);

    const MinifyOptions& m_options;
    Journal m_journal;
    BaseValues m_values;
    Listener m_listener;
    Progress m_progress;
    TrialCheck m_check;
    FailureSignature m_signature;
    std::string m_detail;
    std::vector<std::vector<std::string>> m_near;  // of the whole graph's trial
    int m_trials = 0, m_made = 0;
    bool m_usedUp = false;
    std::unordered_map<std::string, bool> m_answered;  // in this search; lookups only
    std::vector<double> m_overhead;                    // milliseconds
    TesterPool m_pool;                                 // last: its threads end first
};

}  // namespace cutaway
