#include "engine/loops/kernel_rules.h"

#include "engine/loops/collapse.h"

namespace cutaway {
namespace {

constexpr KernelRule kRules[] = {
    {"one_pass_variance", "a long row is read once for its mean and its variance", onePassVariance},
    {"online_softmax", "a long row is read once for its maximum and the sum of its exponentials", onlineSoftmax},
    {"split_axes", "indices are left without divisions, so vector loads are contiguous", splitAxes},
};

}  // namespace

std::span<const KernelRule> kernelRules() { return kRules; }

std::vector<std::string> applyKernelRules(Kernel& kernel, const TargetInfo& target) {
    std::vector<std::string> all;
    for (const KernelRule& rule : kRules)
        for (const std::string& sentence : rule.apply(kernel, target))
            all.push_back(std::string(rule.name) + ": " + sentence);
    collapseLoops(kernel);
    return all;
}

}  // namespace cutaway
