#include "engine/ir/infer.h"

#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

int CallView::position(std::string_view param) const {
    const int found = m_op->schema() ? m_op->schema()->find(param) : -1;
    CT_CHECK(found >= 0, "a rule or kernel asks only for parameters of its own schema");
    return found;
}
const Argument& CallView::arg(std::string_view param) const { return m_args[static_cast<size_t>(position(param))]; }
bool CallView::flag(std::string_view param, bool fallback) const {
    const auto value = arg(param).asInt();
    return value ? *value != 0 : fallback;
}
double CallView::real(std::string_view param, double fallback) const { return arg(param).asReal().value_or(fallback); }
std::string CallView::text(std::string_view param) const {
    const auto* value = arg(param).get<std::string>();
    return value ? *value : std::string();
}
namespace {
template <class T>
std::optional<T> literal(const Argument& argument) {
    const T* value = argument.get<T>();
    return value ? std::optional<T>(*value) : std::nullopt;
}
}  // namespace
std::optional<DType> CallView::dtype(std::string_view param) const { return literal<DType>(arg(param)); }
std::optional<Device> CallView::device(std::string_view param) const { return literal<Device>(arg(param)); }
std::optional<MemoryFormat> CallView::memoryFormat(std::string_view param) const {
    return literal<MemoryFormat>(arg(param));
}
std::optional<Scalar> CallView::scalar(std::string_view param) const {
    const Argument& value = arg(param);
    if (const auto* flag = value.get<bool>()) return Scalar(*flag);
    if (const auto* integer = value.get<int64_t>()) return Scalar(*integer);
    if (const auto* real = value.get<double>()) return Scalar(*real);
    if (const auto* complex = value.get<std::complex<double>>()) return Scalar(*complex);
    return std::nullopt;
}

Error InferContext::fail(std::string what) const { return invalidInput(m_op->name() + ": " + std::move(what)); }

Result<Operand> InferContext::operand(size_t position) const {
    const Argument& value = m_args[position];
    if (const Node* node = value.node()) {
        if (const TensorType* type = node->type().tensor()) return Operand{*type, false};
        if (const SymType* type = node->type().sym())
            return Operand{TensorType::contiguous(type->dtype == DType::F64 ? DType::F32 : type->dtype, {}), true};
    }
    if (value.get<bool>()) return Operand{TensorType::contiguous(DType::Bool, {}), true};
    if (const auto* expr = value.get<Expr>(); value.get<int64_t>() || (expr && (*expr)->dtype != DType::F64))
        return Operand{TensorType::contiguous(DType::I64, {}), true};
    if (value.get<double>() || value.get<Expr>()) return Operand{TensorType::contiguous(DType::F32, {}), true};
    if (value.get<std::complex<double>>()) return Operand{TensorType::contiguous(DType::C64, {}), true};
    const Schema* schema = m_op->schema();
    return fail("argument '" + (schema ? schema->params[position].name : std::to_string(position)) +
                "' is not a tensor");
}
Result<TensorType> InferContext::tensor(size_t position) const {
    CT_TRY(Operand found, operand(position));
    return std::move(found.type);
}
Result<TensorType> InferContext::tensor(std::string_view param) const {
    return tensor(static_cast<size_t>(position(param)));
}
Result<std::vector<TensorType>> InferContext::tensors(std::string_view param) const {
    std::vector<TensorType> types;
    const Argument& value = arg(param);
    if (const Node* node = value.node(); node && node->type().tuple()) {  // the whole result of a split
        for (const ValueType& item : *node->type().tuple()) {
            if (!item.tensor()) return fail("'" + std::string(param) + "' holds something that is not a tensor");
            types.push_back(*item.tensor());
        }
        return types;
    }
    const auto* items = value.list();
    if (items == nullptr) return fail("'" + std::string(param) + "' is not a list of tensors");
    for (const Argument& item : *items) {
        if (item.isNone()) continue;
        const Node* node = item.node();
        if (node == nullptr || !node->type().tensor())
            return fail("'" + std::string(param) + "' holds something that is not a tensor");
        types.push_back(*node->type().tensor());
    }
    return types;
}

