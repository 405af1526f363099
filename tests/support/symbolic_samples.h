#pragma once
// Samples of op rows with symbols in place of sizes: what an exported model with dynamic sizes holds.
#include <string>
#include <vector>

#include "cutaway/request.h"
#include "engine/interpret/specialize.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {

struct SymbolicSample {
    std::shared_ptr<Module> module;  // the call, and an output of its results
    SymbolValues values;             // the sizes that the sample has
    std::string name;                // "s2 s3", or "s3 (and arguments)"
};
/// Why there is none: the size, and what the op said.
struct SymbolicRefusal {
    std::string symbols, why;
};

/// Every size of two and more of the sample becomes a symbol, all sizes that are equal the same one: all together, and
/// each alone. Arguments that are sizes (or products of two) become symbols, too, unless the op takes the call without
/// that.
std::vector<SymbolicSample> symbolicForms(const SampleCall& sample, std::vector<SymbolicRefusal>& refusals);

/// What the passes make of it; an error names the step that failed.
Result<Snapshot> afterPasses(const Snapshot& module, Mode mode);
/// "" or the first difference: numbers may differ by rounding, types may not.
std::string differing(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected);
/// Whether its results are drawn at random or uninitialised.
bool drawsNumbers(const Op& op);

}  // namespace cutaway::testing
