#include "engine/support/check.h"

#include "cutaway/result.h"

namespace cutaway {

void failCheck(const char* condition, const char* why, const char* file, int line) {
    std::string_view name = file;
    if (auto slash = name.rfind("engine/"); slash != std::string_view::npos) name.remove_prefix(slash);
    throw InternalError(std::string(why) + " [" + condition + ", " + std::string(name) + ":" + std::to_string(line) +
                        "]");
}

std::string Error::text() const {
    std::string all = where.empty() ? message : where + ": " + message;
    for (const std::string& note : notes) all += "\n  " + note;
    return all;
}

}  // namespace cutaway
