// Products of matrices in any dtype, block by block. Each element is summed in the order of the inner dim, floats in
// double; integers wrap.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

constexpr int64_t kRows = 64, kColumns = 128, kInner = 128;  // of a block

struct Product {
    Strided a, b, result;  // [batch, rows, inner], [batch, inner, columns], [batch, rows, columns]
    Strided addend;        // of the result's sizes
    const CtArgument *beta = nullptr, *alpha = nullptr;
};

/// With dims of size 1 in front, three in all.
Strided asBatch(Strided tensor, int32_t rank) {
    Strided batch = tensor;
    batch.rank = 3;
    for (int32_t d = 0; d < 3; ++d) {
        const int32_t own = d - (3 - rank);
        batch.sizes[d] = own < 0 ? 1 : tensor.sizes[own];
        batch.strides[d] = own < 0 ? 0 : tensor.strides[own];
    }
    return batch;
}
/// A vector as a matrix of one row or one column.
Strided asMatrix(const Strided& vector, bool column) {
    Strided matrix = asBatch(vector, 1);
    if (!column) return matrix;
    std::swap(matrix.sizes[1], matrix.sizes[2]);
    std::swap(matrix.strides[1], matrix.strides[2]);
    return matrix;
}

template <class T>
struct Blocks {
    T a[kRows * kInner], b[kInner * kColumns], sums[kRows * kColumns];
};

/// `rows` by `columns` elements of a matrix from there on, into lines of `length`.
template <class T>
void loadBlock(const Strided& m, int64_t batch, int64_t row, int64_t column, int64_t rows, int64_t columns, T* to,
               int64_t length) {
    char* const from = m.at(batch * m.strides[0] + row * m.strides[1] + column * m.strides[2]);
    const int64_t bytes = bytesOf(m.dtype);
    for (int64_t i = 0; i < rows; ++i)
        load(m.dtype, from + i * m.strides[1] * bytes, m.strides[2], columns, to + i * length);
}

/// sums += a b. Four steps of the inner dim at a time keep a sum in a register for longer.
template <class T>
void multiplyBlock(Blocks<T>& blocks, int64_t rows, int64_t columns, int64_t inner) {
    for (int64_t i = 0; i < rows; ++i) {
        T* const sums = blocks.sums + i * kColumns;
        const T* const a = blocks.a + i * kInner;
        int64_t p = 0;
        for (; p + 4 <= inner; p += 4) {
            const T* const b = blocks.b + p * kColumns;
            const T a0 = a[p], a1 = a[p + 1], a2 = a[p + 2], a3 = a[p + 3];
            for (int64_t j = 0; j < columns; ++j) {
                T sum = sumOf(sums[j], productOf(a0, b[j]));
                sum = sumOf(sum, productOf(a1, b[kColumns + j]));
                sum = sumOf(sum, productOf(a2, b[2 * kColumns + j]));
                sums[j] = sumOf(sum, productOf(a3, b[3 * kColumns + j]));
            }
        }
        for (; p < inner; ++p)
            for (int64_t j = 0; j < columns; ++j) sums[j] = sumOf(sums[j], productOf(a[p], blocks.b[p * kColumns + j]));
    }
}

/// alpha * sums + beta * addend into the result.
template <class T>
void storeBlock(const Product& p, Blocks<T>& blocks, int64_t batch, int64_t row, int64_t column, int64_t rows,
                int64_t columns) {
    const T alpha = p.alpha ? numberOf<T>(*p.alpha) : T(1), beta = p.beta ? numberOf<T>(*p.beta) : T(0);
    for (int64_t i = 0; i < rows; ++i) {
        T *const sums = blocks.sums + i * kColumns, *const addend = blocks.b;
        const auto place = [&](const Strided& m) {
            return m.at(batch * m.strides[0] + (row + i) * m.strides[1] + column * m.strides[2]);
        };
        if (alpha != T(1))
            for (int64_t j = 0; j < columns; ++j) sums[j] = productOf(alpha, sums[j]);
        if (beta != T(0)) {
            load(p.addend.dtype, place(p.addend), p.addend.strides[2], columns, addend);
            for (int64_t j = 0; j < columns; ++j)
                sums[j] = sumOf(sums[j], beta == T(1) ? addend[j] : productOf(beta, addend[j]));
        }
        store(p.result.dtype, place(p.result), p.result.strides[2], columns, sums);
    }
}

template <class T>
void multiply(const Run& run, const Product& p) {
    const int64_t rows = p.result.sizes[1], columns = p.result.sizes[2], inner = p.a.sizes[2];
    const int64_t down = (rows + kRows - 1) / kRows, across = (columns + kColumns - 1) / kColumns;
    run.share(p.result.sizes[0] * down * across, [&](int64_t task, int64_t begin, int64_t end) {
        auto& blocks = reinterpret_cast<Blocks<T>*>(run.scratch)[task];
        for (int64_t block = begin; block < end; ++block) {
            const int64_t batch = block / (down * across), row = block / across % down * kRows,
                          column = block % across * kColumns;
            const int64_t high = std::min(kRows, rows - row), wide = std::min(kColumns, columns - column);
            std::fill_n(blocks.sums, high * kColumns, T{});
            for (int64_t k = 0; k < inner; k += kInner) {
                const int64_t deep = std::min(kInner, inner - k);
                loadBlock(p.a, batch, row, k, high, deep, blocks.a, kInner);
                loadBlock(p.b, batch, k, column, deep, wide, blocks.b, kColumns);
                multiplyBlock(blocks, high, wide, deep);
            }
            storeBlock(p, blocks, batch, row, column, high, wide);
        }
    });
}
void multiplyAny(const Run& run, const Product& p) {
    withWide(p.result.dtype, [&](auto tag) { multiply<decltype(tag)>(run, p); });
}
int64_t productScratch(const CtCall& call, int32_t tasks) {
    const bool complex = isComplex(call.results[0].dtype);
    return (complex ? sizeof(Blocks<std::complex<double>>) : sizeof(Blocks<double>)) * static_cast<size_t>(tasks);
}

