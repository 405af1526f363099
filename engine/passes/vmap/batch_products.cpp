// Batching rules of products, convolutions and of what treats a leading dim as examples already.
#include <algorithm>

#include "engine/passes/vmap/batch_rules.h"

namespace cutaway {
namespace {

/// The first two dims as one.
Value withFoldedExamples(const Value& all) {
    SymDims sizes(all.sizes().begin() + 1, all.sizes().end());
    sizes[0] = all.size(0) * all.size(1);
    return reshape(all, sizes);
}
/// The first dim as the examples and what is left.
Value withUnfoldedExamples(BatchedCall& c, const Value& folded, const SymDims& ofOne) {
    return folded ? reshape(folded, c.sizes(ofOne)) : folded;
}

/// Matrix products. Where only the left operand has examples, their rows are rows of one product.
Value productOfAll(BatchedCall& c, const Argument& a, const Argument& b) {
    if (!c.isBatched(b)) {
        const TensorType &left = a.node()->tensor(), &right = b.node()->tensor();
        const Value rows = c.call("aten.mm.default", {withFoldedExamples(c.all(a)), b});
        return withUnfoldedExamples(c, rows, {left.sizes[0], right.sizes[1]});
    }
    return c.call("aten.bmm.default", {c.all(a), c.all(b)});
}
Values multiplyAll(BatchedCall& c) { return productOfAll(c, c.arg(0), c.arg(1)); }

Values multiplyAllBatches(BatchedCall& c) {
    const Value made = c.call("aten.bmm.default", {withFoldedExamples(c.all(0)), withFoldedExamples(c.all(1))});
    return withUnfoldedExamples(c, made, c.node().tensor().sizes);
}

Values multiplyAllByVectors(BatchedCall& c) {
    if (!c.isBatched(0)) return c.call("aten.mm.default", {c.all(1), transposeLast(c.one(0))});
    if (!c.isBatched(1)) {
        const Value made = c.call("aten.mv.default", {withFoldedExamples(c.all(0)), c.arg(1)});
        return withUnfoldedExamples(c, made, c.node().tensor().sizes);
    }
    return squeezeDims(c.call("aten.bmm.default", {c.all(0), unsqueeze(c.all(1), 2)}), {2});
}

Values dotOfAll(BatchedCall& c) {
    if (!c.isBatched(0)) return c.call("aten.mv.default", {c.all(1), c.arg(0)});
    if (!c.isBatched(1)) return c.call("aten.mv.default", {c.all(0), c.arg(1)});
    return squeezeDims(c.call("aten.bmm.default", {unsqueeze(c.all(0), 1), unsqueeze(c.all(1), 2)}), {1, 2});
}

bool isOneOf(const BatchedCall& c, std::string_view param) { return c.real(param, 1) == 1; }

/// beta * input + alpha * product.
Value addedToProduct(BatchedCall& c, Value product) {
    if (!isOneOf(c, "alpha")) product = c.call("aten.mul.Scalar", {product, c.arg("alpha")});
    if (c.real("beta", 1) == 0) return product;
    const int64_t rank = c.node().tensor().rank();
    Value input = c.isBatched(size_t{0}) ? withRank(c.all(0), rank) : c.one(0);
    if (!isOneOf(c, "beta")) input = c.call("aten.mul.Scalar", {input, c.arg("beta")});
    return product + input;
}

Values addMultiplyAll(BatchedCall& c) {
    // A bias that all rows share.
    if (!c.isBatched(0) && c.isBatched(1) && !c.isBatched(2) && c.type(0).rank() == 1) {
        std::vector<Argument> args = c.copyOfArgs();
        args[1] = withFoldedExamples(c.all(1));
        return withUnfoldedExamples(c, c.builder().callBound(c.op(), std::move(args)), c.node().tensor().sizes);
    }
    if (!c.isBatched(1) && !c.isBatched(2)) return addedToProduct(c, c.call("aten.mm.default", {c.arg(1), c.arg(2)}));
    return addedToProduct(c, productOfAll(c, c.arg(1), c.arg(2)));
}

Values addMultiplyAllBatches(BatchedCall& c) {
    if (!c.isBatched(1) && !c.isBatched(2)) return addedToProduct(c, c.call("aten.bmm.default", {c.arg(1), c.arg(2)}));
    const Value made = c.call("aten.bmm.default", {withFoldedExamples(c.all(1)), withFoldedExamples(c.all(2))});
    return addedToProduct(c, withUnfoldedExamples(c, made, c.node().tensor().sizes));
}

/// Where each example has weights of its own, the examples are groups of channels.
Values convolveAll(BatchedCall& c) {
    const int64_t rank = c.type(1).rank();
    const auto groups = c.arg("groups").asInt();
    if (c.type(0).rank() != rank || !groups) return Values::notHandled();
    const SymDims out = c.node().tensor().sizes;
    std::vector<Argument> args = c.copyOfArgs();
    const bool bias = c.isTensor(2);
    if (!c.isBatched(1) && !(bias && c.isBatched(2))) {
        args[0] = withFoldedExamples(c.all(0));
        return withUnfoldedExamples(c, c.builder().callBound(c.op(), std::move(args)), out);
    }
    if (!c.count().isInt()) return Values::notHandled();
    std::vector<int64_t> swapped(static_cast<size_t>(rank + 1));
    for (int64_t i = 0; i <= rank; ++i) swapped[static_cast<size_t>(i)] = i < 2 ? 1 - i : i;
    const auto joinedChannels =
        [&](const Value& all) {  // [examples, n, channels, ...] as [n, examples * channels, ...]
            const Value swap = permute(all, swapped);
            SymDims sizes = swap.sizes();
            sizes[1] = sizes[1] * sizes[2];
            sizes.erase(sizes.begin() + 2);
            return reshape(swap, sizes);
        };
    args[0] = joinedChannels(c.all(0));
    args[1] = withFoldedExamples(c.all(1));
    if (bias) args[2] = reshape(c.all(2), {c.count() * c.type(2).sizes[0]});
    args[static_cast<size_t>(c.position("groups"))] = *groups * c.count().value();
    const Value made = c.builder().callBound(c.op(), std::move(args));
    if (!made) return made;
    SymDims parted = out;
    parted.insert(parted.begin() + 1, c.count());
    return permute(reshape(made, parted), swapped);
}

/// Images of one rank more than their channels and places: examples are images.
template <int kSpatialDims>
Values onAllImages(BatchedCall& c) {
    for (size_t i = 1; i < c.arguments(); ++i)
        if (c.isTensor(i)) return Values::notHandled();
    std::vector<Argument> args = c.copyOfArgs();
    const int64_t rank = c.type(0).rank();
    if (rank < kSpatialDims + 1) return Values::notHandled();
    const bool folds = rank == kSpatialDims + 2;
    args[0] = folds ? withFoldedExamples(c.all(0)) : c.all(0);
    const Values made = c.again(std::move(args));
    if (!folds) return made;
    if (!made.isTuple()) return withUnfoldedExamples(c, made.values()[0], c.node().tensor().sizes);
    std::vector<Value> out;
    for (size_t i = 0; i < made.values().size(); ++i)
        out.push_back(withUnfoldedExamples(c, made.values()[i], (*c.node().type().tuple())[i].tensor()->sizes));
    return out;
}

constexpr BatchRow kProducts[] = {
    {"aten.mm.default", multiplyAll},
    {"aten.bmm.default", multiplyAllBatches},
    {"aten.mv.default", multiplyAllByVectors},
    {"aten.dot.default", dotOfAll},
    {"aten.addmm.default", addMultiplyAll},
    {"aten.baddbmm.default", addMultiplyAllBatches},
    {"aten.convolution.default", convolveAll},
    {"aten.max_pool2d_with_indices.default", onAllImages<2>},
    {"aten.max_pool3d_with_indices.default", onAllImages<3>},
    {"aten.avg_pool2d.default", onAllImages<2>},
    {"aten.avg_pool3d.default", onAllImages<3>},
    {"aten._adaptive_avg_pool2d.default", onAllImages<2>},
    {"aten._adaptive_avg_pool3d.default", onAllImages<3>},
    {"aten.adaptive_max_pool2d.default", onAllImages<2>},
    {"aten.reflection_pad1d.default", onAllImages<1>},
    {"aten.reflection_pad2d.default", onAllImages<2>},
    {"aten.replication_pad1d.default", onAllImages<1>},
    {"aten.replication_pad2d.default", onAllImages<2>},
};

}  // namespace

std::span<const BatchRow> batchedProducts() { return kProducts; }

}  // namespace cutaway
