#ifndef CUTAWAY_MANIFEST_H
#define CUTAWAY_MANIFEST_H
// The manifest of an exported folder, as the exported program reads it.
#include <string>

namespace ct {

/// The checksum that manifest.json beside the file has for it; empty if there is no manifest, or it does not name it:
/// weights of one's own lie elsewhere, or have another name. Throws std::runtime_error where it cannot be read.
std::string checksumOf(const std::string& file);
/// Throws std::runtime_error if the file's bytes are others than its folder's manifest says.
void checkBytes(const std::string& file, const void* bytes, size_t size);

}  // namespace ct
#endif
