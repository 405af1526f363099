#pragma once
// One call through everything that a graph of a user's goes through: the text reader, types, the interpreter, the
// passes of inference and training, the scheduler, and, several together, compiled code. A call may be refused at any
// stage, in words; whatever else happens is a problem.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "tests/support/call_text.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {

struct CallReport {
    enum class Outcome : uint8_t { RefusedByTypes, RefusedWhenRun, Large, Ran } outcome = Outcome::RefusedByTypes;
    std::string refusal;                 // the sentence
    std::vector<std::string> problems;   // "stage: what is wrong"
    std::unique_ptr<SampleCall> sample;  // null if types refuse the call
    std::vector<Tensor> results;         // of the interpreter, if it ran
    bool scheduled = false;              // compiled code can be made of it
};

/// Called with the name of a stage before it begins.
using StageWatch = std::function<void(const char*)>;

CallReport checkCall(const CallText& call, const StageWatch& stage);

/// Compiles the calls that ran as one graph and compares what it computes with what the interpreter did. Problems name
/// the call where that is known. `compiler`: as CpuBuildOptions'.
std::vector<std::string> checkCompiled(const std::vector<std::pair<CallText, CallReport>>& calls,
                                       const std::string& compiler);

}  // namespace cutaway::testing
