#pragma once
// Plugins to start from: the samples, under another name.
#include <string>

#include "cutaway/result.h"

namespace cutaway::cli {

struct NewPlugin {
    std::string file, text;
    std::string next;  // what to do with it: lines with commands
};
/// Errors: a name that is none; a kind that has no template in this language, with those that there are.
Result<NewPlugin> newPlugin(const std::string& name, const std::string& kind, const std::string& language);

}  // namespace cutaway::cli
