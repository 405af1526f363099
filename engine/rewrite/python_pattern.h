#pragma once
// Compares calls of Python functions as they are written, argument by argument. The matcher does so with parity, and
// where a function's parameters are not known; else it compares by parameter, so that spelling does not matter.
#include "engine/ir/node.h"
#include "engine/rewrite/pattern.h"

namespace cutaway {

/// A pattern's arguments beside those of a call.
struct WrittenCall {
    std::vector<PatternArg> patterns;
    std::vector<Argument> values;  // as many
    std::string mismatch;          // a sentence; then there are no pairs
};

/// `parity`: as PyTorch does it (spec: pattern-matcher M-3): the number of positional arguments must agree; missing
/// keywords are filled in only if the call has fewer than the pattern; keywords that the pattern does not name are
/// ignored; order counts. Without `parity` the keywords must be those of the pattern, in any order. `...` leaves open
/// what it does not write.
WrittenCall pairWritten(const PatternCall::Form& form, const Node& node, bool parity);

}  // namespace cutaway
