#pragma once
// Sources that exported programs carry, as they stand in this tree when it is built (embed.cmake): the runtime, which
// uses nothing of the engine, and the templates.
#include <span>
#include <string_view>

namespace cutaway {

struct CarriedFile {
    std::string_view path;  // "engine/libraries/library.h"
    std::string_view text;
};
std::span<const CarriedFile> carriedFiles();

}  // namespace cutaway
