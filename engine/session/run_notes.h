#pragma once
#include "cutaway/session.h"
#include "engine/ir/module.h"

namespace cutaway {

/// What a run of the graph takes for granted, and, where results differ from what was expected, what may be the cause:
/// a sentence each. `compiled`: kernels ran it; `roundsHalves`: they rounded half precision after each call; `tf32`:
/// library calls rounded f32.
std::vector<std::string> notesOf(const Module& module, const RunReport& report, bool compiled, bool roundsHalves,
                                 bool tf32);
/// Of a run whose library calls rounded f32 to TF32.
constexpr const char* kTf32Note =
    "library calls rounded f32 to TF32, and values of f32 are compared as those of f16 are: --tf32 none computes in f32";

}  // namespace cutaway
