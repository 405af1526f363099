#pragma once
// What a step is beside its state.
#include "cutaway/trace.h"

namespace cutaway::ui {

/// One that decides how calls are computed: the graph keeps its nodes, and can be interpreted whatever comes of it.
inline bool isSchedule(const StepInfo& step) { return step.stage == "schedule"; }

}  // namespace cutaway::ui
