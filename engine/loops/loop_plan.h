#pragma once
// LoopPlan: how a kernel runs. All that could be chosen otherwise is here, each choice with its reason, and nothing
// after it chooses. Any plan that `problemOf` accepts gives the kernel's results; the choice is one of speed.
#include <set>
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/loops/kernel.h"
#include "engine/loops/target.h"

namespace cutaway {

/// Reductions and stores of one row that one pass over memory makes: their loops are equal.
struct InnerLoop {
    std::vector<int> reductions;  // numbers in reductionsOf(kernel)
    std::vector<int> stores;      // numbers in kernel.stores; an inner loop has the one or the other
    int accumulators = 1;         // states of each reduction, which vectors go to in turn: one alone waits for itself;
                                  // where lanes are threads, neighbours in memory that each has, in stores too
    bool operator==(const InnerLoop&) const = default;
};

enum class VectorOver : uint8_t {
    Nothing,
    Rows,   // the last outer loop
    Inner,  // the innermost loop of what is computed for a row
};

struct LoopPlan {
    std::vector<int> order;  // axes of the outer loops, outermost first
    VectorOver vectors = VectorOver::Nothing;
    int lanes = 1;
    /// So many neighbouring vectors of rows are taken in each step of the inner loops, which then read as many times
    /// more of memory that lies side by side.
    int unrollJam = 1;
    /// Elements of the last row loop that one part has, a multiple of the lanes, where there are too few rows for all
    /// cores; 0: all of it.
    int64_t block = 0;
    /// In order. Reductions of outer loops only (which are the same for all rows) stand in none: they are computed
    /// where they are first asked for.
    std::vector<InnerLoop> inner;
    /// Each inner loop is split into this many parts, which threads take; what they made is joined in order of parts.
    int split = 1;
    /// The axis of an outer loop that runs in blocks of `tile` inside the vector loop over rows; -1: none. What is
    /// contiguous along it stays in the cache from one vector to the next. `inRegisters`: it is turned where it lies,
    /// not copied to scratch memory first.
    int tiled = -1, tile = 1;
    bool inRegisters = false;
    /// Threads add to memory at once. Without it a kernel that adds runs on one.
    bool atomic = false;
    /// Of indices into buffers: 32 or 64.
    int indexBits = 64;
    /// Reductions whose elements stay in scratch memory for later inner loops of the row, which would compute them
    /// again.
    std::vector<int> cached;
    /// During this inner loop, not the first, what the first one reads of the next row comes into the cache, and the
    /// memory of what later ones store of this row; -1: none.
    int prefetch = -1;
    std::vector<std::string> why;

    bool sameChoices(const LoopPlan& other) const;
};

/// The loops of what an inner loop makes, equal for all of it. `reductions`: reductionsOf(kernel).
std::vector<Loop> loopsOf(const InnerLoop& inner, const Kernel& kernel, const std::vector<Expr>& reductions);
/// Whether an inner loop from this one on computes the elements of the reduction, which has one loop, once more.
bool computesAgain(const LoopPlan& plan, size_t from, const Kernel& kernel, const std::vector<Expr>& reductions,
                   const Expr& reduction);
/// Axes that change from row to row in the innermost loop over rows: what reads none of them is the same for all rows.
std::set<int> rowAxes(const LoopPlan& plan);

/// The most lanes that vectors of this kernel may have on the target: more than others where all that is computed,
/// beside indices, has one or two bytes and nothing is reduced.
int mostLanes(const Kernel& kernel, const TargetInfo& target);

/// Bytes of scratch memory that the lanes of a nest share, as far as the plan says: cached elements, tiles that
/// lanes turn, and states that they join.
int64_t sharedBytes(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target);

/// Whether all indices keep their values in 32 bits, as far as sizes and bounds are known.
bool fitsNarrowIndices(const LoopPlan& plan, const Kernel& kernel);

LoopPlan choosePlan(const Kernel& kernel, const TargetInfo& target);
/// Why the plan does not compute this kernel on the target; empty if it does.
std::string problemOf(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target);

/// One choice a line; reasons are comments. Parses back. Errors name the line.
std::string text(const LoopPlan& plan);
Result<LoopPlan> parsePlan(std::string_view text);

}  // namespace cutaway
