// Elements rearranged between dims: pixel and channel shuffles, sliding blocks, diagonals.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

MemoryFormat suggestedFormat(const TensorType& type) {
    if (!isChannelsLast(type)) return MemoryFormat::Contiguous;
    return type.rank() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}
bool divides(const SymInt& size, const SymInt& by) { return !(by == SymInt(0)) && !leavesRemainder(size, by); }

// -- shuffles

/// Blocks of `factor` squared channels become blocks of pixels (or back, `inverse`).
Result<ValueType> inferPixels(const InferContext& c, std::string_view param, bool inverse) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const int64_t factor, c.integer(param));
    if (self.rank() < 3) return c.fail("needs at least three dims");
    if (factor <= 0) return c.fail("the factor must be positive");
    const int64_t block = checkedMul(factor, factor);
    SymDims sizes = self.sizes;
    SymInt &channels = sizes[sizes.size() - 3], &height = sizes[sizes.size() - 2], &width = sizes[sizes.size() - 1];
    if (!inverse && !divides(channels, block))
        return c.fail(channels.text() + " channels do not divide into blocks of " + std::to_string(block));
    if (inverse && (!divides(height, factor) || !divides(width, factor)))
        return c.fail("height and width do not divide by " + std::to_string(factor));
    channels = inverse ? channels * SymInt(block) : floorDiv(channels, SymInt(block));
    height = inverse ? floorDiv(height, SymInt(factor)) : height * SymInt(factor);
    width = inverse ? floorDiv(width, SymInt(factor)) : width * SymInt(factor);
    TensorType type = TensorType::contiguous(self.dtype, sizes, self.device);
    type.strides = *formatStrides(suggestedFormat(self), sizes);
    return ValueType(std::move(type));
}
Values decomposePixels(Decomposition& d, std::string_view param, bool inverse) {
    const Value self = d.in(0);
    const int64_t factor = d.integerOr(param, 1), lead = self.rank() - 3;
    const SymInt channels = self.size(-3), height = self.size(-2), width = self.size(-1), f = factor;
    SymDims split(self.sizes().begin(), self.sizes().end() - 3);
    if (inverse) split.insert(split.end(), {channels, floorDiv(height, f), f, floorDiv(width, f), f});
    else split.insert(split.end(), {floorDiv(channels, f * f), f, f, height, width});
    std::vector<int64_t> order(static_cast<size_t>(lead));
    for (int64_t i = 0; i < lead; ++i) order[static_cast<size_t>(i)] = i;
    constexpr int64_t kApart[] = {0, 2, 4, 1, 3}, kTogether[] = {0, 3, 1, 4, 2};
    for (int64_t dim : inverse ? kApart : kTogether) order.push_back(lead + dim);
    const Value moved = permute(reshape(self, split), order);
    return d.call("aten.clone.default", {reshape(moved, d.out().sizes)},
                  {{"memory_format", suggestedFormat(self.type())}});
}

Result<ValueType> inferChannels(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymInt groups, c.size("groups"));
    if (self.rank() < 3) return c.fail("needs more than two dims");
    if (groups.isInt() && groups.value() <= 0) return c.fail("the number of groups must be positive");
    if (!divides(self.sizes[1], groups))
        return c.fail(self.sizes[1].text() + " channels do not divide into " + groups.text() + " groups");
    TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
    type.strides = *formatStrides(suggestedFormat(self), self.sizes);
    return ValueType(std::move(type));
}
/// Channels seen as (group, member) become (member, group). The native form flattens what lies behind the channels.
Values decomposeChannels(Decomposition& d, bool flattened) {
    const Value self = d.in(0);
    const SymInt groups = *d.size("groups"), members = floorDiv(self.size(1), groups);
    SymDims split{self.size(0), groups, members};
    if (flattened) split.push_back(-1);
    else split.insert(split.end(), self.sizes().begin() + 2, self.sizes().end());
    std::vector<int64_t> order{0, 2, 1};
    for (int64_t dim = 3; dim < static_cast<int64_t>(split.size()); ++dim) order.push_back(dim);
    return reshape(permute(reshape(self, split), order), self.sizes());
}
void deriveChannels(Derivation& d) {
    const SymInt members = floorDiv(d.in(0).size(1), *d.size("groups"));
    d.input(0) = d.call(d.op().name(), {d.dy(), Argument(members)});
}

