#pragma once
// What each of our programs does first and last, so that no process or temporary folder of it outlives it.
#include <string>

#include "cutaway/result.h"

namespace cutaway {

/// Called first in main(), before any thread is started. From here on, however the program ends - normally, by Ctrl-C,
/// SIGTERM or SIGHUP, by SIGKILL, by a crash - the processes that it started end with it and its temporary folders are
/// removed. Removes what earlier programs of this user left where even that did not happen (a machine that lost power).
/// Writing beyond the allowed size of files (ulimit -f) becomes an error of the write instead of a signal.
void beginProgram();

/// Ends the program at once, as beginProgram() promises, where threads still run that use what is about to be
/// destroyed.
[[noreturn]] void endProgram(int status);

/// A new empty folder that lives as long as the program.
Result<std::string> temporaryFolder();

/// One of the programs that belong together ("cutaway-worker"): what the environment variable names if it is set
/// (CUTAWAY_WORKER), else beside the running program, in ../bin, in ../libexec/cutaway, or in PATH. NotFound names the
/// variable's value or the places tried.
Result<std::string> findHelper(const std::string& name, const char* environmentVariable);

}  // namespace cutaway
