// The gradient of embedding bags by the weights of their indices.
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// An operator's arguments by name, since those of the bags' differ in their order.
struct Bags {
    const Run& run;
    CallReader reader;

    explicit Bags(const Run& call) : run(call), reader(*call.call) {}
    bool has(std::string_view param) const { return reader.find(param) != nullptr; }
    Strided tensor(std::string_view param) const { return Strided(run.operands[reader.find(param)->integer]); }
    /// Row by row; empty if not given.
    template <class T>
    std::vector<T> all(std::string_view param) const {
        if (!has(param)) return {};
        const Strided from = tensor(param);
        std::vector<T> elements(static_cast<size_t>(from.elements()));
        if (!elements.empty()) loadAll(from, elements.data());
        return elements;
    }
    int64_t padding() const { return has("padding_idx") ? reader.find("padding_idx")->integer : -1; }
};

void checkIndex(int64_t index, int64_t rows) {
    if (index < 0 || index >= rows)
        throw Failure("index " + std::to_string(index) + " is out of range for a table of " + std::to_string(rows) +
                      " rows");
}
/// Where each bag begins, and the end of the last.
std::vector<int64_t> boundsOf(std::vector<int64_t> offsets, int64_t count, int64_t bags) {
    if (static_cast<int64_t>(offsets.size()) < bags)
        throw Failure(std::to_string(offsets.size()) + " offsets for " + std::to_string(bags) + " bags");
    if (bags > 0 && offsets[0] != 0) throw Failure("the first offset must be 0");
    offsets.resize(static_cast<size_t>(bags));
    offsets.push_back(count);
    for (size_t bag = 0; bag < static_cast<size_t>(bags); ++bag)
        if (offsets[bag] > offsets[bag + 1] || offsets[bag + 1] > count)
            throw Failure("offset " + std::to_string(offsets[bag + 1]) + " follows " + std::to_string(offsets[bag]) +
                          " with " + std::to_string(count) + " indices");
    return offsets;
}
/// The bag of every index.
std::vector<int64_t> bagsOf(const std::vector<int64_t>& bounds, size_t count) {
    std::vector<int64_t> bags(count, 0);
    for (size_t bag = 0; bag + 1 < bounds.size(); ++bag)
        std::fill(bags.begin() + bounds[bag], bags.begin() + bounds[bag + 1], static_cast<int64_t>(bag));
    return bags;
}
/// As the forward operator made them; it leaves them out where it sums whole rows.
std::vector<int64_t> givenBags(const Bags& bags, size_t count, int64_t gradients) {
    std::vector<int64_t> given = bags.all<int64_t>("offset2bag");
    if (given.size() != count && bags.has("offsets"))
        given = bagsOf(boundsOf(bags.all<int64_t>("offsets"), static_cast<int64_t>(count), gradients), count);
    if (given.size() != count) throw Failure("offset2bag does not name a bag for every index");
    return given;
}

/// (grad, weight, indices, offsets, offset2bag, mode, padding_idx): each index's row times its bag's gradient.
void weightsBackward(const Run& run) {
    const Bags given(run);
    const Strided dy = given.tensor("grad"), table = given.tensor("weight"), out = run.out();
    const std::vector<int64_t> indices = given.all<int64_t>("indices");
    const int64_t padding = given.padding(), width = dy.sizes[1], bags = dy.sizes[0];
    std::vector<double> sums(indices.size(), 0.0);
    if (bags == 0) return storeRange(out, 0, out.elements(), sums.data());  // no index is in a bag
    const std::vector<int64_t> bagOf = givenBags(given, indices.size(), bags);
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

constexpr Function kFunctions[] = {{"aten._embedding_bag_per_sample_weights_backward.default", weightsBackward}};

}  // namespace

std::span<const Function> bagWeightsFunctions() { return kFunctions; }

}  // namespace cutaway::portable
