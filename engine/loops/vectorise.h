#pragma once
// Steps of lowerLoops that change nests in place, in the order in which they are run.
#include <map>

#include "engine/loops/loop_nest.h"

namespace cutaway {

/// Vector loops in pieces in which no condition on their axis changes.
void splitGuards(LoopNest& nest);
/// Loops with several lanes get vector expressions: loads and stores along the lanes by address and step, the loop's
/// axis as a ramp. States that lanes share are vectors, joined lane by lane after the loop.
void vectorise(LoopNest& nest);
/// Loops over vectors of rows that are unrolled and jammed run once, with as many copies of each statement side by side
/// in the loops inside; where fewer are left, as before.
void unrollAndJam(LoopNest& nest);
/// Vector loops with accumulators take as many vectors at once, from as many stretches of their range, each with states
/// of its own; what is left over goes to the first.
void splitAccumulators(LoopNest& nest);
/// Alloc, Accumulate and Combine by the rows of the reducers' table.
void lowerReductions(LoopNest& nest);
/// Divisions of what is never negative by a positive number need no care for signs: Call "quotient", "remainder".
void plainDivisions(LoopNest& nest);
/// Indices are computed in 32 bits; only for plans that say so. What a loop or condition compares stays as it is.
void narrowIndices(LoopNest& nest);
/// Each value once: what is read again, or does not change in a loop, becomes a variable where it is first known.
void shareValues(LoopNest& nest);
/// Where lanes are threads, one that stores for all of them waits until all have read what stands there.
void waitToStore(LoopNest& nest);

/// The expression `further` on along the axis of a vector loop, with other variables in place of those in `vars`.
Expr movedAlong(const Expr& expr, int axis, const Expr& further, const std::map<int, int>& vars);

}  // namespace cutaway
