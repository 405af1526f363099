#include "engine/runtime/cpu/host_context.h"

#include <chrono>
#include <numeric>

#include "engine/expr/evaluate.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/spoiled_value.h"
#include "engine/runtime/cpu/function_call.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/support/check.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Memory that takes the place of all other in the caches of the pool's threads.
class Elsewhere {
  public:
    void fillCaches(const ThreadPool& pool) {
        const int64_t lines = 4 * cacheBytes() / kLine;
        m_bytes.resize(static_cast<size_t>(lines * kLine));
        pool.run(lines, 1, pool.size(), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) ++m_bytes[static_cast<size_t>(i * kLine)];
        });
    }

  private:
    static constexpr int64_t kLine = 64;
    std::vector<unsigned char> m_bytes;
};

/// Its own strides if they cover memory densely (what Tensor::empty takes), else row-major.
Dims denseStrides(const Tensor& tensor) {
    std::vector<size_t> order(tensor.sizes().size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return tensor.strides()[a] < tensor.strides()[b]; });
    int64_t expected = 1;
    for (size_t d : order) {
        if (tensor.sizes()[d] == 1) continue;
        if (tensor.strides()[d] != expected) return {};
        expected *= tensor.sizes()[d];
    }
    return tensor.strides();
}

}  // namespace

Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides) {
    // Allocations are multiples of 64 bytes.
    const auto bytes = static_cast<size_t>(extent(sizes, strides) * byteSize(dtype)),
               whole = std::max<size_t>((bytes + 63) / 64 * 64, 64);
    return Tensor(Storage::allocateUninitialized(whole), dtype, sizes, strides,
                  static_cast<int64_t>(whole - bytes) / byteSize(dtype));
}

/// The values of one function, and what its steps are run with.
class HostContext::Values final : public ValueSource {
  public:
    Values(const std::shared_ptr<LoadedProgram>& program, size_t function, bool apart)
        : m_program(program),
          m_number(function),
          m_function(&program->program().functions[function]),
          m_apart(apart),
          m_values(m_function->values.size()),
          m_steps(m_function->steps.size()),
          m_prepared(m_function->segments.size()),
          m_arenas(m_function->segments.size()) {
        for (size_t i = 0; i < m_function->steps.size(); ++i) {
            const HostStep& step = m_function->steps[i];
            for (const int64_t number : step.buffers) m_steps[i].moving |= moves(number);
            m_steps[i].pointers.resize(step.buffers.size());
        }
    }

    /// Memory for inputs of these sizes, and their contents; with `all` false only of those that the last run has
    /// written to.
    void setInputs(const std::vector<Tensor>& inputs, bool all) {
        for (size_t i = 0; i < m_values.size(); ++i) {
            const HostValue& value = m_function->values[i];
            if (value.kind != HostValue::Kind::Input || value.constant) continue;
            const Tensor& from = inputs[static_cast<size_t>(value.index)];
            if (!all && !value.written) continue;
            if (staysWhereItIs(value, from)) {
                m_values[i] = {from};
                forgetPlaces(0);
                continue;
            }
            if (m_values[i].empty() || m_values[i][0].sizes() != from.sizes() ||
                m_values[i][0].strides() != from.strides()) {
                m_values[i] = {memoryFor(from)};
                forgetPlaces(0);
            }
            std::memcpy(m_values[i][0].data(), from.data(), bytesOf(from));
        }
    }
    /// Lets go of inputs that stayed in the caller's memory.
    void forgetInputs() {
        bool any = false;
        for (size_t i = 0; i < m_values.size(); ++i) {
            const HostValue& value = m_function->values[i];
            if (value.kind != HostValue::Kind::Input || value.constant || m_values[i].empty() ||
                !staysWhereItIs(value, m_values[i][0]))
                continue;
            m_values[i].clear();
            any = true;
        }
        if (any) forgetPlaces(0);
    }
    Result<void> run(SymbolValues sizes, std::vector<std::vector<double>>* times, Board& board) {
        random() = {};
        for (size_t segment = 0; segment < m_function->segments.size(); ++segment) {
            CT_TRY_VOID(enter(segment, sizes));
            const auto [first, end] = m_function->stepsOf(segment);
            for (size_t i = first; i < end; ++i) {
                const auto begin = Clock::now();
                const HostStep& step = m_function->steps[i];
                board.at(step.node);
                for (const std::string& op : step.ops) faultPoint("kernel", op);
                CT_TRY_VOID(step.kind == HostStepKind::Kernel ? runKernel(i, step) : runCall(i, step, sizes, board));
                overrun(step);
                if (times != nullptr)
                    (*times)[i].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
            }
        }
        m_sizes = std::move(sizes);
        return {};
    }
    /// Of the latest run.
    std::vector<Tensor> outputs(bool inPlace) {
        std::vector<Tensor> result;
        for (int64_t number : m_function->results) {
            if (number < 0 || (inPlace && m_function->isConstantInput(number))) {
                result.emplace_back();
                continue;
            }
            result.push_back(handedOut(value(number), inPlace));
        }
        for (const HostNumber& number : m_function->returnedNumbers)
            if (number.real) result[number.result] = Tensor::scalar(number.dtype, *number.real);
            else if (const auto value = literalScalar(withValues(number.value.expr(), m_sizes)))
                result[number.result] = Tensor::scalar(number.dtype, *value);
        return result;
    }
    std::vector<std::pair<size_t, Tensor>> writtenInputs() {
        std::vector<std::pair<size_t, Tensor>> result;
        for (size_t i = 0; i < m_values.size(); ++i)
            if (const HostValue& value = m_function->values[i];
                value.kind == HostValue::Kind::Input && value.written && !m_values[i].empty())
                result.emplace_back(static_cast<size_t>(value.index), handedOut(m_values[i][0], true));
        return result;
    }

