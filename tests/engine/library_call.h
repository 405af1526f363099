#pragma once
// One call of an operator by a library, outside of any program.
#include <memory>

#include "engine/ir/graph.h"
#include "engine/runtime/libraries/planned_call.h"

namespace cutaway::testing {

/// A call whose operands are the placeholders of a graph, and their values.
struct LibraryCallCase {
    std::string op, library;
    std::vector<Argument> args;
    std::vector<std::pair<const Node*, Tensor>> operands;
    std::vector<bool> constant;  // by operand; empty: none is

    const Tensor& valueOf(const Node& node) const;
    bool isConstant(const Node& node) const;
};

/// Planned for results like these (undefined: not to be computed) and so many threads, and packed. Errors: the library
/// refuses.
Result<std::unique_ptr<PlannedCall>> planByLibrary(const LibraryCallCase& one, const std::vector<Tensor>& results,
                                                   int threads);
/// Fills the results, with scratch memory of its own.
Result<void> runByLibrary(const PlannedCall& planned, const LibraryCallCase& one, std::vector<Tensor>& results,
                          int threads);

}  // namespace cutaway::testing
