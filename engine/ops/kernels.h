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
    StridedWalk(const Dims& sizes, const std::array<Dims, N>& strides);
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

// Instantiated in kernels.cpp.
extern template class StridedWalk<1>;
extern template class StridedWalk<2>;
extern template class StridedWalk<3>;
extern template class StridedWalk<4>;

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

/// A function of elements as a loop over contiguous memory: `count` of each operand.
template <class Compute>
using Block = void (*)(void* function, const Compute* const* operands, int64_t count, Compute* result);
/// Calls the block for all elements of the result and of up to three operands that broadcast to it, as Compute. The
/// walk over dims, strides and dtypes is compiled once for each compute type, in kernels.cpp, not for each function.
template <class Compute, size_t N>
void forBlocks(Tensor& result, const std::array<Tensor, N>& operands, Block<Compute> block, void* function);

/// result[i] = f(operands[0][i], ...), elementwise over broadcast operands. `Compute` is the type f works in; its
/// result may be bool (for predicates) or Compute.
template <class Compute, size_t N, class F>
void elementwise(Tensor& result, const std::array<Tensor, N>& operands, F&& f) {
    using Function = std::remove_reference_t<F>;
    // Of small functions a copy: what it holds is then no memory that the result may overlap.
    using CapturedFunction = std::conditional_t<std::is_trivially_copyable_v<Function>, const Function, Function&>;
    const Block<Compute> block = [](void* function, const Compute* const* sources, int64_t count, Compute* out) {
        CapturedFunction each = *static_cast<Function*>(function);
        std::array<const Compute*, N> x;
        std::copy_n(sources, N, x.begin());
        for (int64_t i = 0; i < count; ++i) out[i] = [&]<size_t... K>(std::index_sequence<K...>) {
                return static_cast<Compute>(each(x[K][i]...));
            }
        (std::make_index_sequence<N>());
    };
    forBlocks<Compute, N>(result, operands, block, const_cast<void*>(static_cast<const void*>(&f)));
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

/// The same, and rounded where the op works in half precision and the operand is a number or a 0-d tensor with more
/// bits.
inline Tensor roundedOperand(const EvalContext& c, size_t position, DType dtype) {
    Tensor operand = wrappedOperand(c, position, dtype);
    return isHalf(dtype) && operand.dtype() != dtype ? operand.to(dtype) : operand;
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
