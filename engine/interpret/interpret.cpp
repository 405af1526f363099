#include "engine/interpret/interpret.h"

#include "engine/ops/torch/torch_calls.h"
#include "engine/support/random.h"

namespace cutaway {
namespace {

class Interpreter : public ValueSource {
  public:
    Interpreter(const Module& module, const InterpretOptions& options)
        : m_module(module), m_options(options), m_values(module.graph().idLimit()), m_readsLeft(module.graph().idLimit(), 0) {}

    const TensorList& valueOf(const Node& node) const override { return m_values[index(node.id())]; }

    Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
        const Graph& graph = m_module.graph();
        bool mutates = false;
        for (Node& node : graph.nodes()) {
            m_readsLeft[index(node.id())] = static_cast<int>(node.users().size());
            mutates |= node.isCall() && node.op().mutates();
        }
        size_t nextInput = 0;
        for (Node& node : graph.nodes()) {
            if (m_options.cancel && m_options.cancel->cancelled()) return Error{ErrorCode::Cancelled, "cancelled", node.name(), {}};
            switch (node.kind()) {
                case NodeKind::Placeholder: {
                    // Copies keep the caller's tensors (a file's own memory, perhaps) safe from in-place ops.
                    Tensor input = inputs[nextInput++];
                    if (mutates && input.defined()) input = ownCopy(input);
                    m_values[index(node.id())] = {input};
                    break;
                }
                case NodeKind::GetAttr: {
                    auto found = m_module.tensors.find(node.target());
                    if (found == m_module.tensors.end())
                        return unsupported("no data for attribute '" + node.target() + "'", node.name(),
                                           {"the file holds the graph without this tensor's values"});
                    m_values[index(node.id())] = {mutates ? ownCopy(found->second) : found->second};
                    break;
                }
                case NodeKind::Call: {
                    CT_TRY_VOID(evaluate(node));
                    break;
                }
                case NodeKind::Output: return outputs(graph);
            }
            if (m_options.observe) m_options.observe(node, m_values[index(node.id())]);
            release(node);
        }
        return invalidInput("the graph has no output");
    }

  private:
    /// Same strides where they are dense, shared storages copied once each so that aliases stay aliases.
    Tensor ownCopy(const Tensor& tensor) {
        std::shared_ptr<Storage>& copy = m_copies[tensor.storage().get()];
        if (!copy) {
            copy = Storage::allocateUninitialized(tensor.storage()->size());
            std::memcpy(copy->data(), tensor.storage()->data(), tensor.storage()->size());
        }
        return Tensor(copy, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset(), tensor.device());
    }

    Result<void> evaluate(const Node& node) {
        EvalResult result = evaluateCall(node.op(), node.args(), node.type(), *this);
        if (!result.ok()) {
            Error error = std::move(result.error());
            error.where = node.name();
            return error;
        }
        m_values[index(node.id())] = std::move(result.tensors());
        return {};
    }

    /// Values are dropped after their last reader, so memory stays near the graph's peak.
    void release(const Node& node) {
        if (!node.hasUsers() && !node.isPlaceholder()) m_values[index(node.id())].clear();
        for (Node* input : node.inputs())
            if (--m_readsLeft[index(input->id())] == 0) m_values[index(input->id())].clear();
    }

    Result<std::vector<Tensor>> outputs(const Graph& graph) {
        std::vector<Tensor> results;
        for (const Argument& value : graph.outputs()) {
            if (const Node* node = value.node()) results.push_back(m_values[index(node->id())].at(0));
            else if (value.isNone()) results.emplace_back();
            else if (auto number = value.asInt()) results.push_back(Tensor::scalar(DType::I64, *number));
            else if (auto real = value.asReal()) results.push_back(Tensor::scalar(DType::F64, *real));
            else return unsupported("returns something that is not a tensor or a number", "output");
        }
        return results;
    }

