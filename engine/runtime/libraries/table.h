#pragma once
// The libraries of this machine's processor, by the names that the rows of libraries/choose.h give them.
#include <string_view>

#include "engine/libraries/library.h"
#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {

/// Null if there is none of that name.
const CtLibrary* libraryNamed(std::string_view name);

const CtLibrary& oneDnnLibrary();       // products, convolutions and their gradients
const CtLibrary& oneDnnBytesLibrary();  // quantized layers
const CtLibrary& copiesLibrary();       // concatenations
const CtLibrary& attentionLibrary();    // our own
const CtLibrary& lapackLibrary();       // linear algebra
const CtLibrary& portableLibrary();     // operators as plain C++ (runtime/portable): the slowest, for every dtype

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
