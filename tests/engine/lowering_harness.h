#pragma once
// Several ways to compute the same calls, judged by one of them. Cases are joined into few graphs, since what a way
// costs is mostly the start of a compiler; cases do not read each other's values, so each keeps its own kernels.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/loops/target.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
class DeviceMemory;
}
namespace cutaway::testing {

/// How far from the judge a float may be. Integers, bools and what is only moved must be equal.
struct Bound {
    double ulps = 0;  // units in the last place of the result's dtype; 0: the same bits, but any NaN for a NaN
    /// The units are those of the largest number of the result, and are counted from the result in f64, which may also
    /// be four times as far away as the judge's worst: sums of rounded numbers, and what is computed from those.
    bool sums = false;
};

/// A graph (functional, of ATen calls) and values for its inputs.
struct LoweringCase {
    std::string name;
    std::shared_ptr<const Module> module;
    std::vector<Tensor> inputs;
    std::vector<Bound> bounds;     // one for each result, or one for all
    std::vector<Tensor> expected;  // what the judge gives
    std::vector<Tensor> wide;      // the same in f64, where a bound counts from there

    const Bound& bound(size_t result) const { return bounds[std::min(result, bounds.size() - 1)]; }
};
/// Runs the judge for the results that the case is compared with.
Result<void> judge(LoweringCase& one);

/// Runs of one graph that must agree to the bit, such as with 1 and with 4 threads.
struct WayRun {
    std::string name;
    std::vector<Tensor> outputs;
};
struct Way {
    std::string name;
    std::function<Result<std::vector<WayRun>>(const std::shared_ptr<const Module>&, const std::vector<Tensor>&)> run;
};

/// The interpreter without libraries: the judge.
Way pureInterpreter();
/// Generated code, compiled, with each of these numbers of threads.
Way compiledCode(std::vector<int> threads = {1, 4});
/// The same by plans made by chance in place of the chosen ones.
Way compiledByAnyPlan(uint32_t seed);
enum class Interpreted : uint8_t {
    Kernels,  // as they read
    Nests,    // of their plans, in pieces
    Lanes,    // the nests as a GPU runs them, with lanes in an order made by chance from the seed
};
/// The kernels of a schedule for the target: no compiler. `device`: where values lie; null: in the host's memory.
Way interpretedKernels(Interpreted how, const TargetInfo& target, uint32_t seed = 0,
                       const std::shared_ptr<DeviceMemory>& device = nullptr);
/// All that is held to the judge: tests of samples and of random graphs compare each of them.
std::vector<Way> judgedWays();
/// Compiled code with the address and undefined-behaviour sanitizers of g++ in the generated code, each value in memory
/// of its own. `folder` is where a script goes that starts the worker with what they need. Errors: g++ lacks them.
Result<Way> sanitizedCode(const std::string& folder);

/// Cases as one graph.
struct JoinedCases {
    std::shared_ptr<const Module> module;
    std::vector<Tensor> inputs;
};
JoinedCases joinCases(std::span<const LoweringCase* const> cases);

/// What the way gets wrong of each case, empty for nothing. `perGraph` cases are computed together, on all cores; what
/// fails as a whole is halved down to the cases that are to blame.
std::vector<std::string> wrongOf(const Way& way, std::span<const LoweringCase> cases, size_t perGraph);

/// Empty, or the first element that is beyond the bound. `wide` may be undefined.
std::string beyondBound(const Tensor& actual, const Tensor& expected, const Tensor& wide, const Bound& bound);

}  // namespace cutaway::testing
