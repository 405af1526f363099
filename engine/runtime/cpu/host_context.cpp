#include "engine/runtime/cpu/host_context.h"

#include <algorithm>
#include <chrono>

#include "engine/expr/evaluate.h"
#include "engine/host/make_program.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/spoiled_value.h"
#include "engine/runtime/cpu/function_call.h"
#include "engine/runtime/cpu/host_values.h"
#include "engine/support/elapsed.h"

namespace cutaway {
namespace {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

/// Walks a function: segments, steps, what they find.
class HostContext::Steps {
  public:
    Steps(const std::shared_ptr<LoadedProgram>& program, size_t function, bool apart)
        : m_program(program),
          m_function(&program->program().functions[function]),
          m_apart(apart),
          m_values(program, function, apart),
          m_replays(m_function->segments.size()) {}

    HostValues& values() { return m_values; }
    const SymbolValues& sizes() const { return m_sizes; }

    /// `times`: null, or where the microseconds of each step go.
    Result<void> run(SymbolValues sizes, std::vector<std::vector<double>>* times, StatusPage& board) {
        m_values.random() = {};
        DeviceMemory& device = m_program->device();
        std::vector<DeviceMemory::Mark> marks;
        for (size_t segment = 0; segment < m_function->segments.size(); ++segment) {
            CT_TRY_VOID(m_values.enter(segment, sizes));
            CT_TRY(const bool replayed, times == nullptr ? replay(segment, board) : Result<bool>(false));
            const auto [first, end] = m_function->stepsOf(segment);
            for (size_t i = first; i < end && !replayed; ++i) {
                if (times != nullptr) marks.push_back(device.mark());
                const HostStep& step = m_function->steps[i];
                board.at(step.node);
                for (const std::string& op : step.ops) faultPoint("kernel", op);
                CT_TRY_VOID(step.kind == HostStepKind::Kernel ? runKernel(i, step) : runCall(i, step, sizes, board));
                overrun(step);
                if (times != nullptr) marks.push_back(device.mark());
            }
            CT_TRY_VOID(lookForFaults(segment));
        }
        m_sizes = std::move(sizes);
        if (times == nullptr) return {};
        CT_TRY_VOID(device.wait());
        for (size_t i = 0; i < m_function->steps.size(); ++i) {
            const auto beside = m_handedOver.find(i);
            const double passing = beside == m_handedOver.end() ? 0 : beside->second;
            (*times)[i].push_back(std::max(0.0, device.microseconds(marks[2 * i], marks[2 * i + 1]) - passing));
        }
        for (const DeviceMemory::Mark& mark : marks) device.forget(mark);
        return {};
    }

  private:
    /// What a library is run with.
    struct Operands {
        std::vector<const void*> operands;
        std::vector<void*> results;
    };
    /// A segment as one whole, from its second run on.
    struct Recorded {
        std::shared_ptr<const PreparedSegment> prepared;
        uint64_t places = 0;
        int runs = 0;  // of these sizes in these places
        DeviceMemory::Replay replay;
    };

    /// Whether the host decides nothing between the segment's steps, which lie where they lay.
    bool isFixed(size_t segment) const {
        const auto [first, end] = m_function->stepsOf(segment);
        for (size_t i = first; i < end; ++i) {
            const HostStep& step = m_function->steps[i];
            const bool library = step.kind == HostStepKind::Library && m_values.prepared().calls[i].plan;
            if (step.kind != HostStepKind::Kernel && !library) return false;
            for (const auto* numbers : {&step.buffers, &step.operands, &step.results})
                for (const int64_t number : *numbers)
                    if (number >= 0 && m_values.moves(number)) return false;
        }
        return end > first;
    }
    /// True if the segment has run as a whole.
    Result<bool> replay(size_t segment, StatusPage& board) {
        DeviceMemory& device = m_program->device();
        if (device.isHost()) return false;
        Recorded& recorded = m_replays[segment];
        if (recorded.prepared != m_values.preparedShared() || recorded.places != m_values.places())
            recorded = {m_values.preparedShared(), m_values.places(), 0, {}};
        if (recorded.replay) {
            CT_TRY_VOID(recorded.replay());
            return true;
        }
        if (recorded.runs++ == 0 || !isFixed(segment)) return false;
        CT_TRY(recorded.replay, device.record([&]() -> Result<void> {
            SymbolValues none;
            const auto [first, end] = m_function->stepsOf(segment);
            for (size_t i = first; i < end; ++i) {
                const HostStep& step = m_function->steps[i];
                CT_TRY_VOID(step.kind == HostStepKind::Kernel ? runKernel(i, step) : runCall(i, step, none, board));
            }
            return {};
        }));
        if (!recorded.replay) return false;
        CT_TRY_VOID(recorded.replay());
        return true;
    }

