#pragma once
// Weights that freezing has packed for a library. Printed graphs give them no type, or one of the library's own; the
// calls that read them tell what they were before packing, which is what ours are.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway::fxtext {

/// The packed weights among a call's operands, with the types that they had before packing, as far as the other
/// operands and the result, whose type the text gives, determine them.
std::vector<std::pair<Node*, TensorType>> plainWeights(const Op& op, const std::vector<Argument>& args,
                                                       const ValueType& result);

/// By attribute name: how the runnable form packs a weight that PyTorch takes in no other form, as text before and
/// after the weight's own.
struct Packing {
    std::string before, after;
};
std::map<std::string, Packing> packingsFor(const Module& module);

}  // namespace cutaway::fxtext
