// Batching rules of tensors that are indices. An operand that has examples itself gets a further index that goes
// through them.
#include <algorithm>

#include "engine/passes/vmap/batch_rules.h"

namespace cutaway {
namespace {

/// Where the dims that the indices make stand in the result.
struct IndexPlaces {
    size_t first = 0, count = 0;  // of the indices that are given
    bool together = true;         // else their dims come first
    int64_t rank = 0;             // of all indices broadcast
};
std::optional<IndexPlaces> placesOf(const std::vector<Argument>& indices) {
    IndexPlaces places;
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i].isNone()) continue;
        const TensorType* const type = indices[i].node() ? indices[i].node()->type().tensor() : nullptr;
        if (type == nullptr || type->dtype == DType::Bool || type->dtype == DType::U8) return std::nullopt;  // a mask
        if (places.count == 0) places.first = i;
        places.together &= i == places.first + places.count;
        ++places.count;
        places.rank = std::max(places.rank, type->rank());
    }
    return places.count ? std::optional(places) : std::nullopt;
}

/// 0, 1, ... through the examples, for indices of this rank.
Value throughExamples(BatchedCall& c, int64_t rank, Device device) {
    Value counted =
        c.call("aten.arange.start_step", {0, Argument(c.count()), 1},
               {{"dtype", DType::I64}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
    for (int64_t i = 0; i < rank; ++i) counted = unsqueeze(counted, 1);
    return counted;
}

/// Indices into a tensor with all examples in front.
std::vector<Argument> indicesOfAll(BatchedCall& c, const std::vector<Argument>& indices, const IndexPlaces& places,
                                   Device device) {
    std::vector<Argument> out{throughExamples(c, places.rank, device)};
    for (const Argument& index : indices) {
        if (index.isNone()) out.emplace_back();
        else if (c.isBatched(index)) out.emplace_back(withRank(c.all(index), places.rank));
        else out.push_back(index);
    }
    return out;
}

/// The order of dims that puts dims first..first+count-1 at `to`.
std::vector<int64_t> withDimsAt(int64_t rank, int64_t first, int64_t count, int64_t to) {
    std::vector<int64_t> rest, order;
    for (int64_t i = 0; i < rank; ++i)
        if (i < first || i >= first + count) rest.push_back(i);
    order.assign(rest.begin(), rest.begin() + to);
    for (int64_t i = 0; i < count; ++i) order.push_back(first + i);
    order.insert(order.end(), rest.begin() + to, rest.end());
    return order;
}

Value indexAll(BatchedCall& c, const Argument& self, const std::vector<Argument>& indices, std::string_view op) {
    const auto places = placesOf(indices);
    const int64_t rank = c.node().tensor().rank();
    const bool moves = places->together && places->first > 0;
    const bool shared = std::none_of(indices.begin(), indices.end(), [&](const Argument& i) { return c.isBatched(i); });
    if (shared) {  // the examples are a dim that is kept whole
        std::vector<Argument> all{Argument()};
        all.insert(all.end(), indices.begin(), indices.end());
        const Value made = c.call(op, {c.all(self), Argument(std::move(all))});
        return places->together ? made : permute(made, withDimsAt(rank + 1, places->rank, 1, 0));
    }
    if (!c.isBatched(self)) {
        std::vector<Argument> all;
        for (const Argument& index : indices)
            all.push_back(c.isBatched(index) ? Argument(withRank(c.all(index), places->rank)) : index);
        const Value made = c.call(op, {self, Argument(std::move(all))});
        return moves ? permute(made, withDimsAt(rank + 1, static_cast<int64_t>(places->first), 1, 0)) : made;
    }
    // The further index stands apart from the others where dims are kept in front of these: index dims come first.
    const Value made =
        c.call(op, {c.all(self), Argument(indicesOfAll(c, indices, *places, self.node()->tensor().device))});
    return moves ? permute(made, withDimsAt(rank + 1, 1, places->rank, 1 + static_cast<int64_t>(places->first))) : made;
}

template <const char* const& kOp>
Values takeFromAll(BatchedCall& c) {
    const auto* indices = c.arg(1).list();
    if (!indices || !placesOf(*indices)) return Values::notHandled();
    return indexAll(c, c.arg(0), *indices, kOp);
}

Values putIntoAll(BatchedCall& c) {
    const auto* indices = c.arg(1).list();
    const auto places = indices ? placesOf(*indices) : std::nullopt;
    if (!places) return Values::notHandled();
    // What is written has, for each example, the sizes of what the indices take.
    const Value taken = c.builder().call("aten.index.Tensor", {c.arg(0), c.arg(1)});
    if (!taken) return taken;
    const SymDims sizes = taken.sizes();
    taken.node()->graph().erase(*taken.node());
    Value written = expand(withRank(c.all(2), static_cast<int64_t>(sizes.size())), c.sizes(sizes));
    if (places->together && places->first > 0)
        written = permute(written, withDimsAt(static_cast<int64_t>(sizes.size()) + 1,
                                              1 + static_cast<int64_t>(places->first), places->rank, 1));
    return c.call(c.op().name(),
                  {c.all(0), Argument(indicesOfAll(c, *indices, *places, c.type(0).device)), written, c.arg(3)});
}

Values embedAll(BatchedCall& c) {
    if (c.isBatched(0)) return indexAll(c, c.arg(0), {c.arg(1)}, "aten.index.Tensor");
    std::vector<Argument> args = c.copyOfArgs();
    args[1] = c.all(1);
    return c.again(std::move(args));
}

/// Indices of their own for each example.
Values selectFromAll(BatchedCall& c) {
    const auto dim = c.dim("dim", c.type(0).rank());
    if (c.type(0).rank() == 0 || c.type(2).rank() != 1 || !dim) return Values::notHandled();
    std::vector<Argument> indices(static_cast<size_t>(*dim));
    indices.push_back(c.arg(2));
    return indexAll(c, c.arg(0), indices, "aten.index.Tensor");
}

constexpr const char *kBatchedIndex = "aten.index.Tensor", *kBatchedUnsafeIndex = "aten._unsafe_index.Tensor";

constexpr BatchRow kIndexing[] = {
    {"aten.index.Tensor", takeFromAll<kBatchedIndex>},
    {"aten._unsafe_index.Tensor", takeFromAll<kBatchedUnsafeIndex>},
    {"aten.index_put.default", putIntoAll},
    {"aten.embedding.default", embedAll},
    {"aten.index_select.default", selectFromAll},
};

}  // namespace

std::span<const BatchRow> batchedIndexing() { return kIndexing; }

}  // namespace cutaway
