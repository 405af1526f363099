#include "engine/ops/window_rules.h"

#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<std::vector<int64_t>> perWindowDim(const InferContext& c, std::string_view param, size_t spatial,
                                          int64_t fallback, int64_t least) {
    std::vector<int64_t> values;
    if (c.op().schema()->find(param) >= 0) {
        CT_TRY(values, c.integers(param));
    }
    if (values.empty()) values.assign(spatial, fallback);
    if (values.size() == 1) values.assign(spatial, values[0]);
    if (values.size() != spatial)
        return c.fail("'" + std::string(param) + "' has " + std::to_string(values.size()) + " numbers for " +
                      std::to_string(spatial) + " dims");
    for (int64_t value : values) {
        if (value < least) return c.fail("'" + std::string(param) + "' of " + std::to_string(value) + " is too small");
        if (value > std::numeric_limits<int32_t>::max())
            return c.fail("'" + std::string(param) + "' of " + std::to_string(value) + " does not fit into 32 bits");
    }
    return values;
}

int64_t productOfWindowSizes(const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (int64_t size : sizes) count = checkedMul(count, size);
    return count;
}

/// Number of windows along a dim. In ceil mode the last may end beyond the padding, but starts before the input ends.
SymInt windowCount(const SymInt& in, const Windows& w, size_t d, bool ceil) {
    const SymInt room = in + SymInt(2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1);
    const SymInt stride(w.stride[d]);
    SymInt count = floorDiv(ceil ? room + stride - SymInt(1) : room, stride) + SymInt(1);
    // Where padding and stride are within the window's reach the last starts early enough.
    if (ceil && w.padding[d] + w.stride[d] > w.dilation[d] * (w.kernel[d] - 1) + 1)
        count = min(count, floorDiv(in + SymInt(w.padding[d] + w.stride[d] - 1), stride));
    return count;
}

}  // namespace

int64_t Windows::inPlane() const { return productOfWindowSizes(in); }
int64_t Windows::outPlane() const { return productOfWindowSizes(out); }

Expr Windows::positionExpr(size_t d, const Expr& o, const Expr& r) const {
    return Expr::make(ExprKind::Add,
                      {Expr::make(ExprKind::Mul, {o, Expr::integer(stride[d])}),
                       Expr::make(ExprKind::Mul, {r, Expr::integer(dilation[d])}), Expr::integer(-padding[d])});
}
bool Windows::reachesBeyond(size_t d) const {
    if (in.empty() || out.empty()) return true;
    return (out[d] - 1) * stride[d] - padding[d] + (kernel[d] - 1) * dilation[d] >= in[d];
}

Result<Windows> readWindows(const InferContext& c, const TensorType& self, size_t spatial) {
    const size_t rank = self.sizes.size();
    if (rank != spatial + 1 && rank != spatial + 2)
        return c.fail("needs a tensor of " + std::to_string(spatial + 1) + " or " + std::to_string(spatial + 2) +
                      " dims, not " + std::to_string(rank));
    for (size_t d = rank == spatial + 2 ? 1 : 0; d < rank; ++d)
        if (self.sizes[d] == SymInt(0)) return c.fail("dim " + std::to_string(d) + " has no elements");
    if (isComplex(self.dtype)) return c.fail("needs real numbers, not " + self.text());
    Windows w;
    CT_TRY(w.kernel, perWindowDim(c, "kernel_size", spatial, 0, 1));
    CT_TRY(const std::vector<int64_t> strides, c.integers("stride"));
    w.stride = w.kernel;  // where none are given
    if (!strides.empty()) {
        CT_TRY(w.stride, perWindowDim(c, "stride", spatial, 1, 1));
    }
    CT_TRY(w.padding, perWindowDim(c, "padding", spatial, 0, 0));
    CT_TRY(w.dilation, perWindowDim(c, "dilation", spatial, 1, 1));
    const bool ceil = c.op().schema()->find("ceil_mode") >= 0 && c.flag("ceil_mode");
    w.outSizes.assign(self.sizes.begin(), self.sizes.end() - static_cast<int64_t>(spatial));
    const SymInt planes = numel(w.outSizes);
    if (planes.isInt()) w.planes = planes.value();
    bool known = true;
    for (size_t d = 0; d < spatial; ++d) {
        if (2 * w.padding[d] > w.kernel[d])  // without its dilation, as PyTorch's kernels hold
            return c.fail("padding " + std::to_string(w.padding[d]) + " is more than half of the kernel's " +
                          std::to_string(w.kernel[d]));
        const SymInt& in = self.sizes[rank - spatial + d];
        const SymInt count = windowCount(in, w, d, ceil);
        if (exceeds(1, count)) return c.fail("the window does not fit a dim of size " + in.text());
        w.outSizes.push_back(count);
        known &= in.isInt() && count.isInt();
        if (known) {
            w.in.push_back(in.value());
            w.out.push_back(count.value());
        }
    }
    if (!known) {
        w.in.clear();
        w.out.clear();
    }
    return w;
}

