#pragma once
// How inner loops along rows take their lanes: how many a row has, and how many elements side by side each.
#include "engine/loops/loop_plan.h"

namespace cutaway {

constexpr int kBytesOfThread = 16;  // that a thread of a GPU reads at once

/// The coefficient of the axis if it is a number.
std::optional<int64_t> strideOf(const Expr& index, int axis);

/// Registers that the states of an inner loop take, of which a vector of 4-byte lanes fills one.
int registersOf(const InnerLoop& inner, const std::vector<Expr>& reductions, const TargetInfo& target);

// Where lanes are threads (LoopTarget::warp).

/// Whether rows are windows, of several loops, so short and many that a thread of its own has each.
bool areShort(const Kernel& kernel, int64_t length, const TargetInfo& target);
/// Lanes that go along rows of this length. A block takes several short rows: a warp has one, or a part of it, and
/// none waits for others.
int lanesOfRows(const Kernel& kernel, int64_t length, const TargetInfo& target);
/// Why each thread takes one element of all row loops together, in place of a vector along the last: that one is short,
/// so that most threads of a block had no work, or memory is not side by side along it. Empty: vectors do.
std::string whyFlat(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target);
/// How many steps of the parallel loop a block of threads takes at once, each by lanes of its own that are a warp or
/// less of one, or by a single thread without vectors. 1 where lanes are the whole block, and on CPUs.
int groupsOf(const LoopPlan& plan, const TargetInfo& target);
/// Elements side by side that each thread of an inner loop takes in one step (InnerLoop::accumulators): as many as it
/// reads at once.
int neighboursOf(const InnerLoop& inner, const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target);

}  // namespace cutaway
