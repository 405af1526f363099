#pragma once
// What waits for a collective; its operand is the collective.
#include <string_view>

namespace cutaway {

inline constexpr std::string_view kWait = "_c10d_functional.wait_tensor.default";

}  // namespace cutaway
