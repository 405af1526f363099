// The walk that all elementwise functions share: blocks of elements, in the type that is computed in.
#include "engine/runtime/portable/elementwise.h"

namespace cutaway::portable {

Spread::Spread(const Run& run, int32_t parameter, const Strided& out) {
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

namespace {

/// Dims over which all tensors, of one size, go on at the same distance become one.
void joinDims(std::span<Strided> tensors) {
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

/// Whether elements are wider than the integers that a function wraps to.
bool isWider(int32_t dtype, int32_t wraps) {
    const bool integers = wraps >= 0 && !isFloating(wraps) && !isComplex(wraps) && wraps != CT_BOOL;
    return integers && !isFloating(dtype) && !isComplex(dtype) && bytesOf(dtype) > bytesOf(wraps);
}

/// Elements as they are after a visit to memory of narrower integers.
template <class T>
void cutTo(int32_t dtype, int64_t count, T* elements) {
    int64_t memory[kBlock<T>];
    store(dtype, memory, 1, count, elements);
    load(dtype, memory, 1, count, elements);
}

}  // namespace

template <class T>
void forBlocks(const Run& run, const Strided& out, std::span<const Spread* const> operands, Block<T> block,
               const void* function, int32_t wraps) {
    constexpr int64_t kLength = kBlock<T>;
    const size_t many = operands.size();
    std::array<Strided, kMostOperands + 1> tensors;
    for (size_t k = 0; k < many; ++k) tensors[k] = operands[k]->elements;
    tensors[many] = out;
    joinDims(std::span(tensors).first(many + 1));
    const Strided& result = tensors[many];
    const int32_t last = result.rank - 1;
    const int64_t length = result.sizes[last], chunks = (length + kLength - 1) / kLength;
    // What the block can work on where it lies; if that is so of all, chunks need not be apart.
    std::array<bool, kMostOperands + 1> wider{}, plain{};
    bool allPlain = true;
    for (size_t k = 0; k <= many; ++k) {
        wider[k] = k < many && isWider(tensors[k].dtype, wraps);
        plain[k] = tensors[k].dtype == kDtypeOf<T> && tensors[k].strides[last] == 1 && !wider[k];
        allPlain &= plain[k];
    }
    run.share(rowsOf(result) * chunks, [&](int64_t, int64_t begin, int64_t end) {
        T in[kMostOperands][kLength], computed[kLength];
        for (int64_t chunk = begin, together; chunk < end; chunk += together) {
            const int64_t row = chunk / chunks, column = chunk % chunks, first = column * kLength;
            together = allPlain ? std::min(end - chunk, chunks - column) : 1;
            const int64_t count = std::min(together * kLength, length - first);
            const auto at = [&](const Strided& tensor) {
                return tensor.at(tensor.offsetOf(row, last) + first * tensor.strides[last]);
            };
            const T* x[kMostOperands];
            for (size_t k = 0; k < many; ++k) {
                const Strided& from = tensors[k];
                x[k] = plain[k] ? reinterpret_cast<const T*>(at(from)) : in[k];
                if (!plain[k]) load(from.dtype, at(from), from.strides[last], count, in[k]);
                if (wider[k]) cutTo(wraps, count, in[k]);
            }
            T* const y = plain[many] ? reinterpret_cast<T*>(at(result)) : computed;
            block(function, x, count, y);
            if (!plain[many]) store(result.dtype, at(result), result.strides[last], count, computed);
        }
    });
}

#define CUTAWAY_COMPUTED_IN(T) \
    template void forBlocks(const Run&, const Strided&, std::span<const Spread* const>, Block<T>, const void*, int32_t);
CUTAWAY_COMPUTED_IN(float)
CUTAWAY_COMPUTED_IN(double)
CUTAWAY_COMPUTED_IN(int64_t)
CUTAWAY_COMPUTED_IN(std::complex<float>)
CUTAWAY_COMPUTED_IN(std::complex<double>)
#undef CUTAWAY_COMPUTED_IN

}  // namespace cutaway::portable
