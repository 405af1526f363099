#include "engine/ops/infer_rules.h"

#include "engine/support/check.h"

namespace cutaway {
namespace {

/// Operands of an elementwise call: every argument whose schema parameter is a Tensor, or a Tensor[]'s items.
Result<std::vector<Operand>> tensorOperands(const InferContext& c) {
    std::vector<Operand> operands;
    const Schema& schema = *c.op().schema();
    for (size_t i = 0; i < schema.params.size(); ++i) {
        if (schema.params[i].kind != ParamKind::Tensor || schema.params[i].list || c.arg(i).isNone()) continue;
        CT_TRY(Operand one, c.operand(i));
        operands.push_back(std::move(one));
    }
    // Scalar variants (add.Scalar): the number takes part in promotion.
    for (size_t i = 1; i < schema.params.size() && operands.size() == 1; ++i)
        if (schema.params[i].kind == ParamKind::Number && !schema.params[i].keywordOnly && !c.arg(i).isNone()) {
            CT_TRY(Operand one, c.operand(i));
            operands.push_back(std::move(one));
        }
    return operands;
}

/// From the fastest dim on: channels, then the spatial dims from the last, then the batch.
std::vector<size_t> channelsLastOrder(size_t rank) {
    std::vector<size_t> order{1};
    for (size_t dim = rank - 1; dim >= 2; --dim) order.push_back(dim);
    order.push_back(0);
    return order;
}
/// Without gaps, the first dim of `order` fastest; dims of size 1 may have any stride.
bool isPackedIn(const std::vector<size_t>& order, const TensorType& type) {
    SymInt step = 1;
    bool packed = true;
    for (size_t dim : order) {
        if (type.sizes[dim] == SymInt(1)) continue;
        packed &= type.strides[dim] == step;
        step = step * type.sizes[dim];
    }
    return packed;
}

}  // namespace

SymDims elementwiseStrides(const SymDims& sizes, std::span<const Operand> operands) {
    // TensorIterator: if all operands of the full shape agree on a dense layout, the result takes it; otherwise dims
    // are ordered by the first operand that distinguishes them, row-major where none does.
    const size_t rank = sizes.size();
    std::vector<const TensorType*> tensors;
    for (const Operand& operand : operands)
        if (!operand.literal && operand.type.rank() > 0) tensors.push_back(&operand.type);
    // Where sizes of 1 leave open which dense layout that is, the order of the dims decides too, as when PyTorch
    // traces.
    bool allContiguous = true, allChannelsLast = true;
    for (const TensorType* type : tensors) {
        allContiguous &= type->isContiguous() && type->sizes == sizes;
        allChannelsLast &=
            (type->rank() == 4 || type->rank() == 5) && isPackedIn(channelsLastOrder(type->sizes.size()), *type);
    }
    if ((allContiguous && !allChannelsLast) || rank < 2) return contiguousStrides(sizes);

    auto strideAt = [&](const TensorType& type, size_t dim) -> std::optional<SymInt> {
        const size_t lead = rank - type.sizes.size();
        if (dim < lead) return SymInt(0);
        const SymInt& size = type.sizes[dim - lead];
        if (size == SymInt(1) && !(sizes[dim] == SymInt(1))) return SymInt(0);
        return type.strides[dim - lead];
    };
    // perm[0] is the fastest dim. Insertion sort with the iterator's own ambiguous comparison.
    std::vector<size_t> perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = rank - 1 - i;
    // 1: dim a is slower than b (must come later), -1: faster, 0: undecided.
    auto order = [&](size_t a, size_t b) {
        for (const TensorType* type : tensors) {
            const SymInt x = *strideAt(*type, a), y = *strideAt(*type, b);
            if (x == SymInt(0) || y == SymInt(0)) continue;
            if (!(x == y)) {
                if (knownLessEqual(x, y)) return -1;
                if (knownLessEqual(y, x)) return 1;
                continue;
            }
            // Equal strides: the dim with the larger size is the slower one.
            if (sizes[a].isInt() && sizes[b].isInt() && sizes[a].value() > sizes[b].value()) return 1;
        }
        return 0;
    };
    for (size_t i = 1; i < rank; ++i) {
        size_t at = i;
        for (size_t j = i; j-- > 0;) {
            const int comparison = order(perm[j], perm[at]);
            if (comparison > 0) {
                std::swap(perm[j], perm[at]);
                at = j;
            } else if (comparison < 0) {
                break;
            }
        }
    }
    SymDims strides(rank);
    SymInt step = 1;
    for (size_t dim : perm) {
        strides[dim] = step;
        if (!(sizes[dim] == SymInt(0))) step = step * sizes[dim];
    }
    return strides;
}

Result<TensorType> elementwiseType(const InferContext& c, std::span<const Operand> operands, DType dtype) {
    std::vector<SymDims> shapes;
    for (const Operand& operand : operands) shapes.push_back(operand.type.sizes);
    auto sizes = broadcastSizes(shapes);
    if (!sizes) return c.fail(sizes.error().message);
    TensorType type;
    type.dtype = dtype;
    type.sizes = std::move(*sizes);
    type.strides = elementwiseStrides(type.sizes, operands);
    for (const Operand& operand : operands) {
        if (operand.literal) continue;
        if (type.device == Device{} || operand.type.rank() > 0) type.device = operand.type.device;
        if (operand.type.rank() > 0) break;
    }
    return type;
}

namespace {
Result<ValueType> inferElementwise(const InferContext& c, DType (*adjust)(DType)) {
    CT_TRY(const std::vector<Operand> operands, tensorOperands(c));
    CT_TRY(TensorType type, elementwiseType(c, operands, adjust(resultType(operands))));
    return ValueType(std::move(type));
}
}  // namespace

Result<ValueType> inferBroadcast(const InferContext& c) {
    return inferElementwise(c, [](DType dtype) { return dtype; });
}
Result<ValueType> inferBroadcastFloat(const InferContext& c) {
    return inferElementwise(c, [](DType dtype) { return isIntegral(dtype, true) ? DType::F32 : dtype; });
}
Result<ValueType> inferPredicate(const InferContext& c) {
    return inferElementwise(c, [](DType) { return DType::Bool; });
}

namespace {
Result<ValueType> refuseComplex(const InferContext& c, Result<ValueType> (*rule)(const InferContext&)) {
    CT_TRY(const std::vector<Operand> operands, tensorOperands(c));
    for (const Operand& operand : operands)
        if (isComplex(operand.type.dtype))
            return unsupported(c.op().name() + ": no complex kernel", {},
                               {"compute real and imaginary parts separately (view_as_real)"});
    return rule(c);
}
}  // namespace
Result<ValueType> inferRealBroadcast(const InferContext& c) { return refuseComplex(c, inferBroadcast); }
Result<ValueType> inferRealFloat(const InferContext& c) { return refuseComplex(c, inferBroadcastFloat); }
Result<ValueType> inferRealPredicate(const InferContext& c) { return refuseComplex(c, inferPredicate); }
Result<ValueType> inferFloatLikeFirst(const InferContext& c) {
    CT_TRY(const Operand first, c.operand(0));
    if (!isFloating(first.type.dtype))
        return c.fail("needs a floating-point tensor, not " + std::string(info(first.type.dtype).torchName));
    return inferLikeFirst(c);
}
Result<ValueType> inferFloatOrComplexLikeFirst(const InferContext& c) {
    CT_TRY(const Operand first, c.operand(0));
    return isComplex(first.type.dtype) ? inferLikeFirst(c) : inferFloatLikeFirst(c);
}
Result<ValueType> inferLikeFirst(const InferContext& c) {
    CT_TRY(const Operand first, c.operand(0));
    CT_TRY(TensorType type, elementwiseType(c, std::span(&first, 1), first.type.dtype));
    return ValueType(std::move(type));
}

SymDims reducedSizes(const SymDims& sizes, std::span<const int64_t> dims, bool keepDim) {
    SymDims out;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) != dims.end();
        if (!reduced) out.push_back(sizes[i]);
        else if (keepDim) out.push_back(1);
    }
    return out;
}

