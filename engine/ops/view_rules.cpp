#include "engine/ops/view_rules.h"

#include "engine/expr/expr_parse.h"
#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

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
        views.push_back(
            source.view(toInts(type.sizes), toInts(type.strides),
                        checkedAdd(source.offset(), checkedSub(type.offset.value(), from->offset.value()))));
    }
    return views;
}

TensorType partOf(const TensorType& self, int64_t dim, const SymInt& start, const SymInt& size) {
    const auto at = static_cast<size_t>(dim);
    SymDims sizes = self.sizes;
    sizes[at] = size;
    return viewType(self, std::move(sizes), self.strides, self.offset + start * self.strides[at]);
}

namespace {
Expr isBelow(const SymInt& value, int64_t limit) {
    return Expr::make(ExprKind::Lt, {value.expr(), Expr::integer(limit)}, DType::Bool);
}
}  // namespace

Result<SliceBounds> sliceBounds(const InferContext& c, const SymInt& size) {
    CT_TRY(const int64_t step, c.integer("step", 1));
    if (step <= 0) return c.fail("the step of a slice must be positive");
    auto clamp = [&](const SymInt& bound, const SymInt& low) {
        SymInt wrapped = bound;
        // Written without Max, which would take the symbol for a size, and so for never negative.
        if (!bound.isInt() && readsData(bound.expr())) {
            const Expr fromEnd = Expr::where(isBelow(bound + size, 0), Expr::integer(0), (bound + size).expr());
            wrapped = SymInt(Expr::where(isBelow(bound, 0), fromEnd, min(bound, size).expr()));
            return low == SymInt(0) ? wrapped : max(wrapped, low);
        }
        if (bound.isInt() && bound.value() < 0) {
            // INT64_MIN is raised by one, whose negative fits, too. No size is larger, so the bound is the beginning.
            const SymInt fromEnd = size + SymInt(std::max(bound.value(), -std::numeric_limits<int64_t>::max()));
            wrapped = knownLessEqual(SymInt(0), fromEnd) ? fromEnd : max(fromEnd, SymInt(0));
        }
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
    const SymInt whole = end - bounds.start;
    // Rounded up without adding the step, which may be as large as numbers get.
    bounds.length = step == 1       ? whole
                    : whole.isInt() ? SymInt(whole.value() / step + (whole.value() % step != 0))
                                    : floorDiv(whole + SymInt(step - 1), SymInt(step));
    return bounds;
}

Result<SymInt> wrapIndex(const InferContext& c, const SymInt& index, const SymInt& size) {
    // The sign of a number from data is known at run time only.
    if (!index.isInt() && readsData(index.expr())) {
        if (exceeds(index + SymInt(1), size) || exceeds(SymInt(0) - index, size))
            return c.fail("index " + index.text() + " is out of range for a dim of size " + size.text());
        return SymInt(Expr::where(isBelow(index, 0), (index + size).expr(), index.expr()));
    }
    const bool fromEnd = index.isInt() && index.value() < 0;
    if (fromEnd ? exceeds(SymInt(0) - index, size) : exceeds(index + SymInt(1), size) || exceeds(SymInt(0) - index, 0))
        return c.fail("index " + index.text() + " is out of range for a dim of size " + size.text());
    return fromEnd ? index + size : index;
}

Result<TensorType> diagonalType(const InferContext& c, const TensorType& source) {
    if (source.rank() < 2) return c.fail("needs at least two dims");
    CT_TRY(const int64_t first, c.dim("dim1", source.rank()));
    CT_TRY(const int64_t second, c.dim("dim2", source.rank()));
    CT_TRY(const int64_t offset, c.integer("offset", 0));
    if (first == second) return c.fail("dim1 and dim2 are the same dim " + std::to_string(first));
    const SymInt rows = source.sizes[static_cast<size_t>(first)], columns = source.sizes[static_cast<size_t>(second)];
    const SymInt rowStride = source.strides[static_cast<size_t>(first)],
                 columnStride = source.strides[static_cast<size_t>(second)];
    if (offset == std::numeric_limits<int64_t>::min())
        return c.fail("the offset " + std::to_string(offset) + " cannot be negated");
    SymInt length = offset >= 0 ? min(rows, columns - SymInt(offset)) : min(rows + SymInt(offset), columns);
    if (!knownLessEqual(SymInt(0), length)) length = max(length, SymInt(0));
    SymInt start = source.offset;
    if (!(length == SymInt(0)))
        start = offset >= 0 ? start + SymInt(offset) * columnStride : start + SymInt(-offset) * rowStride;
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

namespace {

/// The value whose memory a chain of views and in-place writes looks at; null where some call may return memory of a
/// size that its type does not tell.
const Node* memoryOf(const Argument& argument) {
    const Node* at = argument.node();
    while (at && at->isCall()) {
        if (at->op().isOpaque() || at->op().def()->expand == Expand::Composite) return nullptr;
        const bool passesOn = at->is(Tag::View) || at->op().mutates() || at->isCall("operator.getitem");
        if (!passesOn) break;
        at = at->args().empty() ? nullptr : at->arg(0).node();
    }
    return at;
}

/// What PyTorch says of sizes and strides that lead outside of the memory; nothing while any of it is not a number.
std::optional<Error> outsideOfStorage(const InferContext& c, const SymDims& sizes, const SymDims& strides,
                                      const SymInt& offset) {
    if (!allInts(sizes) || !allInts(strides) || !offset.isInt()) return std::nullopt;
    const int64_t reached = extent(toInts(sizes), toInts(strides), offset.value());  // throws where 64 bits do not do
    const Node* memory = memoryOf(c.arg(0));
    const TensorType* whole = memory ? memory->type().tensor() : nullptr;
    if (!whole || !allInts(whole->sizes) || !allInts(whole->strides) || !whole->offset.isInt()) return std::nullopt;
    const TensorType* self = c.arg(0).node()->type().tensor();
    int64_t available = extent(toInts(whole->sizes), toInts(whole->strides), whole->offset.value());
    if (self && self->dtype != whole->dtype) available = available * byteSize(whole->dtype) / byteSize(self->dtype);
    if (reached <= available) return std::nullopt;
    return c.fail("reaches element " + std::to_string(reached - 1) + " of a storage of " + std::to_string(available));
}

}  // namespace

Result<TensorType> stridedType(const InferContext& c, const TensorType& source) {
    CT_TRY(SymDims sizes, c.sizes("size"));
    CT_TRY(SymDims strides, c.sizes("stride"));
    if (sizes.size() != strides.size()) return c.fail("size and stride are of different lengths");
    SymInt offset = source.offset;
    if (c.has("storage_offset")) {
        CT_TRY(offset, c.size("storage_offset"));
    }
    if (exceeds(0, offset)) return c.fail("negative storage offset " + offset.text());
    for (const SymInt& size : sizes)
        if (exceeds(0, size)) return c.fail("negative size " + size.text());
    for (const SymInt& stride : strides)
        if (exceeds(0, stride)) return c.fail("negative stride " + stride.text());
    if (auto problem = outsideOfStorage(c, sizes, strides, offset)) return std::move(*problem);
    return viewType(source, std::move(sizes), std::move(strides), offset);
}

Result<void> checkPieces(const InferContext& c, int64_t count) {
    constexpr int64_t kMost = 1 << 13;  // each is a node or two in every pass
    if (count <= kMost) return {};
    return Error{ErrorCode::Limit,
                 c.op().name() + ": " + std::to_string(count) + " results are more than the " + std::to_string(kMost) +
                     " that one call may have",
                 {},
                 {}};
}

SymInt extentOf(const TensorType& type) {
    SymInt last = 0;
    for (size_t i = 0; i < type.sizes.size(); ++i) {
        if (type.sizes[i] == SymInt(0)) return 0;
        last = last + (type.sizes[i] - SymInt(1)) * type.strides[i];
    }
    return last + SymInt(1);
}

bool mayOverlap(const TensorType& type) {
    std::vector<std::pair<SymInt, SymInt>> dims;  // stride, size, the smallest stride first
    for (size_t i = 0; i < type.sizes.size(); ++i) {
        if (type.sizes[i] == SymInt(1)) continue;
        const auto at = std::find_if(dims.begin(), dims.end(),
                                     [&](const auto& dim) { return !knownLessEqual(dim.first, type.strides[i]); });
        dims.emplace(at, type.strides[i], type.sizes[i]);
    }
    SymInt reached = 0;
    for (const auto& [stride, size] : dims) {
        if (!knownLessEqual(reached + SymInt(1), stride)) return true;
        reached = reached + stride * (size - SymInt(1));
    }
    return false;
}

}  // namespace cutaway
