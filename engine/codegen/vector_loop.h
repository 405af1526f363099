#pragma once
// Which loop of a kernel becomes vectors: the innermost of the outer ones, or the innermost of every reduction and
// inner store, whichever loads and stores go along better.
#include <set>
#include <string>

#include "engine/schedule/kernel.h"

namespace cutaway {

struct VectorLoop {
    bool outer = true;              // the last outer loop, else those inside rows
    std::set<std::string> symbols;  // that stand for kLanes neighbouring values
};
VectorLoop chooseVectorLoop(const Kernel& kernel);

}  // namespace cutaway
