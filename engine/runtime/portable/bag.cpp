// Embedding bags: rows of a table summed, averaged or maximised over runs of indices, and the gradient by the table.
// Sums are double. Bags, and rows of the gradient, are independent; what is added to one comes in the order of the
// indices.
#include "engine/runtime/portable/bag.h"

namespace cutaway::portable {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

void clear(const Strided& tensor) {
    const int64_t zero = 0, count = tensor.elements();
    for (int64_t i = 0; i < count; ++i) storeOne(tensor.dtype, tensor.at(tensor.offsetOf(i)), zero);
}

/// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx):
/// the rows of bags, the bag of each index, the sizes of bags and where maxima came from, the latter as far as the
/// gradient needs them.
class BagForward {
  public:
    explicit BagForward(const Run& run)
        : m_run(&run),
          m_table(run.in(0)),
          m_indexTensor(run.in(1)),
          m_mode(integerOf(*run.call, 4)),
          m_padding(integerOf(*run.call, 8)),
          m_scaled(isGiven(*run.call, 6)) {
        if (m_scaled) m_factors = run.in(6);
        for (int32_t result = 0; result < 4; ++result)
            if (run.wants(result)) m_out[result] = run.out(result);
        for (int32_t result = 1; result < 4; ++result)
            if (m_out[result].data) clear(m_out[result]);
    }
    void operator()() const {
        const Strided offsets = m_run->in(2);
        const int64_t bags = offsets.sizes[0] - (integerOf(*m_run->call, 7) != 0 ? 1 : 0);
        const Bags found(offsets, bags, m_indexTensor.elements());
        m_run->share(bags, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t bag = begin; bag < end; ++bag) one(bag, found.start(bag), found.end(bag));
        });
    }

  private:
    int64_t rowOf(int64_t i) const { return Indices(m_indexTensor)[i * m_indexTensor.strides[0]]; }
    /// Results that somebody reads, and that have a place for it.
    void putNumber(int32_t result, int64_t at, int64_t number) const {
        const Strided& out = m_out[result];
        if (out.data && at < out.sizes[0]) storeOne(out.dtype, out.at(at * out.strides[0]), number);
    }

    void one(int64_t bag, int64_t start, int64_t end) const {
        int64_t counted = 0;
        for (int64_t i = start; i < end; ++i) {
            checkIndex(rowOf(i), m_table.sizes[0]);
            counted += rowOf(i) != m_padding;
            putNumber(1, i, bag);
        }
        if (m_mode != kSum) putNumber(2, bag, counted);
        if (m_mode == kMean) putNumber(3, bag, counted);
        for (int64_t first = 0; first < m_table.sizes[1]; first += kChunk)
            columns(bag, start, end, first, std::min(kChunk, m_table.sizes[1] - first), counted);
    }
    void columns(int64_t bag, int64_t start, int64_t end, int64_t first, int64_t width, int64_t counted) const {
        double sums[kChunk] = {}, row[kChunk];
        int64_t from[kChunk] = {};
        bool any = false;
        for (int64_t i = start; i < end; ++i) {
            const int64_t index = rowOf(i);
            if (index == m_padding) continue;
            load(m_table.dtype, m_table.at(index * m_table.strides[0] + first * m_table.strides[1]), m_table.strides[1],
                 width, row);
            if (m_mode != kMax) {
                add(sums, row, width, i);
            } else {
                for (int64_t k = 0; k < width; ++k) {
                    if (any && !(row[k] > sums[k])) continue;
                    sums[k] = row[k];
                    from[k] = index;
                }
                any = true;
            }
        }
        if (m_mode == kMean && counted > 0)
            for (int64_t k = 0; k < width; ++k) sums[k] /= static_cast<double>(counted);
        put(0, bag, first, width, sums);
        if (m_mode == kMax) put(3, bag, first, width, from);
    }
    void add(double* sums, const double* row, int64_t width, int64_t i) const {
        if (!m_scaled) {
            for (int64_t k = 0; k < width; ++k) sums[k] += row[k];
            return;
        }
        const auto factor = loadOne<double>(m_factors.dtype, m_factors.at(i * m_factors.strides[0]));
        for (int64_t k = 0; k < width; ++k) sums[k] += row[k] * factor;
    }
    template <class T>
    void put(int32_t result, int64_t bag, int64_t first, int64_t width, const T* values) const {
        const Strided& out = m_out[result];
        if (!out.data) return;
        store(out.dtype, out.at(bag * out.strides[0] + first * out.strides[1]), out.strides[1], width, values);
    }

    const Run* m_run;
    Strided m_table, m_indexTensor, m_factors, m_out[4];
    int64_t m_mode, m_padding;
    bool m_scaled;
};
void bagForward(const Run& run) {
    const BagForward call(run);
    call();
}

