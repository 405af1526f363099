#pragma once
// The inputs of a run, and the values that its results are compared with.
#include <map>
#include <set>
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
/// file that holds the graph gives none. `run`: the graph that runs, which may take forward tangents behind the inputs
/// of `module`: from the file as "tangent_in_1" or, after the input, "x.tangent". Those that it lacks are zero if
/// it has any, else random.
Result<RunInputs> chooseInputs(const Module& module, const std::vector<Tensor>& samples, const std::string& path,
                               const std::string& noSamples = {}, const Module* run = nullptr);

/// Which of a graph's outputs the caller asked for: those that are written back to buffers or inputs come first in an
/// exported program and are not compared.
std::vector<size_t> userOutputs(const Module& module);
/// The name of a returned value: its node's, of a tangent that of the value that it belongs to and ".tangent", of a
/// literal "output_2".
std::string outputName(const Module& module, size_t position);
/// Expected values of the user outputs (undefined for None and text) from the safetensors file `path`, by the outputs'
/// names in the graph as opened or as it runs. Tensors that have a name of `others` (values that the run writes to) and
/// of no output go to `found`.
Result<RunInputs> readExpected(const Module& opened, const Module& run, const std::string& path,
                               const std::set<std::string>& others, std::map<std::string, Tensor>& found);

/// Alternative names of a graph's values: one list for each way of naming.
using NameSchemes = std::vector<std::vector<std::string>>;
/// Matches the tensors of a file to values with such names ("input", "output" in messages). If the file uses one of the
/// ways of naming, tensors are matched by name; other names are then errors, and so are missing ones, except at the
/// end. Any other file is matched in the natural order of its names (t2 before t10).
struct PickedTensors {
    std::vector<Tensor> tensors;
    bool byName = false;
};
Result<PickedTensors> pickTensors(std::vector<std::pair<std::string, Tensor>> tensors, const NameSchemes& schemes,
                                  const std::string& what, const std::string& path);

/// Replaces nodes by inputs: those after which the tensors of the safetensors file `path` are named, such as a random
/// draw recorded elsewhere. The tensors are appended to `user`. Errors name a node that the graph lacks and a tensor
/// whose dtype or shape is not the node's.
Result<Snapshot> withValues(const Module& module, const std::string& path, std::vector<Tensor>& user);

}  // namespace cutaway
