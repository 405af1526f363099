#pragma once
// Kinds of steps.
#include "cutaway/trace.h"

namespace cutaway::ui {

/// A step of the schedule decides how calls are computed; its graph keeps its nodes and can still be interpreted.
inline bool isSchedule(const StepInfo& step) { return step.stage == "schedule"; }

}  // namespace cutaway::ui
