// The walks that all reference kernels share: over the elements of tensors of one shape, in the type that is computed
// in.
#include "engine/ops/kernels.h"

#include "engine/ops/kernels_reduce.h"
#include "engine/ops/packed.h"

namespace cutaway {

template <size_t N>
StridedWalk<N>::StridedWalk(const Dims& sizes, const std::array<Dims, N>& strides) {
    // Where there is nothing to walk over, the other sizes and strides may be beyond all arithmetic.
    m_empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    if (m_empty) {
        m_sizes = {0};
        for (Dims& own : m_strides) own = {1};
        return;
    }
    // Fastest dim last; merge dim i into i+1 when every operand steps evenly across the boundary.
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 1) continue;
        bool merge = !m_sizes.empty();
        for (size_t k = 0; merge && k < N; ++k) merge = m_strides[k].back() == strides[k][i] * sizes[i];
        if (merge) {
            m_sizes.back() *= sizes[i];
            for (size_t k = 0; k < N; ++k) m_strides[k].back() = strides[k][i];
        } else {
            m_sizes.push_back(sizes[i]);
            for (size_t k = 0; k < N; ++k) m_strides[k].push_back(strides[k][i]);
        }
    }
    if (m_sizes.empty()) {
        m_sizes = {1};
        for (Dims& own : m_strides) own = {1};
    }
}

template <class Compute, size_t N>
void forBlocks(Tensor& result, const std::array<Tensor, N>& operands, Block<Compute> block, void* function) {
    std::array<Dims, N + 1> strides;
    std::array<Tensor, N> in;
    for (size_t k = 0; k < N; ++k) {
        in[k] = broadcastTo(operands[k], result.sizes());
        strides[k] = in[k].strides();
    }
    strides[N] = result.strides();
    const StridedWalk<N + 1> walk(result.sizes(), strides);
    const int64_t length = walk.rowLength();
    std::array<std::array<Compute, kChunk>, N> buffers;
    std::array<Compute, kChunk> computed;
    walk.forEachRow([&](const std::array<int64_t, N + 1>& at) {
        for (int64_t start = 0; start < length; start += kChunk) {
            const int64_t count = std::min<int64_t>(kChunk, length - start);
            std::array<const Compute*, N> sources;
            for (size_t k = 0; k < N; ++k) {
                const int64_t offset = at[k] + start * walk.rowStride(k);
                const void* data = static_cast<const std::byte*>(in[k].data()) + offset * byteSize(in[k].dtype());
                if (in[k].dtype() == storedAs<Compute>() && walk.rowStride(k) == 1) {
                    sources[k] = static_cast<const Compute*>(data);
                } else {
                    loadElements(in[k].dtype(), data, walk.rowStride(k), count, buffers[k].data());
                    sources[k] = buffers[k].data();
                }
            }
            void* target =
                static_cast<std::byte*>(result.data()) + (at[N] + start * walk.rowStride(N)) * byteSize(result.dtype());
            const bool direct = result.dtype() == storedAs<Compute>() && walk.rowStride(N) == 1;
            Compute* out = direct ? static_cast<Compute*>(target) : computed.data();
            block(function, sources.data(), count, out);
            if (!direct) storeElements(result.dtype(), target, walk.rowStride(N), count, out);
        }
    });
}

template <class T>
std::vector<T> packElements(const Tensor& tensor) {
    std::vector<T> out(static_cast<size_t>(tensor.numel()));
    const StridedWalk<1> walk(tensor.sizes(), {tensor.strides()});
    T* next = out.data();
    walk.forEachRow([&](const std::array<int64_t, 1>& at) {
        const void* data = static_cast<const std::byte*>(tensor.data()) + at[0] * byteSize(tensor.dtype());
        loadElements(tensor.dtype(), data, walk.rowStride(0), walk.rowLength(), next);
        next += walk.rowLength();
    });
    return out;
}

template <class T>
void unpackElements(const std::vector<T>& elements, Tensor& tensor) {
    const StridedWalk<1> walk(tensor.sizes(), {tensor.strides()});
    const T* next = elements.data();
    walk.forEachRow([&](const std::array<int64_t, 1>& at) {
        void* data = static_cast<std::byte*>(tensor.data()) + at[0] * byteSize(tensor.dtype());
        storeElements(tensor.dtype(), data, walk.rowStride(0), walk.rowLength(), next);
        next += walk.rowLength();
    });
}

template <class Compute>
Tensor storeReduced(const EvalContext& c, const std::vector<Compute>& values, size_t number) {
    Tensor packed = Tensor::empty(c.resultType(number).dtype, c.resultSizes(number));
    storeElements(packed.dtype(), packed.data(), 1, packed.numel(), values.data());
    Tensor out = c.result(number);
    if (out.strides() == packed.strides()) return packed;
    copyInto(out, packed);
    return out;
}

template class StridedWalk<1>;
template class StridedWalk<2>;
template class StridedWalk<3>;
template class StridedWalk<4>;

#define CUTAWAY_COMPUTED_IN(T)                                                       \
    template void forBlocks(Tensor&, const std::array<Tensor, 1>&, Block<T>, void*); \
    template void forBlocks(Tensor&, const std::array<Tensor, 2>&, Block<T>, void*); \
    template void forBlocks(Tensor&, const std::array<Tensor, 3>&, Block<T>, void*); \
    template std::vector<T> packElements(const Tensor&);                             \
    template void unpackElements(const std::vector<T>&, Tensor&);                    \
    template Tensor storeReduced(const EvalContext&, const std::vector<T>&, size_t);
CUTAWAY_COMPUTED_IN(float)
CUTAWAY_COMPUTED_IN(double)
CUTAWAY_COMPUTED_IN(int64_t)
CUTAWAY_COMPUTED_IN(std::complex<float>)
CUTAWAY_COMPUTED_IN(std::complex<double>)
#undef CUTAWAY_COMPUTED_IN

}  // namespace cutaway
