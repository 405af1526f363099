#pragma once
// Module to FX text. The canonical short form parses back to the same text, byte for byte; the runnable form is a
// complete Python file that PyTorch runs unchanged. Leaves out: tensor data (except small constants in the runnable
// form), which belongs to files of its own.
#include <string>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

struct PrintOptions {
    /// "# File: ..." lines: module path and innermost frame, whenever they change.
    bool comments = true;
    /// The Python file instead of the short form. Symbols take their hint, else 8; tensors are seeded random floats or
    /// zeros, or the module's own values when there are at most four.
    bool runnable = false;
    /// Of the runnable form: inputs that inputs.safetensors beside the file has, by their names, are read from it.
    bool storedInputs = false;
    /// Of the runnable form: what GraphModule.to_folder writes as module.py, a class FxModule whose tensors come from
    /// this state dict. Empty: a file that runs alone.
    std::string stateDict = {};
};

struct PrintedText {
    std::string text;
    std::vector<NodeId> lineNodes;  // per line: the node printed there, or None. Ids are the module's or a subgraph's.
};

PrintedText printText(const Module& module, const PrintOptions& options = {});

/// Whether the runnable form can run: each input and attribute that is read needs a type, since a value is made for it.
/// The error names the one without and says what to do.
Result<void> checkRunnable(const Module& module);

/// One value as the short form writes it.
std::string printArgument(const Argument& argument);
/// The right-hand side of a node's line in the short form: "aten.add.Tensor(x, 1)", "self.weight", "x[0]".
std::string printExpression(const Node& node);

}  // namespace cutaway
