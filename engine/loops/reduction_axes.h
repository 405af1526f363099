#pragma once
// Numbers the axes of reductions by how many reductions they contain, their place and their size, so that equal
// reductions are equal expressions wherever they are built, and none has an axis of one inside it.
#include <map>
#include <tuple>

#include "engine/loops/kernel.h"

namespace cutaway {

class ReductionAxes {
  public:
    /// Numbers from `first` on.
    explicit ReductionAxes(int first) : m_next(first) {}
    /// The reduction of `body` over `loops`, whatever their axes were called.
    Expr numbered(int reducer, const std::vector<Loop>& loops, const Expr& body);

  private:
    int heightOf(const Expr& expr);
    std::map<std::tuple<int, size_t, uint64_t>, int> m_numbers;  // axis by (height, place in the loops, hash of size)
    std::map<int, int> m_heights;                                // by axis: how deep its reduction nests others
    int m_next;
};

/// One more than the largest number of an axis in the kernel.
int firstFreeAxis(const Kernel& kernel);

}  // namespace cutaway
