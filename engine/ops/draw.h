#pragma once
// How random numbers are drawn: by Philox under the run's key, so that a run can be repeated. Shared by the ops that
// draw.
#include <array>

#include "engine/ops/eval.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/opmath.h"
#include "engine/ops/packed.h"
#include "engine/support/philox.h"
#include "engine/support/threads.h"

namespace cutaway {

/// A row-major tensor of these sizes. Errors: a negative one.
inline Result<ValueType> contiguousOf(const InferContext& c, SymDims sizes, DType dtype, Device device) {
    for (const SymInt& size : sizes)
        if (size.isInt() && size.value() < 0) return c.fail("negative size " + size.text());
    return ValueType(TensorType::contiguous(dtype, std::move(sizes), device));
}
/// A fresh tensor of result `number` with draw(bits) for each element, row-major, rounded to the result's dtype. That a
/// uniform number does not round up to 1 is up to `draw`. It is called from several threads, in any order.
template <class Draw>
Tensor drawn(const EvalContext& c, uint64_t key, Draw draw, size_t number = 0) {
    Tensor packed = Tensor::empty(c.resultType(number).dtype, c.resultSizes(number));
    constexpr int64_t kPiece = 1024, kNanoseconds = 20;  // of one thread, per number
    const int64_t all = packed.numel(), bytes = byteSize(packed.dtype());
    auto* const to = static_cast<std::byte*>(packed.data());
    runRange(all, kPiece, threadsWorth(all * kNanoseconds, threadCount()), [&](int64_t begin, int64_t end) {
        std::array<decltype(draw(philox(key, 0))), kPiece> values;
        for (int64_t i = begin; i < end; i += kPiece) {
            const int64_t count = std::min(kPiece, end - i);
            for (int64_t k = 0; k < count; ++k)
                values[static_cast<size_t>(k)] = draw(philox(key, static_cast<uint64_t>(i + k)));
            storeElements(packed.dtype(), to + i * bytes, 1, count, values.data());
        }
    });
    Tensor out = c.result(number);
    copyInto(out, packed);
    return out;
}
/// The key of the run's next call that draws.
inline uint64_t nextKey(const EvalContext& c) {
    RandomState& state = c.values().random();
    return keyOfDraw(state.seed, state.draws++);
}
template <class Draw>
Tensor drawnFromRun(const EvalContext& c, Draw draw) {
    return drawn(c, nextKey(c), draw);
}

/// Floats of the sizes that the operands, one or two of one dtype, have together.
inline Result<ValueType> inferDrawnFloats(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (!isFloating(self.dtype)) return c.fail("needs floating-point numbers, not " + self.text());
    if (c.op().schema()->params.size() < 2 || c.op().schema()->params[1].kind != ParamKind::Tensor)
        return contiguousOf(c, self.sizes, self.dtype, self.device);
    CT_TRY(const TensorType other, c.tensor(1));
    if (other.dtype != self.dtype)
        return c.fail("needs operands of one dtype, not " + self.text() + " and " + other.text());
    const SymDims shapes[] = {self.sizes, other.sizes};
    CT_TRY(SymDims sizes, broadcastSizes(shapes));
    return contiguousOf(c, std::move(sizes), self.dtype, self.device);
}
/// An operand's elements, spread over the result's shape.
inline std::vector<double> spread(const EvalContext& c, const Tensor& operand) {
    Tensor wide = Tensor::empty(DType::F64, c.resultSizes());
    elementwise<double, 1>(wide, {operand}, [](double x) { return x; });
    return packElements<double>(wide);
}

}  // namespace cutaway
