#pragma once
// Makes zip archives byte by byte, also wrong ones, for the tests of the readers.
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::testing {

struct ZipFile {
    std::string name, content;
    bool deflate = false;
    uint16_t method = 0xFFFF;  // 0xFFFF = what `deflate` says
    uint16_t flags = 0;
    int64_t claimedSize = -1;  // -1 = the true one
    int64_t claimedOffset = -1;
    bool withCrc = true;
    std::string localExtra;   // as PyTorch pads payloads
    bool plainSizes = false;  // with zip64: only the offset is all ones, as behind 4 GiB
};

/// With `zip64`, sizes and offsets are all ones and stand in extra fields and the zip64 end record.
std::string buildZip(const std::vector<ZipFile>& files, bool zip64 = false, const std::string& comment = {});

}  // namespace cutaway::testing
