#include "engine/ops/eval.h"

#include <cstring>

#include "engine/ir/data_dependent.h"
#include "engine/ops/executorch.h"
#include "engine/ops/refused_argument.h"
#include "engine/support/checked.h"

namespace cutaway {

EvalResult::EvalResult(Tensor tensor) : m_state(TensorList{std::move(tensor)}) {}
EvalResult::EvalResult(TensorList tensors) : m_state(std::move(tensors)) {}
EvalResult::EvalResult(Error error) : m_state(std::move(error)) {}
EvalResult::EvalResult(Result<Tensor> tensor) {
    if (tensor) m_state = TensorList{std::move(*tensor)};
    else m_state = std::move(tensor).error();
}

Tensor EvalContext::in(size_t position) const {
    const Argument& value = arg(position);
    if (const Node* node = value.node()) {
        const TensorList& tensors = m_values->valueOf(*node);
        CT_CHECK(!tensors.empty(), "operands are evaluated before their users");
        return tensors[0];
    }
    if (const auto* flag = value.get<bool>()) return Tensor::scalar(DType::Bool, *flag);
    if (const auto* integer = value.get<int64_t>()) return Tensor::scalar(DType::I64, *integer);
    if (const auto* real = value.get<double>()) return Tensor::scalar(DType::F64, *real);
    if (const auto* complex = value.get<std::complex<double>>()) return Tensor::scalar(DType::C128, *complex);
    if (value.get<Expr>())
        if (auto number = symIntOf(value); number && number->isInt())
            return Tensor::scalar(DType::I64, number->value());
    CT_CHECK(false, "the shape rule has checked that this argument is a tensor or a number");
}
Tensor EvalContext::optional(std::string_view param) const {
    const auto at = static_cast<size_t>(position(param));
    return arg(at).isNone() ? Tensor() : in(at);
}
TensorList EvalContext::list(std::string_view param) const {
    const Argument& value = arg(param);
    if (const Node* node = value.node()) return m_values->valueOf(*node);
    TensorList tensors;
    if (const auto* items = value.list())
        for (const Argument& item : *items) {
            const Node* node = item.node();
            tensors.push_back(node ? m_values->valueOf(*node)[0] : Tensor());
        }
    return tensors;
}
Scalar EvalContext::number(std::string_view param) const {
    if (auto literal = scalar(param)) return *literal;
    if (auto size = symIntOf(arg(param)); size && size->isInt()) return size->value();
    const Tensor tensor = in(param);
    if (tensor.numel() != 1)
        throw SizeError("'" + std::string(param) + "' is not one number, but has " + std::to_string(tensor.numel()) +
                        " elements");
    return tensor.item();
}
namespace {
template <class T>
T acceptedByEval(Result<T> result) {
    if (!result) throw RefusedArgument(std::move(result).error());
    return std::move(*result);
}
}  // namespace
int64_t EvalContext::integerOr(std::string_view param, int64_t fallback) const {
    return acceptedByEval(integer(param, fallback));
}
Dims EvalContext::integersOf(std::string_view param) const { return acceptedByEval(integers(param)); }
int64_t EvalContext::dimOf(std::string_view param, int64_t rank) const { return acceptedByEval(dim(param, rank)); }
Dims EvalContext::dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const {
    return acceptedByEval(dims(param, rank, emptyIsAll));
}

const TensorType& EvalContext::resultType(size_t result) const {
    if (const TupleType* tuple = m_result->tuple()) return *(*tuple)[result].tensor();
    return *m_result->tensor();
}
Tensor EvalContext::result(size_t result) const {
    const TensorType& type = resultType(result);
    return Tensor::empty(type.dtype, toInts(type.sizes), toInts(type.strides));
}
DType EvalContext::promoted(std::initializer_list<size_t> positions) const {
    std::vector<Operand> operands;
    for (size_t position : positions) operands.push_back(acceptedByEval(operand(position)));
    return cutaway::resultType(operands);
}
Tensor EvalContext::resultView(const Tensor& source) const {
    // The graph's offset is relative to the type the operand had there; the operand at hand may itself start
    // elsewhere, so only the difference counts.
    const TensorType& type = resultType();
    const TensorType from = acceptedByEval(tensor(size_t{0}));
    const int64_t shift = checkedSub(type.offset.value(), from.offset.value());
    return source.view(toInts(type.sizes), toInts(type.strides), checkedAdd(source.offset(), shift));
}

namespace {

bool hasNumbers(const ValueType& type) {
    if (const TupleType* items = type.tuple()) return std::all_of(items->begin(), items->end(), hasNumbers);
    const TensorType* tensor = type.tensor();
    return tensor == nullptr || (allInts(tensor->sizes) && allInts(tensor->strides) && tensor->offset.isInt());
}

/// What the kernel is to give: the type that the operator's rule gives, laid out as the graph has it where that is a
/// dense order of the same sizes. Types that came with a file have been through no rule, and kernels trust theirs.
ValueType typeToGive(const Op& op, const ValueType& ruled, const ValueType& written) {
    if (!isKnown(ruled) || !hasNumbers(ruled)) return written;
    const TupleType *items = ruled.tuple(), *others = written.tuple();
    if (items && others && items->size() == others->size()) {
        TupleType all;
        for (size_t i = 0; i < items->size(); ++i) all.push_back(typeToGive(op, (*items)[i], (*others)[i]));
        return all;
    }
    const TensorType *type = ruled.tensor(), *other = written.tensor();
    if (op.is(Tag::View) || !type || !other || other->dtype != type->dtype || other->sizes != type->sizes ||
        !hasNumbers(written))
        return ruled;
    const Dims sizes = toInts(other->sizes);
    if (extent(sizes, toInts(other->strides)) != numel(sizes)) return ruled;
    TensorType laidOut = *type;
    laidOut.strides = other->strides;
    return laidOut;
}

/// Whether an expanded tensor holds each value that was just written to it.
bool keepsAll(const Tensor& written, const Tensor& source) {
    bool expanded = false;
    for (size_t d = 0; d < written.sizes().size(); ++d) expanded |= written.strides()[d] == 0 && written.sizes()[d] > 1;
    if (!expanded || written.numel() == 0) return true;
    const Tensor left = written.contiguous(), given = source.contiguous();
    return std::memcmp(left.data(), given.data(), left.bytes()) == 0;
}

EvalResult evaluateAccepted(const Op& op, std::span<const Argument> args, const ValueType& result,
                            const ValueSource& values) {
    if (const Op* base = op.functional()) {
        if (auto own = inferCall(op, args); !own)
            return std::move(own).error();  // what it writes must fit what it writes to
        auto type = inferCall(*base, args);
        if (!type) return std::move(type).error();
        EvalResult computed = base->def()->eval(EvalContext(*base, args, *type, values));
        if (!computed.ok() || base->is(Tag::View)) return computed;
        const EvalContext context(*base, args, *type, values);
        const Param& first = base->schema()->params[0];
        TensorList written = first.list ? context.list(first.name) : TensorList{context.in(size_t{0})};
        if (computed.tensors().size() != written.size())
            return context.fail("there are not as many results as tensors to write to");
        for (size_t i = 0; i < written.size(); ++i) {
            Tensor& self = written[i];
            if (self.storage()->readOnly())
                return invalidInput(op.name() + ": writes to a tensor that is a file's own memory; copy it first");
            // The kernel may have returned a view of an operand; copy through a packed tensor if storages coincide.
            Tensor source = computed.tensors()[i];
            if (source.storage() == self.storage()) source = source.clone();
            copyInto(self, source);
            if (!keepsAll(self, source))
                return invalidInput(op.name() +
                                    ": several elements of the tensor it is written to are one place in "
                                    "memory, and are given values that differ; clone it first");
        }
        if (op.schema()->returns.empty()) written.clear();
        return written;
    }
    if (op.def() == nullptr || !op.def()->eval) {
        std::string what = op.name();
        for (const Argument& arg : args)  // an operator that another one runs
            if (const auto* inner = arg.get<OpRef>(); inner && inner->op) what += " of " + inner->op->name();
        return unsupported(what + ": no reference kernel", {},
                           {op.isOpaque() ? std::string(adviceOnUnknown(op)) : "decompose it first"});
    }
    auto type = inferCall(op, args);
    // Where values decide the sizes, the type that was written (with symbols of its own) stands.
    if (!type && sizeDependsOnData(op, args) && isKnown(result))
        return op.def()->eval(EvalContext(op, args, result, values));
    if (!type) return std::move(type).error();
    return op.def()->eval(EvalContext(op, args, typeToGive(op, *type, result), values));
}

}  // namespace

EvalResult evaluateCall(const Op& op, std::span<const Argument> args, const ValueType& result,
                        const ValueSource& values) {
    try {
        return withCheckedSizes(op.name(), {}, [&] { return evaluateAccepted(op, args, result, values); });
    } catch (const RefusedArgument& refusal) {
        return refusal.error();
    }
}

}  // namespace cutaway
