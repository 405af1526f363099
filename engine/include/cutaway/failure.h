#pragma once
// What went wrong with a graph, in a form that can be compared: two failures are the same if their signatures are.
#include <optional>
#include <string>
#include <string_view>

#include "cutaway/result.h"

namespace cutaway {

enum class FailureKind : uint8_t {
    PassError,     // a pass refused, threw, or contradicted itself
    InvalidGraph,  // a pass left a graph that does not verify
    Crash,         // the process was ended by a signal
    Hang,          // it took longer than the limit
    Memory,        // it took more memory than the limit
    Build,         // kernels could not be generated or compiled
    Run,           // the graph does not run
    Numbers,       // the results differ
    NonFinite,     // a NaN or an infinity that inputs and reference do not have
    Command,       // the user's command fails
};
/// "pass-error", "invalid-graph", ...
std::string_view nameOf(FailureKind kind);

struct FailureSignature {
    FailureKind kind = FailureKind::PassError;
    std::string message;  // without what differs between graphs that fail alike: numbers, names, paths
    std::string pass;     // in which it failed, "post_grad/pointless_view"; empty: none
    std::string op;       // of the node that it names, "aten.mm.default"; empty: none

    bool operator==(const FailureSignature&) const = default;
    /// "crash, in post_grad/pointless_view: was killed by signal 11".
    std::string title() const;
    /// "kind=crash; pass=post_grad/pointless_view; message=..."; parseSignature reads it back. Empty parts are left
    /// out.
    std::string text() const;
};
/// Parts that are not given count as any. Errors: an unknown part or kind, with those that there are.
Result<FailureSignature> parseSignature(std::string_view text);
/// Whether a failure is the one that is wanted: the kinds are equal, and so is everything that `wanted` says.
bool isSameFailure(const FailureSignature& wanted, const FailureSignature& found);

/// The message without numbers, quoted names, addresses and paths.
std::string normalisedMessage(std::string_view message);

}  // namespace cutaway
