#pragma once
// A stage: its table of passes, one row each, in running order.
#include <span>
#include <string_view>
#include <variant>

#include "engine/passes/pass.h"

namespace cutaway {

/// Passes that run in the order, and as often, as the user names them.
struct AnyOrder {
    std::span<const Pass> passes;
    std::span<const Dependency> after = {};
};
/// Passes that run one after the other, repeated that many times.
struct Repeat {
    int times = 1;
    std::span<const Pass> passes;
};
/// Where passes of the user's own run; PyTorch's name of the place (spec: passes §1.2, §2.2, §6.2), or "library", where
/// libraries of plugins take calls.
struct UserPlace {
    std::string_view name;
    bool functional = true;  // the graph is, and has to stay so
    bool rules = true;       // rules may stand there
};
using Row = std::variant<Pass, AnyOrder, Repeat, UserPlace>;

struct Stage {
    std::string_view name;  // "pre_grad", "capture", "joint", "layout", "freeze", "partition", "post_grad", "lowering"
    std::span<const Row> rows;
    std::span<const Dependency> after = {};  // of all its passes
    bool required = false;                   // all its passes are
    /// Subgraphs that its passes have made (of chunks, of a user's pass) get its passes, too, after the last of them
    /// (JNT-1; body_round.h).
    bool again = false;
};

extern const Stage kPreGrad, kCapture, kJoint, kLayout, kFreeze, kPartition, kPostGrad, kLowering, kSchedule;

}  // namespace cutaway
