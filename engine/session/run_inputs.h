#pragma once
// What a graph is run on, and how far two runs may lie apart.
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// One tensor per user input (tangents included), in order, and where they come from, for the user.
struct RunInputs {
    std::vector<Tensor> user;
    std::string from;
};
/// Those of the safetensors file `path`; without one `samples`; without those random ones, seed 0.
Result<RunInputs> chooseInputs(const Module& module, const std::vector<Tensor>& samples, const std::string& path);

/// Tensors of a file, by input name when it names them all, else in the order of its names (t000, t001, ...).
Result<std::vector<Tensor>> readTensors(const std::string& path, const std::vector<std::string>& names);

/// The largest error that counts as equal, as a share of the largest expected value.
double relativeTolerance(DType dtype);

}  // namespace cutaway
