#pragma once
// Reduction kernels: for each result element, the operand's elements along the reduced dims, in row-major order.
// Floats are gathered as double, so that sums, means and variances of f32 are exact to rounding; integers as int64.
#include <vector>

#include "engine/ops/kernels.h"

namespace cutaway {

/// The runs of elements that make up one result element.
template <class Compute>
class ReducedElements {
  public:
    ReducedElements(const Tensor& source, const Dims& sizes, const Dims& strides)
        : m_source(&source), m_walk(sizes, {strides}), m_count(numel(sizes)) {}
    void moveTo(int64_t offset) { m_offset = offset; }
    int64_t count() const { return m_count; }
    /// visit(const Compute* run, int64_t length), runs in row-major order.
    template <class Visit>
    void forEachRun(Visit&& visit) const {
        std::array<Compute, kChunk> buffer;
        const int64_t length = m_walk.rowLength(), step = m_walk.rowStride(0), item = byteSize(m_source->dtype());
        m_walk.forEachRow([&](const std::array<int64_t, 1>& at) {
            for (int64_t start = 0; start < length; start += kChunk) {
                const int64_t n = std::min<int64_t>(kChunk, length - start);
                const auto* data =
                    static_cast<const std::byte*>(m_source->data()) + (m_offset + at[0] + start * step) * item;
                loadElements(m_source->dtype(), data, step, n, buffer.data());
                visit(buffer.data(), n);
            }
        });
    }

  private:
    const Tensor* m_source;
    StridedWalk<1> m_walk;
    int64_t m_count, m_offset = 0;
};

/// body(position, elements) for every result position, row-major over the dims that stay.
template <class Compute, class Body>
void forEachReduced(const Tensor& source, const Dims& dims, Body&& body) {
    Dims keptSizes, keptStrides, sizes, strides;
    for (int64_t i = 0; i < source.rank(); ++i) {
        const bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
        (reduced ? sizes : keptSizes).push_back(source.size(i));
        (reduced ? strides : keptStrides).push_back(source.stride(i));
    }
    const int64_t results = numel(keptSizes);
    if (results == 0) return;  // of each there may be more elements than can be counted
    ReducedElements<Compute> elements(source, sizes, strides);
    Dims index(keptSizes.size(), 0);
    int64_t offset = 0;
    for (int64_t position = 0; position < results; ++position) {
        elements.moveTo(offset);
        body(position, elements);
        for (size_t d = keptSizes.size(); d-- > 0;) {
            // Never a step beyond the end: a dim of one element may have any stride.
            if (++index[d] < keptSizes[d]) {
                offset += keptStrides[d];
                break;
            }
            offset -= keptStrides[d] * (keptSizes[d] - 1);
            index[d] = 0;
        }
    }
}

/// Writes results gathered in row-major order into a fresh tensor of result `number`'s type. Defined in kernels.cpp for
/// the compute types.
template <class Compute>
Tensor storeReduced(const EvalContext& c, const std::vector<Compute>& values, size_t number = 0);

/// Folds each group with step(accumulator, element), starting from `initial`.
template <class Compute, class Step>
Tensor foldReduced(const EvalContext& c, const Tensor& source, const Dims& dims, Compute initial, Step step) {
    std::vector<Compute> values(static_cast<size_t>(numel(c.resultSizes())));
    forEachReduced<Compute>(source, dims, [&](int64_t position, const ReducedElements<Compute>& elements) {
        Compute sum = initial;
        elements.forEachRun([&](const Compute* run, int64_t n) {
            for (int64_t i = 0; i < n; ++i) sum = step(sum, run[i]);
        });
        values[static_cast<size_t>(position)] = sum;
    });
    return storeReduced(c, values);
}

}  // namespace cutaway
