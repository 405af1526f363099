#pragma once
// Which file lies at a path, and as it was written last: enough to see that it is another one.
#include <cstdint>
#include <string>

namespace cutaway {

struct FileStamp {
    int64_t seconds = 0, nanoseconds = 0, bytes = -1;
    uint64_t number = 0;
    static FileStamp of(const std::string& file);
    bool operator==(const FileStamp&) const = default;
};

}  // namespace cutaway
