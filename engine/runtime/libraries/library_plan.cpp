#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {
namespace {
thread_local std::string t_error;
}  // namespace

const char* lastLibraryError() { return t_error.c_str(); }
const LibraryPlan* ownPlan(const CtLibrary& library, const CtPlan* plan) {
    return library.error == lastLibraryError ? reinterpret_cast<const LibraryPlan*>(plan) : nullptr;
}
void setLibraryError(std::string text) { t_error = std::move(text); }

}  // namespace cutaway