/// (self, mat2)
template <int32_t rank>
void product(const Run& run) {
    Product p;
    p.a = asBatch(run.in(0), rank);
    p.b = asBatch(run.in(1), rank);
    p.result = asBatch(run.out(), rank);
    multiplyAny(run, p);
}
/// (self, mat1, mat2, beta, alpha)
template <int32_t rank>
void scaledProduct(const Run& run) {
    Product p;
    p.a = asBatch(run.in(1), rank);
    p.b = asBatch(run.in(2), rank);
    const Strided out = run.out();
    p.result = asBatch(out, rank);
    p.addend = asBatch(broadcast(run.in(0), out.sizes, rank), rank);
    p.beta = &run.call->args[3];
    p.alpha = &run.call->args[4];
    multiplyAny(run, p);
}
/// (matrix or vector, vector)
template <int32_t rank>
void vectorProduct(const Run& run) {
    Product p;
    p.a = rank == 2 ? asBatch(run.in(0), 2) : asMatrix(run.in(0), false);
    p.b = asMatrix(run.in(1), true);
    p.result = asMatrix(run.out(), true);
    multiplyAny(run, p);
}

/// (self, mat2, offs, ...): matrices whose shared dim the offsets cut into groups, or batches without offsets. What
/// belongs to no group is 0. `cuts`: offsets beyond the end stand for it, as where Python slices.
void multiplyGroups(const Run& run, const Strided& a, const Strided& b, const Strided* offsets, const Strided& out,
                    bool cuts) {
    Product p;
    if (offsets == nullptr) {
        p.a = a;
        p.b = b;
        p.result = out;
        return multiplyAny(run, p);
    }
    const bool rows = a.rank == 2, columns = b.rank == 2, deep = rows && columns;
    const int64_t length = rows ? a.sizes[deep ? 1 : 0] : b.sizes[1], bytes = bytesOf(out.dtype);
    for (int64_t i = 0; i < out.elements(); ++i) std::memset(out.at(out.offsetOf(i)), 0, static_cast<size_t>(bytes));
    const Indices ends(*offsets);
    const auto between = [](Strided matrix, int32_t dim, int64_t from, int64_t to) {
        matrix.data = matrix.at(from * matrix.strides[dim]);
        matrix.sizes[dim] = to - from;
        return asBatch(matrix, 2);
    };
    const auto item = [](Strided batch, int64_t index) {
        batch.data = batch.at(index * batch.strides[0]);
        batch.sizes[0] = 1;
        return batch;
    };
    int64_t start = 0;
    for (int64_t group = 0; group < offsets->sizes[0]; ++group) {
        int64_t end = ends[group * offsets->strides[0]];
        if (cuts) end = std::min(end, length);
        if (end < start || end > length)
            throw Failure("the offsets must rise from 0 to at most " + std::to_string(length));
        p.a = rows ? between(a, deep ? 1 : 0, start, end) : item(a, group);
        p.b = columns ? between(b, deep ? 0 : 1, start, end) : item(b, group);
        p.result = deep ? item(out, group) : between(out, rows ? 0 : 1, start, end);
        if (p.result.elements() > 0) multiplyAny(run, p);
        start = end;
    }
}
template <bool cuts>
void groupedProduct(const Run& run) {
    const bool given = isGiven(*run.call, 2);
    Strided offsets;
    if (given) offsets = run.in(2);
    multiplyGroups(run, run.in(0), run.in(1), given ? &offsets : nullptr, run.out(), cuts);
}
/// (input, weight, offs, grad_output): the gradients of input and weight.
void groupedProductBackward(const Run& run) {
    const auto turned = [](Strided matrix) {
        std::swap(matrix.sizes[matrix.rank - 1], matrix.sizes[matrix.rank - 2]);
        std::swap(matrix.strides[matrix.rank - 1], matrix.strides[matrix.rank - 2]);
        return matrix;
    };
    const Strided offsets = run.in(2), gradient = run.in(3);
    if (run.wants(0)) multiplyGroups(run, gradient, turned(run.in(1)), &offsets, run.out(0), true);
    if (run.wants(1)) multiplyGroups(run, turned(run.in(0)), gradient, &offsets, run.out(1), true);
}

constexpr Function kProductFunctions[] = {
    {"aten._grouped_mm.default", groupedProduct<false>, productScratch},
    {"transformers.grouped_mm_fallback.default", groupedProduct<true>, productScratch},
    {"transformers.grouped_mm_fallback_backward.default", groupedProductBackward, productScratch},
    {"aten.mm.default", product<2>, productScratch},
    {"aten.bmm.default", product<3>, productScratch},
    {"aten.addmm.default", scaledProduct<2>, productScratch},
    {"aten.baddbmm.default", scaledProduct<3>, productScratch},
    {"aten.mv.default", vectorProduct<2>, productScratch},
    {"aten.dot.default", vectorProduct<1>, productScratch},
    {"aten._int_mm.default", product<2>, productScratch},
};

}  // namespace

std::span<const Function> productFunctions() { return kProductFunctions; }

}  // namespace cutaway::portable
