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
/// Those of the safetensors file `path`; without one `samples`; without those random ones, seed 0. `noSamples`: why the
/// file that holds the graph gives none.
Result<RunInputs> chooseInputs(const Module& module, const std::vector<Tensor>& samples, const std::string& path,
                               const std::string& noSamples = {});

/// Which of a graph's outputs the caller asked for: those that are written back to buffers or inputs come first in an
/// exported program and are not compared.
std::vector<size_t> userOutputs(const Module& module);
/// Expected values of them, and where they come from: by the names that the outputs have in the graph as opened or as
/// it runs.
Result<RunInputs> readExpected(const Module& opened, const Module& run, const std::string& path);

/// Names that values of a graph go by: one list of them for each way of naming.
using NameSchemes = std::vector<std::vector<std::string>>;
/// Tensors of a file for values that go by such names ("input", "output" in messages). A file that uses them decides by
/// name which tensor is which; a name that it then has beside them is an error, and one that it lacks, too, but at the
/// end. Any other file goes by the natural order of its names (t2 before t10).
struct PickedTensors {
    std::vector<Tensor> tensors;
    bool byName = false;
};
Result<PickedTensors> pickTensors(std::vector<std::pair<std::string, Tensor>> tensors, const NameSchemes& schemes,
                                  const std::string& what, const std::string& path);

/// The graph with inputs in place of the nodes that the tensors of the safetensors file `path` are named after, such as
/// a random choice recorded elsewhere; the tensors are appended to `user`. Errors name a node that the graph lacks and
/// a tensor whose dtype or shape is not the node's.
Result<Snapshot> withValues(const Module& module, const std::string& path, std::vector<Tensor>& user);

}  // namespace cutaway
