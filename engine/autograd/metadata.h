#pragma once
// What a returned value shares with the inputs, and which values get a gradient from outside (spec: autograd A.4).
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// A4.1, as far as a functional graph can tell: what is written to is a value of its own, so views of one intermediate
/// need no common base and are each unsafe_view_alias.
enum class OutputAlias : uint8_t { NonAlias, AliasOfInput, IsInput, UnsafeViewAlias };
/// PyTorch's name: "alias_of_input".
std::string_view nameOf(OutputAlias alias);

struct OutputMemory {
    OutputAlias alias = OutputAlias::NonAlias;
    const Node* input = nullptr;          // the placeholder whose memory it shares; null for none
    std::vector<const Node*> views = {};  // from that memory to the value, innermost first
};

/// One row for each returned value. `flow`: gradientFlow of the module.
std::vector<OutputMemory> outputMemory(const Module& module, const std::vector<bool>& flow);

/// Whether the output is what an input that can have a gradient was given, not a result: a buffer has none.
bool isNewValueOfInput(const OutputSpec& spec);

/// Whether a returned value gets a tangent (A4.3): it depends on a differentiable input and is not that input's memory,
/// unless it is the input's new value.
bool getsTangent(const Argument& value, const OutputSpec& spec, const OutputMemory& memory,
                 const std::vector<bool>& flow);

/// Errors: an input of the module that the graph writes to shares memory with another one (A.5) that is read, written
/// or returned, too, which a functional graph cannot say.
Result<void> checkWrittenInputs(const Module& module);
/// The same for the tensors that a run is given, one per placeholder.
Result<void> checkWrittenInputs(const Module& module, const std::vector<Tensor>& bound);

}  // namespace cutaway
