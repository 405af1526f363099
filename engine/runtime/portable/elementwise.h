#pragma once
// Loops over the elements of a result and of all that is repeated to its sizes.
#include <array>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

/// An argument as elements of the result's sizes: an operand, or a number that stands for all.
class Spread {
  public:
    Spread(const Run& run, int32_t parameter, const Strided& out) {
        const CtArgument& argument = run.call->args[parameter];
        if (argument.kind == CT_OPERAND) {
            elements = broadcast(run.in(parameter), out.sizes, out.rank);
            return;
        }
        const bool real = argument.kind == CT_REAL;
        if (real) std::memcpy(m_number, &argument.real, sizeof m_number);
        else std::memcpy(m_number, &argument.integer, sizeof m_number);
        elements = out;
        elements.data = m_number;
        elements.dtype = real ? CT_F64 : CT_I64;
        std::fill_n(elements.strides, elements.rank, int64_t{0});
    }
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;

    Strided elements;

  private:
    alignas(8) char m_number[8] = {};
};

/// out = f(elements of each operand), computed in T. `wraps`: the dtype that wider integers are cut to before, or -1.
template <class T, size_t N, class F>
void elementwise(const Run& run, const Strided& out, const std::array<const Spread*, N>& operands, F f,
                 int32_t wraps = -1) {
    constexpr int64_t kChunk = 256;
    const int32_t last = out.rank - 1;
    const int64_t length = out.sizes[last];
    const auto isWider = [&](int32_t dtype) {
        const bool integers = wraps >= 0 && !isFloating(wraps) && !isComplex(wraps) && wraps != CT_BOOL;
        return integers && !isFloating(dtype) && !isComplex(dtype) && bytesOf(dtype) > bytesOf(wraps);
    };
    run.share(rowsOf(out), [&](int64_t, int64_t begin, int64_t end) {
        T in[N][kChunk], computed[kChunk];
        for (int64_t row = begin; row < end; ++row)
            for (int64_t first = 0; first < length; first += kChunk) {
                const int64_t count = std::min(kChunk, length - first);
                for (size_t k = 0; k < N; ++k) {
                    const Strided& from = operands[k]->elements;
                    load(from.dtype, from.at(from.offsetOf(row, last) + first * from.strides[last]), from.strides[last],
                         count, in[k]);
                    if (isWider(from.dtype))
                        for (int64_t i = 0; i < count; ++i) in[k][i] = rounded(wraps, in[k][i]);
                }
                for (int64_t i = 0; i < count; ++i) {
                    if constexpr (N == 1) computed[i] = static_cast<T>(f(in[0][i]));
                    else if constexpr (N == 2) computed[i] = static_cast<T>(f(in[0][i], in[1][i]));
                    else computed[i] = static_cast<T>(f(in[0][i], in[1][i], in[2][i]));
                }
                store(out.dtype, out.at(out.offsetOf(row, last) + first * out.strides[last]), out.strides[last], count,
                      computed);
            }
    });
}

}  // namespace cutaway::portable
