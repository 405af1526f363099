#pragma once
// Loops over the elements of a result and of all that is repeated to its sizes.
#include <algorithm>
#include <array>
#include <span>

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

/// Dims over which all tensors, of one size, go on at the same distance become one.
inline void joinDims(std::span<Strided> tensors) {
    const Strided& first = tensors[0];
    int32_t rank = 1;
    for (int32_t d = 1; d < first.rank; ++d) {
        const bool joined = std::all_of(tensors.begin(), tensors.end(), [&](const Strided& tensor) {
            return tensor.strides[rank - 1] == tensor.strides[d] * first.sizes[d];
        });
        const int64_t before = joined ? first.sizes[rank - 1] : 1;
        if (!joined) ++rank;
        for (Strided& tensor : tensors) {
            if (&tensor != &first) tensor.sizes[rank - 1] = before * first.sizes[d];
            tensor.strides[rank - 1] = tensor.strides[d];
        }
        tensors[0].sizes[rank - 1] = before * first.sizes[d];
    }
    for (Strided& tensor : tensors) tensor.rank = rank;
}

/// out = f(elements of each operand), computed in T. `wraps`: the dtype that wider integers are cut to before, or -1.
template <class T, size_t N, class F>
void elementwise(const Run& run, const Strided& out, const std::array<const Spread*, N>& operands, F f,
                 int32_t wraps = -1) {
    constexpr int64_t kChunk = 256;
    std::array<Strided, N + 1> tensors;
    for (size_t k = 0; k < N; ++k) tensors[k] = operands[k]->elements;
    tensors[N] = out;
    joinDims(tensors);
    const Strided& result = tensors[N];
    const int32_t last = result.rank - 1;
    const int64_t length = result.sizes[last], chunks = (length + kChunk - 1) / kChunk;
    const auto isWider = [&](int32_t dtype) {
        const bool integers = wraps >= 0 && !isFloating(wraps) && !isComplex(wraps) && wraps != CT_BOOL;
        return integers && !isFloating(dtype) && !isComplex(dtype) && bytesOf(dtype) > bytesOf(wraps);
    };
    run.share(rowsOf(result) * chunks, [&](int64_t, int64_t begin, int64_t end) {
        T in[N][kChunk], computed[kChunk];
        for (int64_t chunk = begin; chunk < end; ++chunk) {
            const int64_t row = chunk / chunks, first = chunk % chunks * kChunk,
                          count = std::min(kChunk, length - first);
            const auto at = [&](const Strided& tensor) {
                return tensor.at(tensor.offsetOf(row, last) + first * tensor.strides[last]);
            };
            const auto isPlain = [&](const Strided& tensor) {
                return tensor.dtype == kDtypeOf<T> && tensor.strides[last] == 1;
            };
            const T* x[N];
            for (size_t k = 0; k < N; ++k) {
                const Strided& from = tensors[k];
                if (isPlain(from) && !isWider(from.dtype)) {
                    x[k] = reinterpret_cast<const T*>(at(from));
                    continue;
                }
                load(from.dtype, at(from), from.strides[last], count, in[k]);
                if (isWider(from.dtype))
                    for (int64_t i = 0; i < count; ++i) in[k][i] = rounded(wraps, in[k][i]);
                x[k] = in[k];
            }
            T* const y = isPlain(result) ? reinterpret_cast<T*>(at(result)) : computed;
            for (int64_t i = 0; i < count; ++i) {
                if constexpr (N == 1) y[i] = static_cast<T>(f(x[0][i]));
                else if constexpr (N == 2) y[i] = static_cast<T>(f(x[0][i], x[1][i]));
                else y[i] = static_cast<T>(f(x[0][i], x[1][i], x[2][i]));
            }
            if (y == computed) store(result.dtype, at(result), result.strides[last], count, computed);
        }
    });
}

}  // namespace cutaway::portable
