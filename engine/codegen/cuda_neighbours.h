#pragma once
// Which elements one thread of a GPU reads or writes lie side by side, so that one instruction has them all.
#include "engine/loops/loop_nest.h"

namespace cutaway {

/// Loads or stores of a vector loop whose lanes are `count` apart, and whose places follow each other.
struct Neighbours {
    int buffer = 0;
    DType dtype = DType::F32;
    int64_t count = 1;
    Expr first;                                   // the index of the first lane's first, of one lane
    std::vector<std::pair<int64_t, Expr>> loads;  // by places from the first on, or
    std::vector<std::pair<int64_t, const Store*>> stores;
};

/// Those of this loop: what it loads may be read before its body, and what it stores written behind. Empty where not
/// all of its vectors have all lanes.
std::vector<Neighbours> neighboursIn(const For& loop, const LoopNest& nest);

/// Adds loads whose lanes lie side by side (or `apart`: with as many elements between as a thread may have), but for
/// those that a condition of all lanes may leave out.
void loadsBeside(const Expr& expr, const LoopNest& nest, bool apart, std::vector<Expr>& loads);

}  // namespace cutaway