namespace {
/// The factors of a size: a number, and what it is multiplied with.
int64_t factorsOf(const SymInt& size, std::vector<Expr>& others) {
    if (size.isInt()) return size.value();
    int64_t number = 1;
    const Expr whole = size.expr();
    const auto add = [&](const Expr& factor) {
        const auto power = factor->kind == ExprKind::Pow ? factor->operands[1].asInt() : std::nullopt;
        if (const auto value = factor.asInt()) number *= *value;
        else if (power && *power > 0 && *power < 16)
            others.insert(others.end(), static_cast<size_t>(*power), factor->operands[0]);
        else others.push_back(factor);
    };
    if (whole->kind != ExprKind::Mul) add(whole);
    else std::for_each(whole->operands.begin(), whole->operands.end(), add);
    return number;
}
/// Whether every factor of `part` is one of `whole`.
bool isFactor(const SymInt& part, const SymInt& whole) {
    std::vector<Expr> own, all;
    const int64_t number = factorsOf(part, own), total = factorsOf(whole, all);
    if (number == 0 || total % number != 0) return false;
    for (const Expr& factor : own) {
        const auto found =
            std::find_if(all.begin(), all.end(), [&](const Expr& other) { return SymInt(other) == SymInt(factor); });
        if (found == all.end()) return false;
        all.erase(found);
    }
    return true;
}
/// Whether more dims of the view fit: the new elements are fewer, or (with symbols) a true factor of the old ones.
bool isBelow(const SymInt& count, const SymInt& limit) {
    if (count == limit) return false;
    return knownLessEqual(count, limit) ||
           (!limit.isInt() &&
            (isFactor(count, limit) || (!(count == SymInt(0)) && floorDiv(limit, count) * count == limit)));
}
}  // namespace

