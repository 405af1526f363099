#pragma once
// Results that say which of several equal keys was taken: sort, topk, median and their kin leave that open.
#include "cutaway/session.h"
#include "engine/ir/module.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// Compares again an index result that differs from what was expected: where both sides name equal keys (two NaNs are
/// equal), the element is a tie, and where all that differ are ties, the result matches. `module`: the graph that ran
/// on `inputs`, one tensor per placeholder; `position`: of the result in its output. The keys are computed by the
/// reference interpreter; where that fails, or the result is not such an index, `report` stays as it is. Source: the
/// documentation of torch.sort, topk, kthvalue, median and mode, which promise no order of equal keys.
void sayTies(const Module& module, const std::vector<Tensor>& inputs, size_t position, const Tensor& actual,
             const Tensor& expected, const Progress& progress, OutputReport& report);

}  // namespace cutaway
