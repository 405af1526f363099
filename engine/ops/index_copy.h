#pragma once
// Elements copied between a tensor and the result of an indexing, for index, index_put and index_select.
#include <cstring>

#include "engine/ops/index_rules.h"

namespace cutaway {

/// Offsets of the elements of `tensor` in the three groups of dims of an indexing's result.
struct ResultTables {
    std::vector<int64_t> before, index, after;
    ResultTables(const Tensor& tensor, const IndexPlan& plan) {
        auto group = [&](size_t first, size_t count) {
            const auto begin = static_cast<int64_t>(first), end = begin + static_cast<int64_t>(count);
            return boxOffsets(Dims(tensor.sizes().begin() + begin, tensor.sizes().begin() + end),
                              Dims(tensor.strides().begin() + begin, tensor.strides().begin() + end));
        };
        before = group(0, plan.before.size());
        index = group(plan.before.size(), plan.indexSizes.size());
        after = group(plan.before.size() + plan.indexSizes.size(), plan.after.size());
    }
};

/// Whether the offsets count up from 0 by ones.
inline bool isRun(const std::vector<int64_t>& offsets) {
    for (size_t i = 0; i < offsets.size(); ++i)
        if (offsets[i] != static_cast<int64_t>(i)) return false;
    return true;
}

/// Copies element by element between two tensors of one dtype, walking both by their tables.
template <class From, class To>
void copyElements(const Tensor& source, const From& from, Tensor& target, const To& to) {
    const auto bytes = static_cast<size_t>(byteSize(source.dtype()));
    const auto* in = static_cast<const std::byte*>(source.data());
    auto* out = static_cast<std::byte*>(target.data());
    const bool runs = isRun(from.after) && isRun(to.after);
    for (size_t b = 0; b < from.before.size(); ++b)
        for (size_t i = 0; i < from.index.size(); ++i) {
            const std::byte* read = in + static_cast<size_t>(from.before[b] + from.index[i]) * bytes;
            std::byte* write = out + static_cast<size_t>(to.before[b] + to.index[i]) * bytes;
            if (runs) {
                std::memcpy(write, read, from.after.size() * bytes);
                continue;
            }
            for (size_t a = 0; a < from.after.size(); ++a)
                std::memcpy(write + static_cast<size_t>(to.after[a]) * bytes,
                            read + static_cast<size_t>(from.after[a]) * bytes, bytes);
        }
}

}  // namespace cutaway
