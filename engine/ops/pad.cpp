// Padding by mirrored, repeated or wrapped elements, and the op that chooses among the kinds.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// Amounts for the last dims, in the order of the dims; negative amounts cut.
struct PadBorder {
    std::vector<SymInt> before, after;
    int64_t first = 0;  // the first padded dim
    size_t count() const { return before.size(); }
};
/// `padding` is written in pairs from the last dim backwards.
Result<PadBorder> readBorder(const InferContext& c, const TensorType& self, std::string_view param) {
    CT_TRY(const SymDims padding, c.sizes(param));
    if (padding.size() % 2 != 0 || padding.empty()) return c.fail("needs pairs of amounts, last dim first");
    PadBorder border;
    const size_t count = padding.size() / 2;
    border.first = self.rank() - static_cast<int64_t>(count);
    if (border.first != 1 && border.first != 2)
        return c.fail(std::to_string(padding.size()) + " amounts for a tensor of " + std::to_string(self.rank()) +
                      " dims; needs one or two dims that are not padded");
    for (size_t i = count; i-- > 0;) {
        border.before.push_back(padding[2 * i]);
        border.after.push_back(padding[2 * i + 1]);
    }
    return border;
}

template <bool Mirror>
Result<SymDims> paddedSizes(const InferContext& c, const TensorType& self, const PadBorder& border) {
    SymDims sizes = self.sizes;
    // The batch alone may be empty.
    if (border.first > 0 && sizes[static_cast<size_t>(border.first) - 1] == SymInt(0))
        return c.fail("a tensor without channels");
    for (size_t i = 0; i < border.count(); ++i) {
        SymInt& size = sizes[static_cast<size_t>(border.first) + i];
        const std::string where = " in dim " + std::to_string(border.first + static_cast<int64_t>(i));
        if (Mirror && (exceeds(border.before[i], size - SymInt(1)) || exceeds(border.after[i], size - SymInt(1))))
            return c.fail("mirrors more elements than there are" + where);
        if (!Mirror && size == SymInt(0)) return c.fail("nothing to repeat" + where);
        size = size + border.before[i] + border.after[i];
        if (exceeds(1, size)) return c.fail("nothing is left" + where);
    }
    return sizes;
}

template <bool Mirror>
Result<ValueType> inferBorder(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const PadBorder border, readBorder(c, self, "padding"));
    CT_TRY(SymDims sizes, paddedSizes<Mirror>(c, self, border));
    TensorType type = TensorType::contiguous(self.dtype, std::move(sizes), self.device);
    if (border.count() > 1 && isChannelsLast(self))
        type.strides =
            *formatStrides(self.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, type.sizes);
    return ValueType(std::move(type));
}

/// One indexing per padded dim, by positions that turn back (or stop) at the ends.
template <bool Mirror>
Values decomposeBorder(Decomposition& d) {
    const Value self = d.in(0);
    auto border = readBorder(d, self.type(), "padding");
    if (!border) return refuse(d, border.error().message);
    Value x = isHalf(self.dtype()) ? convert(self, DType::F32) : self;
    for (size_t i = 0; i < border->count(); ++i) {
        const int64_t dim = border->first + static_cast<int64_t>(i);
        const SymInt size = self.size(dim), last = size - SymInt(1);
        const SymInt length = size + border->before[i] + border->after[i];
        Value at = iota(d.builder(), length, self.type().device, SymInt(0) - border->before[i]);
        if (Mirror) {
            for (int turn = 0; turn < 2; ++turn)
                at = d.call("aten.sub.Tensor", {Argument(last), unary("aten.abs.default", at)});
        } else {
            at = d.call("aten.clamp.default", {at, 0, Argument(last)});
        }
        std::vector<Argument> indices(static_cast<size_t>(self.rank()));
        indices[static_cast<size_t>(dim)] = at;
        x = d.call("aten._unsafe_index.Tensor", {x, Argument(std::move(indices))});
    }
    if (isChannelsLast((has(d.release(), ReleaseChange::StridesOfBorders) ? self : x).type()))
        x = d.call("aten.contiguous.default", {x},
                   {{"memory_format", x.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast}});
    else x = d.call("aten.contiguous.default", {x});
    return convert(x, self.dtype());
}

