#include "engine/host/bind_host.h"

#include "engine/expr/evaluate.h"
#include "engine/support/checked.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

std::string described(const Tensor& tensor) {
    return TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text();
}

class Binder {
  public:
    Binder(const HostFunction& function, const SymbolValues& sizes, BoundFunction& bound)
        : m_function(&function), m_sizes(sizes), m_bound(&bound) {}

    Result<void> bindMemory(size_t segment) {
        m_bound->values.resize(m_function->values.size());
        m_bound->bytes.resize(m_function->segments.size());
        const std::vector<int64_t> starts = placeSlots(segment);
        for (size_t i = 0; i < m_function->values.size(); ++i) CT_TRY_VOID(bindValue(i, segment, starts));
        return {};
    }
    void bindSteps(size_t segment, const std::vector<HostKernel>& kernels) {
        m_bound->steps.resize(m_function->steps.size());
        if (!m_function->symbols.empty() || m_function->segments.size() > 1) nameValues();
        const auto [first, end] = m_function->stepsOf(segment);
        for (size_t i = first; i < end; ++i) bindStep(i, kernels);
    }

  private:
    /// Nothing while it depends on a symbol that is not known yet.
    std::optional<int64_t> known(const SymInt& size) const {
        return size.isInt() ? size.asInt() : valueFor(size, m_sizes);
    }
    int64_t number(const SymInt& size) const {
        const auto value = known(size);
        if (!value) throw SizeError("the size " + size.text() + " is not known yet");
        return *value;
    }
    std::optional<Dims> known(const SymDims& dims) const {
        Dims numbers;
        for (const SymInt& dim : dims) {
            const auto value = known(dim);
            if (!value) return std::nullopt;
            numbers.push_back(*value);
        }
        return numbers;
    }

    /// Placeholders once more, with numbers in their types: reference kernels read sizes off their operands' types.
    void nameValues() {
        auto names = std::make_shared<Graph>();
        for (const Node& node : m_function->names->nodes())
            m_names.push_back(&names->placeholder(node.name(), filled(node.type())));
        m_bound->names.push_back(std::move(names));
    }
    /// Where each slot of the segment begins.
    std::vector<int64_t> placeSlots(size_t segment) {
        std::vector<int64_t> starts(m_function->memory.size());
        int64_t total = 0;
        for (size_t i = 0; i < m_function->memory.size(); ++i) {
            if (m_function->memory[i].segment != segment) continue;
            starts[i] = total;
            total = checkedAdd(total, (checkedAdd(number(m_function->memory[i].bytes), 63)) / 64 * 64);
        }
        m_bound->bytes[segment] = total;
        return starts;
    }
    Result<void> bindValue(size_t i, size_t segment, const std::vector<int64_t>& starts) {
        const HostValue& value = m_function->values[i];
        BoundValue& bound = m_bound->values[i];
        const bool slot = value.kind == HostValue::Kind::Slot;
        if (slot && m_function->memory[static_cast<size_t>(value.index)].segment != segment) return {};
        auto sizes = known(value.type.sizes), strides = known(value.type.strides);
        const auto offset = known(value.offset);
        if (!sizes || !strides || !offset) return {};  // a later segment knows
        if (std::any_of(sizes->begin(), sizes->end(), [](int64_t size) { return size < 0; }))
            return invalidInput(
                "the sizes of '" + value.name + "', " + value.type.text() + ", are negative for these inputs",
                value.name);
        const size_t bytes = checkedBytes(value.type.dtype, extent(*sizes, *strides), *sizes);
        checkedBytes(value.type.dtype, numel(*sizes), *sizes);
        bound.sizes = std::move(*sizes);
        bound.strides = std::move(*strides);
        bound.bytes = static_cast<int64_t>(bytes);
        if (slot) bound.offset = starts[static_cast<size_t>(value.index)] + *offset;
        else if (value.kind == HostValue::Kind::View) bound.offset = *offset;
        return {};
    }