Result<ValueType> pooledGradientType(const InferContext& c, size_t spatial) {
    CT_TRY(const TensorType self, c.tensor("self"));
    CT_TRY(const TensorType gradient, c.tensor("grad_output"));
    const auto lead = self.rank() - static_cast<int64_t>(spatial);
    bool fits = (lead == 1 || lead == 2) && gradient.rank() == self.rank();
    for (int64_t i = 0; fits && i < lead; ++i) {
        const SymInt &own = self.sizes[static_cast<size_t>(i)], &other = gradient.sizes[static_cast<size_t>(i)];
        fits = !own.isInt() || !other.isInt() || own == other;
    }
    if (!fits) return c.fail("the gradient " + gradient.text() + " is not that of pooling " + self.text());
    for (size_t i = static_cast<size_t>(lead); i < self.sizes.size(); ++i)
        if (self.sizes[i] == SymInt(0))
            return c.fail("dim " + std::to_string(i) + " of " + self.text() + " has no elements");
    if (c.op().schema()->find("kernel_size") >= 0) {
        CT_TRY(const Windows windows, readWindows(c, self, spatial));
        if (!(gradient.sizes == windows.outSizes))
            return c.fail("the gradient " + gradient.text() + " is not of the pooled size");
    }
    for (size_t i = static_cast<size_t>(lead); i < gradient.sizes.size(); ++i)
        if (gradient.sizes[i] == SymInt(0) || self.sizes[i] == SymInt(0))
            return c.fail("the gradient " + gradient.text() + " has no elements to spread over " + self.text());
    if (c.op().schema()->find("indices") >= 0) {
        CT_TRY(const TensorType indices, c.tensor("indices"));
        if (!(indices.sizes == gradient.sizes))
            return c.fail("the indices " + indices.text() + " do not fit the gradient " + gradient.text());
    }
    if (gradient.dtype != self.dtype)
        return c.fail("the gradient " + gradient.text() + " does not have the dtype of " + self.text());
    TensorType type = TensorType::contiguous(gradient.dtype, self.sizes, gradient.device);
    if (lead == 2) type.strides = pooledStrides(self, self.sizes);
    return ValueType(std::move(type));
}

SymDims pooledStrides(const TensorType& self, const SymDims& sizes) {
    if (isChannelsLast(self))
        return *formatStrides(sizes.size() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, sizes);
    return contiguousStrides(sizes);
}

Expr flatPosition(const Windows& w, const SymDims& selfSizes, const Expr& offset, const std::vector<Expr>& o) {
    const size_t spatial = w.kernel.size();
    Expr position = Expr::integer(0);
    int64_t below = productOfWindowSizes(w.kernel);
    for (size_t d = 0; d < spatial; ++d) {
        below /= w.kernel[d];
        Expr r = Expr::make(ExprKind::FloorDiv, {offset, Expr::integer(below)});
        if (d > 0) r = Expr::make(ExprKind::Mod, {r, Expr::integer(w.kernel[d])});
        position = Expr::make(ExprKind::Add,
                              {Expr::make(ExprKind::Mul, {position, selfSizes[selfSizes.size() - spatial + d].expr()}),
                               w.positionExpr(d, o[d], r)});
    }
    return position;
}

Expr lowerEqualParts(LowerContext& c, size_t spatial) {
    const TensorType self = c.in(size_t{0});
    if (!isFloating(self.dtype)) return Expr();
    const size_t lead = self.sizes.size() - spatial;
    SymDims part;
    for (size_t d = lead; d < self.sizes.size(); ++d) {
        const auto in = self.sizes[d].asInt(), out = c.out().sizes[d].asInt();
        if (!in || !out || *out < 1 || *in % *out != 0) return Expr();
        part.emplace_back(*in / *out);
    }
    return reduceMean(c, part, [&](const std::vector<Expr>& r) {
        std::vector<Expr> at = c.index();
        for (size_t d = 0; d < spatial; ++d) at[lead + d] = at[lead + d] * part[d].expr() + r[d];
        return c.loadAt(0, at);
    });
}

}  // namespace cutaway
