#pragma once
// One trial: a graph is compiled and, if the check wants it, run and compared. Made in a process of its own, which may
// end in any way (trial_server.h).
#include <optional>
#include <string>

#include "cutaway/failure.h"
#include "cutaway/session.h"
#include "engine/minify/candidate.h"
#include "engine/runtime/worker.h"

namespace cutaway {

/// What a graph is tried for.
struct TrialCheck {
    enum class Level : uint8_t {
        Compiles,     // passes and scheduling do not fail
        Runs,         // and the result runs
        Numbers,      // and returns what the graph returned before the passes
        NonFinite,    // and nothing that is not finite, where inputs are
        NewNonFinite  // and nothing that is not finite beside what the graph returned before the passes
    };
    Level level = Level::Compiles;
    Backend backend = Backend::Reference;  // on which the result runs
    double tolerance = 1e-4;
    /// Whether a failure of numbers names the pass behind which they are wrong: every such trial runs some graphs more.
    bool namesPass = false;
    std::string pass;          // the only pass to look at, which costs fewer runs than finding it; empty: any
    bool derivatives = false;  // of training, check gradients, too; done anyway where `pass` is the differentiation
    std::string judge = {};    // of Numbers: a plugin's in place of the tolerance; empty: none
    bool operator==(const TrialCheck&) const = default;
};

struct TrialOutcome {
    std::optional<FailureSignature> failure;  // none: the graph is good
    std::string detail;                       // a sentence for the user
    double milliseconds = 0;                  // of the work itself
    int64_t rewrites = 0;                     // of those that fuel counts, even if the process died
    std::vector<std::string> changed;         // names of passes that changed the graph, even if the process died
    std::optional<LastRewrite> lastRewrite;   // the last of those
    /// Names of calls near which it went wrong, most likely group first; empty: not known.
    std::vector<std::vector<std::string>> near = {};
};

/// The message of FailureKind::Memory.
constexpr std::string_view kTooMuchMemory = "took more memory than the limit";

/// In this process. `inputs`: of the given inputs, in order.
TrialOutcome tryHere(const std::shared_ptr<const Module>& module, const CompileRequest& request,
                     std::vector<Tensor> inputs, const TrialCheck& check, StatusPage& board);

}  // namespace cutaway
