#pragma once
// Passes of the user's own: functions, and files of rules, each at one of the places where PyTorch takes a custom pass
// (spec: passes §1.2, §2.2, §6.2). Leaves alone: the order of the other passes (pass_order.h).
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/passes/joint/traced_rules.h"
#include "engine/passes/pass.h"
#include "engine/passes/rule_tables.h"

namespace cutaway {

/// Where passes of the user's own run.
struct UserPlace {
    std::string_view name, stage;
    bool before;              // the anchor; else behind it
    std::string_view anchor;  // a pass of the pipeline
    bool functional;          // the graph is, and has to stay so
};
std::span<const UserPlace> userPlaces();

/// Those of one run. Passes point into it, so it lives as long as the run's steps.
class UserPasses {
  public:
    /// A file's rules become one pass per place, named PLACE.FILE; functions are named PLACE.NAME. Errors name the file
    /// and the line or the rule: text that does not parse; formulas that do not trace; an unknown place; two rules of
    /// one name, or of one pattern, at one place.
    static Result<std::shared_ptr<const UserPasses>> make(const CompileOptions& options);

    std::vector<const Pass*> at(const UserPlace& place) const;
    /// Puts the passes beside the anchors that the plan has.
    void insertInto(std::vector<const Pass*>& plan) const;
    /// The rules as they are matched, by pass.
    std::vector<RuleTable> tables() const;
    /// The rules as text: loads again to the same rules.
    std::string text() const;

  private:
    struct Entry {
        const UserPlace* place;
        std::string name, summary;
        std::vector<Rule> rules;   // none: a function
        std::vector<RuleSet> set;  // of `rules`; one or none
        std::function<Result<bool>(Module&, Rewriter&)> run;
        Pass pass;
    };
    Result<void> addRules(const UserRules& file);
    Result<void> addFunction(const UserPass& function);
    Result<void> addRule(const Rule& rule, const std::string& file);
    Entry& entryFor(const UserPlace& place, const std::string& file);
    Result<void> finish();

    std::deque<LoadedRules> m_loaded;
    std::deque<TracedRules> m_traced;
    std::deque<Entry> m_entries;
};

/// Loads one rule of the user's own, as explaining a rule's text does; `tables` has it alone.
Result<std::shared_ptr<const UserPasses>> loadUserRule(const std::string& text);

}  // namespace cutaway
