#include "engine/ops/unique.h"

#include <algorithm>
#include <numeric>

#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

/// A tensor as rows of equal width: single elements, or its slices along a dim.
template <class T>
struct UniqueRows {
    std::vector<T> elements;
    size_t width = 1, count = 0;
    const T* row(size_t i) const { return elements.data() + i * width; }
    bool less(size_t i, size_t k) const {
        return std::lexicographical_compare(row(i), row(i) + width, row(k), row(k) + width);
    }
    bool same(size_t i, size_t k) const { return std::equal(row(i), row(i) + width, row(k)); }
};
/// The dim moved to the front.
Tensor dimFirst(const Tensor& x, int64_t dim) {
    Dims sizes = x.sizes(), strides = x.strides();
    std::rotate(sizes.begin(), sizes.begin() + dim, sizes.begin() + dim + 1);
    std::rotate(strides.begin(), strides.begin() + dim, strides.begin() + dim + 1);
    return x.view(sizes, strides, x.offset());
}
struct Distinct {
    std::vector<size_t> firsts;            // a row for each distinct one
    std::vector<int64_t> inverse, counts;  // by row: which distinct one it is; by distinct one: how many rows
};
/// Equal rows next to each other in `order` are one.
template <class T>
Distinct distinctOf(const UniqueRows<T>& rows, const std::vector<size_t>& order) {
    Distinct out;
    out.inverse.resize(rows.count);
    for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || !rows.same(order[i], order[i - 1])) {
            out.firsts.push_back(order[i]);
            out.counts.push_back(0);
        }
        ++out.counts.back();
        out.inverse[order[i]] = static_cast<int64_t>(out.firsts.size()) - 1;
    }
    return out;
}
Tensor integers(const std::vector<int64_t>& values, const Dims& sizes) {
    Tensor out = Tensor::empty(DType::I64, sizes);
    unpackElements(values, out);
    return out;
}
/// dim < 0: single elements.
EvalResult unique(const EvalContext& c, const Tensor& self, int64_t dim, bool sorts) {
    if (isComplex(self.dtype())) return c.fail("complex numbers have no order");
    const bool byElement = dim < 0;
    const Tensor moved = byElement ? self : dimFirst(self, dim);
    TensorList out(3);
    const auto run = [&](auto tag) {
        using T = decltype(tag);
        UniqueRows<T> rows{packElements<T>(moved), 1, 0};
        rows.count = static_cast<size_t>(byElement ? self.numel() : moved.size(0));
        if (!byElement) rows.width = rows.count == 0 ? 0 : rows.elements.size() / rows.count;
        std::vector<size_t> order(rows.count);
        std::iota(order.begin(), order.end(), size_t{0});
        if (sorts) std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t k) { return rows.less(i, k); });
        const Distinct distinct = distinctOf(rows, order);
        std::vector<T> kept;
        for (const size_t first : distinct.firsts)
            kept.insert(kept.end(), rows.row(first), rows.row(first) + rows.width);
        Dims sizes = byElement ? Dims{0} : self.sizes();
        const auto count = static_cast<int64_t>(distinct.firsts.size());
        sizes[byElement ? 0 : static_cast<size_t>(dim)] = count;
        out[0] = Tensor::empty(self.dtype(), sizes);
        Tensor target = byElement ? out[0] : dimFirst(out[0], dim);
        unpackElements(kept, target);
        out[1] = integers(c.flag("return_inverse") ? distinct.inverse : std::vector<int64_t>(),
                          c.flag("return_inverse") ? (byElement ? self.sizes() : Dims{self.size(dim)}) : Dims{0});
        if (c.op().schema()->find("return_counts") >= 0)
            out[2] = integers(c.flag("return_counts") ? distinct.counts : std::vector<int64_t>(),
                              Dims{c.flag("return_counts") ? count : 0});
        else out.pop_back();
    };
    withCompute(self.dtype(), run);
    return out;
}

}  // namespace

EvalResult evalUnique(const EvalContext& c) { return unique(c, c.in(size_t{0}), -1, true); }
EvalResult evalUniqueDim(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    if (self.rank() == 0) return c.fail("a 0-d tensor has no dim");
    return unique(c, self, c.dimOf("dim", self.rank()), true);
}
EvalResult evalUniqueConsecutive(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    return unique(c, self, c.has("dim") && self.rank() > 0 ? c.dimOf("dim", self.rank()) : -1, false);
}
EvalResult evalBincount(const EvalContext& c) {
    const Tensor self = c.in(size_t{0}), weights = c.optional("weights");
    if (self.rank() != 1 || !isIntegral(self.dtype(), false)) return c.fail("counts a vector of integers");
    if (weights.defined() && weights.numel() != self.numel()) return c.fail("needs as many weights as elements");
    const std::vector<int64_t> values = packElements<int64_t>(self);
    int64_t bins = c.integerOr("minlength", 0);
    for (const int64_t value : values) {
        if (value < 0) return c.fail("a negative element");
        bins = std::max(bins, checkedAdd(value, 1));
    }
    const bool wide = weights.defined();
    std::vector<double> given = wide ? packElements<double>(weights) : std::vector<double>(values.size(), 1.0),
                        sums(static_cast<size_t>(bins), 0.0);
    for (size_t i = 0; i < values.size(); ++i) sums[static_cast<size_t>(values[i])] += given[i];
    Tensor out = Tensor::empty(!wide ? DType::I64 : weights.dtype() == DType::F32 ? DType::F32 : DType::F64, {bins});
    unpackElements(sums, out);
    return out;
}

}  // namespace cutaway
