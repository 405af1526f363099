#pragma once
// What a step is beside its state.
#include "cutaway/trace.h"

namespace cutaway::ui {

/// The grouping of nodes into kernels: no pass, so nothing to switch off, and its decisions edit no graph.
inline bool isSchedule(const StepInfo& step) { return step.stage == "schedule"; }

}  // namespace cutaway::ui
