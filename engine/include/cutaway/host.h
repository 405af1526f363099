#pragma once
// The host program of a run: what calls its kernels and libraries, and where values lie.
#include "cutaway/session.h"

namespace cutaway {

struct HostTexts {
    std::string program;   // functions, sizes, memory, steps, for people
    std::string source;    // C++ with the C interface of exported programs; empty if there is none
    std::string noSource;  // why
};
/// A run for training has one program, too, of the functions forward and backward. Errors: the run failed; a call that
/// no compiled graph can pass.
Result<HostTexts> hostTexts(Session& session, RunId run, const Progress& progress = {});

}  // namespace cutaway