void deriveBorder(Derivation& d) {
    d.input(0) = d.call(std::string(d.op().packet()) + "_backward.default", {d.dy(), d.in(0), d.arg("padding")});
}

template <bool Mirror>
Result<ValueType> inferBorderBackward(const InferContext& c) {
    CT_TRY(const TensorType gradient, c.tensor(size_t{0}));
    CT_TRY(const TensorType self, c.tensor(1));
    if (gradient.dtype != self.dtype) return c.fail("self and gradient have different dtypes");
    if (!isFloating(self.dtype) && !isComplex(self.dtype))
        return c.fail("has no kernel for " + std::string(info(self.dtype).torchName));
    CT_TRY(const PadBorder border, readBorder(c, self, "padding"));
    CT_TRY(const SymDims sizes, paddedSizes<Mirror>(c, self, border));
    if (allInts(sizes) && allInts(gradient.sizes) && !(sizes == gradient.sizes))
        return c.fail("the gradient does not have the shape of the padded tensor");
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    if (border.count() > 1 && isChannelsLast(self))
        type.strides =
            *formatStrides(self.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, self.sizes);
    return ValueType(std::move(type));
}

/// Every element of the gradient is added where the padded element came from.
template <bool Mirror>
EvalResult evalBorderBackward(const EvalContext& c) {
    const Tensor gradient = c.in(size_t{0}), self = c.in(1);
    auto border = readBorder(c, *c.tensor(1), "padding");
    std::vector<std::vector<int64_t>> from;  // per dim: position in self, times its row-major stride
    int64_t step = self.numel();
    for (int64_t dim = 0; dim < self.rank(); ++dim) {
        const int64_t size = self.size(dim), padded = dim - border->first;
        step /= std::max<int64_t>(size, 1);
        std::vector<int64_t> at;
        for (int64_t i = 0; i < gradient.size(dim); ++i) {
            int64_t position = padded < 0 ? i : i - border->before[static_cast<size_t>(padded)].value();
            position = Mirror ? size - 1 - std::abs(size - 1 - std::abs(position))
                              : std::clamp<int64_t>(position, 0, size - 1);
            at.push_back(position * step);
        }
        from.push_back(std::move(at));
    }
    Tensor out = c.result();
    withAccumulator(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        std::vector<T> sums(static_cast<size_t>(out.numel()), T(0));
        const std::vector<T> values = packElements<T>(gradient);
        for (size_t i = 0; i < values.size(); ++i) {
            int64_t rest = static_cast<int64_t>(i), to = 0;
            for (int64_t dim = gradient.rank() - 1; dim >= 0; --dim) {
                to += from[static_cast<size_t>(dim)][static_cast<size_t>(rest % gradient.size(dim))];
                rest /= gradient.size(dim);
            }
            sums[static_cast<size_t>(to)] += values[i];
        }
        unpackElements(sums, out);
    });
    return out;
}

// -- the gradient of mirroring as a sum over the areas of the padded tensor that mirror the same element

/// Where an area reads the gradient in one dim, and for which positions it does: low <= position <= high.
struct Area {
    Value at, position;
    SymInt low, high;
    bool empty() const { return low.isInt() && high.isInt() && high.value() < low.value(); }
};

Value insideAll(Decomposition& d, const std::vector<Area>& areas) {
    std::vector<Value> inside;
    for (const Area& area : areas) {
        const Value above = d.call("aten.ge.Scalar", {area.position, Argument(area.low)});
        const Value below = d.call("aten.le.Scalar", {area.position, Argument(area.high)});
        inside.push_back(d.call("aten.logical_and.default", {above, below}));
    }
    Value all = inside[0];
    for (size_t i = 1; i < inside.size(); ++i) all = d.call("aten.logical_and.default", {all, inside[i]});
    return all;
}

