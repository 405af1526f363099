// Sums, products and truth over dims, in double, complex double or wrapping integers, each group row by row.
#include <vector>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {
namespace {

/// The dims of a tensor that stay and those that are reduced, each as a tensor of its own.
struct ReducedDims {
    Strided kept, reduced;
};
/// `dims`: a list (an empty one stands for all), one dim, or null for all.
ReducedDims reducedDimsOf(const Strided& self, const CtArgument* dims) {
    bool reduces[CT_MAX_RANK] = {};
    const auto mark = [&](int64_t dim) { reduces[dim < 0 ? dim + self.rank : dim] = true; };
    if (dims != nullptr && dims->kind == CT_INT) mark(dims->integer);
    else if (dims != nullptr && dims->kind == CT_LIST && dims->integer > 0)
        for (int64_t i = 0; i < dims->integer; ++i) mark(dims->items[i].integer);
    else std::fill_n(reduces, self.rank, true);
    ReducedDims groups{self, self};
    groups.kept.rank = groups.reduced.rank = 0;
    for (int32_t d = 0; d < self.rank; ++d) {
        Strided& group = reduces[d] ? groups.reduced : groups.kept;
        group.sizes[group.rank] = self.sizes[d];
        group.strides[group.rank++] = self.strides[d];
    }
    return groups;
}

/// step(accumulator, element) from `initial` on; elements are rounded to the result's dtype before.
template <class Step>
void fold(const Run& run, const CtArgument* dims, int64_t initial, Step step) {
    const Strided self = run.in(0), out = run.out();
    const ReducedDims groups = reducedDimsOf(self, dims);
    const int64_t count = groups.reduced.elements();
    const auto foldAs = [&](auto given, auto tag) {
        using T = decltype(tag);
        run.share(groups.kept.elements(), [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t from = groups.kept.offsetOf(i);
                T total = loaded<T>(initial);
                for (int64_t k = 0; k < count; ++k) {
                    const auto element =
                        loadOne<decltype(given)>(self.dtype, self.at(from + groups.reduced.offsetOf(k)));
                    std::complex<double> memory;
                    storeOne(out.dtype, &memory, element);
                    total = step(total, loadOne<T>(out.dtype, &memory));
                }
                storeRange(out, i, i + 1, &total);
            }
        });
    };
    withWide(self.dtype, [&](auto given) { withWide(out.dtype, [&](auto tag) { foldAs(given, tag); }); });
}
void sumOver(const Run& run, const CtArgument* dims) {
    fold(run, dims, 0, [](auto a, auto b) { return sumOf(a, b); });
}
void productOver(const Run& run, const CtArgument* dims) {
    fold(run, dims, 1, [](auto a, auto b) { return productOf(a, b); });
}

void anyOver(const Run& run, const CtArgument* dims) {
    fold(run, dims, 0, [](auto a, auto b) { return b != decltype(b)(0) ? decltype(a)(1) : a; });
}
void allOver(const Run& run, const CtArgument* dims) {
    fold(run, dims, 1, [](auto a, auto b) { return b == decltype(b)(0) ? decltype(a)(0) : a; });
}

constexpr Function kReduceFunctions[] = {
    {"aten.any.default", [](const Run& run) { anyOver(run, nullptr); }},
    {"aten.any.dim", [](const Run& run) { anyOver(run, &run.call->args[1]); }},
    {"aten.all.default", [](const Run& run) { allOver(run, nullptr); }},
    {"aten.all.dim", [](const Run& run) { allOver(run, &run.call->args[1]); }},
    {"aten.sum.default", [](const Run& run) { sumOver(run, nullptr); }},
    {"aten.sum.dim_IntList", [](const Run& run) { sumOver(run, &run.call->args[1]); }},
    {"aten.prod.default", [](const Run& run) { productOver(run, nullptr); }},
    {"aten.prod.dim_int", [](const Run& run) { productOver(run, &run.call->args[1]); }},
};

}  // namespace

std::span<const Function> reduceFunctions() { return kReduceFunctions; }

}  // namespace cutaway::portable