// -- sliding blocks

/// A window over height and width.
struct Blocks {
    SymInt kernel[2], dilation[2], padding[2], stride[2];
    /// Number of positions in an image dim of that size.
    SymInt positions(size_t i, const SymInt& size) const {
        return floorDiv(size + SymInt(2) * padding[i] - dilation[i] * (kernel[i] - SymInt(1)) - SymInt(1), stride[i]) +
               SymInt(1);
    }
};
Result<Blocks> readBlocks(const InferContext& c) {
    Blocks blocks;
    const std::pair<std::string_view, SymInt*> parts[] = {{"kernel_size", blocks.kernel},
                                                          {"dilation", blocks.dilation},
                                                          {"padding", blocks.padding},
                                                          {"stride", blocks.stride}};
    for (const auto& [param, target] : parts) {
        CT_TRY(const SymDims values, c.sizes(param));
        if (values.size() != 2) return c.fail("'" + std::string(param) + "' needs two numbers");
        for (size_t i = 0; i < 2; ++i) {
            target[i] = values[i];
            if (values[i].isInt() && (values[i].value() < 0 || (values[i].value() == 0 && target != blocks.padding)))
                return c.fail("'" + std::string(param) + "' must be positive");
        }
    }
    return blocks;
}
Result<ValueType> inferIm2col(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const Blocks blocks, readBlocks(c));
    if (self.rank() != 3 && self.rank() != 4) return c.fail("needs three or four dims");
    for (size_t dim = self.rank() == 4 ? 1 : 0; dim < self.sizes.size(); ++dim)
        if (self.sizes[dim] == SymInt(0)) return c.fail("dim " + std::to_string(dim) + " has no elements");
    const size_t first = self.sizes.size() - 2;
    SymInt count = 1;
    for (size_t i = 0; i < 2; ++i) {
        const SymInt positions = blocks.positions(i, self.sizes[first + i]);
        if (positions.isInt() && positions.value() <= 0) return c.fail("the blocks do not fit the image");
        count = count * positions;
    }
    SymDims sizes(self.sizes.begin(), self.sizes.begin() + static_cast<int64_t>(first) - 1);
    sizes.insert(sizes.end(), {self.sizes[first - 1] * blocks.kernel[0] * blocks.kernel[1], count});
    return ValueType(TensorType::contiguous(self.dtype, std::move(sizes), self.device));
}
Result<ValueType> inferCol2im(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const Blocks blocks, readBlocks(c));
    CT_TRY(const SymDims image, c.sizes("output_size"));
    if (self.rank() != 2 && self.rank() != 3) return c.fail("needs two or three dims");
    if (image.size() != 2) return c.fail("'output_size' needs two numbers");
    for (size_t dim = self.rank() == 3 ? 1 : 0; dim < self.sizes.size(); ++dim)
        if (self.sizes[dim] == SymInt(0)) return c.fail("dim " + std::to_string(dim) + " has no elements");
    const SymInt area = blocks.kernel[0] * blocks.kernel[1], &channels = self.sizes[self.sizes.size() - 2];
    if (!divides(channels, area)) return c.fail(channels.text() + " rows do not divide into blocks of " + area.text());
    const SymInt count = blocks.positions(0, image[0]) * blocks.positions(1, image[1]);
    if (differ(count, self.sizes.back()))
        return c.fail("an image of that size has " + count.text() + " blocks, the tensor " + self.sizes.back().text());
    SymDims sizes(self.sizes.begin(), self.sizes.end() - 2);
    sizes.insert(sizes.end(), {floorDiv(channels, area), image[0], image[1]});
    return ValueType(TensorType::contiguous(self.dtype, std::move(sizes), self.device));
}
/// Image positions of each kernel element (rows) in each block (columns) of one dim.
Value blockPositions(Decomposition& d, const Blocks& blocks, size_t i, const SymInt& size, Device device) {
    const SymInt count = blocks.positions(i, size);
    const Value starts = unsqueeze(iota(d.builder(), count, device, 0, blocks.stride[i]), 0);
    const Value within = unsqueeze(iota(d.builder(), blocks.kernel[i], device, 0, blocks.dilation[i]), -1);
    return starts + within;
}
Values decomposeIm2col(Decomposition& d) {
    const bool batched = d.in(0).rank() == 4;
    const Blocks b = *readBlocks(d);
    const Value self = batched ? d.in(0) : unsqueeze(d.in(0), 0);
    const Device device = self.type().device;
    const Value rows = blockPositions(d, b, 0, self.size(2), device),
                columns = blockPositions(d, b, 1, self.size(3), device);
    const Value padded = d.call("aten.constant_pad_nd.default",
                                {self, Argument(SymDims{b.padding[1], b.padding[1], b.padding[0], b.padding[0]}), 0.0});
    const Value down = unsqueeze(unsqueeze(rows, -1), -1);
    const Value picked =
        d.call("aten.index.Tensor", {padded, Argument(std::vector<Argument>{Argument(), Argument(), down, columns})});
    const Value out = reshape(permute(picked, {0, 1, 2, 4, 3, 5}),
                              {self.size(0), self.size(1) * b.kernel[0] * b.kernel[1], rows.size(1) * columns.size(1)});
    return batched ? out : d.call("aten.squeeze.dim", {out, 0});
}
Values decomposeCol2im(Decomposition& d) {
    const bool batched = d.in(0).rank() == 3;
    const Blocks b = *readBlocks(d);
    const SymDims image = d.sizesOf("output_size");
    const Value self = batched ? d.in(0) : unsqueeze(d.in(0), 0);
    const Device device = self.type().device;
    const SymInt channels = floorDiv(self.size(1), b.kernel[0] * b.kernel[1]);
    const Value split = permute(reshape(self, {self.size(0), channels, b.kernel[0], b.kernel[1],
                                               b.positions(0, image[0]), b.positions(1, image[1])}),
                                {0, 1, 2, 4, 3, 5});
    const Value down = unsqueeze(unsqueeze(blockPositions(d, b, 0, image[0], device), -1), -1);
    const Value columns = blockPositions(d, b, 1, image[1], device);
    const SymDims padded{self.size(0), channels, image[0] + SymInt(2) * b.padding[0],
                         image[1] + SymInt(2) * b.padding[1]};
    const Value zeros = full(d.builder(), padded, Scalar(int64_t{0}), self.dtype(), device);
    const Value summed =
        d.call("aten.index_put.default",
               {zeros, Argument(std::vector<Argument>{Argument(), Argument(), down, columns}), split, true});
    const SymInt cutRows = SymInt(0) - b.padding[0], cutColumns = SymInt(0) - b.padding[1];
    const Value out = d.call("aten.constant_pad_nd.default",
                             {summed, Argument(SymDims{cutColumns, cutColumns, cutRows, cutRows}), 0.0});
    return batched ? out : d.call("aten.squeeze.dim", {out, 0});
}

