#pragma once
// Which Cutaway this is.
#include <string>

namespace cutaway {

/// "0.2.0": CMakeLists.txt says it, CHANGELOG.md what it means.
std::string version();
/// How it was built, a line each: build type and compiler, the libraries that make it fast.
std::string buildText();

}  // namespace cutaway
