#pragma once
// Backends by name, as options of commands and files of failures have them.
#include "cutaway/session.h"

namespace cutaway {

/// The one that runs what is compiled for the target.
constexpr Backend compiledBackend(Target target) { return target == Target::Cuda ? Backend::Cuda : Backend::Cpu; }
/// What a compiled backend's code is compiled for.
constexpr Target targetOf(Backend backend) { return backend == Backend::Cuda ? Target::Cuda : Target::Cpu; }

/// "reference", "cpu", "cuda".
std::string_view backendName(Backend backend);
/// Errors: no backend has the name.
Result<Backend> backendNamed(std::string_view name);
/// Errors: what is compiled for the target does not run there.
Result<void> checkTarget(Backend backend, Target target);
/// The same, and that this machine has what the backend runs on.
Result<void> checkBackend(Backend backend, Target target);

}  // namespace cutaway
