#pragma once
// Numbers for people.
#include <cstdio>
#include <string>

namespace cutaway {

/// Three digits, in whichever notation is shorter: "0.012", "3.4e-07".
inline std::string shortNumber(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

}  // namespace cutaway
