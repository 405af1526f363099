// Calls that write and have no row of the name without the underscore beside them, or whose functional form takes its
// arguments in another order: written with a copy, or with another call that writes.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/renamed.h"

namespace cutaway {
namespace {

Values overwritten(Decomposition& d, const Value& fresh) {
    return d.call("aten.copy_.default", {d.in(size_t{0}), fresh});
}
/// The elements whose indices are all equal; with `wrap`, tall matrices start again below a row that is left out.
Values filledDiagonal(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const int64_t rank = x.rank();
    if (rank < 2) return refuse(d, "needs at least two dims, not " + x.type().text());
    for (int64_t dim = 1; rank > 2 && dim < rank; ++dim)
        if (differ(x.size(dim), x.size(0))) return refuse(d, "needs dims of one size, not " + x.type().text());
    const auto along = [&](int64_t dim) {
        SymDims sizes(static_cast<size_t>(rank), SymInt(1));
        sizes[static_cast<size_t>(dim)] = x.size(dim);
        return view(iota(d.builder(), x.size(dim), x.type().device), sizes);
    };
    const bool wrap = rank == 2 && d.flag("wrap");
    Value row = along(0), chosen;
    if (wrap) row = d.call("aten.remainder.Scalar", {row, Argument(x.size(1) + SymInt(1))});
    for (int64_t dim = 1; dim < rank; ++dim) {
        const Value same = d.call("aten.eq.Tensor", {row, along(dim)});
        chosen = chosen ? d.call("aten.bitwise_and.Tensor", {chosen, same}) : same;
    }
    const auto number = d.scalar("fill_value");
    if (!number) return refuse(d, "needs a number that is known before the run");
    return overwritten(d, d.call("aten.masked_fill.Scalar", {x, chosen, Argument(*number)}));
}
/// x.data = other: Who looks at x's old memory still sees what was there, so nothing may.
Values givenData(Decomposition& d) {
    const Value x = d.in(size_t{0}), other = d.in(1);
    if (x.sizes() != other.sizes() || x.dtype() != other.dtype())
        return refuse(d, "gives " + x.type().text() + " data of another type, " + other.type().text() +
                             "; use the new tensor in its place");
    if (x.node()->is(Tag::View)) return refuse(d, "gives a view other data; clone it first");
    for (const Node* user : x.node()->users())
        if (user->is(Tag::View)) return refuse(d, "gives a tensor with views other data; clone it first");
    return overwritten(d, other);
}
/// The noise that was drawn is written, too.
Values noisyRelu(Decomposition& d) {
    const Value both =
        d.call("aten.rrelu_with_noise_functional.default",
               {d.in(size_t{0}), d.in(1), d.arg("lower"), d.arg("upper"), d.flag("training"), d.arg("generator")});
    d.call("aten.copy_.default", {d.in(1), both[1]});
    return d.op().schema()->params[0].mutated ? overwritten(d, both[0]) : Values(both[0]);
}

constexpr OpDef kMutatingOps[] = {
    shorthand("aten.fill_diagonal_.default(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
              filledDiagonal,
              "f32[3, 4], 7\nf32[7, 2], 0.5, True\nf32[7, 2], 0.5\ni64[3, 3, 3], 2\nf32[3, 4][1, 3], 2"),
    shorthand("aten.shallow_copy_data_.default(Tensor(a!) self, Tensor source) -> Tensor(a!)", givenData,
              "f32[2, 3], f32[2, 3]"),
    shorthand(
        "aten.polygamma_.default(Tensor(a!) self, int n) -> Tensor(a!)",
        [](Decomposition& d) -> Values {
            const Value x = d.in(size_t{0});
            if (!isFloating(x.dtype())) return refuse(d, "writes floats, which " + x.type().text() + " cannot hold");
            return overwritten(d, d.call("aten.polygamma.default", {d.arg("n"), x}));
        },
        "f32[2, 3]>0, 1"),
    shorthand(
        "aten.resize_as_.default(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        [](Decomposition& d) -> Values {
            return d.call("aten.resize_.default", {d.in(size_t{0}), Argument(d.in(1).sizes())},
                          {{"memory_format", d.arg("memory_format")}});
        },
        "f32[2, 3], f32[3, 2]"),
    shorthand(
        "aten.rrelu_with_noise.default(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
        noisyRelu, "f32[2, 3], f32[2, 3], 0.125, 0.5", Tag::Random),
    shorthand(
        "aten.rrelu_with_noise_.default(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor(a!)",
        noisyRelu, "f32[2, 3], f32[2, 3], 0.125, 0.5", Tag::Random),
};

}  // namespace

std::span<const OpDef> mutatingOps() { return kMutatingOps; }

}  // namespace cutaway
