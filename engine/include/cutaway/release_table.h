#pragma once
// What changed in the compiler from one release of PyTorch to the next, made from the rows that carry it.
#include <string>
#include <vector>

#include "cutaway/releases.h"

namespace cutaway {

struct ReleaseEntry {
    Release release = kOldestRelease;  // that brought the change
    std::string stage;                 // of the compiler: "capture", "joint"
    std::string kind;                  // "decomposition", "rule", "pass", "setting", "formula", "option" (of PyTorch)
    std::string name;                  // of the row: an operator, a rule, a pass, a setting, an option
    std::string what;                  // a clause
};
/// By release, then by stage in running order.
std::vector<ReleaseEntry> releaseTable();

}  // namespace cutaway
