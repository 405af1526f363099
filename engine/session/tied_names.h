#pragma once
// One tensor under several names: a weight tied to another, a submodule that is registered twice.
#include <string>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// All names of the tensor `name` of an opened program, the one that it was registered under first in front: that is
/// what named_parameters() of PyTorch calls it. `name` alone if it has no other, or no tensor.
std::vector<std::string> tiedNames(const Module& opened, const std::string& name);

/// The key of the first of a tensor's names that `tensors` has, else its end.
template <class Map>
auto findTied(Map& tensors, const Module& opened, const std::string& name) {
    auto found = tensors.find(name);
    if (found != tensors.end()) return found;
    for (const std::string& other : tiedNames(opened, name))
        if (found = tensors.find(other); found != tensors.end()) return found;
    return found;
}

}  // namespace cutaway