namespace {

/// Strides that tracing gives to dims of size 1, where any would do: the shape is built from the left, by splitting
/// dims and by merging those that are too small. Nothing where a size is symbolic.
std::optional<SymDims> tracedViewStrides(const SymDims& oldSizes, const SymDims& oldStrides, const SymDims& newSizes) {
    if (!allInts(oldSizes) || !allInts(oldStrides) || !allInts(newSizes) || oldSizes.empty()) return std::nullopt;
    std::vector<int64_t> sizes = toInts(oldSizes), strides = toInts(oldStrides);
    const std::vector<int64_t> wanted = toInts(newSizes);
    TensorType whole = TensorType::contiguous(DType::F32, oldSizes);
    whole.strides = oldStrides;
    if (!wanted.empty() && whole.isContiguous() &&
        ((wanted.size() == 1 && sizes.size() > 1) || (wanted.size() == 2 && sizes.size() == 1)))
        return contiguousStrides(newSizes);
    size_t at = 0;
    for (int64_t length : wanted) {
        if (at >= sizes.size()) {  // a size of 1 behind the last dim
            strides.insert(strides.end() - 1, strides.back());
            sizes.push_back(1);
            ++at;
            continue;
        }
        int64_t gathered = sizes[at];
        if (gathered == length) {
            ++at;
            continue;
        }
        size_t end = at;
        while (gathered % length != 0) {
            if (++end == sizes.size()) return std::nullopt;
            gathered *= sizes[end];
        }
        int64_t stride = strides[end];
        for (size_t i = at; i < end; ++i)
            if (sizes[i] != 1) stride = std::min(stride, strides[i]);
        const auto first = static_cast<int64_t>(at), last = static_cast<int64_t>(end);
        sizes.erase(sizes.begin() + first, sizes.begin() + last);
        strides.erase(strides.begin() + first, strides.begin() + last);
        sizes[at] = gathered;
        strides[at] = stride;
        if (gathered != length) {
            const int64_t inner = gathered / length;
            sizes[at] = inner;
            sizes.insert(sizes.begin() + first, length);
            strides.insert(strides.begin() + first, stride * inner);
        }
        ++at;
    }
    for (size_t i = at; i < sizes.size(); ++i)
        if (sizes[i] != 1) return std::nullopt;
    strides.resize(at);
    if (wanted.size() != at) return std::nullopt;
    return toSymDims(strides);
}

}  // namespace

/// Whether a symbolic size is floor(whole / part), where it is not known that `part` divides `whole` without a
/// remainder.
static bool isQuotient(const SymInt& size, const SymInt& whole, const SymInt& part) {
    return !size.isInt() && !(part == SymInt(0)) && !(part == SymInt(1)) && !(part == whole) &&
           !(size * part == whole) && size == floorDiv(whole, part);
}
static bool isContiguousIn(const SymDims& sizes, const SymDims& strides) {
    TensorType type;
    type.sizes = sizes;
    type.strides = strides;
    return type.isContiguous();
}
std::optional<SymDims> viewStrides(const SymDims& sizes, const SymDims& strides, const SymDims& newSizes) {
    if (numel(sizes) == SymInt(0)) return contiguousStrides(newSizes);
    if (sizes.empty()) return SymDims(newSizes.size(), SymInt(1));
    // Elements without gaps may be seen in any sizes. That there are as many is known only once symbols have numbers.
    if (!allInts(sizes) || !allInts(newSizes))
        if (isContiguousIn(sizes, strides)) return contiguousStrides(newSizes);
    SymDims out(newSizes.size());
    // Walk both shapes from the back; a run of old dims that is contiguous in memory can be cut freely.
    int64_t viewDim = static_cast<int64_t>(newSizes.size()) - 1;
    SymInt chunkBase = strides.back();
    SymInt oldNumel = 1, newNumel = 1;
    for (int64_t dim = static_cast<int64_t>(sizes.size()) - 1; dim >= 0; --dim) {
        const auto d = static_cast<size_t>(dim);
        oldNumel = oldNumel * sizes[d];
        const bool ends = dim == 0 || (!(sizes[d - 1] == SymInt(1)) && !(strides[d - 1] == oldNumel * chunkBase));
        if (!ends) continue;
        // All that is left belongs to the first run.
        while (viewDim >= 0) {
            const SymInt& size = newSizes[static_cast<size_t>(viewDim)];
            // A size like s//2 where s may be odd: a view that was traced divides evenly.
            const bool quotient = isQuotient(size, oldNumel, newNumel) && !leavesRemainder(oldNumel, newNumel);
            if (!quotient && dim != 0 && !isBelow(newNumel, oldNumel) && !(size == SymInt(1))) break;
            out[static_cast<size_t>(viewDim)] = newNumel * chunkBase;
            newNumel = quotient ? oldNumel : newNumel * size;
            --viewDim;
        }
        if (!(newNumel == oldNumel)) return std::nullopt;
        if (dim > 0) {
            chunkBase = strides[d - 1];
            oldNumel = newNumel = 1;
        }
    }
    if (viewDim != -1) return std::nullopt;
    if (auto traced = tracedViewStrides(sizes, strides, newSizes)) return traced;
    return out;
}

