// Distinct elements and slices, and how often numbers occur: results are as long as the data say.
#include <algorithm>
#include <numeric>

#include "engine/runtime/portable/find.h"

namespace cutaway::portable {
namespace {

/// A tensor as rows of equal width: single elements, or its slices along a dim.
struct Rows {
    int64_t count = 0, width = 1;
    std::vector<int64_t> starts;  // of each row: where its first element lies
    Strided slice;                // one row, over all dims but the one of the rows
};
Rows rowsOf(const Strided& tensor, int32_t dim) {
    Rows rows;
    if (dim < 0) {
        rows.slice.dtype = tensor.dtype;
        rows.count = tensor.elements();
        forEach(tensor, [&](const int64_t* index, int64_t) { rows.starts.push_back(offsetAt(tensor, index)); });
    } else {
        rows.slice = tensor;
        rows.slice.sizes[dim] = 1;
        rows.count = tensor.sizes[dim];
        rows.width = rows.slice.elements();
        for (int64_t i = 0; i < rows.count; ++i) rows.starts.push_back(i * tensor.strides[dim]);
    }
    rows.slice.data = tensor.data;
    return rows;
}

struct Distinct {
    std::vector<int64_t> firsts, inverse, counts;  // a row of each; by row: which it is; of each: how many rows
};
/// Makes one of equal rows: of all in rising order if `sorts`, else of those that follow each other.
template <class T>
Distinct distinctOf(const Rows& rows, bool sorts) {
    using Loaded = std::conditional_t<std::is_same_v<T, uint64_t>, int64_t, T>;  // the same bits
    std::vector<T> elements(static_cast<size_t>(rows.count * rows.width));
    for (int64_t r = 0; r < rows.count && rows.width > 0; ++r) {
        Strided row = rows.slice;
        row.data = rows.slice.at(rows.starts[static_cast<size_t>(r)]);
        loadAll(row, reinterpret_cast<Loaded*>(elements.data() + r * rows.width));
    }
    const auto row = [&](int64_t r) { return elements.data() + r * rows.width; };
    std::vector<int64_t> order(static_cast<size_t>(rows.count));
    std::iota(order.begin(), order.end(), int64_t{0});
    if (sorts)
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return std::lexicographical_compare(row(a), row(a) + rows.width, row(b), row(b) + rows.width);
        });
    Distinct out;
    out.inverse.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || !std::equal(row(order[i]), row(order[i]) + rows.width, row(order[i - 1]))) {
            out.firsts.push_back(order[i]);
            out.counts.push_back(0);
        }
        ++out.counts.back();
        out.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(out.firsts.size()) - 1;
    }
    return out;
}
Distinct distinctOf(const Rows& rows, bool sorts) {
    if (rows.slice.dtype == CT_U64) return distinctOf<uint64_t>(rows, sorts);
    return isFloating(rows.slice.dtype) ? distinctOf<double>(rows, sorts) : distinctOf<int64_t>(rows, sorts);
}

/// The slices `firsts` of a tensor, row by row.
void copySlices(const Strided& from, int32_t dim, const std::vector<int64_t>& firsts, char* to) {
    Strided out = from;
    out.sizes[dim] = static_cast<int64_t>(firsts.size());
    const int64_t bytes = bytesOf(from.dtype);
    forEach(out, [&](const int64_t* index, int64_t number) {
        int64_t offset = 0;
        for (int32_t d = 0; d < out.rank; ++d)
            offset += (d == dim ? firsts[static_cast<size_t>(index[d])] : index[d]) * from.strides[d];
        copyElement(bytes, from.at(offset), to + number * bytes);
    });
}
void putNumbers(const Run& run, const std::vector<int64_t>& numbers, const std::vector<int64_t>& sizes,
                int32_t result) {
    if (result >= run.call->resultCount || !run.wants(result)) return;  // nobody reads it
    char* const to = take(run, sizes, result);
    if (!numbers.empty()) std::memcpy(to, numbers.data(), numbers.size() * sizeof(int64_t));
}

