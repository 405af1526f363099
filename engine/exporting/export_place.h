#pragma once
// Puts what an export has made under its name: all of it or, whatever happens, nothing.
#include <filesystem>
#include <string>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

/// Refuses a folder that holds anything but an earlier export, so that nobody else's files are overwritten.
Result<void> checkFolder(const std::filesystem::path& folder);
/// The same for a file that is to be a zip archive.
Result<void> checkArchive(const std::filesystem::path& file);

/// Moves the files into the folder, in place of an earlier export's: its sources go, which may be others. On failure
/// everything is as it was. A folder that is new, or holds the earlier export alone, is put in place by one renaming,
/// so that a program that is killed leaves it whole or as it was.
Result<void> moveInto(const std::filesystem::path& from, const std::filesystem::path& folder,
                      const std::vector<std::string>& files);
/// Makes a zip archive of the files, below a folder of that name.
Result<void> moveIntoArchive(const std::filesystem::path& from, const std::filesystem::path& file,
                             const std::string& name, const std::vector<std::string>& files);

}  // namespace cutaway
