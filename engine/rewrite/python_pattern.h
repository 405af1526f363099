#pragma once
// Calls of Python functions compared as they are written, argument by argument. Where the parameters of a function are
// known the matcher compares by parameter instead, because two spellings of one call are one call.
#include "engine/ir/node.h"
#include "engine/rewrite/pattern.h"

namespace cutaway {

/// A pattern's arguments beside those of a call.
struct WrittenCall {
    std::vector<PatternArg> patterns;
    std::vector<Argument> values;  // as many
    std::string mismatch;          // a sentence; then there are no pairs
};

/// `parity`: as PyTorch does it (spec: pattern-matcher M-3): equally many positional arguments; omitted keywords are
/// filled in only if the call has fewer than the pattern, others that the pattern does not name are left out; and their
/// order counts. Else the keywords are those of the pattern in any order. `...` leaves open what it does not write.
WrittenCall pairWritten(const PatternCall::Form& form, const Node& node, bool parity);

}  // namespace cutaway