    std::vector<std::pair<size_t, std::string>> refused() const {
        std::vector<std::pair<size_t, std::string>> found;
        const std::vector<PreparedSegment::Call>& calls = m_prepared.back()->calls;  // of all segments
        for (size_t step = 0; step < calls.size(); ++step)
            if (!calls[step].refusal.empty()) found.emplace_back(step, calls[step].refusal);
        return found;
    }
    void keepOnly(const std::vector<Tensor>& kept) {
        for (const auto& arena : m_arenas) {
            if (!arena) continue;
            std::map<size_t, size_t> ranges;  // ends by begins
            for (const Tensor& tensor : kept) {
                if (!tensor.defined() || tensor.storage()->data() < arena->data()) continue;
                const auto begin = static_cast<size_t>(tensor.storage()->data() - arena->data());
                if (begin < arena->size()) ranges[begin] = std::max(ranges[begin], begin + tensor.storage()->size());
            }
            ranges[arena->size()] = arena->size();
            size_t done = 0;
            for (const auto& [begin, end] : ranges) {
                if (begin > done) forgetPages({arena->data() + done, begin - done});
                done = std::max(done, end);
            }
        }
    }
    int64_t memoryBytes() const {
        size_t bytes = m_scratch ? m_scratch->size() : 0;
        for (const auto& arena : m_arenas) bytes += arena ? arena->size() : 0;
        return static_cast<int64_t>(bytes);
    }

    const TensorList& valueOf(const Node& node) const override {
        const int64_t number = m_function->numberOf(node);
        const_cast<Values*>(this)->value(number);
        return m_values[static_cast<size_t>(number)];
    }

  private:
    /// What a step is run with, found once for all runs of these sizes.
    struct Step {
        std::vector<void*> pointers;  // of a kernel's buffers
        bool located = false;         // `pointers` are right
        bool moving = false;          // a buffer's memory is another one in every run
        std::vector<const void*> operands;
        std::vector<void*> results;
    };

