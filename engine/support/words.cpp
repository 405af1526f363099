#include "cutaway/words.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace cutaway {

std::string bytesText(int64_t bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    // What would round to 1024 is 1 of the next unit.
    for (; unit + 1 < std::size(kUnits) && std::abs(value) >= (unit == 0 ? 1024 : 1023.5); ++unit) value /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 || std::abs(value) >= 99.95 ? "%.0f %s" : "%.1f %s", value,
                  kUnits[unit]);
    return text;
}

}  // namespace cutaway
