#pragma once
// Elements of a tensor as doubles, row by row, in pieces: comparing needs no copy of what it compares.
#include "engine/tensor/tensor.h"

namespace cutaway {

class ElementReader {
  public:
    /// Begins at number `first`, a whole element.
    explicit ElementReader(const Tensor& tensor, int64_t first = 0);
    /// Numbers per element: two of complex ones.
    static int width(DType dtype) { return isComplex(dtype) ? 2 : 1; }
    /// Numbers in all.
    int64_t total() const { return m_total; }
    /// The next `count` numbers.
    void read(int64_t count, double* out);

  private:
    const Tensor& m_tensor;
    int64_t m_total = 0, m_run = 1, m_step = 1;  // elements that follow one another at one stride
    Dims m_index;                                // of the run that is being read, outer dims only
    int64_t m_at = 0;                            // elements of that run that have been read
};

/// Calls visit(first, count, numbers...) for pieces of tensors of the same sizes and kind, in order.
template <class Visit, class... Tensors>
void forEachPiece(Visit&& visit, const Tensors&... tensors) {
    constexpr int64_t kPiece = 512;  // of three tensors in the first cache
    std::tuple readers{ElementReader(tensors)...};
    const int64_t total = std::get<0>(readers).total();
    std::array<std::array<double, kPiece>, sizeof...(tensors)> numbers;
    for (int64_t first = 0; first < total; first += kPiece) {
        const int64_t count = std::min(kPiece, total - first);
        const auto one = [&]<size_t... I>(std::index_sequence<I...>) {
            (std::get<I>(readers).read(count, numbers[I].data()), ...);
            visit(first, count, numbers[I].data()...);
        };
        one(std::index_sequence_for<Tensors...>{});
    }
}

}  // namespace cutaway
