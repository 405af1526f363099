#pragma once
// How far results may differ, for `run --expect`, bisecting and the check of numbers alike.
#include "cutaway/jobs.h"
#include "engine/minify/bisect.h"
#include "engine/runtime/plugin_judge.h"
#include "engine/session/session_state.h"
#include "engine/tensor/compare.h"

namespace cutaway {

/// The least tolerance for f32 that library calls rounded to TF32, whose mantissa is f16's: what one call may be off.
constexpr double kTf32Tolerance = 2e-3;
/// Element by element: |a - b| <= t (max(1, q) + |b|), where q is the usual magnitude of the expected values, so that
/// one huge value hides nothing, and t is `tolerance`, at least the dtype's own. Infinities of one sign are equal, NaNs
/// too; integers and bools have no tolerance.
Comparison compareOutput(const Tensor& actual, const Tensor& expected, double tolerance = 0);
/// The worst element that compareOutput found; absent if there is none.
std::optional<ElementDifference> worstElement(const Comparison& comparison, const Tensor& actual,
                                              const Tensor& expected);
/// "element [2, 5] is 3.5 instead of 4"
std::string elementText(const ElementDifference& element);

/// Bad if a result has more elements that are NaN or infinite than is expected.
Verdict findNonFinite(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected);

/// Bad if a result has another dtype or shape, or an element is too far off (compareOutput). Both sides must have
/// equally many results.
Verdict compareOutputs(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance);

/// The judge of a run (RunOptions::judge), which rows of results ask in place of the tolerance; their numbers stay.
class RowJudge {
  public:
    /// Asks nobody if `options` name none. Errors: there is no such judge; nothing to compare with.
    static Result<RowJudge> of(const RunOptions& options, const Progress& progress);
    /// Exchanges what `row` says of a value that was compared. Errors: what has become of the judge's process.
    Result<void> judge(const Tensor& actual, const Tensor& expected, OutputReport& row) const;

  private:
    std::optional<PluginJudge> m_judge;
    const Progress* m_progress = nullptr;  // outlives it
};

/// Each result by a plugin's judge; bad with the first that it refuses. Errors: there is no such judge, or it fails.
Result<Verdict> judgedBy(const std::string& judge, const std::vector<Tensor>& actual,
                         const std::vector<Tensor>& expected, const Progress& progress);

}  // namespace cutaway
