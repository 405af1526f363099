#include "engine/ops/view_rules.h"

#include "engine/support/check.h"

namespace cutaway {

TensorType viewType(const TensorType& source, SymDims sizes, SymDims strides, SymInt offset) {
    TensorType type = source;
    type.sizes = std::move(sizes);
    type.strides = std::move(strides);
    type.offset = std::move(offset);
    type.assumed = false;
    return type;
}

EvalResult evalView(const EvalContext& c) { return c.resultView(c.in(size_t{0})); }

EvalResult evalViews(const EvalContext& c) {
    const Tensor source = c.in(size_t{0});
    auto from = c.tensor(size_t{0});
    CT_CHECK(from.has_value(), "the op's shape rule has accepted the operand");
    TensorList views;
    for (size_t i = 0; i < c.resultValueType().tuple()->size(); ++i) {
        const TensorType& type = c.resultType(i);
        views.push_back(source.view(toInts(type.sizes), toInts(type.strides),
                                    source.offset() + type.offset.value() - from->offset.value()));
    }
    return views;
}

Result<SliceBounds> sliceBounds(const InferContext& c, const SymInt& size) {
    CT_TRY(const int64_t step, c.integer("step", 1));
    if (step <= 0) return c.fail("the step of a slice must be positive");
    auto clamp = [&](const SymInt& bound, const SymInt& low) {
        SymInt wrapped = bound;
        if (bound.isInt() && bound.value() < 0) wrapped = knownLessEqual(SymInt(0), size + bound) ? size + bound : max(size + bound, SymInt(0));
        if (bound.isInt() && bound.value() == std::numeric_limits<int64_t>::max()) return size;
        if (!knownLessEqual(wrapped, size)) wrapped = knownLessEqual(size, wrapped) ? size : min(wrapped, size);
        if (!knownLessEqual(low, wrapped)) wrapped = knownLessEqual(wrapped, low) ? low : max(wrapped, low);
        return wrapped;
    };
    SliceBounds bounds;
    bounds.step = step;
    SymInt end = size;
    if (c.has("start")) {
        CT_TRY(const SymInt start, c.size("start"));
        bounds.start = clamp(start, 0);
    }
    if (c.has("end")) {
        CT_TRY(const SymInt given, c.size("end"));
        end = clamp(given, bounds.start);
    }
    bounds.length = step == 1 ? end - bounds.start : floorDiv(end - bounds.start + SymInt(step - 1), SymInt(step));
    return bounds;
}

Result<SymInt> wrapIndex(const InferContext& c, const SymInt& index, const SymInt& size) {
    if (index.isInt() && size.isInt() && (index.value() < -size.value() || index.value() >= size.value()))
        return c.fail("index " + index.text() + " is out of range for a dim of size " + size.text());
    return index.isInt() && index.value() < 0 ? index + size : index;
}

Result<TensorType> diagonalType(const InferContext& c, const TensorType& source) {
    if (source.rank() < 2) return c.fail("needs at least two dims");
    CT_TRY(const int64_t first, c.dim("dim1", source.rank()));
    CT_TRY(const int64_t second, c.dim("dim2", source.rank()));
    CT_TRY(const int64_t offset, c.integer("offset", 0));
    if (first == second) return c.fail("dim1 and dim2 are the same dim " + std::to_string(first));
    const SymInt rows = source.sizes[static_cast<size_t>(first)], columns = source.sizes[static_cast<size_t>(second)];
    const SymInt rowStride = source.strides[static_cast<size_t>(first)], columnStride = source.strides[static_cast<size_t>(second)];
    SymInt length = offset >= 0 ? min(rows, columns - SymInt(offset)) : min(rows + SymInt(offset), columns);
    if (!knownLessEqual(SymInt(0), length)) length = max(length, SymInt(0));
    SymInt start = source.offset;
    if (!(length == SymInt(0))) start = offset >= 0 ? start + SymInt(offset) * columnStride : start + SymInt(-offset) * rowStride;
    SymDims sizes, strides;
    for (int64_t i = 0; i < source.rank(); ++i) {
        if (i == first || i == second) continue;
        sizes.push_back(source.sizes[static_cast<size_t>(i)]);
        strides.push_back(source.strides[static_cast<size_t>(i)]);
    }
    sizes.push_back(length);
    strides.push_back(rowStride + columnStride);
    return viewType(source, std::move(sizes), std::move(strides), start);
}

Result<TensorType> stridedType(const InferContext& c, const TensorType& source) {
    CT_TRY(SymDims sizes, c.sizes("size"));
    CT_TRY(SymDims strides, c.sizes("stride"));
    if (sizes.size() != strides.size()) return c.fail("size and stride are of different lengths");
    SymInt offset = source.offset;
    if (c.has("storage_offset")) {
        CT_TRY(offset, c.size("storage_offset"));
    }
    if (offset.isInt() && offset.value() < 0) return c.fail("negative storage offset " + offset.text());
    for (const SymInt& size : sizes)
        if (size.isInt() && size.value() < 0) return c.fail("negative size " + size.text());
    for (const SymInt& stride : strides)
        if (stride.isInt() && stride.value() < 0) return c.fail("negative stride " + stride.text());
    return viewType(source, std::move(sizes), std::move(strides), offset);
}

}  // namespace cutaway
