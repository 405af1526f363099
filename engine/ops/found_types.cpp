#include "engine/ops/found_types.h"

#include "engine/ir/graph.h"
#include "engine/ir/infer.h"

namespace cutaway {
namespace {

using NewSymbol = std::function<Expr(DType)>;

bool isMask(const TensorType* type) { return type && (type->dtype == DType::Bool || type->dtype == DType::U8); }

/// Masks are as many positions as they have true elements, an index for each of their dims.
std::optional<ValueType> masked(const Op& op, std::span<const Argument> args, const NewSymbol& newSymbol) {
    const auto* indices = args.size() == 2 ? args[1].list() : nullptr;
    if (indices == nullptr) return std::nullopt;
    Graph scratch;
    std::optional<SymInt> count;  // of all masks, whose positions are paired
    std::vector<Argument> positions;
    for (const Argument& item : *indices) {
        const TensorType* type = item.node() ? item.node()->type().tensor() : nullptr;
        if (!isMask(type)) {
            positions.push_back(item);
            continue;
        }
        if (!count) count = SymInt(newSymbol(DType::I64));
        for (size_t dim = 0; dim < type->sizes.size(); ++dim)
            positions.emplace_back(
                &scratch.placeholder("positions", TensorType::contiguous(DType::I64, {*count}, type->device)));
    }
    const Argument given[] = {args[0], Argument(std::move(positions))};
    auto type = count ? inferCall(op, given) : Result<ValueType>(Error{});
    if (!type) return std::nullopt;
    return std::move(*type);
}

}  // namespace

std::optional<ValueType> typeOfFound(const Op& op, std::span<const Argument> args, const NewSymbol& newSymbol) {
    const TensorType* self = !args.empty() && args[0].node() ? args[0].node()->type().tensor() : nullptr;
    const std::string& name = op.name();
    if (self == nullptr) return std::nullopt;
    if (name == "aten.index.Tensor") return masked(op, args, newSymbol);
    if (name == "aten.masked_select.default")
        return ValueType(TensorType::contiguous(self->dtype, {SymInt(newSymbol(DType::I64))}, self->device));
    if (name == "aten.nonzero.default" || name == "aten.argwhere.default") {
        const SymInt count(newSymbol(DType::I64));
        TensorType type = TensorType::contiguous(DType::I64, {count, SymInt(self->rank())}, self->device);
        type.strides = {SymInt(1), count};
        return ValueType(std::move(type));
    }
    if (name != "aten.item.default" && name != "aten._local_scalar_dense.default") return std::nullopt;
    if (isFloating(self->dtype)) return ValueType(SymType{DType::F64, newSymbol(DType::F64)});
    if (isComplex(self->dtype)) return std::nullopt;
    const Expr number = newSymbol(DType::I64);
    if (self->dtype != DType::Bool) return ValueType(SymType{DType::I64, number});
    return ValueType(SymType{DType::Bool, Expr::make(ExprKind::Eq, {number, Expr::integer(1)}, DType::Bool)});
}

}  // namespace cutaway