Values decomposeMirrorBackward(Decomposition& d) {
    const Value gradient = d.in(0), self = d.in(1);
    auto border = readBorder(d, self.type(), "padding");
    if (!border) return refuse(d, border.error().message);
    const size_t count = border->count();
    std::vector<Value> positions;
    for (int64_t dim = 0; dim < self.rank(); ++dim) {
        SymDims shape(static_cast<size_t>(self.rank()), SymInt(1));
        shape[static_cast<size_t>(dim)] = -1;
        positions.push_back(view(iota(d.builder(), self.size(dim), self.type().device), shape));
    }
    std::vector<Area> center, left, right;
    for (size_t i = 0; i < count; ++i) {
        const Value& at = positions[static_cast<size_t>(border->first) + i];
        const SymInt last = self.size(border->first + static_cast<int64_t>(i)) - SymInt(1);
        const Value moved = d.call("aten.add.Tensor", {at, Argument(border->before[i])});
        center.push_back({moved, moved, 0, last + border->before[i] + border->after[i]});
        left.push_back({Value(), at, 1, border->before[i]});
        right.push_back({Value(), at, last - border->after[i], last - SymInt(1)});
    }
    for (size_t i = 0; i < count; ++i)
        left[i].at = d.call("aten.sub.Tensor", {Argument(border->before[i]), left[i].position});
    for (size_t i = 0; i < count; ++i) {
        const SymInt last = self.size(border->first + static_cast<int64_t>(i)) - SymInt(1);
        right[i].at = d.call("aten.sub.Tensor", {Argument(SymInt(2) * last + border->before[i]), right[i].position});
    }
    auto gathered = [&](const std::vector<Area>& areas) {
        std::vector<Argument> indices(positions.begin(), positions.begin() + border->first);
        for (const Area& area : areas) indices.push_back(area.at);
        const Value inside = insideAll(d, areas);
        return d.call("aten._unsafe_masked_index.default", {gradient, inside, Argument(std::move(indices)), 0.0});
    };
    Value total = gathered(center);
    size_t combinations = 1;
    for (size_t i = 0; i < count; ++i) combinations *= 3;
    for (size_t number = 0; number < combinations; ++number) {
        std::vector<Area> areas(count);
        size_t rest = number;
        bool empty = false;
        for (size_t i = count; i-- > 0; rest /= 3) {
            areas[i] = rest % 3 == 0 ? left[i] : rest % 3 == 1 ? center[i] : right[i];
            empty |= areas[i].empty();
        }
        if (number != combinations / 2 && !empty) total = total + gathered(areas);
    }
    return total;
}

// -- wrapping around, and the choice

Value sliced(const Value& x, int64_t dim, const SymInt& start, const SymInt& end) {
    return x ? x.builder().call("aten.slice.Tensor", {x, dim, Argument(start), Argument(end)}) : x;
}
Value scattered(const Value& x, const Value& part, int64_t dim, const SymInt& start, const SymInt& end) {
    return x ? x.builder().call("aten.slice_scatter.default", {x, part, dim, Argument(start), Argument(end)}) : x;
}
SymInt positive(const SymInt& amount) { return amount.isInt() && amount.value() < 0 ? SymInt(0) : amount; }

/// The tensor in the middle of a fresh one, then each end of each padded dim filled from the other end.
Values decomposeCircular(Decomposition& d) {
    const Value self = d.in(0);
    auto border = read(d, readBorder(d, self.type(), "pad"));
    if (!border) return Value(d.builder(), nullptr);
    const auto dimOf = [&](size_t i) { return border->first + static_cast<int64_t>(i); };
    SymDims sizes = self.sizes();
    for (size_t i = 0; i < border->count(); ++i) {
        SymInt& size = sizes[static_cast<size_t>(dimOf(i))];
        if (exceeds(border->before[i], size) || exceeds(border->after[i], size))
            return refuse(d, "wraps around more than once");
        size = size + border->before[i] + border->after[i];
        if (exceeds(0, size)) return refuse(d, "a dim would have a negative size");
    }
    Value out = d.call(
        "aten.empty.memory_format", {Argument(sizes)},
        {{"dtype", self.dtype()}, {"layout", Layout::Strided}, {"device", self.type().device}, {"pin_memory", false}});
    std::vector<Value> targets;
    Value part = self;
    const auto begin = [&](size_t i) { return positive(border->before[i]); };
    const auto sizeAt = [&](size_t i) { return sizes[static_cast<size_t>(dimOf(i))]; };
    const auto end = [&](size_t i) { return sizeAt(i) - positive(border->after[i]); };
    Value target = out;
    for (size_t i = border->count(); i-- > 0;) {
        targets.push_back(target);
        if (i > 0) target = sliced(target, dimOf(i), begin(i), end(i));
        part = sliced(part, dimOf(i), positive(SymInt(0) - border->before[i]),
                      self.size(dimOf(i)) - positive(SymInt(0) - border->after[i]));
    }
    for (size_t i = 0; i < border->count(); ++i, targets.pop_back())
        part = scattered(targets.back(), part, dimOf(i), begin(i), end(i));
    out = part;
    for (size_t i = border->count(); i-- > 0;) {
        const SymInt before = begin(i), after = positive(border->after[i]), size = sizeAt(i);
        if (!(before == SymInt(0)))
            out = scattered(out, sliced(out, dimOf(i), size - before - after, size - after), dimOf(i), 0, before);
        if (!(after == SymInt(0)))
            out = scattered(out, sliced(out, dimOf(i), before, before + after), dimOf(i), size - after, size);
    }
    return out;
}

