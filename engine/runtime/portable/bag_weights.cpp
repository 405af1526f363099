// The gradient of embedding bags by the weights of their indices.
#include <vector>

#include "engine/runtime/portable/bag.h"

namespace cutaway::portable {
namespace {

std::vector<int64_t> numbersOf(const Strided& tensor) {
    std::vector<int64_t> numbers(static_cast<size_t>(tensor.elements()));
    if (!numbers.empty()) loadAll(tensor, numbers.data());
    return numbers;
}
/// The bag of every index, as the forward operator made them; it leaves them out where it sums whole rows.
std::vector<int64_t> bagOfEach(const Strided& given, const Strided& offsets, int64_t count, int64_t bags) {
    if (given.elements() == count) return numbersOf(given);
    const Bags runs(offsets, bags, count);
    std::vector<int64_t> bagOf(static_cast<size_t>(count), 0);
    for (int64_t bag = 0; bag < bags; ++bag)
        std::fill(bagOf.begin() + runs.start(bag), bagOf.begin() + runs.end(bag), bag);
    return bagOf;
}

/// (grad, weight, indices, offsets, offset2bag, mode, padding_idx): each index's row times its bag's gradient.
void weightsBackward(const Run& run) {
    const Strided dy = run.in(0), table = run.in(1), out = run.out();
    const std::vector<int64_t> indices = numbersOf(run.in(2));
    const int64_t padding = integerOf(*run.call, 6), width = dy.sizes[1], bags = dy.sizes[0];
    std::vector<double> sums(indices.size(), 0.0);
    if (bags == 0) return storeRange(out, 0, out.elements(), sums.data());  // no index is in a bag
    const std::vector<int64_t> bagOf = bagOfEach(run.in(4), run.in(3), static_cast<int64_t>(indices.size()), bags);
    run.share(static_cast<int64_t>(indices.size()), [&](int64_t, int64_t begin, int64_t end) {
        std::vector<double> g(static_cast<size_t>(width)), row(g.size());
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            checkIndex(indices[i], table.sizes[0]);
            if (bagOf[i] < 0 || bagOf[i] >= bags)
                throw Failure("offset2bag names bag " + std::to_string(bagOf[i]) + " of " + std::to_string(bags));
            if (indices[i] == padding) continue;
            load(dy.dtype, dy.at(bagOf[i] * dy.strides[0]), dy.strides[1], width, g.data());
            load(table.dtype, table.at(indices[i] * table.strides[0]), table.strides[1], width, row.data());
            for (size_t k = 0; k < g.size(); ++k) sums[i] += g[k] * row[k];
        }
    });
    storeRange(out, 0, out.elements(), sums.data());
}

constexpr Function kBagWeightsFunctions[] = {
    {"aten._embedding_bag_per_sample_weights_backward.default", weightsBackward}};

}  // namespace

std::span<const Function> bagWeightsFunctions() { return kBagWeightsFunctions; }

}  // namespace cutaway::portable
