#pragma once
// The loops that the nodes of one kernel share.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/ir/type.h"

namespace cutaway {

/// `sizes`, of which the `reduced` ones run inside, once per row of the others.
struct Space {
    SymDims sizes;
    std::vector<bool> reduced;
    bool reduces() const { return std::find(reduced.begin(), reduced.end(), true) != reduced.end(); }
    SymDims outer() const;  // with 1 for reduced dims
    std::string text() const;
};

}  // namespace cutaway
