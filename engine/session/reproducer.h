#pragma once
// Writes reproducers (cutaway/reproducer.h). They go into the user's cache folder, or where CUTAWAY_REPROS says; "off"
// writes none. Equal failures share a folder, and the oldest are removed when there are many.
#include "cutaway/bisect.h"
#include "cutaway/reproducer.h"
#include "cutaway/request.h"
#include "cutaway/session.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

struct Failure {
    std::string operation;
    std::string file;  // that could not be opened; else `graph` is what failed
    Snapshot graph;
    CompileRequest request;
    std::vector<Measurement> measurements;
    std::optional<RunOptions> run;
    std::optional<BisectOptions> bisect;  // and of checking the numbers: the tolerance
    Error error;
};

/// Whether the error gets a reproducer: a bug, a limit, a failed tool; not a mistake of the user's.
bool isReproducible(const Error& error);

/// Writes the folder, and returns the failure's error with a note that names it.
Error noteReproducer(const Failure& failure);

/// The error with a note that says how to repeat it, if a reproducer could be written. Never throws, since the failure
/// may have been that memory ran out.
template <class Make>
Error withReproducer(const Error& error, Make&& failure) noexcept {
    try {
        Failure whole = failure();
        whole.error = error;
        return noteReproducer(whole);
    } catch (...) {
        Error plain;
        plain.code = error.code;
        plain.message = "out of memory";  // short enough to need none
        return plain;
    }
}

/// runReproducer() for the folders that this file writes.
Result<ReproducerReport> repeatFailure(const std::string& folder, const CompileHooks& hooks, const Progress& progress);

}  // namespace cutaway
