#include "engine/passes/rule_tables.h"

#include "engine/passes/joint/auto_chunker.h"
#include "engine/passes/joint/early_patterns.h"
#include "engine/passes/joint/pass_pattern_0.h"
#include "engine/passes/joint/replace_random.h"
#include "engine/passes/joint/softmax_rescale.h"
#include "engine/passes/lowering_calls.h"
#include "engine/passes/post_grad/fsdp.h"
#include "engine/passes/post_grad/optional_products.h"
#include "engine/passes/post_grad/pass_pattern_1.h"
#include "engine/passes/post_grad/pass_pattern_2.h"
#include "engine/passes/post_grad/split_cat_aten.h"

namespace cutaway {

std::vector<RuleTable> ruleTables() {
    return {{"early_patterns", earlyRules()},
            {"auto_chunker", autoChunkerRules()},
            {"pass_pattern_0", passPattern0Rules()},
            {"pass_pattern_1", softmaxRescaleRules()},
            {"replace_random_passes", randomRules()},
            {"post_grad_pass_pattern_1", passPattern1Rules()},
            {"post_grad_pass_pattern_2", passPattern2Rules()},
            {"mm_plus_mm", addedProductRules()},
            {"partitioned_scatter", partitionedScatterRules()},
            {"normalization_aten_pass", normalizeSplitRules()},
            {"decompose_mm_pass", decomposeProductRules()},
            {"reinplace_fsdp_all_gather", fsdpGatherRules()},
            {"lowering_calls", loweringCallRules()}};
}

}  // namespace cutaway