    const Module& m_module;
    const InterpretOptions& m_options;
    std::vector<TensorList> m_values;
    std::vector<int> m_readsLeft;
    std::map<const Storage*, std::shared_ptr<Storage>> m_copies;  // looked up by address, never iterated
};

}  // namespace

Result<std::vector<Tensor>> interpret(const Module& module, const std::vector<Tensor>& inputs, const InterpretOptions& options) {
    const size_t expected = module.graph().placeholders().size();
    if (inputs.size() != expected)
        return invalidInput("the graph takes " + std::to_string(expected) + " inputs, " + std::to_string(inputs.size()) + " were given");
    if (!hasTorchCalls(module)) return Interpreter(module, options).run(inputs);
    // Python's calls run as the ATen calls they stand for; nodes keep their ids, so observers see them as they are.
    Module lowered(module);
    CT_TRY_VOID(lowerTorchCalls(lowered));
    InterpretOptions inner = options;
    if (options.observe)
        inner.observe = [&](const Node& node, const TensorList& values) {
            if (const Node* own = module.graph().find(node.id())) options.observe(*own, values);
        };
    return Interpreter(lowered, inner).run(inputs);
}

Result<std::vector<Tensor>> bindInputs(const Module& module, const std::vector<Tensor>& user) {
    std::vector<Tensor> bound;
    size_t nextUser = 0;
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const Node& node = *placeholders[i];
        const InputSpec spec = i < module.inputs.size() ? module.inputs[i] : InputSpec{};
        Tensor value;
        if (spec.kind == InputSpec::Kind::UserInput || spec.kind == InputSpec::Kind::Tangent) {
            if (nextUser >= user.size()) return invalidInput("no value for input '" + node.name() + "'", node.name());
            value = user[nextUser++];
        } else if (auto found = module.tensors.find(spec.target); found != module.tensors.end()) {
            value = found->second;
        } else if (spec.kind == InputSpec::Kind::ConstantInput) {
            bound.emplace_back();
            continue;
        } else {
            return Error{ErrorCode::NotFound, "no data for '" + spec.target + "'", node.name(), {"the file holds the graph without this tensor's payload"}};
        }
        if (const TensorType* type = node.type().tensor()) {
            if (value.dtype() != type->dtype || (allInts(type->sizes) && value.sizes() != toInts(type->sizes))) {
                TensorType got = TensorType::contiguous(value.dtype(), toSymDims(value.sizes()));
                return invalidInput("input '" + node.name() + "' is " + got.text() + ", the graph wants " + type->text(), node.name());
            }
        }
        bound.push_back(std::move(value));
    }
    if (nextUser != user.size())
        return invalidInput(std::to_string(user.size()) + " inputs were given, the graph takes " + std::to_string(nextUser));
    return bound;
}

Result<std::vector<Tensor>> randomInputs(const Module& module, uint64_t seed) {
    std::vector<Tensor> values;
    Random random(seed);
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const auto kind = i < module.inputs.size() ? module.inputs[i].kind : InputSpec::Kind::UserInput;
        if (kind != InputSpec::Kind::UserInput && kind != InputSpec::Kind::Tangent) continue;
        const TensorType* type = placeholders[i]->type().tensor();
        if (type == nullptr) return unsupported("input '" + placeholders[i]->name() + "' is not a tensor; give its value", placeholders[i]->name());
        if (!allInts(type->sizes)) return unsupported("input '" + placeholders[i]->name() + "' has symbolic sizes " + type->text(), placeholders[i]->name(), {"set the sizes first"});
        Tensor value = Tensor::empty(type->dtype, toInts(type->sizes));
        const int64_t count = value.numel();
        std::vector<double> numbers(static_cast<size_t>(count));
        const bool floating = isFloating(type->dtype) || isComplex(type->dtype);
        // Integers 0 and 1 are valid indices into anything with two rows, and valid flags.
        for (double& number : numbers) number = floating ? random.normal() : static_cast<double>(random.below(2));
        storeElements(type->dtype, value.data(), 1, count, numbers.data());
        values.push_back(std::move(value));
    }
    return values;
}

}  // namespace cutaway