// -- diagonals

Result<ValueType> inferDiagEmbed(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() == 0) return c.fail("needs at least one dim");
    CT_TRY(const int64_t first, c.dim("dim1", self.rank() + 1));
    CT_TRY(const int64_t second, c.dim("dim2", self.rank() + 1));
    CT_TRY(const int64_t offset, c.integer("offset"));
    if (first == second) return c.fail("the two dims are the same");
    if (offset == std::numeric_limits<int64_t>::min())
        return c.fail("the offset " + std::to_string(offset) + " cannot be negated");
    SymDims sizes(self.sizes.begin(), self.sizes.end() - 1);
    const SymInt side = self.sizes.back() + SymInt(std::abs(offset));
    sizes.insert(sizes.begin() + std::min(first, second), side);
    sizes.insert(sizes.begin() + std::max(first, second), side);
    return ValueType(TensorType::contiguous(self.dtype, std::move(sizes), self.device));
}
/// The diagonal moved into place, lengthened by zeros, and kept where the two positions differ by the offset.
Values decomposeDiagEmbed(Decomposition& d) {
    const Value self = d.in(0);
    const int64_t rank = self.rank() + 1;
    int64_t first = d.dimOf("dim1", rank), second = d.dimOf("dim2", rank), offset = d.integerOr("offset", 0);
    if (first > second) {
        std::swap(first, second);
        offset = -offset;
    }
    const Device device = self.type().device;
    Value x = self;
    if (offset != 0) {
        SymDims shape = self.sizes();
        shape.back() = std::abs(offset);
        const Value zeros = full(d.builder(), shape, Scalar(int64_t{0}), self.dtype(), device);
        x = offset > 0 ? cat(d.builder(), {zeros, self}, -1) : cat(d.builder(), {self, zeros}, -1);
    }
    const SymInt side = self.size(-1) + SymInt(std::abs(offset));
    x = d.call("aten.movedim.int", {unsqueeze(x, first), -1, second});
    const Value columns = iota(d.builder(), side, device),
                rows = unsqueeze(iota(d.builder(), side, device, offset), -1);
    SymDims shape(static_cast<size_t>(rank), SymInt(1));
    shape[static_cast<size_t>(first)] = shape[static_cast<size_t>(second)] = side;
    const Value kept = view(d.call("aten.eq.Tensor", {columns, rows}), shape);
    if (self.dtype() == DType::Bool)
        return d.call("aten.contiguous.default", {d.call("aten.logical_and.default", {kept, x})});
    const Value zero = d.call("aten.scalar_tensor.default", {0},
                              {{"dtype", self.dtype()}, {"layout", Layout::Strided}, {"device", device}});
    return d.call("aten.contiguous.default", {where(kept, x, zero)});
}
Value diagonalCopy(Decomposition& d, const Argument& offset) {
    const Value picked = d.call("aten.diagonal.default", {d.in(0), offset});
    return d.call("aten.clone.default", {picked}, {{"memory_format", MemoryFormat::Contiguous}});
}
Result<ValueType> inferTrace(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (self.rank() != 2) return c.fail("needs a matrix");
    return ValueType(TensorType::contiguous(isIntegral(self.dtype, true) ? DType::I64 : self.dtype, {}, self.device));
}

