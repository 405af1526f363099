#pragma once
// What plans are made for. A value that is handed down from scheduling on: no plan and no nest knows a machine by name.
#include <cstdint>

namespace cutaway {

struct LoopTarget {
    int lanes = 16;                   // of a vector loop, the same for every dtype: wide ones take several registers
    int64_t elementsPerPart = 16384;  // what one part of a split walk has at least; fixed, so that bits do not depend
                                      // on how many threads there are
    int maxParts = 64;
    int64_t rowBytes = 256 << 10;  // from which on a row is worth less arithmetic of another kind than a second walk
    bool onlineSoftmax = false;  // whether long rows scale their sums of exponentials: on CPUs an exponential for each
                                 // element costs more than reading it again (rows of 16 MiB: 26 without, 28 ms with)
    int tile = 64;               // elements that a transpose reads along memory at once: some cache lines of each page
    bool operator==(const LoopTarget&) const = default;
};

}  // namespace cutaway