/// `inverse` and `counts`: the parameters that ask for them; -1: there is none. dim < 0: single elements.
void unique(const Run& run, int32_t dim, bool sorts, int32_t inverse, int32_t counts) {
    const Strided self = run.in(0);
    const int32_t rank = run.operands[run.call->args[0].integer].rank;
    if (isComplex(self.dtype)) throw Failure("complex numbers have no order");
    const Rows rows = rowsOf(self, dim);
    const Distinct distinct = distinctOf(rows, sorts);
    const auto count = static_cast<int64_t>(distinct.firsts.size());
    std::vector<int64_t> sizes(self.sizes, self.sizes + rank);
    if (dim < 0 && run.wants(0)) {
        char* to = take(run, {count});
        const int64_t bytes = bytesOf(self.dtype);
        for (const int64_t first : distinct.firsts) {
            copyElement(bytes, self.at(rows.starts[static_cast<size_t>(first)]), to);
            to += bytes;
        }
    }
    if (dim >= 0 && run.wants(0)) {
        std::vector<int64_t> out = sizes;
        out[static_cast<size_t>(dim)] = count;
        copySlices(self, dim, distinct.firsts, take(run, out));
    }
    if (dim >= 0) sizes = {self.sizes[dim]};
    const auto wants = [&](int32_t parameter) { return integerOf(*run.call, parameter) != 0; };
    if (wants(inverse)) putNumbers(run, distinct.inverse, sizes, 1);
    else putNumbers(run, {}, {0}, 1);
    if (counts < 0) return;
    if (wants(counts)) putNumbers(run, distinct.counts, {count}, 2);
    else putNumbers(run, {}, {0}, 2);
}
void uniqueElements(const Run& run) { unique(run, -1, true, 2, is(*run.call, "aten._unique2.default") ? 3 : -1); }
void uniqueSlices(const Run& run) {
    if (run.operands[run.call->args[0].integer].rank == 0) throw Failure("a 0-d tensor has no dim");
    unique(run, dimOf(*run.call, 1, run.in(0)), true, 3, 4);
}
void uniqueConsecutive(const Run& run) {
    const bool byDim = isGiven(*run.call, 3) && run.operands[run.call->args[0].integer].rank > 0;
    unique(run, byDim ? dimOf(*run.call, 3, run.in(0)) : -1, false, 1, 2);
}
void uniqueConsecutiveSlices(const Run& run) {
    if (run.operands[run.call->args[0].integer].rank == 0) throw Failure("a 0-d tensor has no dim");
    unique(run, dimOf(*run.call, 1, run.in(0)), false, 2, 3);
}

void bincount(const Run& run) {
    const Strided self = run.in(0);
    const Indices values(self);
    int64_t bins = integerOf(*run.call, 2);
    for (int64_t i = 0; i < self.sizes[0]; ++i) {
        const int64_t value = values[i * self.strides[0]];
        if (value < 0) throw Failure("a negative element");
        if (value == std::numeric_limits<int64_t>::max()) throw Failure("there are too many bins");
        bins = std::max(bins, value + 1);
    }
    if (!isGiven(*run.call, 1)) {
        auto* const counts = reinterpret_cast<int64_t*>(take(run, {bins}));
        std::fill_n(counts, bins, int64_t{0});
        for (int64_t i = 0; i < self.sizes[0]; ++i) ++counts[values[i * self.strides[0]]];
        return;
    }
    const Strided weights = run.in(1);
    if (weights.elements() != self.sizes[0]) throw Failure("needs as many weights as elements");
    std::vector<double> given(static_cast<size_t>(self.sizes[0])), sums(static_cast<size_t>(bins), 0.0);
    if (!given.empty()) loadAll(weights, given.data());
    for (size_t i = 0; i < given.size(); ++i)
        sums[static_cast<size_t>(values[static_cast<int64_t>(i) * self.strides[0]])] += given[i];
    char* const to = take(run, {bins});
    store(weights.dtype == CT_F32 ? CT_F32 : CT_F64, to, 1, bins, sums.data());
}

constexpr Function kFindDistinctFunctions[] = {
    {.op = "aten._unique2.default", .run = uniqueElements, .finds = true},
    {.op = "aten._unique.default", .run = uniqueElements, .finds = true},
    {.op = "aten.unique_dim.default", .run = uniqueSlices, .finds = true},
    {.op = "aten.unique_consecutive.default", .run = uniqueConsecutive, .finds = true},
    {.op = "aten.unique_dim_consecutive.default", .run = uniqueConsecutiveSlices, .finds = true},
    {.op = "aten.bincount.default", .run = bincount, .finds = true},
};

}  // namespace

std::span<const Function> findDistinctFunctions() { return kFindDistinctFunctions; }

}  // namespace cutaway::portable
