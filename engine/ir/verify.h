#pragma once
// What every graph must satisfy between two steps. The pass runner calls it after each pass; readers and tests may.
// Leaves alone: whether numbers are right (the interpreter's business), and what a pass promises beyond this.
#include "cutaway/result.h"
#include "engine/ir/module.h"

namespace cutaway {

struct VerifyOptions {
    /// After functionalization: no operator mutates, except copy_ into a placeholder at the end of the graph and calls
    /// that writesForEffect() is true for.
    bool functional = false;
    /// The type of every call of a known op is what its shape rule gives.
    bool types = false;
};

/// The first broken rule; `where` is the node ("conv_3") or the subgraph and the node ("true_graph_0/conv_3").
///  order        arguments stand before their readers, the output last, and there is one
///  users        arguments and user lists say the same, both ways
///  names        unique, found by name, not empty
///  arguments    as many as the schema has parameters, each of a kind that fits
///  subgraphs    every subgraph that is named exists
///  types        every value but the output has one; with options.types, the inferred one
///  inputs       one InputSpec per placeholder, one OutputSpec per returned value
///  functional   see VerifyOptions
Result<void> verify(const Module& module, const VerifyOptions& options = {});

/// Whether the operators accept their arguments. Readers open graphs with calls that they do not, so that they can be
/// looked at; compiling and running ask here first. The error names the node and what its operator's shape rule says.
///  Possible   no operator refuses its arguments; calls with opaque operands or sizes without numbers are left alone
///  Computable every known operator accepts its arguments, and gives the dtype and sizes that the graph says
enum class Calls : uint8_t { Possible, Computable };
Result<void> checkCalls(const Module& module, Calls wanted);

/// An operator that writes to an operand, returns nothing and has no functional form (fsdp.copy_). Functionalization
/// leaves its calls where they are, as PyTorch's does: other members of the group rely on the memory.
bool writesForEffect(const Op& op);

/// Whether types are equal (sameType) and tensors have the same storage offset, on which types of their views depend.
/// For inferred types only: types read from text know no offset.
bool sameMemory(const ValueType& a, const ValueType& b);

}  // namespace cutaway
