#pragma once
// Passes of the user's own: functions, and files of rules, each at one of the places where PyTorch takes a custom pass
// (spec: passes §1.2, §2.2, §6.2). Leaves alone: the order of the other passes (pass_order.h).
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/passes/joint/traced_rules.h"
#include "engine/passes/rule_tables.h"
#include "engine/passes/stage.h"

namespace cutaway {

/// Those of one run. Passes point into it, so it lives as long as the run's steps.
class UserPasses {
  public:
    /// A file's rules become one pass per place, named PLACE.FILE; functions are named PLACE.NAME. Errors name the file
    /// and the line or the rule: text that does not parse; formulas that do not trace; an unknown place; two rules of
    /// one name, or of one pattern, at one place; a plugin's pass that is not lent.
    static Result<std::shared_ptr<const UserPasses>> make(const CompileRequest& request,
                                                          const CompileHooks& hooks = {});

    std::vector<const Pass*> at(std::string_view place) const;
    std::vector<const Pass*> passes() const;
    /// The rules as they are matched, by pass.
    std::vector<RuleTable> tables() const;
    /// The rules and definitions of operators as text: loads again to the same.
    std::string text() const;

  private:
    struct Entry {
        const UserPlace* place;
        std::string name, summary;
        std::vector<Rule> rules;   // none: a function
        std::vector<RuleSet> set;  // of `rules`, compiled: one set, or none for a function
        std::function<Result<bool>(Module&, Rewriter&)> run;
        Pass pass;
    };
    Result<void> addRules(const UserRules& file);
    Result<void> addFunction(const PluginPass& wanted, const std::vector<UserPass>& lent);
    Result<void> addRule(const Rule& rule, const std::string& file);
    Entry& entryFor(const UserPlace& place, const std::string& file);
    Result<void> finish();

    std::deque<LoadedRules> m_loaded;
    std::vector<std::string> m_operators;  // definitions, as text
    std::deque<TracedRules> m_traced;
    std::deque<Entry> m_entries;
};

/// Loads a single rule of the user's own, for explaining a rule given as text; `tables` then has only that rule.
Result<std::shared_ptr<const UserPasses>> loadUserRule(const std::string& text);

}  // namespace cutaway
