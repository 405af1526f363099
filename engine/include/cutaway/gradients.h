#pragma once
// Whether a training run's gradients are derivatives: they are held against central differences of what the joint graph
// computes, in f64 and along random directions. Comparing graphs cannot tell, since nothing before differentiation has
// gradients. Where they are not, the derivatives of single calls are held against central differences of these.
#include "cutaway/session.h"

namespace cutaway {

enum class GradientVerdict : uint8_t {
    Right,
    Wrong,
    Kink,       // right beside the point, which is one where the function has no derivative
    Undecided,  // differences do not settle, or what is computed cannot be in f64; `why` says it
};
const char* wordOf(GradientVerdict verdict);  // "right", "wrong", "kink", "undecided"

/// A gradient times a direction, beside the central difference along it.
struct GradientRow {
    std::string input;   // whose gradient it is: name in the file; empty: all together
    std::string output;  // the node that computes it
    double gradient = 0, difference = 0;
    GradientVerdict verdict = GradientVerdict::Right;
    std::string why;  // a sentence; empty where there is nothing to say
};
/// The same of one call's derivative by one operand.
struct DerivativeRow {
    NodeKey node = NodeKey::None;
    std::string name, op;
    std::string operand;  // the parameter of the operator
    double gradient = 0, difference = 0;
    GradientVerdict verdict = GradientVerdict::Right;
    std::string why;
};
struct GradientCheckOptions {
    std::string inputsFile;     // as RunOptions'
    uint64_t seed = 1;          // of the directions
    bool everyCall = false;     // look at the calls even where all gradients together are right
    double timeoutSeconds = 0;  // of the worker; 0 = no limit
    int64_t memoryBytes = 0;    // of its address space; 0 = what the machine has left
};
struct GradientCheck {
    Place place;  // of the joint graph
    uint64_t seed = 0;
    int gradients = 0;              // that the graph returns
    GradientRow all;                // all of them along one direction
    std::vector<GradientRow> each;  // of those that were looked at alone: where all together are not right
    int callsChecked = 0;
    std::vector<DerivativeRow> calls;  // that are not right, in the order in which they run
    int runs = 0;                      // of the whole graph
    std::string inputsFrom, summary;
    std::vector<std::string> remarks;

    bool wrong() const;
    /// The call whose derivative is wrong, the first that runs; null for none.
    const DerivativeRow* guilty() const;
};
/// Errors: the run has no joint graph of its own making; the graph does not run; Cancelled.
Result<GradientCheck> checkGradients(Session& session, RunId run, const GradientCheckOptions& options = {},
                                     const Progress& progress = {});

}  // namespace cutaway
