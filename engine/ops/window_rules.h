#pragma once
// Sliding windows over the last dims of a tensor, as pooling reads them: sizes by PyTorch's rules, and the walk over
// the elements under each window.
#include <algorithm>
#include <optional>

#include "engine/ops/infer_rules.h"
#include "engine/ops/lower.h"

namespace cutaway {

/// One element under a window: flat positions in the input plane and in the kernel.
struct WindowTap {
    int64_t input = 0, kernel = 0;
};

struct Windows {
    std::vector<int64_t> kernel, stride, padding, dilation;  // one per windowed dim
    std::vector<int64_t> in, out;                            // sizes of those dims; empty when symbolic
    SymDims outSizes;                                        // of the whole result
    int64_t planes = 1;                                      // product of the other dims, when known

    int64_t inPlane() const;
    int64_t outPlane() const;
    /// body(tap) for each element of the input under the window of flat output position `o`, in kernel order. If there
    /// is none (all of it is padding, or the input lies between the kernel's elements) the first that is not in the
    /// padding before the input; `o` has no maximum then, and PyTorch gives this position.
    template <class Body>
    std::optional<WindowTap> forEachTap(int64_t o, Body&& body) const {
        const size_t n = kernel.size();
        std::vector<int64_t> start(n), first(n), last(n);  // elements of the kernel that lie on the input
        bool any = true;
        for (size_t d = n; d-- > 0;) {
            start[d] = o % out[d] * stride[d] - padding[d];
            o /= out[d];
            first[d] = start[d] < 0 ? (dilation[d] - 1 - start[d]) / dilation[d] : 0;
            last[d] = std::min(kernel[d] - 1, start[d] < in[d] ? (in[d] - 1 - start[d]) / dilation[d] : -1);
            any = any && first[d] <= last[d];
        }
        for (std::vector<int64_t> k = first;;) {
            WindowTap tap;
            for (size_t d = 0; d < n; ++d) {
                tap.input = tap.input * in[d] + start[d] + k[d] * dilation[d];
                tap.kernel = tap.kernel * kernel[d] + k[d];
            }
            if (!any) return tap;
            body(tap);
            size_t d = n;
            for (; d > 0 && ++k[d - 1] > last[d - 1]; --d) k[d - 1] = first[d - 1];
            if (d == 0) return std::nullopt;
        }
    }
    /// How many elements of the kernel can lie on the input in dim d: fewer than kernel[d] where the kernel is larger
    /// than the input with its padding.
    int64_t reach(size_t d) const {
        if (in.empty()) return kernel[d];
        return std::clamp<int64_t>((in[d] + padding[d] - 1) / dilation[d] + 1, 1, kernel[d]);
    }
    /// Input position in dim d of kernel element r under the window of output index o.
    Expr positionExpr(size_t d, const Expr& o, const Expr& r) const;
    /// True if the last window may reach beyond the input's end.
    bool reachesBeyond(size_t d) const;
};

/// Means of the parts that output_size says, of equal size: null where one is longer than another, which takes an
/// index per element.
Expr lowerEqualParts(LowerContext& c, size_t spatial);

/// Reads kernel_size, stride (empty: the kernel's), padding, dilation and ceil_mode, as far as the op has them, for
/// the last `spatial` dims. Errors name the rule that is broken.
Result<Windows> readWindows(const InferContext& c, const TensorType& self, size_t spatial);
/// Type of the gradient of `self` from that of pooling its last `spatial` dims (operands called grad_output and self):
/// like self in its format. Errors where the two do not belong together.
Result<ValueType> pooledGradientType(const InferContext& c, size_t spatial);
/// Channels-last results for channels-last operands, else row-major.
SymDims pooledStrides(const TensorType& self, const SymDims& sizes);
/// Flat position in the plane of kernel element `offset` under the window at output index `o`.
Expr flatPosition(const Windows& windows, const SymDims& selfSizes, const Expr& offset, const std::vector<Expr>& o);

}  // namespace cutaway
