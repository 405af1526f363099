#include "engine/ops/index_rules.h"

#include "engine/ops/packed.h"

namespace cutaway {

Result<IndexPlan> planIndex(const InferContext& c, const SymDims& self,
                            const std::vector<std::optional<SymDims>>& shapes) {
    if (shapes.size() > self.size())
        return c.fail(std::to_string(shapes.size()) + " indices for a tensor of " + std::to_string(self.size()) +
                      " dims");
    IndexPlan plan;
    std::vector<SymDims> given;
    for (size_t dim = 0; dim < shapes.size(); ++dim)
        if (shapes[dim]) {
            plan.indexed.push_back(dim);
            given.push_back(*shapes[dim]);
        }
    auto broadcast = broadcastSizes(given);
    if (!broadcast) return c.fail("the indices do not broadcast: " + broadcast.error().message);
    plan.indexSizes = std::move(*broadcast);
    const bool adjacent =
        !plan.indexed.empty() && plan.indexed.back() - plan.indexed.front() + 1 == plan.indexed.size();
    for (size_t dim = 0; dim < self.size(); ++dim) {
        if (std::find(plan.indexed.begin(), plan.indexed.end(), dim) != plan.indexed.end()) continue;
        const bool first = plan.indexed.empty() || (adjacent && dim < plan.indexed.front());
        (first ? plan.before : plan.after).push_back(dim);
    }
    for (size_t dim : plan.before) plan.sizes.push_back(self[dim]);
    plan.sizes.insert(plan.sizes.end(), plan.indexSizes.begin(), plan.indexSizes.end());
    for (size_t dim : plan.after) plan.sizes.push_back(self[dim]);
    return plan;
}

Result<std::vector<std::optional<TensorType>>> indexTypes(const InferContext& c, std::string_view param) {
    const auto* items = c.arg(param).list();
    if (items == nullptr) return c.fail("'" + std::string(param) + "' is not a list of tensors");
    std::vector<std::optional<TensorType>> types;
    for (const Argument& item : *items) {
        if (item.isNone()) {
            types.emplace_back();
            continue;
        }
        const Node* node = item.node();
        const TensorType* type = node ? node->type().tensor() : nullptr;
        if (type == nullptr) return c.fail("'" + std::string(param) + "' holds something that is not a tensor");
        const bool allowed = type->dtype == DType::I64 || type->dtype == DType::I32 || type->dtype == DType::Bool ||
                             type->dtype == DType::U8;
        if (!allowed)
            return c.fail("an index of dtype " + std::string(info(type->dtype).torchName) +
                          "; use int64, int32 or bool");
        types.emplace_back(*type);
    }
    return types;
}

Result<IndexPlan> planCall(const InferContext& c, const TensorType& self, std::string_view param) {
    CT_TRY(const auto types, indexTypes(c, param));
    std::vector<std::optional<SymDims>> shapes;
    for (const auto& type : types) {
        if (type && (type->dtype == DType::Bool || type->dtype == DType::U8))
            return unsupported(c.op().name() + ": the number of elements that a mask selects is known only at run time",
                               {}, {"use where or masked_fill, which keep the shape"});
        shapes.push_back(type ? std::optional(type->sizes) : std::nullopt);
    }
    CT_TRY(IndexPlan plan, planIndex(c, self.sizes, shapes));
    if (plan.indexed.empty()) return c.fail("needs at least one index");
    return plan;
}

TensorType indexedType(const TensorType& self, const IndexPlan& plan) {
    TensorType type = TensorType::contiguous(self.dtype, plan.sizes, self.device);
    if (numel(self.sizes) == SymInt(0)) return type;
    // The indexed dims contribute no order of their own: stride 0.
    Operand kept{type, false};
    kept.type.strides.clear();
    for (size_t dim : plan.before) kept.type.strides.push_back(self.strides[dim]);
    kept.type.strides.insert(kept.type.strides.end(), plan.indexSizes.size(), SymInt(0));
    for (size_t dim : plan.after) kept.type.strides.push_back(self.strides[dim]);
    type.strides = elementwiseStrides(plan.sizes, std::span(&kept, 1));
    return type;
}

std::vector<Expr> indexedElement(LowerContext& c, const TensorType& self, size_t operand, const IndexPlan& plan,
                                 const std::vector<Expr>& position, Outside outside) {
    auto types = indexTypes(c, c.op().schema()->params[operand].name);
    if (!types) return {};
    const size_t first = plan.before.size(), count = plan.indexSizes.size();
    std::vector<Expr> at(self.sizes.size());
    for (size_t i = 0; i < first; ++i) at[plan.before[i]] = position[i];
    for (size_t i = 0; i < plan.after.size(); ++i) at[plan.after[i]] = position[first + count + i];
    for (size_t dim : plan.indexed) {
        const SymDims& sizes = (*types)[dim]->sizes;
        std::vector<Expr> where;
        for (size_t i = 0; i < sizes.size(); ++i)
            where.push_back(sizes[i] == SymInt(1) ? Expr::integer(0) : position[first + count - sizes.size() + i]);
        Expr index = Expr::cast(c.loadItemAt(operand, dim, where), DType::I64);
        const SymInt& size = self.sizes[dim];
        if (outside == Outside::Clamped)
            index = Expr::make(ExprKind::Max, {Expr::make(ExprKind::Min, {index, (size - SymInt(1)).expr()}),
                                               (SymInt(0) - size).expr()});
        at[dim] = LowerContext::wrappedIndex(index, size);
    }
    return at;
}

std::vector<int64_t> boxOffsets(const Dims& sizes, const Dims& strides) {
    std::vector<int64_t> offsets{0};
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
        std::vector<int64_t> next;
        next.reserve(offsets.size() * static_cast<size_t>(sizes[dim]));
        for (int64_t base : offsets)
            for (int64_t i = 0; i < sizes[dim]; ++i) next.push_back(base + i * strides[dim]);
        offsets = std::move(next);
    }
    return offsets;
}

