#pragma once
// The readers as fuzz targets: any bytes must end in a graph or an error, never in a crash, a hang or a flood of
// memory.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cutaway::fuzz {

struct Format {
    std::string_view name;  // also the folder of its corpus
    void (*run)(std::span<const uint8_t> bytes);
};
/// archive, program, pickle, safetensors, text, log, repro, trace, folder.
std::span<const Format> formats();

}  // namespace cutaway::fuzz
