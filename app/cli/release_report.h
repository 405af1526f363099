#pragma once
// What the commands releases and settings --pytorch share.
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "cutaway/result.h"

namespace cutaway::cli {

/// Prints what a release changed, or with an empty name all of them; as JSON into a file if one is named.
Result<int> showReleases(const std::string& release, const std::string& json);
std::vector<JsonReport> releaseReports();

}  // namespace cutaway::cli
