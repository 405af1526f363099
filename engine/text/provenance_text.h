#pragma once
// The comments of FX text that carry meaning (spec: input-formats §4.3): "# File: ..." lines before nodes, and the
// descriptions after parameters and returned items in the expanded form. Both directions.
#include <string>
#include <string_view>

#include "engine/ir/module.h"

namespace cutaway::fxtext {

/// The provenance that a comment gives to all nodes up to the next such comment.
struct CommentState {
    std::shared_ptr<const std::string> stackTrace, modulePath, moduleType;
    int8_t recompute = 0;
    int32_t region = 0;

    void applyTo(Provenance& provenance) const;
};

/// Provenance that the comment (without '#') begins or ends, if it does.
void readComment(std::string_view comment, CommentState& state);

/// The comment line for nodes of this provenance, without '#'; "No stacktrace found for following nodes" when there is
/// nothing to say. Only the innermost frame of a stack trace is kept.
std::string commentOf(const Provenance& provenance);

/// "ParamAOTInput(target='fc.weight')" and its kin. Unknown descriptions are user inputs.
InputSpec readInputRole(std::string_view description);
std::string inputRole(const InputSpec& spec, size_t userIndex);

/// Descriptions of outputs refer to inputs by kind and target, or to user inputs by number, which `inputName` turns
/// into names.
struct InputNames {
    const std::vector<InputSpec>& specs;
    std::vector<std::string> userNames;  // placeholders that are user inputs, in order
};
OutputSpec readOutputRole(std::string_view description, const InputNames& inputs);
std::string outputRole(const OutputSpec& spec, size_t userIndex, const InputNames& inputs);

/// "symbol s77: lower=2, upper=64, hint=8"; empty if nothing is known of the symbol.
std::string symbolComment(const std::string& name, const SymbolInfo& info);
bool readSymbolComment(std::string_view comment, std::map<std::string, SymbolInfo>& symbols);

/// What follows a printed ExportedProgram: "Graph signature:" with a kind per input and output, "Range constraints:".
void readSignature(std::string_view tail, Module& module);

}  // namespace cutaway::fxtext
