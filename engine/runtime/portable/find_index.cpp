// Indexing by tensors, masks among them, whose number of true elements the result's sizes follow from.
#include <vector>

#include "engine/runtime/portable/find.h"

namespace cutaway::portable {
namespace {

/// Positions along one dim of the indexed tensor, in a shape that is broadcast against the other indices'.
struct Index {
    int32_t dim = 0;
    std::vector<int64_t> sizes, positions;
};

/// A mask stands for as many indices as it has dims.
void addPositionsOfMask(const Strided& mask, int32_t rank, int32_t dim, const Strided& self,
                        std::vector<Index>& indices) {
    const size_t first = indices.size();
    for (int32_t d = 0; d < rank; ++d) {
        if (mask.sizes[d] != self.sizes[dim + d])
            throw Failure("the mask has size " + std::to_string(mask.sizes[d]) + " in dim " + std::to_string(d) +
                          ", and what it indexes has " + std::to_string(self.sizes[dim + d]));
        indices.push_back({dim + d, {}, {}});
    }
    int64_t count = 0;
    forEach(mask, [&](const int64_t* index, int64_t) {
        if (!isTrue(mask, offsetAt(mask, index))) return;
        ++count;
        for (int32_t d = 0; d < rank; ++d) indices[first + static_cast<size_t>(d)].positions.push_back(index[d]);
    });
    for (size_t i = first; i < indices.size(); ++i) indices[i].sizes = {count};
}
void addPositions(const CtTensor& given, int32_t dim, const Strided& self, std::vector<Index>& indices) {
    const Strided tensor(given);
    const Indices numbers(tensor);
    Index made{dim, {given.sizes, given.sizes + given.rank}, {}};
    const int64_t size = self.sizes[dim];
    forEach(tensor, [&](const int64_t* index, int64_t) {
        const int64_t at = numbers[offsetAt(tensor, index)];
        if (at < -size || at >= size) failOutside(at, dim, size);
        made.positions.push_back(at < 0 ? at + size : at);
    });
    indices.push_back(std::move(made));
}
std::vector<int64_t> broadcastSizes(const std::vector<Index>& indices) {
    std::vector<int64_t> all;
    for (const Index& index : indices) {
        if (index.sizes.size() > all.size()) all.insert(all.begin(), index.sizes.size() - all.size(), 1);
        for (size_t d = 0; d < index.sizes.size(); ++d) {
            int64_t& size = all[all.size() - index.sizes.size() + d];
            if (size == 1) size = index.sizes[d];
            else if (index.sizes[d] != 1 && index.sizes[d] != size)
                throw Failure("the shapes of the indices do not fit together");
        }
    }
    return all;
}
/// The offset in the indexed tensor of each element of the indices' common shape.
std::vector<int64_t> offsetsOf(const std::vector<Index>& indices, const std::vector<int64_t>& sizes,
                               const Strided& self) {
    Strided whole;
    whole.rank = std::max<int32_t>(static_cast<int32_t>(sizes.size()), 1);
    std::copy(sizes.begin(), sizes.end(), whole.sizes);
    std::vector<int64_t> offsets(static_cast<size_t>(whole.elements()));
    for (const Index& index : indices)
        forEach(whole, [&](const int64_t* at, int64_t number) {
            int64_t place = 0;
            for (size_t d = 0; d < index.sizes.size(); ++d)
                place = place * index.sizes[d] + (index.sizes[d] == 1 ? 0 : at[sizes.size() - index.sizes.size() + d]);
            offsets[static_cast<size_t>(number)] +=
                index.positions[static_cast<size_t>(place)] * self.strides[index.dim];
        });
    return offsets;
}

}  // namespace

/// self[indices]: the indices' dims stand where theirs were if those are side by side, else in front.
void findIndexed(const Run& run) {
    const CtTensor& given = run.operands[run.call->args[0].integer];
    const Strided self(given);
    const CtArgument& list = run.call->args[1];
    std::vector<Index> indices;
    std::vector<bool> indexed(static_cast<size_t>(given.rank));
    int32_t dim = 0;
    for (int64_t i = 0; i < list.integer; ++i) {
        const CtArgument& item = list.items[i];
        const size_t before = indices.size();
        int32_t taken = 1;
        if (item.kind == CT_OPERAND) {
            const CtTensor& tensor = run.operands[item.integer];
            const Strided strided(tensor);
            taken = isMask(strided) ? tensor.rank : 1;
            if (dim + taken > given.rank) throw Failure("there are more indices than dims");
            if (isMask(strided)) addPositionsOfMask(strided, tensor.rank, dim, self, indices);
            else addPositions(tensor, dim, self, indices);
        }
        for (size_t made = before; made < indices.size(); ++made)
            indexed[static_cast<size_t>(indices[made].dim)] = true;
        dim += taken;
    }
    const std::vector<int64_t> common = broadcastSizes(indices), offsets = offsetsOf(indices, common, self);
    const bool together =
        indices.empty() || indices.back().dim - indices.front().dim + 1 == static_cast<int32_t>(indices.size());
    const int32_t front = together && !indices.empty() ? indices.front().dim : 0;
    // Dims before the indices', and those behind them.
    Strided before = self, after = self;
    before.rank = after.rank = 0;
    std::vector<int64_t> sizes;
    const auto add = [&](Strided& group, int32_t d) {
        group.sizes[group.rank] = self.sizes[d];
        group.strides[group.rank++] = self.strides[d];
        sizes.push_back(self.sizes[d]);
    };
    for (int32_t d = 0; d < front; ++d) add(before, d);
    sizes.insert(sizes.end(), common.begin(), common.end());
    for (int32_t d = front; d < given.rank; ++d)
        if (!indexed[static_cast<size_t>(d)]) add(after, d);
    char* to = take(run, sizes);
    const int64_t bytes = bytesOf(self.dtype);
    forEach(before, [&](const int64_t* b, int64_t) {
        for (const int64_t offset : offsets)
            forEach(after, [&](const int64_t* a, int64_t) {
                copyElement(bytes, self.at(offsetAt(before, b) + offset + offsetAt(after, a)), to);
                to += bytes;
            });
    });
}

}  // namespace cutaway::portable