    void bindStep(size_t i, const std::vector<HostKernel>& kernels) {
        const HostStep& step = m_function->steps[i];
        BoundStep& bound = m_bound->steps[i];
        bound = {};
        int64_t computing = step.flops, bytes = step.bytes;
        if (!m_function->symbols.empty()) scale(step, computing, bytes);
        if (step.kind == HostStepKind::Kernel) {
            const HostKernel& kernel = kernels[step.kernel];
            for (const std::string& size : kernel.sizes) {
                const auto value = m_sizes.find(size);
                if (value == m_sizes.end()) throw SizeError("the size " + size + " is not known yet");
                bound.sizes.push_back(value->second);
            }
            // A kernel without outer loops would run once and store even if its results are empty: it gets no ranges.
            int64_t written = 0;
            for (size_t b = 0; b < kernel.written.size(); ++b)
                if (kernel.written[b]) written += numel(m_bound->values[static_cast<size_t>(step.buffers[b])].sizes);
            if (written > 0)
                for (const HostKernel::Launch& launch : kernel.launches) bound.ranges.push_back(number(launch.range));
            computing = std::max(written, computing) / kKernelOperationsPerNanosecond;
        } else {
            for (const Argument& arg : step.args)
                bound.args.push_back(filled(arg).mapNodes(
                    [this](Node* node) { return m_names.empty() ? node : m_names[index(node->id())]; }));
            bound.type = filled(step.type);
            computing /= kLibraryOperationsPerNanosecond;
        }
        bound.nanoseconds = std::max(computing, bytes / kBytesPerNanosecond);
    }
    /// Scales the step's estimates from the sizes of scheduling to the sizes of this run.
    void scale(const HostStep& step, int64_t& computing, int64_t& bytes) const {
        int64_t now = 0;
        for (const auto* numbers : {&step.buffers, &step.operands, &step.results})
            for (const int64_t value : *numbers)
                if (value >= 0) now += m_bound->values[static_cast<size_t>(value)].bytes;
        const double factor = step.spanned > 0 ? static_cast<double>(now) / static_cast<double>(step.spanned) : 1;
        constexpr double kMost = 1e15;
        for (int64_t* const estimate : {&computing, &bytes})
            *estimate = static_cast<int64_t>(std::min(static_cast<double>(*estimate) * factor, kMost));
    }
    /// Numbers for size expressions; those that are found later stay.
    Argument filled(const Argument& arg) const {
        if (const Expr* expr = arg.get<Expr>()) {
            const Expr value = withValues(*expr, m_sizes);
            if (const auto number = value->outOfRange ? std::nullopt : value.asInt()) return *number;
            if (value->kind == ExprKind::Bool) return value->integer != 0;
            if (value->kind == ExprKind::Float) return value->real;
            throw SizeError("the size " + text(*expr) + " is not known yet");
        }
        if (const auto* list = arg.get<ArgumentList>()) {
            ArgumentList fixed{{}, list->tuple};
            for (const Argument& item : list->items) fixed.items.push_back(filled(item));
            return fixed;
        }
        return arg;
    }
    SymInt filled(const SymInt& size) const {
        const auto value = known(size);
        return value ? SymInt(*value) : size;
    }
    ValueType filled(const ValueType& type) const {
        if (const TensorType* tensor = type.tensor()) {
            TensorType result = *tensor;
            for (SymInt& size : result.sizes) size = filled(size);
            for (SymInt& stride : result.strides) stride = filled(stride);
            result.offset = filled(result.offset);
            return result;
        }
        if (const TupleType* items = type.tuple()) {
            TupleType result;
            for (const ValueType& item : *items) result.push_back(filled(item));
            return result;
        }
        return type;
    }

    const HostFunction* m_function;
    const SymbolValues& m_sizes;
    BoundFunction* m_bound;
    std::vector<Node*> m_names;  // by id, if there are others than the function's
};

/// A symbol's value by the input that tells it; bindSymbols checks its range.
Result<int64_t> solved(const HostFunction& function, const HostSymbol& symbol, const Tensor& given) {
    const std::string& name = function.parameters[symbol.parameter].name;
    if (symbol.dim < 0) return toInt(given.item());
    const int64_t size = given.sizes()[static_cast<size_t>(symbol.dim)];
    const int64_t distance = checkedSub(size, symbol.offset);
    if (distance % symbol.scale != 0)
        return invalidInput("input '" + name + "' has size " + std::to_string(size) + " in dim " +
                                std::to_string(symbol.dim) + ", which no value of " + symbol.name + " gives",
                            name);
    return distance / symbol.scale;
}

}  // namespace

int64_t BoundFunction::arenaBytes() const {
    int64_t all = 0;
    for (const int64_t own : bytes) all = checkedAdd(all, own);
    return all;
}

