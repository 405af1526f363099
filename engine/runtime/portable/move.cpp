// Elements moved as they are, or into another dtype: copies, joins, paddings, parts replaced. What kernels do for
// real numbers; here for all dtypes.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

namespace {

/// Into the result's dtype and strides.
void convert(const Run& run) { convertAll(run, run.in(0), run.out()); }
/// (self, src): the source, repeated to the sizes of self and in its dtype.
void copy(const Run& run) {
    const Strided out = run.out();
    convertAll(run, broadcast(run.in(1), out.sizes, out.rank), out);
}
/// A matrix on its side.
void turn(const Run& run) {
    Strided from = run.in(0);
    std::swap(from.sizes[0], from.sizes[1]);
    std::swap(from.strides[0], from.strides[1]);
    convertAll(run, from, run.out());
}
/// The same elements, row by row, under other sizes.
void reshape(const Run& run) {
    const Strided from = run.in(0), out = run.out();
    const int64_t bytes = bytesOf(out.dtype);
    run.share(out.elements(), [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) copyElement(bytes, from.at(from.offsetOf(i)), out.at(out.offsetOf(i)));
    });
}

void fill(const Run& run, const Strided& out, const CtArgument& number) {
    alignas(16) char element[16];
    if (number.kind == CT_REAL) storeOne(out.dtype, element, number.real);
    else storeOne(out.dtype, element, number.integer);
    const int64_t bytes = bytesOf(out.dtype);
    run.share(out.elements(), [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) copyElement(bytes, element, out.at(out.offsetOf(i)));
    });
}
template <int32_t parameter>
void full(const Run& run) {
    fill(run, run.out(), run.call->args[parameter]);
}

/// `size` elements along a dim from `start` on, every `step`th.
Strided part(Strided tensor, int32_t dim, int64_t start, int64_t size, int64_t step = 1) {
    tensor.data = tensor.at(start * tensor.strides[dim]);
    tensor.sizes[dim] = size;
    tensor.strides[dim] *= step;
    return tensor;
}
/// (tensors, dim); vectors without elements take part in any join.
void cat(const Run& run) {
    const Strided out = run.out();
    const CtArgument& parts = run.call->args[0];
    const int32_t dim = dimOf(*run.call, 1, out);
    int64_t start = 0;
    for (int64_t i = 0; i < parts.integer; ++i) {
        const CtTensor& tensor = run.operands[parts.items[i].integer];
        const Strided from(tensor);
        if (tensor.rank != out.rank || from.elements() == 0) continue;
        convertAll(run, from, part(out, dim, start, from.sizes[dim]));
        start += from.sizes[dim];
    }
}
/// (self, pad, value): pairs from the last dim backwards; negative amounts cut.
void pad(const Run& run) {
    const CtArgument& amounts = run.call->args[1];
    Strided from = run.in(0), to = run.out();
    fill(run, to, run.call->args[2]);
    for (int64_t i = 0; i < amounts.integer / 2; ++i) {
        const int32_t dim = from.rank - 1 - static_cast<int32_t>(i);
        const int64_t before = amounts.items[2 * i].integer, after = amounts.items[2 * i + 1].integer,
                      size = from.sizes[dim] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
        if (size <= 0) return;
        from = part(from, dim, std::max<int64_t>(-before, 0), size);
        to = part(to, dim, std::max<int64_t>(before, 0), size);
    }
    copyAll(run, from, to);
}
/// (self, repeats)
void repeat(const Run& run) {
    const Strided self = run.in(0), out = run.out();
    const int64_t bytes = bytesOf(out.dtype);
    run.share(out.elements(), [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t rest = i, offset = 0;
            for (int32_t d = out.rank; d-- > 0; rest /= out.sizes[d]) {
                const int32_t own = d - (out.rank - self.rank);
                if (own >= 0) offset += rest % out.sizes[d] % self.sizes[own] * self.strides[own];
            }
            copyElement(bytes, self.at(offset), out.at(out.offsetOf(i)));
        }
    });
}
/// (a, dims): each of the dims the other way round.
void reverse(const Run& run) {
    Strided from = run.in(0);
    const Strided out = run.out();
    const CtArgument& dims = run.call->args[1];
    if (out.elements() == 0) return;
    for (int64_t i = 0; i < dims.integer; ++i) {
        const int64_t given = dims.items[i].integer;
        const auto dim = static_cast<int32_t>(given < 0 ? given + from.rank : given);
        from = part(from, dim, from.sizes[dim] - 1, from.sizes[dim], -1);
    }
    copyAll(run, from, out);
}

// -- parts replaced: (self, src, dim, where)

void selectScatter(const Run& run) {
    const Strided out = run.out();
    copyAll(run, run.in(0), out);
    if (out.elements() == 0) return;
    const int32_t dim = dimOf(*run.call, 2, out);
    const int64_t given = integerOf(*run.call, 3), at = given < 0 ? given + out.sizes[dim] : given;
    const CtTensor& source = run.operands[run.call->args[1].integer];
    Strided from(source);
    if (source.rank > 0) {  // with the dim that is selected from, of one element
        std::copy_backward(from.sizes + dim, from.sizes + source.rank, from.sizes + source.rank + 1);
        std::copy_backward(from.strides + dim, from.strides + source.rank, from.strides + source.rank + 1);
        from.rank = source.rank + 1;
        from.sizes[dim] = from.strides[dim] = 1;
    }
    convertAll(run, from, part(out, dim, at, 1));
}
void sliceScatter(const Run& run) {
    const CtCall& call = *run.call;
    const Strided out = run.out(), from = run.in(1);
    copyAll(run, run.in(0), out);
    const int32_t dim = dimOf(call, 2, out);
    const int64_t size = out.sizes[dim];
    int64_t start = isGiven(call, 3) ? integerOf(call, 3) : 0;
    start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
    if (from.elements() == 0) return;
    const Strided target = part(out, dim, start, from.sizes[dim], integerOf(call, 5));
    convertAll(run, broadcast(from, target.sizes, target.rank), target);
}

constexpr Function kMoveFunctions[] = {
    {"aten.copy.default", copy},
    {"aten.clone.default", convert},
    {"aten.lift_fresh_copy.default", convert},
    {"onednn.linear_prepack_fp16.default", turn},
    {"prims.convert_element_type.default", convert},
    {"aten.reshape.default", reshape},
    {"aten.full.default", full<1>},
    {"aten.scalar_tensor.default", full<0>},
    {"aten.cat.default", cat},
    {"aten.constant_pad_nd.default", pad},
    {"aten.repeat.default", repeat},
    {"prims.rev.default", reverse},
    {"aten.select_scatter.default", selectScatter},
    {"aten.slice_scatter.default", sliceScatter},
};

}  // namespace

std::span<const Function> moveFunctions() { return kMoveFunctions; }

}  // namespace cutaway::portable
