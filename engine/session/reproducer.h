#pragma once
// Writes reproducers (cutaway/reproducer.h). Below the user's cache folder, or where CUTAWAY_REPROS says, or not at all
// where that says "off"; equal failures share a folder, and the oldest go when there are many.
#include "cutaway/request.h"
#include "cutaway/session.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

struct Failure {
    std::string operation;
    std::string file;  // that could not be opened; else `graph` is what failed
    Snapshot graph;
    CompileRequest request;
    std::vector<Answer> answers;
    std::optional<RunOptions> run;
    Error error;
};

/// Whether the error is worth repeating: a bug, a limit, a tool that failed; not what the user has to mend.
bool isReproducible(const Error& error);

/// Writes the folder, and returns the failure's error with a note that names it.
Error noteReproducer(const Failure& failure);

/// The error with a note that says how to repeat it, if a reproducer could be written. Never throws: what went wrong
/// may have been the last of the memory.
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

}  // namespace cutaway