std::optional<SymInt> symIntOf(const Argument& argument) {
    if (auto value = argument.asInt()) return SymInt(*value);
    if (const auto* expr = argument.get<Expr>(); expr && (*expr)->dtype == DType::I64) return SymInt(*expr);
    if (const Node* node = argument.node())
        if (const SymType* type = node->type().sym(); type && type->dtype == DType::I64) return SymInt(type->expr);
    return std::nullopt;
}
Result<SymInt> InferContext::size(std::string_view param) const {
    if (auto value = symIntOf(arg(param))) return *value;
    return fail("'" + std::string(param) + "' is not an integer");
}
Result<SymDims> InferContext::sizes(std::string_view param) const {
    const int at = position(param);
    const Argument& value = m_args[static_cast<size_t>(at)];
    if (const auto* items = value.list()) {
        SymDims dims;
        for (const Argument& item : *items) {
            auto one = symIntOf(item);
            if (!one) return fail("'" + std::string(param) + "' holds something that is not an integer");
            dims.push_back(*one);
        }
        return dims;
    }
    if (auto one = symIntOf(value))
        return SymDims(static_cast<size_t>(std::max(1, m_op->schema()->params[static_cast<size_t>(at)].listSize)),
                       *one);
    return fail("'" + std::string(param) + "' is not a list of integers");
}
Result<int64_t> InferContext::integer(std::string_view param, int64_t fallback) const {
    const Argument& value = arg(param);
    if (value.isNone()) return fallback;
    if (auto number = value.asInt()) return *number;
    if (auto number = symIntOf(value); number && number->isInt()) return number->value();
    return unsupported(m_op->name() + ": '" + std::string(param) + "' is known only at run time", {},
                       {"set the sizes of the inputs, so that it becomes a number"});
}
Result<std::vector<int64_t>> InferContext::integers(std::string_view param) const {
    if (arg(param).isNone()) return std::vector<int64_t>{};
    CT_TRY(SymDims dims, sizes(param));
    if (!allInts(dims))
        return unsupported(m_op->name() + ": '" + std::string(param) + "' is known only at run time", {},
                           {"set the sizes of the inputs, so that it becomes a number"});
    return toInts(dims);
}
namespace {
Result<int64_t> wrapDim(const InferContext& context, int64_t dim, int64_t rank) {
    const int64_t range = std::max<int64_t>(rank, 1);
    if (dim < -range || dim >= range)
        return context.fail("dim " + std::to_string(dim) + " is out of range [" + std::to_string(-range) + ", " +
                            std::to_string(range - 1) + "]");
    return dim < 0 ? dim + range : dim;
}
}  // namespace
Result<int64_t> InferContext::dim(std::string_view param, int64_t rank) const {
    CT_TRY(const int64_t value, integer(param));
    return wrapDim(*this, value, rank);
}
Result<std::vector<int64_t>> InferContext::dims(std::string_view param, int64_t rank, bool emptyIsAll) const {
    CT_TRY(std::vector<int64_t> given, integers(param));
    std::vector<int64_t> wrapped;
    for (int64_t value : given) {
        CT_TRY(const int64_t one, wrapDim(*this, value, rank));
        if (std::find(wrapped.begin(), wrapped.end(), one) != wrapped.end())
            return fail("dim " + std::to_string(one) + " appears twice");
        wrapped.push_back(one);
    }
    if (given.empty() && emptyIsAll)
        for (int64_t i = 0; i < rank; ++i) wrapped.push_back(i);
    if (rank == 0) wrapped.clear();
    return wrapped;
}

namespace {
/// Throws where a tensor would have a negative size, more elements than can be counted, or, of no elements, row-major
/// strides that do not fit: all who print or copy it ask for them.
void checkSizes(const ValueType& type) {
    if (const TupleType* items = type.tuple()) std::for_each(items->begin(), items->end(), checkSizes);
    const TensorType* tensor = type.tensor();
    if (tensor == nullptr) return;
    std::vector<int64_t> numbers;
    for (const SymInt& size : tensor->sizes)
        if (size.isInt()) numbers.push_back(size.value());
    if (numel(numbers) == 0) static_cast<void>(contiguousStrides(numbers));
}
/// `reduction` of losses must be 0 (keeps every element), 1 (mean) or 2 (sum): asked here for all that have one.
Result<void> checkReduction(const Op& op, std::span<const Argument> args) {
    const int at = op.schema() ? op.schema()->find("reduction") : -1;
    if (at < 0 || op.schema()->params[static_cast<size_t>(at)].kind != ParamKind::Int) return {};
    const auto value = args[static_cast<size_t>(at)].asInt();
    if (!value || (*value >= 0 && *value <= 2)) return {};
    return invalidInput(op.name() + ": reduction is 0 (none), 1 (mean) or 2 (sum), not " + std::to_string(*value));
}
}  // namespace

Result<ValueType> inferCall(const Op& op, std::span<const Argument> args) {
    if (op.def() == nullptr || !op.def()->infer) return ValueType(OpaqueType{});
    return withCheckedSizes(op.name(), {}, [&]() -> Result<ValueType> {
        CT_TRY_VOID(checkReduction(op, args));
        CT_TRY(ValueType type, op.def()->infer(InferContext(op, args)));
        checkSizes(type);
        return type;
    });
}

DType resultType(std::span<const Operand> operands) {
    auto category = [](DType dtype) {
        if (isComplex(dtype)) return 3;
        if (isFloating(dtype)) return 2;
        return dtype == DType::Bool ? 0 : 1;
    };
    std::optional<DType> dimensioned, zero, literal;
    for (const Operand& operand : operands) {
        std::optional<DType>& slot = operand.literal ? literal : operand.type.rank() == 0 ? zero : dimensioned;
        slot = slot ? promote(*slot, operand.type.dtype) : operand.type.dtype;
    }
    std::optional<DType> result = dimensioned;
    for (const auto& weaker : {zero, literal}) {
        if (!weaker) continue;
        if (!result) result = weaker;
        else if (category(*weaker) > category(*result)) {
            // A weaker operand changes the category only. A literal float gives the default dtype; a complex literal
            // keeps the precision of the real tensor.
            if (isComplex(*weaker) && isFloating(*result))
                result = *result == DType::F64 ? DType::C128 : *result == DType::F16 ? DType::C32 : DType::C64;
            else result = *weaker;
        }
    }
    return result.value_or(DType::F32);
}

Result<SymDims> broadcastSizes(std::span<const SymDims> shapes) {
    size_t rank = 0;
    for (const SymDims& shape : shapes) rank = std::max(rank, shape.size());
    SymDims out(rank, SymInt(1));
    for (const SymDims& shape : shapes)
        for (size_t i = 0; i < shape.size(); ++i) {
            SymInt& size = out[rank - shape.size() + i];
            const SymInt& other = shape[i];
            if (other == SymInt(1) || size == other) continue;
            if (size == SymInt(1)) size = other;
            else if (differ(size, other))
                return invalidInput("sizes " + size.text() + " and " + other.text() + " do not broadcast at dim " +
                                    std::to_string(rank - shape.size() + i));
            else if (other.isInt()) size = other;  // a symbol beside a number greater than 1 must equal it
        }
    return out;
}

}  // namespace cutaway
