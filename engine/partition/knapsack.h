#pragma once
// Which of the values that a smaller memory budget asks about are saved: 0-1 knapsacks, one class a solver (spec:
// autograd B.9).
#include <memory>
#include <vector>

#include "engine/partition/options.h"

namespace cutaway {

/// Values that may be saved or computed again.
struct KnapsackItems {
    std::vector<double> memory;   // share of the memory that a budget of 1 gives
    std::vector<double> runtime;  // of computing it again, in the estimator's unit
    size_t size() const { return memory.size(); }
};

/// A knapsack whose capacity changes: what does not depend on it is computed once.
class Knapsack {
  public:
    virtual ~Knapsack() = default;
    /// The items to save, ascending. `capacity`: as KnapsackItems::memory, at least 0.
    virtual std::vector<int> solve(double capacity) const = 0;
};
std::unique_ptr<Knapsack> makeKnapsack(Solver solver, KnapsackItems items);

}  // namespace cutaway
