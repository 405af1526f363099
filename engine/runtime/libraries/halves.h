#pragma once
// Rows of float16, many at a time where the processor can.
#include <cstdint>

namespace cutaway {

void widenHalves(const void* halves, int64_t count, float* to);
/// Rounds to nearest even.
void narrowToHalves(const float* from, int64_t count, void* halves);

}  // namespace cutaway
