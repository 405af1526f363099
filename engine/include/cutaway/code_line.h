#pragma once
// What a line of a kernel's code does with the kernel's buffers, as the printer knew it.
#include <vector>

namespace cutaway {

/// Buffers by their number: that of b0 is 0. The lines of a kernel's source and of a list of these correspond.
struct CodeLine {
    int writes = -1;         // -1: none
    std::vector<int> reads;  // in the order of the line
};

}  // namespace cutaway
