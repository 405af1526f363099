#pragma once
// Chooses the loop of a kernel that becomes vectors: the innermost of the outer loops, or the innermost of every
// reduction and inner store, whichever has more contiguous loads and stores.
#include <set>
#include <string>

#include "engine/schedule/kernel.h"

namespace cutaway {

struct VectorLoop {
    bool outer = true;              // the last outer loop, else those inside rows
    std::set<std::string> symbols;  // that stand for kLanes neighbouring values
};
VectorLoop chooseVectorLoop(const Kernel& kernel);

/// Gives a loop that is innermost in one reduction and further out in another a second name in the latter, so that a
/// symbol alone says whether it stands for a vector. (Reductions over [8, 4] and over [8, 4, 2] both have an r1_1_4.)
void nameInnermostLoopsApart(Kernel& kernel);

}  // namespace cutaway
