#pragma once
// A failure that can be repeated anywhere: a folder with the graph as text, the request, the answers of hooks, and
// the error. Minifying leaves such folders, too (cutaway/minify.h).
#include <string>

#include "cutaway/jobs.h"
#include "cutaway/request.h"
#include "cutaway/result.h"

namespace cutaway {

struct ReproducerReport {
    std::string operation;      // "open", "compile", "build", "run", "minified"
    std::string recorded, now;  // the errors as text; `now` is empty if nothing went wrong
    bool repeated = false;      // the same error, apart from places of files
};

/// Does what the folder says once more, or the result in it where it is a minifier's. `hooks` lends what a file
/// cannot hold: functions of plugins. Errors: a folder that is not a reproducer, or one of a later version.
Result<ReproducerReport> runReproducer(const std::string& folder, const CompileHooks& hooks = {},
                                       const Progress& progress = {});

}  // namespace cutaway