    static Error fault(int what, const HostStep& step) {
        return what == 1 ? invalidInput("an index that comes from data is out of range", step.checking)
                         : invalidInput("integer division by zero", step.checking);
    }
    /// A word for each step, which its kernels or its library set where an index or a divisor from data is wrong; null
    /// on the host, where a launch says so itself. They lie where they are: recorded segments know them.
    Result<int*> words() {
        DeviceMemory& device = m_program->device();
        if (device.isHost()) return nullptr;
        if (!m_words) {
            const std::vector<int> none(m_function->steps.size());
            CT_TRY(m_words, device.allocate(none.size() * sizeof(int)));
            CT_TRY_VOID(device.toDevice(m_words->address(), none.data(), none.size() * sizeof(int)));
        }
        return reinterpret_cast<int*>(m_words->address());
    }
    /// What the segment's kernels have left in their words.
    Result<void> lookForFaults(size_t segment) {
        DeviceMemory& device = m_program->device();
        if (device.isHost()) return {};
        const auto [first, end] = m_function->stepsOf(segment);
        bool any = false;
        for (size_t i = first; i < end; ++i) any |= !m_function->steps[i].checking.empty();
        if (!any) return {};
        CT_TRY(int* const words, this->words());
        std::vector<int> found(m_function->steps.size());
        CT_TRY_VOID(device.toHost(found.data(), words, found.size() * sizeof(int)));
        for (size_t i = first; i < end; ++i) {
            if (found[i] == 0) continue;
            const int what = found[i];
            std::fill(found.begin(), found.end(), 0);
            CT_TRY_VOID(device.toDevice(words, found.data(), found.size() * sizeof(int)));
            return fault(what, m_function->steps[i]);
        }
        return {};
    }
    /// What tests ask for: memory behind what a kernel has computed is overwritten.
    void overrun(const HostStep& step) {
        if (step.kind != HostStepKind::Kernel || !m_program->device().isHost()) return;
        const std::vector<bool>& written = m_program->program().kernels[step.kernel].written;
        for (const std::string& op : step.ops)
            for (size_t i = 0; i < step.buffers.size() && i < written.size(); ++i)
                if (written[i] && faultEffect("kernel", op) == FaultEffect::Outside) {
                    Tensor tensor = m_values.value(step.buffers[i]);
                    spoilMemory(FaultEffect::Outside, tensor);
                }
    }
    Result<void> runKernel(size_t number, const HostStep& step) {
        const BoundStep& numbers = m_values.bound().steps[number];
        void* const* const buffers = m_values.buffersOf(number);
        CT_TRY(int* const words, this->words());
        for (size_t i = 0; i < numbers.ranges.size(); ++i) {
            CT_TRY(const int failed,
                   m_program->code().launch({step.kernel, i, buffers, numbers.sizes.data(), numbers.ranges[i],
                                             &m_program->pool(), m_program->threadsFor(numbers),
                                             words == nullptr ? nullptr : words + number}));
            if (failed != 0) return fault(failed, step);
        }
        return {};
    }

