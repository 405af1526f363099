#pragma once
// The machine for which plans are made, as a value that scheduling passes down: no plan and no nest asks the machine.
#include <cstdint>

namespace cutaway {

struct LoopTarget {
    int lanes = 16;        // of a vector loop, whatever the dtypes: wide ones take several registers
    int narrowBytes = 64;  // of a vector where all elements have one or two bytes; fewer than the lanes: none has more
    int64_t elementsPerPart = 16384;  // what one part of a split walk has at least; fixed, so that bits do not depend
                                      // on how many threads there are
    int maxParts = 64;
    int64_t rowBytes = 256 << 10;  // rows from here on leave the cache: extra arithmetic is cheaper than reading twice
    int64_t aheadBytes = 128 << 10;  // rows up to here come into the cache while the one before is computed; 0: none,
                                     // on GPUs, where other blocks use the memory meanwhile
    bool onlineSoftmax = false;  // whether long rows scale their sums of exponentials: on CPUs an exponential for each
                                 // element costs more than reading it again (rows of 16 MiB: 26 without, 28 ms with)
    int jam = 8;                 // vectors of rows that reductions take side by side: cache lines of a page
    int chains = 4;              // states of a reduction in registers: as many as an operation takes cycles
    int tile = 128;              // elements that a transpose reads along memory at once: some cache lines of each page
    bool atomics = false;        // whether threads may add to one element, in any order: CPUs give the same bits always
    int indexBits = 64;          // of indices, where all fit: with 32, on an H200, sums of columns gain a tenth, while
                                 // transposes lose a quarter; CPUs compute addresses in 64 anyway
    bool direct = true;          // turned in registers; threads of a GPU hand elements to each other in shared memory
    bool operator==(const LoopTarget&) const = default;
};

}  // namespace cutaway
