#pragma once
// Entries of caches that are folders. One is made beside its place, sealed - a list of its files with their sizes and
// checksums - and put into place by one renaming, so that a program that is killed leaves no half of it there. Whoever
// opens it checks the seal: what was changed since is damaged, and as if it were not there.
#include <map>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

struct Seal {
    std::map<std::string, std::string> facts;  // what the maker says of the entry; neither holds line ends
    std::map<std::string, int64_t> files;      // by path within the folder: bytes
    int64_t bytes() const;
};

/// Seals all files that are in the folder now. Errors: the disk.
Result<void> sealFolder(const std::string& folder, const std::map<std::string, std::string>& facts);
/// Errors: NotFound, there is none; InvalidInput, it is damaged, with the file.
Result<Seal> openSealed(const std::string& folder);
/// The seal alone, without a look at the files: for lists.
Result<Seal> readSeal(const std::string& folder);
/// Moves the folder to its name, in place of what is there. Both lie on one disk.
Result<void> putFolder(const std::string& made, const std::string& place);
/// Whether nobody but this user may put anything there. What is loaded from a cache runs as the user.
bool isPrivateFolder(const std::string& folder);

}  // namespace cutaway