    Result<void> runCall(size_t number, const HostStep& step, SymbolValues& sizes, StatusPage& board) {
        const PreparedSegment::Call& planned = m_values.prepared().calls[number];
        if (step.kind != HostStepKind::Functions && planned.plan) {
            CT_TRY_VOID(runLibrary(number, step, planned));
        } else {
            CT_TRY_VOID(m_values.bring(step));
            CT_TRY(TensorList tensors, step.kind == HostStepKind::Functions ? runFunctions(number, step, board)
                                                                            : runReference(number, step));
            CT_TRY_VOID(learn(step, tensors, sizes));
            for (size_t r = 0; r < step.results.size(); ++r)
                if (step.results[r] >= 0 && r < tensors.size())
                    CT_TRY_VOID(m_values.adopt(step, step.results[r], tensors[r]));
        }
        if (!m_program->device().isHost()) return {};
        // What tests ask for; of kernels it is in their code.
        for (const std::string& op : step.ops)
            for (const int64_t result : step.results)
                if (result >= 0) spoilMemory(faultEffect("kernel", op), m_values.result(result));
        return {};
    }
    Result<TensorList> runReference(size_t number, const HostStep& step) {
        const Op* op = findOp(step.op);
        if (op == nullptr) return Error{ErrorCode::Internal, "the worker does not know the op", step.op, {}};
        const BoundStep& numbers = m_values.bound().steps[number];
        EvalResult computed = evaluateCall(*op, numbers.args, numbers.type, m_values);
        if (!computed.ok()) return std::move(computed.error());
        CT_TRY_VOID(m_values.writeBack(step, *op));
        return std::move(computed.tensors());
    }
    Result<void> learn(const HostStep& step, const TensorList& tensors, SymbolValues& sizes) const {
        for (const HostStep::BoundSize& found : step.found) {
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
    Result<TensorList> runFunctions(size_t number, const HostStep& step, StatusPage& board) {
        auto& known = m_calls[number];
        if (known.first != m_values.preparedShared())
            known = {m_values.preparedShared(),
                     std::make_unique<FunctionCall>(findOrMakeOpaque(step.op), m_values.bound().steps[number],
                                                    m_program->program())};
        const FunctionCall& call = *known.second;
        const RunGraph run = [&](const Module& body, const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
            std::unique_ptr<HostContext>& context = m_contexts[body.name];
            if (!context) {
                const auto function = functionNamed(m_program->program(), body.name);
                if (!function) return invalidInput("the program has no function '" + body.name + "'", step.node);
                context = std::make_unique<HostContext>(m_program, *function, m_apart);
            }
            CT_TRY(HostRun hostRun, context->run(inputs, 0, board));
            return std::move(hostRun.outputs);
        };
        return evaluateHigherOrder(call.module, *call.node, CallValues(m_values, call), run);
    }
    Result<void> runLibrary(size_t number, const HostStep& step, const PreparedSegment::Call& planned) {
        m_operands.operands.clear();
        for (const int64_t operand : planned.operands) m_operands.operands.push_back(m_values.value(operand).address());
        m_operands.results.clear();
        for (const int64_t result : step.results)
            m_operands.results.push_back(result < 0 ? nullptr : m_values.value(result).address());
        CtParallel lent = lentThreads(m_program->pool(), m_program->threadsFor(m_values.bound().steps[number]));
        CtRandom draws{m_values.random().seed, m_values.random().draws};
        lent.random = &draws;
        lent.stream = m_program->device().stream();
        CT_TRY(int* const words, this->words());
        lent.fault = words == nullptr ? nullptr : words + number;
        auto ran = planned.plan->run(m_operands.operands, m_operands.results, m_values.scratchOf(planned), lent);
        if (!ran && planned.plan->isPlugins()) return named(ran.error(), step);
        CT_TRY_VOID(std::move(ran));
        if (planned.plan->isPlugins()) m_handedOver[number] = handedOverMicroseconds();
        m_values.random().draws = draws.draws;
        return {};
    }

    static Error named(Error error, const HostStep& step) {
        error.where = step.node;
        return error;
    }

    std::shared_ptr<LoadedProgram> m_program;
    const HostFunction* m_function;
    bool m_apart;
    std::map<size_t, double> m_handedOver;  // by step: what passing its tensors to a plugin took, in microseconds
    HostValues m_values;
    SymbolValues m_sizes;  // with what steps have found
    Operands m_operands;
    std::vector<Recorded> m_replays;  // by segment
    std::shared_ptr<Storage> m_words;
    /// By step, for the sizes that it was last run with.
    std::map<size_t, std::pair<std::shared_ptr<const PreparedSegment>, std::unique_ptr<FunctionCall>>> m_calls;
    std::map<std::string, std::unique_ptr<HostContext>> m_contexts;  // by function
};

HostContext::HostContext(std::shared_ptr<LoadedProgram> program, size_t function, bool apart)
    : m_program(std::move(program)),
      m_function(function),
      m_steps(std::make_unique<Steps>(m_program, function, apart)) {}
HostContext::~HostContext() = default;

void HostContext::keepOnly(const std::vector<Tensor>& kept) { m_steps->values().keepOnly(kept); }

Result<HostRun> HostContext::run(const std::vector<Tensor>& inputs, int repeat, StatusPage& board) {
    return run(inputs, {.repeat = repeat}, board, false);
}
Result<HostRun> HostContext::runInPlace(const std::vector<Tensor>& inputs, const TimedRuns& timed, StatusPage& board) {
    return run(inputs, timed, board, true);
}

Result<HostRun> HostContext::run(const std::vector<Tensor>& given, const TimedRuns& wanted, StatusPage& board,
                                 bool inPlace) {
    const HostFunction& function = m_program->program().functions[m_function];
    std::vector<Tensor> inputs = given;
    inputs.resize(function.parameters.size());
    for (const HostValue& value : function.values)
        if (value.kind == HostValue::Kind::Input && value.constant)
            inputs[static_cast<size_t>(value.index)] = m_program->constant(m_function, value);
    CT_TRY(const SymbolValues sizes, bindSymbols(function, inputs));
    CT_TRY(inputs, laidOut(function, inputs, sizes));
    DeviceMemory& device = m_program->device();
    HostValues& values = m_steps->values();
    CT_TRY_VOID(values.setInputs(inputs, true));
    HostRun result;
    // A run from first to last; on the host times of its steps cost it nothing.
    const auto timed = [&](std::vector<std::vector<double>>* times) -> Result<double> {
        const DeviceMemory::Mark begin = device.mark();
        CT_TRY_VOID(m_steps->run(sizes, device.isHost() ? times : nullptr, board));
        const DeviceMemory::Mark end = device.mark();
        CT_TRY_VOID(device.wait());
        const double taken = device.microseconds(begin, end) / 1000;
        for (const DeviceMemory::Mark& mark : {begin, end}) device.forget(mark);
        return taken;
    };
    const auto start = std::chrono::steady_clock::now();
    CT_TRY_VOID(timed(nullptr));
    result.milliseconds = millisecondsSince(start);
    if (!inPlace) {
        CT_TRY(result.outputs, values.outputs(false, m_steps->sizes()));
    }
    const auto again = std::chrono::steady_clock::now();
    std::vector<std::vector<double>> times(function.steps.size());
    for (auto& all : times) all.reserve(static_cast<size_t>(wanted.repeat));
    const double budget = wanted.budgetSeconds * 1000;
    for (int i = 0; i < wanted.repeat; ++i) {
        if (const double taken = millisecondsSince(again); budget > 0 && i > 0 && taken + taken / i > budget) break;
        board.done(static_cast<double>(i) / wanted.repeat);
        CT_TRY_VOID(values.setInputs(inputs, false));
        if (wanted.cold) device.emptyCaches(m_program->pool());
        CT_TRY(const double once, timed(&times));
        result.totalMilliseconds.push_back(once);
    }
    constexpr int kStepRuns = 5;
    for (int i = 0; !device.isHost() && i < std::min(wanted.repeat, kStepRuns); ++i) {
        CT_TRY_VOID(values.setInputs(inputs, false));
        CT_TRY_VOID(m_steps->run(sizes, &times, board));
    }
    result.milliseconds += millisecondsSince(again);
    if (inPlace) {
        CT_TRY(result.outputs, values.outputs(true, m_steps->sizes()));
        CT_TRY(result.written, values.writtenInputs());
    }
    result.memoryBytes = values.memoryBytes();
    result.refused = values.refused();
    values.forgetInputs();
    for (auto& all : times) result.stepMicroseconds.push_back(median(std::move(all)));
    return result;
}

}  // namespace cutaway
