#pragma once
// Backends by name, as options of commands and files of failures have them.
#include "cutaway/session.h"

namespace cutaway {

/// "reference", "cpu", "cuda".
std::string_view backendName(Backend backend);
/// Errors: no backend has the name.
Result<Backend> backendNamed(std::string_view name);
/// Errors: what is compiled for the target does not run there, or nothing does yet.
Result<void> checkBackend(Backend backend, Target target);

}  // namespace cutaway
