#include "engine/interpret/interpreter.h"

#include "cutaway/guarded.h"
#include "engine/expr/evaluate.h"
#include "engine/interpret/higher_order.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/ops/alias.h"
#include "engine/ops/library_kernels.h"
#include "engine/ops/spoiled_value.h"

namespace cutaway {
bool writesToMemory(const Graph& graph) {
    for (const Node& node : graph.nodes())
        if (node.isCall() && node.op().mutates()) return true;
    return false;
}

Interpreter::Interpreter(const Module& module, Module* editable, const InterpretOptions& options)
    : m_module(module),
      m_editable(editable),
      m_options(options),
      m_faults(faultsAsked()),
      m_values(module.graph().idLimit()),
      m_readsLeft(module.graph().idLimit(), 0) {
    for (Node& node : module.graph().nodes()) {
        m_readsLeft[index(node.id())] = static_cast<int>(node.users().size());
        m_mutates |= writesOperands(node);
    }
    if (m_mutates) m_written = writtenNodes(module.graph());
}

void Interpreter::dropResults() {
    if (const Node* output = m_module.graph().outputNode())
        for (const Node* value : output->inputs()) --m_readsLeft[index(value->id())];
}

void Interpreter::begin(const std::vector<Tensor>& inputs) {
    m_inputs = inputs;
    m_next = m_module.graph().first();
    if (!m_mutates) return;
    // Other inputs over the storage of an input that is written to see the write, too.
    size_t position = 0;
    for (const Node* input : m_module.graph().placeholders())
        if (const Tensor& value = m_inputs[position++]; value.defined() && writesTo(*input))
            m_changed.insert(value.storage());
}

Result<std::vector<Tensor>> Interpreter::run(const std::vector<Tensor>& inputs) {
    begin(inputs);
    while (m_next != nullptr) CT_TRY_VOID(advance());
    if (m_module.graph().outputNode() == nullptr) return invalidInput("the graph has no output");
    return std::move(m_results);
}

Result<void> Interpreter::advance() {
    Node& node = *m_next;
    TensorList& values = m_values[index(node.id())];
    if (m_options.cancel && m_options.cancel->cancelled())
        return Error{ErrorCode::Cancelled, "cancelled", node.name(), {}};
    if (m_options.begin) m_options.begin(node);
    switch (node.kind()) {
        case NodeKind::Placeholder: {
            Tensor input = std::move(m_inputs[m_nextInput++]);
            if (const TensorType* type = node.type().tensor();
                type && input.defined() && allInts(type->sizes) && input.sizes() == toInts(type->sizes))
                input = laidOutAs(input, *type);
            if (input.defined()) input = given(node, ownIfWritten(node, input));
            values = {std::move(input)};
            break;
        }
        case NodeKind::GetAttr: {
            CT_TRY(const Tensor value, attribute(node));
            values = {given(node, ownIfWritten(node, value))};
            break;
        }
        case NodeKind::Call: {
            if (auto done = guarded([&] { return m_faults ? evaluateFaulty(node) : evaluate(node); }); !done) {
                if (done.error().where.empty()) done.error().where = node.name();
                return std::move(done).error();
            }
            if (m_options.exchange) m_options.exchange(node, values);
            break;
        }
        case NodeKind::Output: {
            CT_TRY(m_results, outputs(m_module.graph()));
            m_next = nullptr;
            return {};
        }
    }
    if (m_options.observe) m_options.observe(node, values);
    releaseOperands(node);
    m_next = node.next();
    return {};
}

/// The caller's tensors, a file's own memory perhaps, are safe from calls in place. Weights that nothing is written to
/// are not copied.
Tensor Interpreter::ownIfWritten(const Node& node, const Tensor& tensor) {
    if (!m_mutates) return tensor;
    if (writesTo(node) || m_changed.contains(tensor.storage())) return ownCopy(tensor);
    m_given.insert(tensor.storage().get());
    return tensor;
}

/// The types foresee which values share memory, but values may share more: memory that was given and not copied is
/// copied here, right before a call writes to it.
void Interpreter::protectGiven(const Node& node) {
    for (const Node* target : writtenOperands(node))
        for (const Tensor& value : TensorList(m_values[index(target->id())])) {
            if (!value.defined() || m_given.erase(value.storage().get()) == 0) continue;
            const auto from = value.storage();
            const auto copy = ownCopy(value).storage();
            m_changed.insert(from);
            forEachHeld([&](Tensor& held, bool, NodeId) {
                if (held.storage() == from)
                    held = Tensor(copy, held.dtype(), held.sizes(), held.strides(), held.offset(), held.device());
            });
        }
}

/// Same strides where they are dense, shared storages copied once each so that aliases stay aliases.
Tensor Interpreter::ownCopy(const Tensor& tensor) {
    std::shared_ptr<Storage>& copy = m_copies[tensor.storage()];
    if (!copy) {
        copy = Storage::allocateUninitialized(tensor.storage()->size());
        std::memcpy(copy->data(), tensor.storage()->data(), tensor.storage()->size());
    }
    return Tensor(copy, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset(), tensor.device());
}

Result<TensorList> Interpreter::compute(const Node& node) {
    if (isHigherOrder(node.op().name())) {
        InterpretOptions inner;
        inner.cancel = m_options.cancel;
        inner.begin = m_options.begin;
        inner.pure = m_options.pure;
        const RunGraph run = [&](const Module& body, const std::vector<Tensor>& inputs) {
            return interpret(body, inputs, inner);
        };
        return evaluateHigherOrder(m_module, node, *this, run);
    }
    CT_TRY_VOID(checkOperands(node));
    if (m_options.compute) {
        CT_TRY(auto computed, m_options.compute(node, *this));
        if (computed) return std::move(*computed);
    }
    const WithoutLibraryKernels pure(m_options.pure);
    EvalResult result = evaluateCall(node.op(), node.args(), node.type(), *this);
    if (result.ok()) return std::move(result.tensors());
    result.error().where = node.name();
    return std::move(result.error());
}

Result<void> Interpreter::evaluate(const Node& node) {
    // A symbolic number: its type has the expression, whose symbols are numbers by now, so no kernel runs.
    if (const SymType* type = node.type().sym(); type && type->expr)
        if (const auto number = literalScalar(type->expr)) {
            m_values[index(node.id())] = {Tensor::scalar(type->dtype, *number)};
            return {};
        }
    if (m_mutates && writesOperands(node)) protectGiven(node);
    TensorList& value = m_values[index(node.id())];
    CT_TRY(value, compute(node));
    // Views go by the strides that are written: a scan over a transposed tensor gives one.
    const TensorType* type = node.type().tensor();
    if (type && node.isCall("operator.getitem") && isHigherOrder(node.arg(0).node()->op().name()) &&
        value.size() == 1 && value[0].defined() && value[0].dtype() == type->dtype && allInts(type->sizes) &&
        value[0].sizes() == toInts(type->sizes))
        value[0] = laidOutAs(value[0], *type);
    // A float that is read from a tensor is Python's, whatever the tensor's dtype was.
    if (const SymType* number = node.type().sym(); number && number->dtype == DType::F64 && value.size() == 1)
        value[0] = value[0].to(DType::F64);
    return learnSymbols(node);
}

Result<void> Interpreter::evaluateFaulty(const Node& node) {
    faultPoint("op", node.op().name());
    CT_TRY_VOID(evaluate(node));
    spoilValue(node.op(), faultEffect("op", node.op().name()), m_values[index(node.id())]);
    return {};
}

/// Kernels rely on the types of the graph, which a file may have wrong. For one of several results the getitem's
/// own type counts: PyTorch's tracing writes an LSTM's states with a dim that its kernel does not give.
Result<void> Interpreter::checkOperands(const Node& node) const {
    std::optional<Error> wrong;
    const auto look = [&](const ValueType& written, const Tensor& value, const Node& input) {
        const TensorType* type = written.tensor();
        if (wrong || !type || !value.defined() || !allInts(type->sizes)) return;
        if (value.dtype() == type->dtype && value.sizes() == toInts(type->sizes)) return;
        wrong = invalidInput("'" + input.name() + "' is written as " + type->text() + ", and is " +
                                 TensorType::contiguous(value.dtype(), toSymDims(value.sizes())).text(),
                             node.name());
    };
    if (node.isCall("operator.getitem")) return {};
    node.forEachInput([&](const Node* input) {
        const TensorList& values = valueOf(*input);
        if (const TupleType* items = input->type().tuple())
            for (size_t i = 0; i < std::min(items->size(), values.size()); ++i) look((*items)[i], values[i], *input);
        else if (values.size() == 1) look(input->type(), values[0], *input);
    });
    return wrong ? Result<void>(std::move(*wrong)) : Result<void>();
}

/// Sizes that depend on data get their numbers from the value just computed.
Result<void> Interpreter::learnSymbols(const Node& node) {
    if (m_editable == nullptr) return {};
    const TensorList& values = m_values[index(node.id())];
    SymbolValues learned;
    const auto look = [&](const ValueType& type, const Tensor& value) {
        const TensorType* tensor = type.tensor();
        for (size_t i = 0; tensor && value.defined() && i < tensor->sizes.size() && i < value.sizes().size(); ++i)
            if (!tensor->sizes[i].isInt() && tensor->sizes[i].expr()->kind == ExprKind::Symbol)
                learned.emplace(tensor->sizes[i].expr()->name, value.sizes()[i]);
        if (const SymType* symbol = type.sym();
            symbol && symbol->expr && symbol->expr->kind == ExprKind::Symbol && value.defined() && value.numel() == 1)
            learned.emplace(symbol->expr->name, symbolValue(symbol->expr->name, value));
    };
    if (const std::string number = unbackedNumber(node);
        !number.empty() && !values.empty() && values[0].defined() && values[0].numel() == 1)
        learned.emplace(number, symbolValue(number, values[0]));
    if (const TupleType* tuple = node.type().tuple())
        for (size_t i = 0; i < std::min(tuple->size(), values.size()); ++i) look((*tuple)[i], values[i]);
    else if (!values.empty()) look(node.type(), values[0]);
    return learned.empty() ? Result<void>() : specialize(*m_editable, learned);
}

/// Values are dropped after their last reader, so memory stays near the graph's peak.
void Interpreter::releaseOperands(const Node& node) {
    if (!node.isPlaceholder() && m_readsLeft[index(node.id())] == 0) m_values[index(node.id())].clear();
    for (Node* input : node.inputs()) release(*input);
}

Result<std::vector<Tensor>> Interpreter::outputs(const Graph& graph) {
    std::vector<Tensor> results;
    for (const Argument& value : graph.outputs()) {
        if (const Node* node = value.node()) {
            const TensorList& tensors = m_values[index(node->id())];
            if (tensors.size() != 1)
                return unsupported("returns '" + node->name() + "', which is not one tensor", "output",
                                   {"return its items"});
            results.push_back(tensors[0]);
        } else if (value.isNone() || value.get<std::string>()) results.emplace_back();
        else if (const bool* flag = value.get<bool>()) results.push_back(Tensor::scalar(DType::Bool, *flag));
        else if (auto number = value.asInt()) results.push_back(Tensor::scalar(DType::I64, *number));
        else if (auto real = value.asReal()) results.push_back(Tensor::scalar(DType::F64, *real));
        else return unsupported("returns something that is not a tensor or a number", "output");
    }
    return results;
}

}  // namespace cutaway
