#pragma once
// Building blocks of reference kernels. Elements are loaded in chunks into one of a few compute types, so a kernel is
// instantiated for float, double and int64 (and, where asked for, complex), not for every dtype:
//   f16, bf16, f32 compute in float and round once at the end, as PyTorch's CPU kernels do; f64 in double;
//   integers and bool in int64, wrapped when stored.
#include <array>
#include <type_traits>

#include "engine/ops/eval.h"
#include "engine/support/check.h"

namespace cutaway {

constexpr int64_t kChunk = 1024;

/// The strided walk over N operands and one result of equal (broadcast) sizes: rows along the innermost dim, outer
/// dims merged where strides allow.
template <size_t N>
class StridedWalk {
  public:
    StridedWalk(const Dims& sizes, const std::array<Dims, N>& strides) {
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
    int64_t rowLength() const { return m_sizes.back(); }
    int64_t rowStride(size_t operand) const { return m_strides[operand].back(); }
    /// body(std::array<int64_t, N> offsets): element offsets of the row's start.
    template <class Body>
    void forEachRow(Body&& body) const {
        if (m_empty) return;
        const size_t outer = m_sizes.size() - 1;
        Dims index(outer, 0);
        std::array<int64_t, N> at{};
        while (true) {
            body(at);
            size_t dim = outer;
            while (true) {
                if (dim == 0) return;
                --dim;
                for (size_t k = 0; k < N; ++k) at[k] += m_strides[k][dim];
                if (++index[dim] < m_sizes[dim]) break;
                for (size_t k = 0; k < N; ++k) at[k] -= m_strides[k][dim] * m_sizes[dim];
                index[dim] = 0;
            }
        }
    }

  private:
    Dims m_sizes;
    std::array<Dims, N> m_strides;
    bool m_empty = false;
};

template <class T>
constexpr DType storedAs();
template <>
constexpr DType storedAs<float>() {
    return DType::F32;
}
template <>
constexpr DType storedAs<double>() {
    return DType::F64;
}
template <>
constexpr DType storedAs<int64_t>() {
    return DType::I64;
}
template <>
constexpr DType storedAs<std::complex<float>>() {
    return DType::C64;
}
template <>
constexpr DType storedAs<std::complex<double>>() {
    return DType::C128;
}

/// result[i] = f(operands[0][i], ...), elementwise over broadcast operands. `Compute` is the type f works in; its
/// result may be bool (for predicates) or Compute.
template <class Compute, size_t N, class F>
void elementwise(Tensor& result, const std::array<Tensor, N>& operands, F&& f) {
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
            for (int64_t i = 0; i < count; ++i) out[i] = [&]<size_t... K>(std::index_sequence<K...>) {
                    return static_cast<Compute>(f(sources[K][i]...));
                }
            (std::make_index_sequence<N>());
            if (!direct) storeElements(result.dtype(), target, walk.rowStride(N), count, out);
        }
    });
}

/// Calls body(Compute{}) with the compute type of `dtype`: float, double or int64_t.
template <class Body>
void withCompute(DType dtype, Body&& body) {
    if (dtype == DType::F64) body(double{});
    else if (isFloating(dtype)) body(float{});
    else {
        CT_CHECK(!isComplex(dtype), "kernels without complex support are not reached by complex tensors");
        body(int64_t{});
    }
}
/// The same for kernels that only make sense on floats (exp, erf): integers were promoted before.
template <class Body>
void withFloat(DType dtype, Body&& body) {
    if (dtype == DType::F64) body(double{});
    else body(float{});
}
/// The same with complex types as well.
template <class Body>
void withComplex(DType dtype, Body&& body) {
    if (dtype == DType::C64 || dtype == DType::C32) body(std::complex<float>{});
    else if (dtype == DType::C128) body(std::complex<double>{});
    else withCompute(dtype, body);
}

/// Compute dtype of an elementwise call: the result's, or for predicates the promoted operands'.
inline DType computeDType(const EvalContext& c, std::initializer_list<size_t> operands) {
    const DType result = c.resultType().dtype;
    return result == DType::Bool ? c.promoted(operands) : result;
}

/// in(position), in the dtype that the op works in where that is a narrower integer: PyTorch wraps operands before the
/// op, so that -3 next to bytes is 253. Results are wrapped by the store, which is too late for a quotient or an order.
inline Tensor wrappedOperand(const EvalContext& c, size_t position, DType dtype) {
    Tensor operand = c.in(position);
    const bool narrows =
        isIntegral(dtype, false) && isIntegral(operand.dtype(), false) && byteSize(operand.dtype()) > byteSize(dtype);
    return narrows ? operand.to(dtype) : operand;
}

/// Unary kernels over in(0): any real dtype / floats only.
template <class F>
Tensor map(const EvalContext& c, F f) {
    Tensor out = c.result();
    withCompute(computeDType(c, {0}), [&](auto tag) { elementwise<decltype(tag), 1>(out, {c.in(size_t{0})}, f); });
    return out;
}
template <class F>
Tensor mapFloat(const EvalContext& c, F f) {
    Tensor out = c.result();
    withFloat(computeDType(c, {0}), [&](auto tag) { elementwise<decltype(tag), 1>(out, {c.in(size_t{0})}, f); });
    return out;
}
/// Binary kernels over in(0), in(1).
template <class F>
Tensor zip(const EvalContext& c, F f) {
    Tensor out = c.result();
    const DType dtype = computeDType(c, {0, 1});
    withCompute(dtype, [&](auto tag) {
        elementwise<decltype(tag), 2>(out, {wrappedOperand(c, 0, dtype), wrappedOperand(c, 1, dtype)}, f);
    });
    return out;
}
template <class F>
Tensor zipFloat(const EvalContext& c, F f) {
    Tensor out = c.result();
    withFloat(computeDType(c, {0, 1}), [&](auto tag) {
        elementwise<decltype(tag), 2>(out, {c.in(size_t{0}), c.in(size_t{1})}, f);
    });
    return out;
}
template <class F>
Tensor zipComplex(const EvalContext& c, F f) {
    Tensor out = c.result();
    const DType dtype = computeDType(c, {0, 1});
    withComplex(dtype, [&](auto tag) {
        elementwise<decltype(tag), 2>(out, {wrappedOperand(c, 0, dtype), wrappedOperand(c, 1, dtype)}, f);
    });
    return out;
}

}  // namespace cutaway
