#include "engine/ops/matrix.h"

#include <algorithm>

#include "engine/ops/arithmetic.h"
#include "engine/ops/double_product.h"
#include "engine/ops/library_kernels.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

struct ProductSizes {
    int64_t batch = 1, m = 0, n = 0, k = 0;
};
ProductSizes sizesOf(const Tensor& a, const Tensor& b) {
    ProductSizes sizes;
    for (int64_t i = 0; i + 2 < a.rank(); ++i) sizes.batch *= a.size(i);
    sizes.m = a.size(-2);
    sizes.k = a.size(-1);
    sizes.n = b.size(-1);
    return sizes;
}

/// Rows `first` to `first + rows` of one matrix of a batch.
Tensor matrixRows(const Tensor& tensor, int64_t batch, int64_t first, int64_t rows) {
    int64_t offset = tensor.offset() + first * tensor.stride(-2);
    for (int64_t dim = tensor.rank() - 3; dim >= 0; batch /= tensor.size(dim), --dim)
        offset += batch % tensor.size(dim) * tensor.stride(dim);
    return tensor.view({rows, tensor.size(-1)}, {tensor.stride(-2), tensor.stride(-1)}, offset);
}

/// Row by row over k, so that the innermost loop runs along rows of b and c; b is packed some rows at a time, which
/// stay in the cache for all of a. T is double, int64 or complex<double>.
template <class T>
void multiplyInBlocks(const ProductSizes& s, const T* a, const Tensor& b, T* c) {
    constexpr int64_t kBlock = int64_t{1} << 20;  // elements
    const int64_t most = std::clamp<int64_t>(kBlock / std::max<int64_t>(1, s.n), 1, std::max<int64_t>(1, s.k));
    for (int64_t batch = 0; batch < s.batch; ++batch, a += s.m * s.k, c += s.m * s.n)
        for (int64_t first = 0; first < s.k; first += most) {
            const int64_t rows = std::min(most, s.k - first);
            const std::vector<T> block = packElements<T>(matrixRows(b, batch, first, rows));
            if constexpr (std::is_same_v<T, double>) {
                addDoubleProduct(s.m, s.n, rows, a + first, s.k, {block.data(), s.n, 1}, c, s.n);
                continue;
            }
            for (int64_t i = 0; i < s.m; ++i) {
                T* row = c + i * s.n;
                for (int64_t p = 0; p < rows; ++p) {
                    const T factor = a[i * s.k + first + p];
                    const T* other = block.data() + p * s.n;
                    for (int64_t j = 0; j < s.n; ++j) row[j] = wrapAdd(row[j], wrapMul(factor, other[j]));
                }
            }
        }
}

/// Of f64, where it lies; c is a contiguous tensor of zeros.
void multiplyInPlace(const ProductSizes& s, const Tensor& a, const Tensor& b, Tensor& c) {
    const Tensor packed = a.contiguous();
    for (int64_t batch = 0; batch < s.batch; ++batch) {
        const Tensor right = matrixRows(b, batch, 0, s.k);
        addDoubleProduct(s.m, s.n, s.k, packed.as<double>() + batch * s.m * s.k, s.k,
                         {right.as<double>(), right.stride(0), right.stride(1)}, c.as<double>() + batch * s.m * s.n,
                         s.n);
    }
}

/// product = alpha * product + beta * addend, in the type of the product.
template <class T>
void applyScale(std::span<T> product, const Tensor& result, const ProductScale& scale) {
    const T alpha = scalarAs<T>(scale.alpha), beta = scalarAs<T>(scale.beta);
    const bool adds = scale.addend.defined() && beta != T(0);
    if (alpha != T(1))
        for (T& value : product) value = wrapMul(alpha, value);
    if (!adds) return;
    const std::vector<T> addend = packElements<T>(broadcastTo(scale.addend, result.sizes()));
    for (size_t i = 0; i < product.size(); ++i)
        product[i] = wrapAdd(product[i], beta == T(1) ? addend[i] : wrapMul(beta, addend[i]));
}

bool allDoubles(const Tensor& a, const Tensor& b, const Tensor& c) {
    return a.dtype() == DType::F64 && b.dtype() == DType::F64 && c.dtype() == DType::F64;
}

/// A matrix of a batch as the library sees it: in place if it is f32, else from the packed copy.
class LibraryOperand {
  public:
    explicit LibraryOperand(const Tensor& tensor) : m_tensor(tensor) {
        if (tensor.dtype() == DType::F32 && tensor.rank() == 2) return;
        m_copy = packElements<float>(tensor);
    }
    MatrixView matrix(int64_t batch) const {
        if (m_copy.empty()) return {m_tensor.as<float>(), m_tensor.stride(0), m_tensor.stride(1)};
        const int64_t rows = m_tensor.size(-2), columns = m_tensor.size(-1);
        return {m_copy.data() + batch * rows * columns, columns, 1};
    }

  private:
    Tensor m_tensor;
    std::vector<float> m_copy;
};

}  // namespace

void multiplyMatricesPlainly(const Tensor& a, const Tensor& b, Tensor& result, const ProductScale& scale) {
    const ProductSizes sizes = sizesOf(a, b);
    const auto elements = static_cast<size_t>(result.numel());
    if (allDoubles(a, b, result) && result.isContiguous() && elements > 0) {
        std::fill_n(result.as<double>(), elements, 0.0);
        multiplyInPlace(sizes, a, b, result);
        return applyScale(std::span(result.as<double>(), elements), result, scale);
    }
    withAccumulator(result.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> product(elements);
        multiplyInBlocks<T>(sizes, packElements<T>(a).data(), b, product.data());
        applyScale(std::span(product), result, scale);
        unpackElements(product, result);
    });
}

void multiplyMatrices(const Tensor& a, const Tensor& b, Tensor& result, const ProductScale& scale) {
    const ProductSizes sizes = sizesOf(a, b);
    const bool library = (result.dtype() == DType::F32 || isHalf(result.dtype())) && a.numel() > 0 && b.numel() > 0;
    if (!library) return multiplyMatricesPlainly(a, b, result, scale);
    std::vector<float> product(static_cast<size_t>(result.numel()));
    const LibraryOperand left(a), right(b);
    for (int64_t batch = 0; batch < sizes.batch; ++batch)
        if (!libraryGemm(sizes.m, sizes.n, sizes.k, left.matrix(batch), right.matrix(batch),
                         product.data() + batch * sizes.m * sizes.n))
            return multiplyMatricesPlainly(a, b, result, scale);
    applyScale(std::span(product), result, scale);
    unpackElements(product, result);
}

}  // namespace cutaway
