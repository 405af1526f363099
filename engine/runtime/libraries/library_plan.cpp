#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {
namespace {
thread_local std::string t_error;
}  // namespace

const char* lastLibraryError() { return t_error.c_str(); }
void setLibraryError(std::string text) { t_error = std::move(text); }

}  // namespace cutaway