    static Tensor handedOut(const Tensor& tensor, bool inPlace) {
        const bool dense = tensor.isContiguous() || !denseStrides(tensor).empty();
        if (inPlace && dense && tensor.numel() > 0) {  // memory of its own, as far as the reader knows
            const auto memory = Storage::view(tensor.data(), bytesOf(tensor), tensor.storage());
            return Tensor(memory, tensor.dtype(), tensor.sizes(), tensor.strides(), 0, tensor.device());
        }
        // Copied with its strides: the arena is written again by the next run.
        Tensor copy = Tensor::empty(tensor.dtype(), tensor.sizes(), denseStrides(tensor));
        copyInto(copy, tensor);
        return copy;
    }
    /// Nothing is copied that need not be: what a forward has saved for its backward may be most of the memory.
    bool staysWhereItIs(const HostValue& value, const Tensor& input) const {
        constexpr size_t kAlignment = 64;
        return !m_apart && !value.written && reinterpret_cast<uintptr_t>(input.data()) % kAlignment == 0;
    }
    static size_t bytesOf(const Tensor& tensor) {
        return static_cast<size_t>(extent(tensor.sizes(), tensor.strides()) * byteSize(tensor.dtype()));
    }
    Tensor memoryFor(const Tensor& like) const {
        if (m_apart) return atEndOfMemory(like.dtype(), like.sizes(), like.strides());
        return Tensor(Storage::allocateUninitialized(std::max<size_t>(bytesOf(like), 64)), like.dtype(), like.sizes(),
                      like.strides(), 0, like.device());
    }
    const BoundFunction& bound() const { return m_prepared[m_segment]->bound; }
    /// What looks at memory that is another one now is found again.
    void forgetPlaces(size_t firstSegment) {
        for (size_t i = 0; i < m_values.size(); ++i)
            if (m_function->values[i].kind == HostValue::Kind::View) m_values[i].clear();
        for (size_t i = m_function->segments[firstSegment]; i < m_steps.size(); ++i) m_steps[i].located = false;
    }
    /// Memory for the segment's values.
    Result<void> enter(size_t segment, const SymbolValues& sizes) {
        CT_TRY(auto prepared,
               m_program->prepare(m_number, segment, sizes, segment == 0 ? nullptr : m_prepared[segment - 1].get()));
        m_segment = segment;
        if (m_prepared[segment] == prepared) return {};
        m_prepared[segment] = std::move(prepared);
        const auto bytes = static_cast<size_t>(std::max<int64_t>(m_apart ? 0 : m_prepared[segment]->memory, 64));
        if (!m_arenas[segment] || m_arenas[segment]->size() < bytes)
            m_arenas[segment] = Storage::allocateUninitialized(bytes);
        for (size_t i = 0; i < m_values.size(); ++i) {
            const HostValue& value = m_function->values[i];
            const BoundValue& own = bound().values[i];
            const DType dtype = value.type.dtype;
            if (value.kind == HostValue::Kind::Slot &&
                m_function->memory[static_cast<size_t>(value.index)].segment == segment)
                m_values[i] = {
                    m_apart ? atEndOfMemory(dtype, own.sizes, own.strides)
                            : Tensor(m_arenas[segment], dtype, own.sizes, own.strides, own.offset / byteSize(dtype))};
            else if (value.constant && value.kind != HostValue::Kind::View)
                m_values[i] = {m_program->constant(m_number, value)};
        }
        const auto scratch = static_cast<size_t>(std::max<int64_t>(m_prepared[segment]->scratch, 64));
        if (m_apart && (!m_scratch || m_scratch->size() < scratch)) m_scratch = Storage::allocateUninitialized(scratch);
        forgetPlaces(segment);
        return {};
    }
    /// True for what a step returned in memory of its own, and views of it.
    bool moves(int64_t number) const {
        const HostValue& value = m_function->values[static_cast<size_t>(number)];
        return value.kind == HostValue::Kind::Own || (value.kind == HostValue::Kind::View && moves(value.index));
    }
    /// Views are made anew only if what they look at is.
    const Tensor& value(int64_t number) {
        const HostValue& own = m_function->values[static_cast<size_t>(number)];
        TensorList& slot = m_values[static_cast<size_t>(number)];
        if (own.kind == HostValue::Kind::View && (slot.empty() || moves(number))) {
            const Tensor& base = value(own.index);
            const BoundValue& numbers = bound().values[static_cast<size_t>(number)];
            slot = {Tensor(base.storage(), own.type.dtype, numbers.sizes, numbers.strides,
                           base.offset() * byteSize(base.dtype()) / byteSize(own.type.dtype) + numbers.offset)};
        }
        CT_CHECK(!slot.empty(), "steps stand in the order of their data");
        return slot[0];
    }

    /// What tests ask for: memory behind what a kernel has computed is overwritten.
    void overrun(const HostStep& step) {
        if (step.kind != HostStepKind::Kernel) return;
        const std::vector<bool>& written = m_program->program().kernels[step.kernel].written;
        for (const std::string& op : step.ops)
            for (size_t i = 0; i < step.buffers.size() && i < written.size(); ++i)
                if (written[i] && faultEffect("kernel", op) == FaultEffect::Outside) {
                    Tensor tensor = value(step.buffers[i]);
                    spoilMemory(FaultEffect::Outside, tensor);
                }
    }
    Result<void> runKernel(size_t number, const HostStep& step) {
        Step& own = m_steps[number];
        const BoundStep& numbers = bound().steps[number];
        if (!own.located || own.moving)
            for (size_t i = 0; i < step.buffers.size(); ++i)
                own.pointers[i] = const_cast<void*>(value(step.buffers[i]).data());
        own.located = true;
        int fault = 0;
        for (size_t i = 0; i < numbers.ranges.size() && fault == 0; ++i)
            fault = m_program->code().launch({step.kernel, i, own.pointers.data(), numbers.sizes.data(),
                                              numbers.ranges[i], &m_program->pool(), m_program->threadsFor(numbers)});
        if (fault == 1) return invalidInput("an index that comes from data is out of range", step.checking);
        if (fault != 0) return invalidInput("integer division by zero", step.checking);
        return {};
    }

