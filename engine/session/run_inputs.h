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

/// The graph with inputs in place of the nodes that the tensors of the safetensors file `path` are named after, such as a
/// random choice recorded elsewhere; the tensors are appended to `user`. Errors name a node that the graph lacks and a
/// tensor whose dtype or shape is not the node's.
Result<Snapshot> withValues(const Module& module, const std::string& path, std::vector<Tensor>& user);

/// The largest error that counts as equal, as a share of the largest expected value.
double relativeTolerance(DType dtype);

}  // namespace cutaway