Values decomposePad(Decomposition& d) {
    const std::string mode = d.text("mode");
    if (mode == "constant")
        return d.call("aten.constant_pad_nd.default",
                      {d.in(0), d.arg("pad"), d.has("value") ? d.arg("value") : Argument(0.0)});
    if (d.has("value") && d.real("value") != 0)
        return refuse(d, "a value belongs to mode 'constant', not '" + mode + "'");
    if (mode == "circular") return d.call("aten._pad_circular.default", {d.in(0), d.arg("pad")});
    if (mode != "reflect" && mode != "replicate")
        return refuse(d, "unknown mode '" + mode + "'; constant, reflect, replicate and circular are known");
    auto border = read(d, readBorder(d, d.in(0).type(), "pad"));
    if (!border) return Value(d.builder(), nullptr);
    if (border->count() > 3) return refuse(d, "pads at most three dims in mode '" + mode + "'");
    const std::string op = "aten." + std::string(mode == "reflect" ? "reflection" : "replication") + "_pad" +
                           std::to_string(border->count()) + "d.default";
    return d.call(op, {d.in(0), d.arg("pad")});
}

template <bool Mirror>
constexpr OpDef borderRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .infer = inferBorder<Mirror>,
            .eval = evalExpanded,
            .expand = Expand::Decompose,
            .decompose = decomposeBorder<Mirror>,
            .derive = deriveBorder,
            .samples = samples};
}
/// The gradient of mirroring is expanded, that of repeating kept.
constexpr OpDef mirrorBackwardRow(std::string_view schema, std::string_view samples) {
    return {.schema = schema,
            .infer = inferBorderBackward<true>,
            .eval = evalBorderBackward<true>,
            .expand = Expand::Decompose,
            .decompose = decomposeMirrorBackward,
            .samples = samples};
}
constexpr OpDef repeatBackwardRow(std::string_view schema, std::string_view samples) {
    return {
        .schema = schema, .infer = inferBorderBackward<false>, .eval = evalBorderBackward<false>, .samples = samples};
}

constexpr std::string_view kPad1 = R"(
f32[2, 3, 5], [1, 2]
f32[3, 5], [2, 0]
f64[2, 3, 5], [4, 4]
bf16[2, 3, 5], [1, 1]
f32[2, 3, 5][15, 1, 3], [1, 2]
f32[2, 3, 5], [-1, 2]
i64[2, 5], [0, 0]
f32[0, 3, 5], [1, 1]
)";
constexpr std::string_view kPad2 = R"(
f32[2, 3, 4, 5], [1, 2, 1, 1]
f32[3, 4, 5], [2, 0, 3, 1]
f64[1, 2, 3, 3], [2, 2, 2, 2]
f16[2, 3, 4, 5], [0, 1, 0, 0]
f32[2, 3, 4, 5][60, 1, 15, 3], [1, 2, 1, 1]
f32[2, 3, 4, 5], [-1, 2, 1, -2]
i64[2, 3, 4], [1, 1, 1, 1]
)";
constexpr std::string_view kPad3 = R"(
f32[2, 3, 2, 4, 5], [1, 2, 1, 1, 1, 0]
f32[3, 3, 4, 5], [2, 0, 3, 1, 1, 1]
f64[1, 1, 2, 2, 2], [1, 1, 1, 1, 1, 1]
bf16[1, 2, 3, 3, 3], [0, 1, 0, 0, 2, 0]
)";
constexpr std::string_view kPad1Backward =
    "f32[2, 3, 8], f32[2, 3, 5], [1, 2]\nf32[3, 7], f32[3, 5], [2, 0]\nf64[3, 6], f64[3, 5], [-1, 2]\nf32[3, 13], f32[3, 5], [4, 4]\nf32[2, 3, 8][24, 1, 3], f32[2, 3, 5], [1, 2]";