    Result<void> runCall(size_t number, const HostStep& step, SymbolValues& sizes, Board& board) {
        const PreparedSegment::Call& planned = m_prepared[m_segment]->calls[number];
        CT_TRY_VOID(step.kind == HostStepKind::Functions ? runFunctions(number, step, sizes, board)
                    : planned.plan                       ? runLibrary(number, step, planned)
                                                         : runReference(number, step, sizes));
        // What tests ask for; of kernels it is in their code.
        for (const std::string& op : step.ops)
            for (const int64_t result : step.results)
                if (result >= 0) spoilMemory(faultEffect("kernel", op), m_values[static_cast<size_t>(result)][0]);
        return {};
    }
    Result<void> runReference(size_t number, const HostStep& step, SymbolValues& sizes) {
        const Op* op = findOp(step.op);
        if (op == nullptr) return Error{ErrorCode::Internal, "the worker does not know the op", step.op, {}};
        const BoundStep& numbers = bound().steps[number];
        EvalResult computed = evaluateCall(*op, numbers.args, numbers.type, *this);
        if (!computed.ok()) return std::move(computed.error());
        TensorList& tensors = computed.tensors();
        CT_TRY_VOID(learn(step, tensors, sizes));
        for (size_t r = 0; r < step.results.size(); ++r)
            if (step.results[r] >= 0 && r < tensors.size()) adopt(step, step.results[r], tensors[r]);
        return {};
    }
    Result<void> learn(const HostStep& step, const TensorList& tensors, SymbolValues& sizes) const {
        for (const HostStep::Found& found : step.found) {
            if (found.value) {
                if (const auto value = valueFor(SymInt(found.value), sizes)) sizes[found.symbol] = *value;
                continue;
            }
            const Tensor& tensor = tensors.at(found.result);
            sizes[found.symbol] = found.dim < 0 ? symbolValue(found.symbol, tensor) : tensor.size(found.dim);
        }
        return step.found.empty() ? Result<void>() : checkGuards(m_function->guards, sizes);
    }
    /// cond, while_loop and their kin: the interpreter's rules of which graph runs with what, with functions as graphs.
    Result<void> runFunctions(size_t number, const HostStep& step, SymbolValues& sizes, Board& board) {
        auto& known = m_calls[number];
        if (known.first != m_prepared[m_segment])
            known = {
                m_prepared[m_segment],
                std::make_unique<FunctionCall>(findOrMakeOpaque(step.op), bound().steps[number], m_program->program())};
        const FunctionCall& call = *known.second;
        const RunGraph run = [&](const Module& body, const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
            std::unique_ptr<HostContext>& context = m_contexts[body.name];
            if (!context) {
                const auto function = functionNamed(m_program->program(), body.name);
                if (!function) return invalidInput("the program has no function '" + body.name + "'", step.node);
                context = std::make_unique<HostContext>(m_program, *function, m_apart);
            }
            CT_TRY(HostRun own, context->run(inputs, 0, board));
            return std::move(own.outputs);
        };
        CT_TRY(TensorList tensors, evaluateHigherOrder(call.module, *call.node, CallValues(*this, call), run));
        CT_TRY_VOID(learn(step, tensors, sizes));
        for (size_t r = 0; r < step.results.size(); ++r)
            if (step.results[r] >= 0 && r < tensors.size()) adopt(step, step.results[r], tensors[r]);
        return {};
    }
    void adopt(const HostStep& step, int64_t number, Tensor tensor) {
        const HostValue& value = m_function->values[static_cast<size_t>(number)];
        if (value.kind == HostValue::Kind::Slot) {
            copyInto(m_values[static_cast<size_t>(number)][0], tensor);
            return;
        }
        // A function may return (a view of) its operand, whose memory has a life of its own.
        bool borrowed = false;
        for (const auto& arena : m_arenas) borrowed |= tensor.storage() == arena;
        for (const int64_t operand : step.operands) borrowed |= this->value(operand).storage() == tensor.storage();
        const Dims& strides = bound().values[static_cast<size_t>(number)].strides;
        const bool asSaid = strides.size() == tensor.strides().size();  // those of a size that it found are not known
        if (borrowed || (asSaid && tensor.strides() != strides)) {
            Tensor copy = Tensor::empty(tensor.dtype(), tensor.sizes(), asSaid ? strides : Dims());
            copyInto(copy, tensor);
            tensor = copy;
        }
        m_values[static_cast<size_t>(number)] = {tensor};
    }
    Result<void> runLibrary(size_t number, const HostStep& step, const PreparedSegment::Call& planned) {
        Step& own = m_steps[number];
        own.operands.clear();
        for (const int64_t operand : planned.operands) own.operands.push_back(value(operand).data());
        own.results.clear();
        for (const int64_t result : step.results)
            own.results.push_back(result < 0 ? nullptr : const_cast<void*>(value(result).data()));
        CtParallel lent = lentThreads(m_program->pool(), m_program->threadsFor(bound().steps[number]));
        CtRandom draws{random().seed, random().draws};
        lent.random = &draws;
        std::byte* const scratch = m_apart ? m_scratch->data() : m_arenas[m_segment]->data() + planned.scratchAt;
        CT_TRY_VOID(planned.plan->run(own.operands, own.results, scratch, lent));
        random().draws = draws.draws;
        return {};
    }

