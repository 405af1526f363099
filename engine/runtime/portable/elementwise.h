#pragma once
// Loops over the elements of a result and of all that is repeated to its sizes.
#include <algorithm>
#include <array>
#include <span>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

constexpr size_t kMostOperands = 3;

/// An argument as elements of the result's sizes: an operand, or a number that stands for all.
class Spread {
  public:
    Spread(const Run& run, int32_t parameter, const Strided& out);
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;

    Strided elements;

  private:
    alignas(8) char m_number[8] = {};
};

/// A function of elements as a loop over contiguous memory: `count` of each operand.
template <class T>
using Block = void (*)(const void* function, const T* const* operands, int64_t count, T* result);
/// Calls the block for all elements of `out` and of up to three operands, converted to T; `wraps` as below. Defined for
/// the types that are computed in: the walk over dims, strides and dtypes is compiled once for each, not for each
/// function.
template <class T>
void forBlocks(const Run& run, const Strided& out, std::span<const Spread* const> operands, Block<T> block,
               const void* function, int32_t wraps);

/// out = f(elements of each operand), computed in T. `wraps`: the dtype that wider integers are cut to before, or -1.
template <class T, size_t N, class F>
void elementwise(const Run& run, const Strided& out, const std::array<const Spread*, N>& operands, F f,
                 int32_t wraps = -1) {
    static_assert(N >= 1 && N <= kMostOperands);
    const Block<T> block = [](const void* function, const T* const* x, int64_t count, T* y) {
        const F each = *static_cast<const F*>(function);  // a copy: what it holds is then no memory that y may overlap
        const T *const a = x[0], *const b = x[N > 1 ? 1 : 0], *const c = x[N - 1];
        for (int64_t i = 0; i < count; ++i) {
            if constexpr (N == 1) y[i] = static_cast<T>(each(a[i]));
            else if constexpr (N == 2) y[i] = static_cast<T>(each(a[i], b[i]));
            else y[i] = static_cast<T>(each(a[i], b[i], c[i]));
        }
    };
    forBlocks<T>(run, out, operands, block, &f, wraps);
}

}  // namespace cutaway::portable