/// Where an operator has its arguments; the forms of the gradient differ by the offsets.
struct GradientArguments {
    int32_t offsets, bagOf, counts, positions, byFrequency, mode, factors, padding;
};
GradientArguments argumentsOf(const CtCall& call) {
    constexpr int32_t kWithOffsets = 12;
    if (call.argCount == kWithOffsets) return {2, 3, 4, 5, 7, 8, 10, 11};
    return {-1, 2, 3, 4, 6, 7, 8, 9};
}

/// Adds rows of the bags' gradient to the table's. `m_order` has what is added to row r at starts[r] to starts[r + 1]:
/// numbers of indices, or, where maxima were taken, of elements of the bags' gradient.
class BagBackward {
  public:
    explicit BagBackward(const Run& run)
        : m_run(&run),
          m_at(argumentsOf(*run.call)),
          m_gradient(run.in(0)),
          m_indices(run.in(1)),
          m_counts(run.in(m_at.counts)),
          m_out(run.out()),
          m_mode(integerOf(*run.call, m_at.mode)),
          m_padding(integerOf(*run.call, m_at.padding)),
          m_byFrequency(integerOf(*run.call, m_at.byFrequency) != 0),
          m_scaled(isGiven(*run.call, m_at.factors)) {
        if (m_scaled) m_factors = run.in(m_at.factors);
        const int64_t lookups = m_indices.elements(), rows = m_out.sizes[0];
        auto* memory = reinterpret_cast<int64_t*>(run.scratch);
        m_bagOf = memory;
        m_frequency = m_bagOf + lookups;
        m_starts = m_frequency + rows;
        m_order = m_starts + rows + 1;
        m_sums = reinterpret_cast<double*>(m_order + added());
    }
    static int64_t scratch(const CtCall& call, int32_t tasks) {
        const Strided gradient = operandOf(call, 0), out(call.results[0]);
        const int64_t lookups = operandOf(call, 1).elements();
        const bool most = integerOf(call, argumentsOf(call).mode) == kMax;
        return 8 * (lookups + 2 * out.sizes[0] + 1 + (most ? gradient.elements() : lookups) + tasks * out.sizes[1]);
    }
    void operator()() const {
        if (m_gradient.sizes[0] > 0) {
            findBags();
            check();
        }
        sortByRow();
        m_run->share(m_out.sizes[0], [&](int64_t task, int64_t begin, int64_t end) {
            double* const sums = m_sums + task * m_out.sizes[1];
            for (int64_t row = begin; row < end; ++row) {
                std::fill_n(sums, m_out.sizes[1], 0.0);
                for (int64_t at = m_starts[row]; at < m_starts[row + 1]; ++at) add(sums, row, m_order[at]);
                store(m_out.dtype, m_out.at(row * m_out.strides[0]), m_out.strides[1], m_out.sizes[1], sums);
            }
        });
    }

  private:
    int64_t bags() const { return m_gradient.sizes[0]; }
    int64_t added() const { return m_mode == kMax ? m_gradient.elements() : m_indices.elements(); }
    int64_t rowOf(int64_t i) const { return Indices(m_indices)[i * m_indices.strides[0]]; }
    int64_t countOf(int64_t bag) const { return Indices(m_counts)[bag * m_counts.strides[0]]; }

