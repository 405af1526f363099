#pragma once
#include <algorithm>
#include <cstdint>

namespace cutaway {

/// One dim of a convolution's windows as the library counts them: gaps between the kernel's elements, and what is
/// padded behind the input. A single window takes no step, so it may have any: the least that the library allows, since
/// it computes with the next window's place, which may be out of its numbers.
struct LibraryWindows {
    int64_t gap = 0, behind = 0, stride = 1;
    /// `larger` is the side that the windows slide over: the input, or the result of a transposed convolution.
    LibraryWindows(int64_t larger, int64_t smaller, int64_t kernel, int64_t step, int64_t padding, int64_t dilation)
        : gap(kernel == 1 ? 0 : dilation - 1),
          behind((smaller == 1 ? 0 : (smaller - 1) * step) + (kernel - 1) * (gap + 1) + 1 - larger - padding),
          stride(smaller == 1 ? std::max<int64_t>(1, 1 - behind) : step) {}
};

}  // namespace cutaway