Result<SymbolValues> bindSymbols(const HostFunction& function, const std::vector<Tensor>& inputs) {
    if (inputs.size() != function.parameters.size())
        return invalidInput("the graph has " + std::to_string(function.parameters.size()) + " inputs, " +
                            std::to_string(inputs.size()) + " were given");
    for (size_t i = 0; i < inputs.size(); ++i) {
        const HostParameter& parameter = function.parameters[i];
        const TensorType* type = parameter.type.tensor();
        if (type == nullptr) continue;
        if (!inputs[i].defined()) return invalidInput("input '" + parameter.name + "' has no value", parameter.name);
        if (inputs[i].dtype() != type->dtype || inputs[i].sizes().size() != type->sizes.size())
            return invalidInput(
                "input '" + parameter.name + "' must be " + type->text() + ", not " + described(inputs[i]),
                parameter.name);
    }
    SymbolValues sizes;
    for (const HostSymbol& symbol : function.symbols) {
        const Tensor& given = inputs[symbol.parameter];
        if (!given.defined()) continue;
        CT_TRY(const int64_t value, solved(function, symbol, given));
        if (value < symbol.least || (symbol.most && value > *symbol.most))
            return invalidInput("size " + symbol.name + " = " + std::to_string(value) +
                                    " is outside the range that the program was exported for",
                                function.parameters[symbol.parameter].name);
        sizes.emplace(symbol.name, value);
    }
    CT_TRY_VOID(checkGuards(function.guards, sizes));
    return sizes;
}

Tensor laidOut(const Tensor& tensor, const Dims& strides) {
    if (tensor.strides() == strides || tensor.numel() == 0) return tensor;
    const size_t bytes = checkedBytes(tensor.dtype(), extent(tensor.sizes(), strides), tensor.sizes());
    Tensor laid(Storage::allocate(bytes), tensor.dtype(), tensor.sizes(), strides);
    copyInto(laid, tensor);
    return laid;
}

Result<std::vector<Tensor>> laidOut(const HostFunction& function, const std::vector<Tensor>& inputs,
                                    const SymbolValues& sizes, Constants constants) {
    return withCheckedSizes({}, {}, [&]() -> Result<std::vector<Tensor>> {
        std::vector<Tensor> laid = inputs;
        for (size_t i = 0; i < inputs.size(); ++i) {
            const HostParameter& parameter = function.parameters[i];
            const TensorType* type = parameter.type.tensor();
            if (type == nullptr) continue;
            Dims wanted, strides;
            for (const SymInt& size : type->sizes) wanted.push_back(valueFor(size, sizes).value_or(-1));
            for (const SymInt& stride : type->strides) strides.push_back(valueFor(stride, sizes).value_or(-1));
            if (wanted != inputs[i].sizes()) {
                const auto concrete = TensorType::contiguous(type->dtype, toSymDims(wanted));
                return invalidInput(
                    "input '" + parameter.name + "' must be " + concrete.text() + ", not " + described(inputs[i]),
                    parameter.name);
            }
            if (parameter.constant && constants == Constants::AsGiven) continue;
            laid[i] = laidOut(inputs[i], strides);
        }
        return laid;
    });
}

Result<void> bindSegment(const HostProgram& program, const HostFunction& function, size_t segment,
                         const SymbolValues& sizes, BoundFunction& bound) {
    return withCheckedSizes({}, {}, [&]() -> Result<void> {
        Binder binder(function, sizes, bound);
        CT_TRY_VOID(binder.bindMemory(segment));
        binder.bindSteps(segment, program.kernels);
        return {};
    });
}

Result<BoundFunction> bindMemory(const HostFunction& function, const SymbolValues& sizes) {
    return withCheckedSizes({}, {}, [&]() -> Result<BoundFunction> {
        BoundFunction bound;
        CT_TRY_VOID(Binder(function, sizes, bound).bindMemory(0));
        return bound;
    });
}
Result<BoundFunction> bindAllMemory(const HostFunction& function, const SymbolValues& sizes) {
    return withCheckedSizes({}, {}, [&]() -> Result<BoundFunction> {
        BoundFunction bound;
        for (size_t segment = 0; segment < function.segments.size(); ++segment)
            CT_TRY_VOID(Binder(function, sizes, bound).bindMemory(segment));
        return bound;
    });
}

}  // namespace cutaway