Result<SymDims> resolveViewSizes(const InferContext& c, const SymDims& given, const SymInt& total) {
    SymDims sizes = given;
    SymInt known = 1;
    std::optional<size_t> free;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == SymInt(-1)) {
            if (free) return c.fail("only one size may be -1");
            free = i;
        } else {
            if (exceeds(0, sizes[i])) return c.fail("negative size " + sizes[i].text());
            known = known * sizes[i];
        }
    }
    if (free) {
        if (known == SymInt(0)) return c.fail("-1 is ambiguous beside a size of 0");
        if (leavesRemainder(total, known)) return c.fail("the size does not divide " + total.text() + " elements");
        sizes[*free] = floorDiv(total, known);
    } else if (differ(known, total)) {
        return c.fail("the size has " + known.text() + " elements, the tensor " + total.text());
    }
    return sizes;
}

SymDims preservedStrides(const TensorType& like) {
    const Operand operand{like, false};
    // Dense and non-overlapping: its own strides. Otherwise the elementwise order of its dims.
    std::vector<size_t> order(like.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    if (allInts(like.sizes) && allInts(like.strides)) {
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t a, size_t b) { return like.strides[a].value() < like.strides[b].value(); });
        if (isPackedIn(order, like)) return like.strides;
    } else if (like.isContiguous()) {
        return like.strides;
    }
    return elementwiseStrides(like.sizes, std::span(&operand, 1));
}

bool isChannelsLast(const TensorType& type) {
    if (type.rank() != 4 && type.rank() != 5) return false;
    if (type.strides[1] == SymInt(0)) return false;
    SymInt least = 0;
    for (size_t dim : channelsLastOrder(type.sizes.size())) {  // strides may not fall
        if (type.sizes[dim] == SymInt(0) || !knownLessEqual(least, type.strides[dim])) return false;
        if (dim == 0 && least == type.strides[1]) return false;  // one element per sample: both layouts fit
        least = type.strides[dim];
        if (!(type.sizes[dim] == SymInt(1))) least = least * type.sizes[dim];
    }
    return true;
}

std::optional<SymDims> formatStrides(MemoryFormat format, const SymDims& sizes) {
    switch (format) {
        case MemoryFormat::ChannelsLast:
        case MemoryFormat::ChannelsLast3d: {
            const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
            if (sizes.size() != rank) return std::nullopt;
            SymDims strides(rank);
            SymInt step = 1;
            auto place = [&](size_t dim) {
                strides[dim] = step;
                step = step * max(sizes[dim], SymInt(1));
            };
            place(1);
            for (size_t dim = rank - 1; dim >= 2; --dim) place(dim);
            place(0);
            return strides;
        }
        default: return contiguousStrides(sizes);
    }
}

Result<ValueType> inferLikeFactory(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    TensorType type = TensorType::contiguous(c.dtype("dtype").value_or(self.dtype), self.sizes,
                                             c.device("device").value_or(self.device));
    const auto format = c.memoryFormat("memory_format");
    if (!format || *format == MemoryFormat::Preserve) {
        type.strides = preservedStrides(self);
    } else {
        auto strides = formatStrides(*format, self.sizes);
        if (!strides)
            return c.fail(std::string(name(*format)) + " does not fit a tensor of rank " + std::to_string(self.rank()));
        type.strides = std::move(*strides);
    }
    return ValueType(std::move(type));
}

}  // namespace cutaway
