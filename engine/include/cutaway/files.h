#pragma once
// Files that a user names.
#include <cstddef>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

/// The whole of a text file. Errors: there is no such file, it is a folder, a pipe or a device, it is larger than
/// `limit` bytes, it changes while it is read.
Result<std::string> readTextFile(const std::string& path, size_t limit);

/// The largest size of files of rules and settings.
constexpr size_t kMaxSettingsFile = size_t{16} << 20;

}  // namespace cutaway