constexpr std::string_view kPixels =
    "f32[2, 8, 3, 4], 2\nf32[9, 2, 2], 3\nbf16[1, 4, 2, 2], 2\nf32[2, 8, 3, 4][96, 1, 32, 8], 2\ni64[2, 1, 4, 2, 2], 2\nf64[0, 4, 2, 2], 2\nf32[2, 3, 4, 4], 1";
constexpr std::string_view kUnpixels =
    "f32[2, 2, 6, 4], 2\nf32[1, 6, 6], 3\nbf16[1, 1, 4, 4], 2\nf32[2, 2, 6, 4][48, 1, 8, 2], 2";
constexpr std::string_view kChannels =
    "f32[2, 6, 3, 4], 3\nf64[1, 4, 2], 2\nf32[2, 6, 3, 4][72, 1, 24, 6], 2\nf32[2, 6, 3], 1";

constexpr OpDef kRearrangeOps[] = {
    {.schema = "aten.pixel_shuffle.default(Tensor self, int upscale_factor) -> Tensor",
     .infer = [](const InferContext& c) { return inferPixels(c, "upscale_factor", false); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposePixels(d, "upscale_factor", false); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.pixel_unshuffle.default", {d.dy(), d.arg(1)});
         },
     .samples = kPixels},
    {.schema = "aten.pixel_unshuffle.default(Tensor self, int downscale_factor) -> Tensor",
     .infer = [](const InferContext& c) { return inferPixels(c, "downscale_factor", true); },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposePixels(d, "downscale_factor", true); },
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.pixel_shuffle.default", {d.dy(), d.arg(1)});
         },
     .samples = kUnpixels},
    {.schema = "aten.channel_shuffle.default(Tensor self, SymInt groups) -> Tensor",
     .infer = inferChannels,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeChannels(d, false); },
     .derive = deriveChannels,
     .samples = kChannels},
    {.schema = "aten.native_channel_shuffle.default(Tensor self, SymInt groups) -> Tensor",
     .infer = inferChannels,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeChannels(d, true); },
     .derive = deriveChannels,
     .samples = kChannels},
    // Sliding blocks of an image as columns, and columns summed back into an image.
    {.schema =
         "aten.im2col.default(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
     .infer = inferIm2col,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeIm2col,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.col2im.default", {d.dy(), Argument(SymDims{d.in(0).size(-2), d.in(0).size(-1)}),
                                                         d.arg(1), d.arg(2), d.arg(3), d.arg(4)});
         },
     .samples = R"(
