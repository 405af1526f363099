#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

struct Listed {
    std::string_view name;
    const CtLibrary& (*library)();
    const char* (*version)();
};
#define CUTAWAY_LIBRARY(constant, function, name, device, linked, version, ...) {name, function, version},
constexpr Listed kListed[] = {CUTAWAY_LIBRARIES(CUTAWAY_LIBRARY)};
#undef CUTAWAY_LIBRARY

const Listed* listed(std::string_view name) {
    for (const Listed& each : kListed)
        if (each.name == name) return &each;
    return nullptr;
}

}  // namespace

const CtLibrary* libraryNamed(std::string_view name) {
    const Listed* const found = listed(name);
    return found ? &found->library() : nullptr;
}

const char* versionOfLibrary(std::string_view name) {
    const Listed* const found = listed(name);
    return found && found->version ? found->version() : nullptr;
}

}  // namespace cutaway
