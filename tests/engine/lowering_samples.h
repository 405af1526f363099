#pragma once
// Cases for the lowering rules: the recorded samples of every op that has one, and samples derived from them.
#include <map>

#include "tests/engine/lowering_harness.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {

/// How a call gets its tensors.
enum class Operands : uint8_t {
    Stored,      // as the sample writes them
    Computed,    // from a copy in the same kernel, so that views become index arithmetic
    Transposed,  // a permuted view: the last two dims change places
    Sliced,      // from the middle of a larger tensor
    Expanded,    // repeated along a dim: stride 0
};
constexpr Operands kLayouts[] = {Operands::Computed, Operands::Transposed, Operands::Sliced, Operands::Expanded};
std::string_view nameOf(Operands operands);

/// Ops with a lowering rule for CPUs whose results are determined by their operands, in table order.
std::vector<const Op*> loweredOps();

using Texts = std::vector<std::string>;
/// Texts of samples, derived from those given; each once, none of those given or `known`. One size of all that a sample
/// has becomes each of `sizes`, with and without the numbers among its arguments that are equal.
Texts resizedSamples(const Texts& samples, std::span<const int64_t> sizes, const Texts& known);
/// All floating operands, and all operands, in each dtype.
Texts retypedSamples(const Texts& samples, std::span<const DType> dtypes, const Texts& known);
/// Floats that are NaN, infinite, -0.0, huge and denormal, integers at the ends of their range.
Texts oddSamples(const Texts& samples);

/// The call as a graph with values, judged. Errors: the op, or the judge, refuses it; its operands have no such layout.
Result<LoweringCase> makeCase(const Op& op, const std::string& sample, Operands operands);

/// What an op's results may differ by; the table is in lowering_bounds.cpp.
Bound boundOf(const Op& op);

}  // namespace cutaway::testing
