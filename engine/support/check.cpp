#include "engine/support/check.h"

#include "cutaway/result.h"
#include "engine/support/checked.h"

namespace cutaway {

void failCheck(const char* condition, const char* why, const char* file, int line) {
    std::string_view name = file;
    if (auto slash = name.rfind("engine/"); slash != std::string_view::npos) name.remove_prefix(slash);
    throw InternalError(std::string(why) + " [" + condition + ", " + std::string(name) + ":" + std::to_string(line) +
                        "]");
}

void failArithmetic(int64_t a, char operation, int64_t b) {
    throw SizeError(std::to_string(a) + " " + operation + " " + std::to_string(b) + " does not fit into 64 bits");
}

std::string Error::text() const {
    std::string all = where.empty() ? message : where + ": " + message;
    for (const std::string& note : notes) all += "\n  " + note;
    return all;
}

}  // namespace cutaway
