#include "engine/numerics/raise.h"

#include "engine/interpret/higher_order.h"

namespace cutaway {
namespace {

ValueType raisedType(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) {
        TensorType out = *tensor;
        out.dtype = raised(out.dtype);
        return out;
    }
    if (const TupleType* items = type.tuple()) {
        TupleType out;
        for (const ValueType& item : *items) out.push_back(raisedType(item));
        return out;
    }
    return type;
}

Argument raisedArgument(const Argument& argument) {
    if (const auto* dtype = argument.get<DType>()) return raised(*dtype);
    if (const auto* items = argument.get<ArgumentList>()) {
        ArgumentList out{{}, items->tuple};
        for (const Argument& item : items->items) out.items.push_back(raisedArgument(item));
        return out;
    }
    return argument;
}

bool sameShape(const ValueType& a, const ValueType& b) {
    if (const TensorType* x = a.tensor(), *y = b.tensor(); x && y) return x->dtype == y->dtype && x->sizes == y->sizes;
    if (const TupleType* x = a.tuple(), *y = b.tuple(); x && y)
        return x->size() == y->size() && std::equal(x->begin(), x->end(), y->begin(), sameShape);
    return a.sym() && b.sym();
}

/// The values in the dtypes of a type, with the layouts that they have.
TensorList inDtypesOf(const TensorList& values, const ValueType& type) {
    TensorList out;
    for (size_t i = 0; i < values.size(); ++i) {
        const TensorType* tensor = type.tensor();
        if (const TupleType* items = type.tuple()) tensor = i < items->size() ? (*items)[i].tensor() : nullptr;
        if (!tensor || !values[i].defined() || values[i].dtype() == tensor->dtype) {
            out.push_back(values[i]);
            continue;
        }
        // to() packs; a dense layout is kept, since kernels may rely on what the type says.
        Tensor laidOut = values[i].to(tensor->dtype);
        if (allInts(tensor->strides) && laidOut.strides() != toInts(tensor->strides)) {
            const Dims strides = toInts(tensor->strides);
            if (extent(laidOut.sizes(), strides) == laidOut.numel()) laidOut = laidOut.clone(strides);
        }
        out.push_back(std::move(laidOut));
    }
    return out;
}

}  // namespace

DType raised(DType dtype) { return isComplex(dtype) ? DType::C128 : isFloating(dtype) ? DType::F64 : dtype; }

RaisedGraph raiseDtypes(const Module& module) {
    RaisedGraph out{std::make_shared<Module>(module), {}};
    Graph& graph = out.module->graph();
    for (Node& node : graph.nodes()) {
        if (node.isOutput()) continue;
        ValueType wanted = raisedType(node.type());
        if (node.isCall() && !isHigherOrder(node.op().name()) && node.op().schema() != nullptr) {
            std::vector<Argument> args;
            for (const Argument& arg : node.args()) args.push_back(raisedArgument(arg));
            const auto type = inferCall(node.op(), args);
            if (type && sameShape(*type, wanted)) graph.setArgs(node, std::move(args));
            else out.own.insert(node.id());
        } else if (node.isCall()) {
            out.own.insert(node.id());
        }
        graph.setType(node, std::move(wanted));
    }
    return out;
}

Tensor RaisedInterpreter::given(const Node& node, Tensor value) {
    // Values that the graph writes to are held in f64.
    return writesTo(node) && node.type().tensor() ? inDtypesOf({std::move(value)}, node.type())[0] : value;
}

const TensorList& RaisedInterpreter::valueOf(const Node& node) const {
    const TensorList& held = Interpreter::valueOf(node);
    if (node.isCall() || writesTo(node) || held.size() != 1 || !held[0].defined()) return held;
    if (raised(held[0].dtype()) == held[0].dtype()) return held;
    TensorList& read = m_read[node.id()];
    if (read.empty()) read = inDtypesOf(held, node.type());
    return read;
}

Result<TensorList> RaisedInterpreter::compute(const Node& node) {
    m_read.clear();
    auto result = m_own.contains(node.id()) ? computeAsWritten(node) : Interpreter::compute(node);
    // A kernel that refuses f64 is not a fault of the graph: the call runs in its own dtypes.
    if (!result && !m_own.contains(node.id()) && result.error().code != ErrorCode::Cancelled)
        result = computeAsWritten(node);
    m_read.clear();
    return result;
}

Result<TensorList> RaisedInterpreter::computeAsWritten(const Node& node) {
    struct Lowered : ValueSource {
        const RaisedInterpreter* of = nullptr;
        mutable std::map<NodeId, TensorList> lists;
        const TensorList& valueOf(const Node& operand) const override {
            TensorList& list = lists[operand.id()];
            if (list.empty()) list = inDtypesOf(of->Interpreter::valueOf(operand), operand.type());
            return list;
        }
    } lowered;
    lowered.of = this;
    const Node* written = m_plain.graph().find(node.id());
    m_ops.insert(node.op().name());
    TensorList values;
    if (isHigherOrder(node.op().name())) {
        InterpretOptions inner;
        inner.cancel = options().cancel;
        const RunGraph run = [&](const Module& body, const std::vector<Tensor>& inputs) {
            return interpret(body, inputs, inner);
        };
        CT_TRY(values, evaluateHigherOrder(m_plain, *written, lowered, run));
    } else {
        EvalResult result = evaluateCall(written->op(), written->args(), written->type(), lowered);
        if (!result.ok()) return std::move(result.error());
        values = std::move(result.tensors());
    }
    if (node.op().mutates())
        for (auto& [id, lists] : lowered.lists) {
            const TensorList& held = Interpreter::valueOf(*module().graph().find(id));
            for (size_t i = 0; i < lists.size(); ++i)
                if (Tensor to = held[i]; to.defined() && to.storage() != lists[i].storage()) copyInto(to, lists[i]);
        }
    return inDtypesOf(values, node.type());
}

}  // namespace cutaway
