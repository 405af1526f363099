#include "engine/ops/linalg_rules.h"

#include "engine/ops/packed.h"

namespace cutaway {

/// With the last two dims exchanged: matrices lie column by column.
static Tensor byColumns(const Tensor& tensor) {
    Dims sizes = tensor.sizes(), strides = tensor.strides();
    std::swap(sizes[sizes.size() - 2], sizes.back());
    std::swap(strides[strides.size() - 2], strides.back());
    return tensor.view(sizes, strides, tensor.offset());
}
template <class T>
std::vector<Dense<T>> matricesOf(const Tensor& tensor) {
    const std::vector<T> elements = packElements<T>(byColumns(tensor));
    const int64_t rows = tensor.size(-2), columns = tensor.size(-1);
    int64_t count = 1;
    for (int64_t i = 0; i + 2 < tensor.rank(); ++i) count *= tensor.size(i);
    std::vector<Dense<T>> out;
    for (int64_t k = 0; k < count; ++k) {
        Dense<T>& one = out.emplace_back(rows, columns);
        std::copy_n(elements.begin() + k * rows * columns, rows * columns, one.elements.begin());
    }
    return out;
}
template <class T>
void storeMatrices(const std::vector<Dense<T>>& matrices, Tensor& tensor) {
    std::vector<T> elements;
    for (const Dense<T>& one : matrices) elements.insert(elements.end(), one.elements.begin(), one.elements.end());
    Tensor columns = byColumns(tensor);
    unpackElements(elements, columns);
}
#define CUTAWAY_MATRICES(T)                                   \
    template std::vector<Dense<T>> matricesOf(const Tensor&); \
    template void storeMatrices(const std::vector<Dense<T>>&, Tensor&);
CUTAWAY_MATRICES(float)
CUTAWAY_MATRICES(double)
CUTAWAY_MATRICES(std::complex<float>)
CUTAWAY_MATRICES(std::complex<double>)
#undef CUTAWAY_MATRICES

Result<TensorType> matricesAt(const InferContext& c, std::string_view param, bool square) {
    CT_TRY(TensorType type, c.tensor(param));
    if (type.rank() < 2) return c.fail("needs matrices, not " + type.text());
    if (square && !(type.sizes.back() == type.sizes[type.sizes.size() - 2]) && allInts(type.sizes))
        return c.fail("needs square matrices, not " + type.text());
    if (type.dtype != DType::F32 && type.dtype != DType::F64 && type.dtype != DType::C64 && type.dtype != DType::C128)
        return c.fail("has no kernel for " + std::string(info(type.dtype).torchName) +
                      "; convert to float32 or float64");
    return type;
}
TensorType batchType(const TensorType& like, SymDims last, DType dtype, bool byColumns) {
    SymDims sizes(like.sizes.begin(), like.sizes.end() - 2);
    sizes.insert(sizes.end(), last.begin(), last.end());
    TensorType type = TensorType::contiguous(dtype, sizes, like.device);
    if (!byColumns) return type;
    const auto positive = [](const SymInt& size) { return size.isInt() && size.value() < 1 ? SymInt(1) : size; };
    const size_t rank = sizes.size();
    type.strides[rank - 2] = 1;
    type.strides[rank - 1] = positive(sizes[rank - 2]);
    return type;
}
DType realTypeOf(DType dtype) { return dtype == DType::C64 ? DType::F32 : dtype == DType::C128 ? DType::F64 : dtype; }
Tensor storeIntegers(const EvalContext& c, size_t result, const std::vector<int64_t>& values) {
    Tensor out = c.result(result);
    unpackElements(values, out);
    return out;
}

Tensor spreadBatch(const Tensor& x, const Dims& like, int64_t last) {
    Dims sizes(like.begin(), like.end() - 2);
    sizes.insert(sizes.end(), x.sizes().end() - last, x.sizes().end());
    return broadcastTo(x, sizes);
}

Value matmul(const Value& a, const Value& b) {
    return a && b ? a.builder().call("aten.matmul.default", {a, b}) : Value();
}
Value adjointOf(const Value& x) { return x ? conjugated(x.builder().call("aten.transpose.int", {x, -2, -1})) : x; }
Value columnsScaled(const Value& x, const Value& by) { return x * unsqueeze(by, -2); }
Value triangle(const Value& x, bool upper, int64_t diagonal) {
    return x ? x.builder().call(upper ? "aten.triu.default" : "aten.tril.default", {x, diagonal}) : x;
}
Value diagonalOf(const Value& x) { return x ? x.builder().call("aten.diagonal.default", {x, 0, -2, -1}) : x; }
Value diagonalMatrix(const Value& x) { return x ? x.builder().call("aten.diag_embed.default", {x}) : x; }
Value plus(const Value& a, const Value& b) { return !a ? b : !b ? a : a + b; }

}  // namespace cutaway