f32[2, 3, 4, 5], [2, 2], [1, 1], [0, 0], [1, 1]
f32[2, 3, 4, 5], [2, 2], [1, 1], [1, 0], [1, 2]
f32[3, 4, 5], [2, 3], [2, 1], [1, 1], [1, 1]
f64[1, 1, 3, 3], [3, 3], [1, 1], [1, 1], [1, 1]
bf16[2, 2, 4, 4], [2, 2], [1, 1], [0, 0], [2, 2]
f32[0, 3, 4, 5], [2, 2], [1, 1], [0, 0], [1, 1]
)"},
    {.schema =
         "aten.col2im.default(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
     .infer = inferCol2im,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeCol2im,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.im2col.default", {d.dy(), d.arg(2), d.arg(3), d.arg(4), d.arg(5)});
         },
     .samples = R"(
f32[2, 12, 20], [6, 5], [2, 2], [1, 1], [0, 0], [1, 1]
f32[12, 42], [6, 5], [2, 2], [1, 1], [1, 1], [1, 1]
f64[1, 9, 9], [3, 3], [3, 3], [1, 1], [1, 1], [1, 1]
f32[2, 8, 4], [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]
)"},
    // Zeros with the last dim on a diagonal.
    {.schema = "aten.diag_embed.default(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
     .infer = inferDiagEmbed,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeDiagEmbed,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("aten.diagonal.default", {d.dy(), d.arg("offset"), d.arg("dim1"), d.arg("dim2")});
         },
     .samples =
         "f32[2, 3]\nf32[3], 1\nf32[2, 3], -2\nf32[2, 3], 1, 0, 2\nf32[2, 3], 1, -1, 0\nb8[3]\ni64[2, 2], 0, 1, 0\nf64[0]"},
    shorthand(
        "aten.diag.default(Tensor self, int diagonal=0) -> Tensor",
        [](Decomposition& d) -> Values {
            if (d.in(0).rank() == 1) return d.call("aten.diag_embed.default", {d.in(0), d.arg(1)});
            return d.in(0).rank() == 2 ? diagonalCopy(d, d.arg(1)) : refuse(d, "needs a vector or a matrix");
        },
        "f32[3]\nf32[3], -1\nf32[2, 3], 1\ni64[3, 3]"),
    {.schema = "aten.trace.default(Tensor self) -> Tensor",
     .infer = inferTrace,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values { return d.call("aten.sum.default", {diagonalCopy(d, 0)}); },
     .derive =
         [](Derivation& d) {
             const SymInt rows = d.in(0).size(0), columns = d.in(0).size(1), side = min(rows, columns);
             d.input(0) = d.call("aten.constant_pad_nd.default",
                                 {d.call("aten.diag_embed.default", {expand(d.dy(), {side})}),
                                  Argument(SymDims{SymInt(0), columns - side, SymInt(0), rows - side})});
         },
     .samples = "f32[3, 3]\nf32[2, 4]\ni32[4, 2]\nf64[0, 2]"},
};

}  // namespace

std::span<const OpDef> rearrangeOps() { return kRearrangeOps; }

}  // namespace cutaway
