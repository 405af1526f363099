#include "engine/passes/joint/pass_pattern_0.h"

#include "engine/passes/joint/attention.h"
#include "engine/passes/joint/misc_patterns.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {

std::span<const Rule> passPattern0Rules() {
    static const std::vector<Rule> kRules = joinRules({jointCleanupRules(), attentionRules(), randpermRules()});
    return kRules;
}

Result<bool> passPattern0(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, passPattern0Rules()); }

}  // namespace cutaway
