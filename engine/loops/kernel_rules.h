#pragma once
// Rewrites of whole kernels, between fusion and the choice of a plan: what a kernel computes stays the same, how it
// reads memory gets better. Each is a row with a name and a reason; what it did is a sentence, which the plan shows.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loops/kernel.h"
#include "engine/loops/target.h"

namespace cutaway {

struct KernelRule {
    std::string_view name, why;
    /// Changes the kernel and says what was done, once for each change; nothing where it does not apply.
    std::vector<std::string> (*apply)(Kernel& kernel, const TargetInfo& target);
};
/// In the order in which they run.
std::span<const KernelRule> kernelRules();
/// All rules, then loops that can be walked as one are joined. "split_axes: x2 < 4096 runs as ...", once for each
/// change.
std::vector<std::string> applyKernelRules(Kernel& kernel, const TargetInfo& target);

// The rows. Each leaves alone what it does not name.

/// Makes the common refinement of an axis and of what its indices divide it by: x < 4096 read at x//1024 and x%1024
/// runs as 4 times 1024. Leaves alone parts shorter than a vector, and reductions whose elements are kept for a later
/// walk.
std::vector<std::string> splitAxes(Kernel& kernel, const TargetInfo& target);
/// sum((x - mean)^2) of long rows of f32 without the mean: d = x - first in f64, sum(d*d) - sum(d)^2/n; so both need
/// one pass. The first element lies within sqrt(n) standard deviations of the mean, so what cancels is below n * 2^-52
/// of the result, whatever the row is. Welford's update, the usual form, has a division for each element. Leaves alone
/// rows that stay in the cache, f64, kernels that write over what they read, and targets that sum f32 in f32.
std::vector<std::string> onePassVariance(Kernel& kernel, const TargetInfo& target);
/// sum(exp(x - max(x))) of long rows as one reduction beside the maximum ("sum_exp"), which scales its sum whenever a
/// larger element comes. Leaves alone rows that stay in the cache, where the exponentials are kept instead of computed
/// twice, and targets that read faster than they compute exponentials.
std::vector<std::string> onlineSoftmax(Kernel& kernel, const TargetInfo& target);

}  // namespace cutaway