namespace {

/// One int64 index tensor per indexed dim: a mask over several dims becomes as many, the coordinates where it holds.
Result<std::vector<std::optional<Tensor>>> integerIndices(const InferContext& c, const Dims& sizes,
                                                          const TensorList& indices) {
    std::vector<std::optional<Tensor>> out;
    for (const Tensor& index : indices) {
        if (!index.defined()) {
            out.emplace_back();
            continue;
        }
        if (index.dtype() != DType::Bool && index.dtype() != DType::U8) {
            out.emplace_back(index);
            continue;
        }
        for (int64_t dim = 0; dim < index.rank(); ++dim)
            if (out.size() + static_cast<size_t>(dim) >= sizes.size() ||
                index.size(dim) != sizes[out.size() + static_cast<size_t>(dim)])
                return c.fail("a mask does not have the shape of the dims it indexes");
        const std::vector<int64_t> holds = packElements<int64_t>(index);
        std::vector<int64_t> positions;
        for (size_t i = 0; i < holds.size(); ++i)
            if (holds[i] != 0) positions.push_back(static_cast<int64_t>(i));
        int64_t step = index.numel();
        for (int64_t dim = 0; dim < index.rank(); ++dim) {
            step /= std::max<int64_t>(index.size(dim), 1);
            Tensor coordinates = Tensor::empty(DType::I64, {static_cast<int64_t>(positions.size())});
            for (size_t i = 0; i < positions.size(); ++i)
                coordinates.as<int64_t>()[i] = positions[i] / std::max<int64_t>(step, 1) % index.size(dim);
            out.emplace_back(coordinates);
        }
    }
    return out;
}

}  // namespace

std::optional<Error> negativeIndex(const InferContext& c, const Tensor& index) {
    for (const int64_t value : packElements<int64_t>(index))
        if (value < 0) return c.fail("index " + std::to_string(value) + " is out of range; indices count from 0 here");
    return std::nullopt;
}

Result<IndexTables> indexTables(const InferContext& c, const Dims& sizes, const Dims& strides,
                                const TensorList& indices) {
    CT_TRY(const auto integers, integerIndices(c, sizes, indices));
    std::vector<std::optional<SymDims>> shapes;
    for (const auto& index : integers)
        shapes.push_back(index ? std::optional(toSymDims(index->sizes())) : std::nullopt);
    IndexTables tables;
    CT_TRY(tables.plan, planIndex(c, toSymDims(sizes), shapes));
    const Dims indexSizes = toInts(tables.plan.indexSizes);
    tables.index.assign(static_cast<size_t>(numel(indexSizes)), 0);
    for (size_t dim : tables.plan.indexed) {
        const std::vector<int64_t> values = packElements<int64_t>(broadcastTo(*integers[dim], indexSizes));
        for (size_t i = 0; i < values.size(); ++i) {
            if (values[i] < -sizes[dim] || values[i] >= sizes[dim])
                return c.fail("index " + std::to_string(values[i]) + " is out of range for dim " + std::to_string(dim) +
                              " of size " + std::to_string(sizes[dim]));
            tables.index[i] += (values[i] < 0 ? values[i] + sizes[dim] : values[i]) * strides[dim];
        }
    }
    auto group = [&](const std::vector<size_t>& dims) {
        Dims groupSizes, groupStrides;
        for (size_t dim : dims) {
            groupSizes.push_back(sizes[dim]);
            groupStrides.push_back(strides[dim]);
        }
        return boxOffsets(groupSizes, groupStrides);
    };
    tables.before = group(tables.plan.before);
    tables.after = group(tables.plan.after);
    return tables;
}

}  // namespace cutaway
