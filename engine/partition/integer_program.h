#pragma once
// An exact 0-1 knapsack by the integer programming library CBC.
#include <vector>

namespace cutaway {

/// The items that are worth most together while their weights stay within the capacity, ascending.
std::vector<int> solveIntegerProgram(const std::vector<double>& worth, const std::vector<double>& weights,
                                     double capacity);

}  // namespace cutaway
