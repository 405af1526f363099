#pragma once
// safetensors: a JSON header and one block of row-major little-endian data (spec: input-formats §7, ST-1..4).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/byte_source.h"

namespace cutaway {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct SafeTensors {
    NamedTensors tensors;                                       // in header order
    std::vector<std::pair<std::string, std::string>> metadata;  // __metadata__
};

/// Of bytes at hand tensors are views; one whose data is misaligned for its dtype is a copy. Of a file they are read
/// when they are first used. Errors begin with the name that the format's own readers use ("InvalidHeaderLength") and
/// carry the tensor's name where there is one.
Result<SafeTensors> parseSafeTensors(ByteSource source, const std::string& where);
Result<SafeTensors> readSafeTensors(const std::string& path);

/// Header order is as given; data is laid out by falling item size, so that every tensor is aligned. Error: a dtype
/// without a name in the format, a name given twice.
Result<std::string> formatSafeTensors(const SafeTensors& file);
/// Writes beside the target and renames, so that a reader never sees half a file.
Result<void> writeSafeTensors(const std::string& path, const SafeTensors& file);

}  // namespace cutaway