    /// The forward leaves the table of bags out where it sums whole rows.
    void findBags() const {
        const Strided given = m_run->in(m_at.bagOf);
        const int64_t count = m_indices.elements();
        if (given.elements() == count) {
            for (int64_t i = 0; i < count; ++i) m_bagOf[i] = Indices(given)[given.offsetOf(i)];
            return;
        }
        if (m_at.offsets < 0) throw Failure("offset2bag does not name a bag for every index");
        const Bags found(m_run->in(m_at.offsets), bags(), count);
        for (int64_t bag = 0; bag < bags(); ++bag) std::fill(m_bagOf + found.start(bag), m_bagOf + found.end(bag), bag);
    }
    void check() const {
        std::fill_n(m_frequency, m_out.sizes[0], int64_t{0});
        for (int64_t i = 0; i < m_indices.elements(); ++i) {
            checkIndex(rowOf(i), m_out.sizes[0]);
            ++m_frequency[rowOf(i)];
        }
        if (m_counts.elements() < bags() && m_mode != kSum)
            throw Failure("bag_size does not have a number for every bag");
        if (m_scaled && m_factors.elements() != m_indices.elements())
            throw Failure("per_sample_weights does not have a number for every index");
        if (m_mode != kMax) return;
        const Strided positions = m_run->in(m_at.positions);
        if (positions.elements() < m_gradient.elements())
            throw Failure("maximum_indices does not have a row for every element of the gradient");
        for (int64_t i = 0; i < positions.elements(); ++i)
            if (const int64_t row = Indices(positions)[positions.offsetOf(i)]; row < 0 || row >= m_out.sizes[0])
                throw Failure("maximum_indices names a row that the table does not have");
    }
    /// The row that is added to, -1: none.
    int64_t targetOf(int64_t number) const {
        if (m_mode == kMax) {
            const Strided positions = m_run->in(m_at.positions);
            return countOf(number / m_out.sizes[1]) > 0 ? Indices(positions)[positions.offsetOf(number)] : -1;
        }
        const bool counts = rowOf(number) != m_padding && m_bagOf[number] >= 0 && m_bagOf[number] < bags();
        return counts ? rowOf(number) : -1;
    }
    void sortByRow() const {
        const int64_t rows = m_out.sizes[0], count = bags() > 0 ? added() : 0;
        std::fill_n(m_starts, rows + 1, int64_t{0});
        for (int64_t i = 0; i < count; ++i)
            if (const int64_t row = targetOf(i); row >= 0) ++m_starts[row];
        int64_t before = 0;
        for (int64_t row = 0; row <= rows; ++row) {
            before += m_starts[row];
            m_starts[row] = before;  // the end; filling from the back makes it the start
        }
        for (int64_t i = count; i-- > 0;)
            if (const int64_t row = targetOf(i); row >= 0) m_order[--m_starts[row]] = i;
    }
    void add(double* sums, int64_t row, int64_t number) const {
        const int64_t width = m_out.sizes[1];
        if (m_mode == kMax) {
            const auto element = loadOne<double>(m_gradient.dtype, m_gradient.at(m_gradient.offsetOf(number)));
            sums[number % width] += element;
            return;
        }
        double factor = 1;
        if (m_scaled) factor = loadOne<double>(m_factors.dtype, m_factors.at(m_factors.offsetOf(number)));
        if (m_byFrequency) factor /= static_cast<double>(m_frequency[row]);
        const int64_t bag = m_bagOf[number];
        if (m_mode == kMean) factor /= static_cast<double>(std::max<int64_t>(countOf(bag), 1));
        for (int64_t first = 0; first < width; first += kChunk) {
            double chunk[kChunk];
            const int64_t count = std::min(kChunk, width - first);
            load(m_gradient.dtype, m_gradient.at(bag * m_gradient.strides[0] + first * m_gradient.strides[1]),
                 m_gradient.strides[1], count, chunk);
            for (int64_t k = 0; k < count; ++k) sums[first + k] += factor * chunk[k];
        }
    }

    const Run* m_run;
    GradientArguments m_at;
    Strided m_gradient, m_indices, m_counts, m_factors, m_out;
    int64_t m_mode, m_padding;
    bool m_byFrequency, m_scaled;
    int64_t *m_bagOf, *m_frequency, *m_starts, *m_order;
    double* m_sums;
};
void bagBackward(const Run& run) {
    const BagBackward call(run);
    call();
}

constexpr Function kBagFunctions[] = {
    {"aten._embedding_bag.default", bagForward},
    {"aten._embedding_bag_forward_only.default", bagForward},
    {"aten._embedding_bag_backward.default", bagBackward, BagBackward::scratch},
    {"aten._embedding_bag_dense_backward.default", bagBackward, BagBackward::scratch},
};

}  // namespace

std::span<const Function> bagFunctions() { return kBagFunctions; }

}  // namespace cutaway::portable
