#pragma once
// One line per event on stderr, for what has no better place: a temp folder that could not be removed, a job that
// threw.
#include <string_view>

namespace cutaway {

/// "cutaway: <text>". Thread-safe; lines do not mix.
void logWarning(std::string_view text);

}  // namespace cutaway
