#pragma once
#include <cstdint>

namespace cutaway {

/// One dim of a convolution's windows as the library counts them: gaps between the kernel's elements, and what is
/// padded behind the input. Steps that nothing takes are 1 (the library computes with the next window's place, which
/// may be out of its numbers).
struct LibraryWindows {
    int64_t stride = 1, gap = 0, behind = 0;
    /// `larger` is the side that the windows slide over: the input, or the result of a transposed convolution.
    LibraryWindows(int64_t larger, int64_t smaller, int64_t kernel, int64_t step, int64_t padding, int64_t dilation)
        : stride(smaller == 1 ? 1 : step),
          gap(kernel == 1 ? 0 : dilation - 1),
          behind((smaller - 1) * stride + (kernel - 1) * (gap + 1) + 1 - larger - padding) {}
};

}  // namespace cutaway