constexpr std::string_view kPad2Backward =
    "f32[2, 3, 6, 8], f32[2, 3, 4, 5], [1, 2, 1, 1]\nf32[3, 8, 7], f32[3, 4, 5], [2, 0, 3, 1]\nf64[2, 3, 4], f64[2, 3, 4], [0, 0, 0, 0]\nf32[1, 1, 3, 6], f32[1, 1, 4, 5], [-1, 2, 1, -2]";
constexpr std::string_view kPad3Backward =
    "f32[2, 3, 3, 6, 8], f32[2, 3, 2, 4, 5], [1, 2, 1, 1, 1, 0]\nf64[1, 4, 4, 4], f64[1, 2, 2, 2], [1, 1, 1, 1, 1, 1]";

constexpr OpDef kPadOps[] = {
    shorthand("aten.pad.default(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
              decomposePad, R"(
f32[2, 3, 4], [1, 2]
f32[2, 3, 4], [1, 2, 0, 1], 'constant', 2.5
f32[2, 3, 4], [1, 2], 'reflect'
f32[2, 3, 4], [2, 3], 'replicate'
f32[2, 3, 4], [2, 3], 'circular'
f32[3, 4], [2, 3], 'circular'
f32[2, 3, 4, 5], [1, 2, 3, 0], 'reflect'
f32[2, 3, 4, 5], [1, 2, 3, 0], 'circular'
f32[2, 3, 4, 5], [-1, 2, 1, -1], 'circular'
f64[3, 4], [1, 1], 'reflect'
i64[2, 3], [1, 1]
b8[2, 3], [1, 1], 'constant', 1.0
bf16[2, 3, 4], [1, 2], 'replicate'
f32[2, 3, 4, 5][60, 1, 15, 3], [1, 1, 1, 1], 'reflect'
)"),
    shorthand(
        "aten._pad_circular.default(Tensor self, SymInt[] pad) -> Tensor",
        [](Decomposition& d) { return decomposeCircular(d); },
        "f32[2, 3, 4], [2, 3]\nf32[2, 3, 4], [4, 4]\nf64[1, 2, 3, 3], [1, 0, 0, 1]\nf32[1, 2, 2, 3, 3], [1, 1, 1, 0, 0, 1]\nf32[3, 4], [2, 1]\nf64[2, 3, 3], [1, 0, 0, 1]"),
    // Elements mirrored at the ends; the end itself is not repeated.
    borderRow<true>("aten.reflection_pad1d.default(Tensor self, SymInt[2] padding) -> Tensor", kPad1),
    borderRow<true>("aten.reflection_pad2d.default(Tensor self, SymInt[4] padding) -> Tensor", kPad2),
    borderRow<true>("aten.reflection_pad3d.default(Tensor self, SymInt[6] padding) -> Tensor", kPad3),
    // The elements at the ends repeated.
    borderRow<false>("aten.replication_pad1d.default(Tensor self, SymInt[2] padding) -> Tensor", kPad1),
    borderRow<false>("aten.replication_pad2d.default(Tensor self, SymInt[4] padding) -> Tensor", kPad2),
    borderRow<false>("aten.replication_pad3d.default(Tensor self, SymInt[6] padding) -> Tensor", kPad3),
    mirrorBackwardRow(
        "aten.reflection_pad1d_backward.default(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        kPad1Backward),
    mirrorBackwardRow(
        "aten.reflection_pad2d_backward.default(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        kPad2Backward),
    mirrorBackwardRow(
        "aten.reflection_pad3d_backward.default(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        kPad3Backward),
    repeatBackwardRow(
        "aten.replication_pad1d_backward.default(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        kPad1Backward),
    repeatBackwardRow(
        "aten.replication_pad2d_backward.default(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        kPad2Backward),
    repeatBackwardRow(
        "aten.replication_pad3d_backward.default(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        kPad3Backward),
};

}  // namespace

std::span<const OpDef> padOps() { return kPadOps; }

}  // namespace cutaway
