#pragma once
// The libraries by their names, made of the list in libraries/library_list.h.
#include <string_view>

#include "engine/libraries/library.h"
#include "engine/libraries/library_list.h"
#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {

/// Null if there is none of that name.
const CtLibrary* libraryNamed(std::string_view name);
/// The version of what is behind the library, "3.0.0"; null where it is our own, or there is none of that name.
const char* versionOfLibrary(std::string_view name);

#define CUTAWAY_LIBRARY(constant, function, ...) const CtLibrary& function();
CUTAWAY_LIBRARIES(CUTAWAY_LIBRARY)
#undef CUTAWAY_LIBRARY

/// Throws a refusal if there is no function for the call.
std::unique_ptr<LibraryPlan> planPortable(const CtCall& call, int threads, CtNeeds& needs);
namespace portable {
struct Function;
}
/// A plan that runs the function, which must be the call's operator's; a null one is refused.
std::unique_ptr<LibraryPlan> planFunction(const portable::Function* function, const CtCall& call, int threads,
                                          CtNeeds& needs);

/// "3.0.0".
const char* oneDnnVersion();

}  // namespace cutaway