    std::shared_ptr<LoadedProgram> m_program;
    size_t m_number;
    const HostFunction* m_function;
    bool m_apart;
    std::vector<TensorList> m_values;
    std::vector<Step> m_steps;
    size_t m_segment = 0;  // the one that runs
    SymbolValues m_sizes;  // with what steps have found
    std::vector<std::shared_ptr<const PreparedSegment>> m_prepared;
    std::vector<std::shared_ptr<Storage>> m_arenas;
    std::shared_ptr<Storage> m_scratch;  // apart from the values, if these lie apart
    /// By step, for the sizes that it was last run with.
    std::map<size_t, std::pair<std::shared_ptr<const PreparedSegment>, std::unique_ptr<FunctionCall>>> m_calls;
    std::map<std::string, std::unique_ptr<HostContext>> m_contexts;  // by function
};

HostContext::HostContext(std::shared_ptr<LoadedProgram> program, size_t function, bool apart)
    : m_program(std::move(program)),
      m_function(function),
      m_values(std::make_unique<Values>(m_program, function, apart)) {}
HostContext::~HostContext() = default;

void HostContext::keepOnly(const std::vector<Tensor>& kept) { m_values->keepOnly(kept); }

Result<HostRun> HostContext::run(const std::vector<Tensor>& inputs, int repeat, Board& board) {
    return run(inputs, repeat, board, false, false);
}
Result<HostRun> HostContext::runInPlace(const std::vector<Tensor>& inputs, int repeat, Board& board, bool cold) {
    return run(inputs, repeat, board, true, cold);
}

Result<HostRun> HostContext::run(const std::vector<Tensor>& given, int repeat, Board& board, bool inPlace, bool cold) {
    const HostFunction& function = m_program->program().functions[m_function];
    std::vector<Tensor> inputs = given;
    inputs.resize(function.parameters.size());
    for (const HostValue& value : function.values)
        if (value.kind == HostValue::Kind::Input && value.constant)
            inputs[static_cast<size_t>(value.index)] = m_program->constant(m_function, value);
    CT_TRY(const SymbolValues sizes, bindSymbols(function, inputs));
    CT_TRY(inputs, laidOut(function, inputs, sizes));
    m_values->setInputs(inputs, true);
    HostRun result;
    const auto start = Clock::now();
    CT_TRY_VOID(m_values->run(sizes, nullptr, board));
    result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (!inPlace) result.outputs = m_values->outputs(false);
    const auto again = Clock::now();
    std::vector<std::vector<double>> times(function.steps.size());
    for (auto& all : times) all.reserve(static_cast<size_t>(repeat));
    Elsewhere other;
    for (int i = 0; i < repeat; ++i) {
        board.done(static_cast<double>(i) / repeat);
        m_values->setInputs(inputs, false);
        if (cold) other.fillCaches(m_program->pool());
        const auto begin = Clock::now();
        CT_TRY_VOID(m_values->run(sizes, &times, board));
        result.totalMilliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    result.milliseconds += std::chrono::duration<double, std::milli>(Clock::now() - again).count();
    if (inPlace) {
        result.outputs = m_values->outputs(true);
        result.written = m_values->writtenInputs();
    }
    result.memoryBytes = m_values->memoryBytes();
    result.refused = m_values->refused();
    m_values->forgetInputs();
    for (auto& all : times) result.stepMicroseconds.push_back(median(std::move(all)));
    return result;
}

}  // namespace cutaway
