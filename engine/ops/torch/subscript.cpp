// x[1], x[:, None, ..., idx] and assignments to them, as PyTorch's own indexing takes them apart: numbers select,
// slices slice, None adds a dim, tensors gather at the end.
#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

struct SplitIndex {
    Argument view;                  // of numbers, slices and None
    std::vector<Argument> indices;  // per dim of `view`: a tensor or None; empty if none
};

bool isWhole(const ArgumentSlice& slice) {
    const bool start = slice.start.isNone() || slice.start.asInt() == 0;
    const bool stop = slice.stop.isNone() || slice.stop.asInt() == std::numeric_limits<int64_t>::max();
    return start && stop && (slice.step.isNone() || slice.step.asInt() == 1);
}

Argument sliced(PythonCall& c, const Argument& self, int64_t dim, const ArgumentSlice& slice) {
    if (isWhole(slice)) return self;
    if (slice.step.asInt().value_or(1) <= 0) return c.fail("a slice's step is positive");
    for (const Argument* part : {&slice.start, &slice.stop, &slice.step})
        if (tensorOf(*part))
            return c.fail("a slice's bounds are known only at run time",
                          {"use torch.narrow or index_select with a tensor of indices"});
    std::vector<Argument> args = {self, dim, slice.start.isNone() ? Argument(0) : slice.start,
                                  slice.stop.isNone() ? Argument(std::numeric_limits<int64_t>::max()) : slice.stop};
    if (!slice.step.isNone()) args.push_back(slice.step);
    return c.aten("slice", std::move(args));
}

/// A list in an index is data for a tensor of indices.
Argument asIndex(PythonCall& c, const Argument& item) {
    if (item.list() == nullptr) return item;
    return c.constant(item, {});
}

/// How many dims of the tensor an item takes.
int64_t dimsTaken(const Argument& item) {
    if (item.isNone() || item.get<Ellipsis>()) return 0;
    const TensorType* type = tensorOf(item);
    return type && (type->dtype == DType::Bool || type->dtype == DType::U8) ? std::max<int64_t>(type->rank(), 1) : 1;
}

std::vector<Argument> itemsOf(const Argument& index) {
    const auto* list = index.get<ArgumentList>();
    const bool tuple =
        list && (list->tuple || std::any_of(list->items.begin(), list->items.end(), [](const Argument& item) {
                     return item.isNone() || item.get<Ellipsis>() || item.get<std::shared_ptr<const ArgumentSlice>>();
                 }));
    return tuple ? list->items : std::vector<Argument>{index};
}

SplitIndex take(PythonCall& c, const Argument& self, const Argument& index) {
    SplitIndex out{self, {}};
    const TensorType* type = tensorOf(self);
    if (type == nullptr) {
        c.fail("the type of what is indexed is not known", {"annotate it in the text: x: \"f32[2, 3]\" = ..."});
        return out;
    }
    const std::vector<Argument> items = itemsOf(index);
    int64_t named = 0;
    for (const Argument& item : items) named += dimsTaken(item);
    if (named > type->rank()) {
        c.fail("too many indices (" + std::to_string(named) + ") for a tensor with " + std::to_string(type->rank()) +
               " dims");
        return out;
    }
    int64_t dim = 0;
    for (const Argument& item : items) {
        if (c.failed()) return out;
        if (item.get<Ellipsis>()) {
            dim += type->rank() - named;
            named = type->rank();
        } else if (item.isNone()) {
            out.view = c.aten("unsqueeze", {out.view, dim++});
        } else if (item.get<bool>()) {
            c.fail("True or False as an index", {"use None (or unsqueeze) instead of True"});
        } else if (const auto* slice = item.get<std::shared_ptr<const ArgumentSlice>>()) {
            out.view = sliced(c, out.view, dim++, **slice);
        } else if (isPythonNumber(item)) {
            out.view = c.aten("select", {out.view, dim, item});
        } else if (item.list() || tensorOf(item)) {
            const Argument tensor = asIndex(c, item);
            if (dimsTaken(tensor) > 1 && &item != &items.back()) {
                c.fail("a mask of several dims followed by another index",
                       {"write the mask last, or use masked_select"});
                continue;
            }
            out.indices.resize(static_cast<size_t>(dim) + 1);
            out.indices[static_cast<size_t>(dim++)] = tensor;
        } else {
            c.fail("an index is a number, a slice, None, Ellipsis or a tensor");
        }
    }
    return out;
}

}  // namespace

Argument subscript(PythonCall& c, const Argument& self, const Argument& index) {
    SplitIndex taken = take(c, self, index);
    if (c.failed()) return {};
    if (!taken.indices.empty()) return c.aten("index", {taken.view, Argument(std::move(taken.indices))});
    // Python gives a new tensor object over the same memory.
    if (taken.view.node() == self.node() && index.get<std::shared_ptr<const ArgumentSlice>>())
        return c.aten("slice", {self, 0, 0, std::numeric_limits<int64_t>::max()});
    if (taken.view.node() == self.node()) return c.aten("alias", {self});
    return taken.view;
}

Argument assignSubscript(PythonCall& c, const Argument& self, const Argument& index, const Argument& given) {
    SplitIndex taken = take(c, self, index);
    if (c.failed()) return {};
    const DType dtype = tensorOf(self)->dtype;
    if (!taken.indices.empty()) {
        const Argument value = isPythonNumber(given) ? c.constant(given, dtype) : given;
        c.aten("index_put_", {taken.view, Argument(std::move(taken.indices)), value});
        return Argument();
    }
    if (isPythonNumber(given)) {
        c.aten("fill_", {taken.view, given});
        return Argument();
    }
    // Leading dims of size one may be missing on the left: x[0] = y with y of one more dim.
    Argument value = given;
    while (!c.failed()) {
        const TensorType* from = tensorOf(value);
        const TensorType* to = tensorOf(taken.view);
        if (!from || !to || from->rank() <= to->rank() || from->sizes[0].asInt() != 1) break;
        value = c.aten("squeeze", {value, 0});
    }
    c.aten("copy_", {taken.view, value});
    return Argument();
}

}  // namespace cutaway::torchcalls
