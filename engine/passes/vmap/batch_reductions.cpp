// Batching rules of reductions: over the example's dims, never over the examples.
#include <algorithm>

#include "engine/passes/vmap/batch_rules.h"

namespace cutaway {
namespace {

/// All examples, each with a dim at least: what reduces nothing reduces one element.
Value allWithDims(BatchedCall& c) { return withRank(c.all(0), std::max<int64_t>(c.type(0).rank(), 1)); }

std::vector<Argument> dimsOfExample(const Value& all) {
    std::vector<Argument> dims;
    for (int64_t dim = 1; dim < all.rank(); ++dim) dims.emplace_back(dim);
    return dims;
}

/// In the form that the call's type says: dims that were kept stay.
Value shapedAsCall(BatchedCall& c, const Value& made, const TensorType& ofOne) {
    const SymDims wanted = c.sizes(ofOne.sizes);
    return !made || made.sizes() == wanted ? made : reshape(made, wanted);
}
Values shapedAsCall(BatchedCall& c, const Values& made) {
    if (!made.isTuple()) return shapedAsCall(c, made.values()[0], c.node().tensor());
    std::vector<Value> out;
    for (size_t i = 0; i < made.values().size(); ++i)
        out.push_back(shapedAsCall(c, made.values()[i], *(*c.node().type().tuple())[i].tensor()));
    return out;
}

/// Over dims that the call lists, all of the example's without a list.
Values reduceDimsOfAll(BatchedCall& c) {
    const int at = c.op().schema()->find("dim");
    if (c.arguments() == 0 || !c.isTensor(0) || at < 0) return Values::notHandled();
    for (size_t i = 1; i < c.arguments(); ++i)
        if (c.isTensor(i)) return Values::notHandled();
    const int64_t rank = std::max<int64_t>(c.type(0).rank(), 1);
    const Argument& dim = c.arg(static_cast<size_t>(at));
    const bool takesList = c.op().schema()->params[static_cast<size_t>(at)].list;
    std::vector<Argument> args = c.copyOfArgs();
    Value all = allWithDims(c);
    const auto moved = [&](const Argument& one) { return Argument(*one.asInt() + (*one.asInt() < 0 ? rank : 0) + 1); };
    const auto* listed = dim.list();
    if (dim.isNone() || (listed && listed->empty())) {
        if (takesList) args[static_cast<size_t>(at)] = Argument(dimsOfExample(all));
        else {
            all = reshape(all, {c.count(), numel(c.type(0).sizes)});
            args[static_cast<size_t>(at)] = 1;
            if (const int keep = c.op().schema()->find("keepdim"); keep >= 0) args[static_cast<size_t>(keep)] = false;
        }
    } else if (listed) {
        std::vector<Argument> dims;
        for (const Argument& one : *listed) {
            if (!one.asInt()) return Values::notHandled();
            dims.push_back(moved(one));
        }
        args[static_cast<size_t>(at)] = Argument(std::move(dims));
    } else if (dim.asInt()) args[static_cast<size_t>(at)] = moved(dim);
    else return Values::notHandled();
    args[0] = all;
    return shapedAsCall(c, c.again(std::move(args)));
}

/// Over all dims, by the overload that takes some.
template <const char* const& kWithDims>
Values reduceWholeExamples(BatchedCall& c) {
    const Value all = allWithDims(c);
    NamedArguments keywords;
    if (c.op().schema()->find("dtype") >= 0) keywords.emplace_back("dtype", c.arg("dtype"));
    return shapedAsCall(c, Values(c.call(kWithDims, {all, Argument(dimsOfExample(all))}, std::move(keywords))));
}

/// Over all dims in one, by the overload that takes one.
template <const char* const& kWithDim>
Values reduceFlatExamples(BatchedCall& c) {
    const Value flat = reshape(c.all(0), {c.count(), numel(c.type(0).sizes)});
    NamedArguments keywords;
    if (c.op().schema()->find("dtype") >= 0) keywords.emplace_back("dtype", c.arg("dtype"));
    const Value made = c.call(kWithDim, {flat, 1}, std::move(keywords));
    return made && made.node()->type().tuple() ? made[0] : made;
}

constexpr const char *kBatchedSum = "aten.sum.dim_IntList", *kBatchedMean = "aten.mean.dim",
                     *kBatchedMax = "aten.amax.default", *kBatchedMin = "aten.amin.default",
                     *kBatchedAny = "aten.any.dims", *kBatchedAll = "aten.all.dims",
                     *kBatchedProd = "aten.prod.dim_int", *kBatchedMedian = "aten.median.dim",
                     *kBatchedNanMedian = "aten.nanmedian.dim";

constexpr BatchRow kReductions[] = {
    {"aten.sum.default", reduceWholeExamples<kBatchedSum>},
    {"aten.mean.default", reduceWholeExamples<kBatchedMean>},
    {"aten.max.default", reduceWholeExamples<kBatchedMax>},
    {"aten.min.default", reduceWholeExamples<kBatchedMin>},
    {"aten.any.default", reduceWholeExamples<kBatchedAny>},
    {"aten.all.default", reduceWholeExamples<kBatchedAll>},
    {"aten.prod.default", reduceFlatExamples<kBatchedProd>},
    {"aten.median.default", reduceFlatExamples<kBatchedMedian>},
    {"aten.nanmedian.default", reduceFlatExamples<kBatchedNanMedian>},
    {"aten.sum.dim_IntList", reduceDimsOfAll},
    {"aten.mean.dim", reduceDimsOfAll},
    {"aten.amax.default", reduceDimsOfAll},
    {"aten.amin.default", reduceDimsOfAll},
    {"aten.any.dim", reduceDimsOfAll},
    {"aten.any.dims", reduceDimsOfAll},
    {"aten.all.dim", reduceDimsOfAll},
    {"aten.all.dims", reduceDimsOfAll},
    {"aten.prod.dim_int", reduceDimsOfAll},
    {"aten.max.dim", reduceDimsOfAll},
    {"aten.min.dim", reduceDimsOfAll},
    {"aten.argmax.default", reduceDimsOfAll},
    {"aten.argmin.default", reduceDimsOfAll},
    {"aten.median.dim", reduceDimsOfAll},
    {"aten.nanmedian.dim", reduceDimsOfAll},
    {"aten.mode.default", reduceDimsOfAll},
    {"aten.kthvalue.default", reduceDimsOfAll},
    {"aten.var.correction", reduceDimsOfAll},
    {"aten.std.correction", reduceDimsOfAll},
    {"aten.var_mean.correction", reduceDimsOfAll},
    {"aten.std_mean.correction", reduceDimsOfAll},
    {"aten.logsumexp.default", reduceDimsOfAll},
    {"aten.linalg_vector_norm.default", reduceDimsOfAll},
};

}  // namespace

std::span<const BatchRow> batchedReductions() { return kReductions; }

}  // namespace cutaway
