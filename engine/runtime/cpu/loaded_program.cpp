#include "engine/runtime/cpu/loaded_program.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/libraries/table.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

/// Whether a library's plan for `a` serves `b`, too. Offsets count for constants alone: a plan knows their addresses.
bool samePlan(const HostFunction& function, const HostStep& step, size_t number, const BoundFunction& a,
              const BoundFunction& b) {
    const BoundStep &x = a.steps[number], &y = b.steps[number];
    const auto literal = [](const Argument& arg) { return arg.mapNodes([](Node*) -> Node* { return nullptr; }); };
    const auto same = [&](const Argument& p, const Argument& q) { return equal(literal(p), literal(q)); };
    if (x.nanoseconds != y.nanoseconds || !std::equal(x.args.begin(), x.args.end(), y.args.begin(), y.args.end(), same))
        return false;
    for (const auto* values : {&step.operands, &step.results})
        for (const int64_t value : *values) {
            if (value < 0) continue;
            const BoundValue &boundValue = a.values[static_cast<size_t>(value)],
                             &other = b.values[static_cast<size_t>(value)];
            if (boundValue.sizes != other.sizes || boundValue.strides != other.strides) return false;
            if (function.values[static_cast<size_t>(value)].constant && boundValue.offset != other.offset) return false;
        }
    return true;
}

/// First and last step that touch each value's memory; views count for what they view. First > last: no step does.
std::vector<std::pair<size_t, size_t>> livesOf(const HostFunction& function) {
    std::vector<std::pair<size_t, size_t>> lives(function.values.size(), {function.steps.size() + 1, 0});
    const auto touch = [&](const std::vector<int64_t>& numbers, size_t step) {
        for (int64_t number : numbers) {
            if (number < 0) continue;
            while (function.values[static_cast<size_t>(number)].kind == HostValue::Kind::View)
                number = function.values[static_cast<size_t>(number)].index;
            auto& [first, last] = lives[static_cast<size_t>(number)];
            first = std::min(first, step);
            last = std::max(last, step);
        }
    };
    for (size_t i = 0; i < function.steps.size(); ++i)
        for (const auto* numbers :
             {&function.steps[i].buffers, &function.steps[i].operands, &function.steps[i].results})
            touch(*numbers, i);
    touch(function.results, function.steps.size());
    return lives;
}

/// Where so many bytes have room beside these parts of memory, each given by its first byte and the one behind it.
int64_t gapFor(int64_t bytes, std::vector<std::pair<int64_t, int64_t>> taken) {
    constexpr int64_t kVector = 64;
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [first, behind] : taken) {
        if (first - at >= bytes) break;
        at = std::max(at, (behind + kVector - 1) / kVector * kVector);
    }
    return at;
}

/// Scratch memory of a call lies among the values that live when it runs: few do where a call needs much.
void placeScratch(const HostFunction& function, size_t segment, PreparedSegment& fresh) {
    const auto [begin, end] = function.stepsOf(segment);
    std::vector<std::vector<std::pair<int64_t, int64_t>>> taken(end - begin);  // by step, where it needs scratch memory
    const auto needs = [&](size_t step) {
        const auto& plan = fresh.calls[step].plan;
        return plan ? plan->scratchBytes() : 0;
    };
    const auto lives = livesOf(function);
    for (size_t v = 0; v < lives.size(); ++v) {
        const HostValue& value = function.values[v];
        if (value.kind != HostValue::Kind::Slot || function.memory[static_cast<size_t>(value.index)].segment != segment)
            continue;
        const BoundValue& bound = fresh.bound.values[v];
        for (size_t i = std::max(begin, lives[v].first); i < std::min(end, lives[v].second + 1); ++i)
            if (needs(i) > 0) taken[i - begin].emplace_back(bound.offset, bound.offset + bound.bytes);
    }
    fresh.memory = fresh.bound.bytes[segment];
    for (size_t i = begin; i < end; ++i) {
        if (needs(i) == 0) continue;
        fresh.calls[i].scratchAt = gapFor(needs(i), std::move(taken[i - begin]));
        fresh.memory = std::max(fresh.memory, fresh.calls[i].scratchAt + needs(i));
    }
}

}  // namespace

std::vector<Tensor> LoadedProgram::all(const std::vector<Tensor>& constants,
                                       const std::vector<std::vector<Tensor>>& weights) {
    std::vector<Tensor> every = constants;
    for (const std::vector<Tensor>& own : weights) every.insert(every.end(), own.begin(), own.end());
    return every;
}

LoadedProgram::LoadedProgram(HostProgram program, std::unique_ptr<KernelCode> code, std::vector<Tensor> constants,
                             std::vector<std::vector<Tensor>> weights, const ProgramOptions& options,
                             std::shared_ptr<DeviceMemory> device)
    : m_program(std::move(program)),
      m_code(std::move(code)),
      m_constants(std::move(constants)),
      m_weights(std::move(weights)),
      m_memory(all(m_constants, m_weights)),
      m_pool(options.threads),
      m_device(std::move(device)),
      m_splitSmall(options.splitSmall) {
    for (size_t f = 0; f < m_program.functions.size(); ++f) {
        forEachDirectRead(f, 0, m_program.functions[f].steps.size(),
                          [&](const void* constant) { m_readPlainly.insert(constant); });
        // A forward returns the weights that its backward reads, too: packed for both they would be held twice.
        for (const int64_t number : m_program.functions[f].results)
            if (m_program.functions[f].isConstantInput(number)) m_readPlainly.insert(constantAt(f, number, nullptr));
    }
}

int LoadedProgram::threadsFor(const BoundStep& step) const {
    return m_splitSmall ? m_pool.size() : m_pool.threadsFor(step.nanoseconds);
}

Tensor LoadedProgram::constant(size_t function, const HostValue& value) const {
    const auto place = static_cast<size_t>(value.index);
    if (value.kind == HostValue::Kind::Constant) return m_constants.at(place);
    if (value.kind == HostValue::Kind::Input && value.constant && function < m_weights.size() &&
        place < m_weights[function].size())
        return m_weights[function][place];
    return {};
}

const std::byte* LoadedProgram::constantAt(size_t function, int64_t number, const BoundFunction* bound) const {
    const HostFunction& hostFunction = m_program.functions[function];
    const HostValue* value = &hostFunction.values[static_cast<size_t>(number)];
    int64_t offset = 0;
    while (value->kind == HostValue::Kind::View) {
        if (bound) offset += bound->values[static_cast<size_t>(number)].offset * byteSize(value->type.dtype);
        number = value->index;
        value = &hostFunction.values[static_cast<size_t>(number)];
    }
    const Tensor tensor = value->constant ? constant(function, *value) : Tensor();
    return tensor.defined() ? static_cast<const std::byte*>(tensor.address()) + offset : nullptr;
}

Result<std::shared_ptr<const PreparedSegment>> LoadedProgram::prepare(size_t function, size_t segment,
                                                                      const SymbolValues& sizes,
                                                                      const PreparedSegment* before) {
    constexpr size_t kSegments = 16;
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(m_segments.begin(), m_segments.end(), [&](const CachedSegment& kept) {
        return kept.function == function && kept.segment == segment && kept.sizes == sizes;
    });
    if (found != m_segments.end()) {
        m_segments.splice(m_segments.begin(), m_segments, found);
        return m_segments.front().prepared;
    }
    auto fresh = before ? std::make_shared<PreparedSegment>(*before) : std::make_shared<PreparedSegment>();
    const HostFunction& hostFunction = m_program.functions[function];
    CT_TRY_VOID(bindSegment(m_program, hostFunction, segment, sizes, fresh->bound));
    fresh->calls.resize(hostFunction.steps.size());
    const auto [first, end] = hostFunction.stepsOf(segment);
    for (size_t i = first; i < end; ++i) {
        if (hostFunction.steps[i].kind != HostStepKind::Library) continue;
        // A size found in data often changes offsets alone, so plans for other sizes may serve.
        const auto planned = std::find_if(m_segments.begin(), m_segments.end(), [&](const CachedSegment& kept) {
            return kept.function == function && kept.segment == segment && kept.prepared->calls[i].plan &&
                   samePlan(hostFunction, hostFunction.steps[i], i, kept.prepared->bound, fresh->bound);
        });
        if (planned != m_segments.end()) fresh->calls[i] = planned->prepared->calls[i];
        else fresh->calls[i] = plan(function, hostFunction.steps[i], fresh->bound.steps[i], fresh->bound);
        if (fresh->calls[i].plan) fresh->scratch = std::max(fresh->scratch, fresh->calls[i].plan->scratchBytes());
    }
    placeScratch(hostFunction, segment, *fresh);
    CT_TRY_VOID(pack(function, segment, *fresh));
    m_segments.push_front({function, segment, sizes, std::move(fresh)});
    if (m_segments.size() > kSegments) m_segments.pop_back();
    return m_segments.front().prepared;
}

template <class Body>
void LoadedProgram::forEachDirectRead(size_t function, size_t first, size_t end, const Body& body) const {
    const HostFunction& hostFunction = m_program.functions[function];
    const auto read = [&](int64_t number) {
        if (const std::byte* at = number < 0 ? nullptr : constantAt(function, number, nullptr)) body(at);
    };
    for (size_t i = first; i < end; ++i) {
        const HostStep& step = hostFunction.steps[i];
        if (step.kind == HostStepKind::Library) continue;
        for (const int64_t number : step.kind == HostStepKind::Kernel ? step.buffers : step.operands) read(number);
    }
    for (const int64_t number : hostFunction.results)
        if (!hostFunction.isConstantInput(number)) read(number);
}

void LoadedProgram::forgetPacked(ForgetBytes forget) { m_forget = std::move(forget); }

void LoadedProgram::countReaders(size_t function, size_t segment, const PreparedSegment& fresh) {
    m_memory.beginCount();
    const auto addReader = [&](const void* constant) { m_memory.addReader(constant); };
    const auto countCall = [&](size_t f, const HostStep& step, const PreparedSegment::Call* call) {
        const std::vector<int64_t>& operands = call && call->plan ? call->operands : step.operands;
        for (size_t o = 0; o < operands.size(); ++o) {
            const bool read = !call || !call->plan || call->plan->reads(o);
            if (read || (call->plan->packs(o) && !call->plan->isPacked()))
                if (const std::byte* at = constantAt(f, operands[o], nullptr)) addReader(at);
        }
    };
    for (size_t f = 0; f < m_program.functions.size(); ++f) {
        const HostFunction& hostFunction = m_program.functions[f];
        for (size_t s = 0; s < hostFunction.segments.size(); ++s) {
            const auto [first, end] = hostFunction.stepsOf(s);
            forEachDirectRead(f, first, end, addReader);
            std::vector<const PreparedSegment*> prepared;
            for (const CachedSegment& kept : m_segments)
                if (kept.function == f && kept.segment == s) prepared.push_back(kept.prepared.get());
            if (f == function && s == segment) prepared.push_back(&fresh);
            for (size_t i = first; i < end; ++i) {
                if (hostFunction.steps[i].kind != HostStepKind::Library) continue;
                for (const PreparedSegment* each : prepared) countCall(f, hostFunction.steps[i], &each->calls[i]);
                if (prepared.empty()) countCall(f, hostFunction.steps[i], nullptr);
            }
        }
    }
}

bool LoadedProgram::sharePacked(PlannedCall& call, const PreparedSegment& fresh) const {
    const auto shares = [&](const PreparedSegment::Call& known) {
        return known.plan && known.plan.get() != &call && call.sharePacked(*known.plan);
    };
    return std::any_of(fresh.calls.begin(), fresh.calls.end(), shares) ||
           std::any_of(m_segments.begin(), m_segments.end(), [&](const CachedSegment& kept) {
               return std::any_of(kept.prepared->calls.begin(), kept.prepared->calls.end(), shares);
           });
}

Result<void> LoadedProgram::pack(size_t function, size_t segment, PreparedSegment& fresh) {
    const auto [first, end] = m_program.functions[function].stepsOf(segment);
    for (size_t i = first; i < end; ++i)
        if (PlannedCall* plan = fresh.calls[i].plan.get(); plan && !plan->isPacked()) sharePacked(*plan, fresh);
    if (m_forget) {
        countReaders(function, segment, fresh);
        m_lacking = m_memory.wantsGone();
        if (m_lacking) return Error{ErrorCode::Internal, "weights that were packed are wanted again", {}, {}};
    }
    bool packs = false;
    for (size_t i = first; i < end; ++i) {
        const PreparedSegment::Call& call = fresh.calls[i];
        if (!call.plan || call.plan->isPacked() || sharePacked(*call.plan, fresh)) continue;
        std::vector<const void*> operands;
        for (const int64_t operand : call.operands) operands.push_back(constantAt(function, operand, &fresh.bound));
        // Code that plans calls goes before a weight is held twice.
        if (m_forget && !std::exchange(packs, true)) forgetCode();
        CT_TRY_VOID(call.plan->pack(operands, *m_device));
        for (size_t o = 0; m_forget && o < operands.size(); ++o)
            if (call.plan->packs(o) && !call.plan->reads(o))
                if (const std::byte* at = constantAt(function, call.operands[o], nullptr)) m_memory.addReader(at, -1);
        if (m_forget) m_memory.forgetUnread(m_forget);
    }
    if (m_forget) {  // what was shared has fewer readers than were counted
        countReaders(function, segment, fresh);
        m_memory.forgetUnread(m_forget);
    }
    return {};
}

Result<std::shared_ptr<PluginCalls>> LoadedProgram::callsOf(const PluginLibrary& library) const {
    for (const auto& known : m_plugins)
        if (known->library() == library) return known;
    setPluginLimits(m_program.pluginLimits);
    CT_TRY(auto made, PluginCalls::create(library));
    m_plugins.push_back(made);
    return made;
}

PreparedSegment::Call LoadedProgram::plan(size_t function, const HostStep& step, const BoundStep& bound,
                                          const BoundFunction& values) const {
    constexpr int64_t kLarge = 1 << 20;
    int64_t alsoRead = 0;
    for (const int64_t operand : step.operands)
        if (const int64_t bytes = values.values[static_cast<size_t>(operand)].bytes; bytes >= kLarge)
            if (m_readPlainly.contains(constantAt(function, operand, nullptr))) alsoRead = std::max(alsoRead, bytes);
    // A large weight that kernels read, too, stays unpacked, so as not to be held twice, unless each run would pack it,
    // as a plugin's would copy it.
    if (alsoRead > 0 && pluginOf(m_program, step.library) == nullptr)
        if (PreparedSegment::Call call = plan(function, step, bound, values, false);
            call.plan && call.plan->scratchBytes() < alsoRead)
            return call;
    return plan(function, step, bound, values, true);
}

PreparedSegment::Call LoadedProgram::plan(size_t function, const HostStep& step, const BoundStep& bound,
                                          const BoundFunction& values, bool packAll) const {
    const PluginLibrary* const plugin = pluginOf(m_program, step.library);
    const CtLibrary* const library = plugin != nullptr ? nullptr : libraryNamed(step.library);
    if (library == nullptr && plugin == nullptr) return {.refusal = "this build does not have it"};
    if (faultEffect("library", step.op) == FaultEffect::Refuse) return {.refusal = "asked for by CUTAWAY_FAULT"};
    const HostFunction& hostFunction = m_program.functions[function];
    const auto describe = [&](int64_t number) {
        const HostValue& value = hostFunction.values[static_cast<size_t>(number)];
        const BoundValue& numbers = values.values[static_cast<size_t>(number)];
        const void* data = value.constant ? constantAt(function, number, &values) : nullptr;
        if (data != nullptr && !packAll && m_readPlainly.contains(constantAt(function, number, nullptr)))
            data = nullptr;
        return CallTensor{value.type.dtype, numbers.sizes, numbers.strides, data != nullptr, data};
    };
    std::vector<CallTensor> results;
    for (const int64_t number : step.results) {
        if (number >= 0) results.push_back(describe(number));
        else results.push_back({.absent = true});
    }
    auto asked = std::make_unique<OwnedCall>(
        step.op, step.params, bound.args, [&](const Node& node) { return describe(hostFunction.numberOf(node)); },
        results);
    Result<std::shared_ptr<PluginCalls>> calls = plugin != nullptr ? callsOf(*plugin) : nullptr;
    if (!calls) return {.refusal = calls.error().message};
    const auto ask = [&](const CtCall& call, int threads, CtNeeds& needs) {
        return PluginCalls::plan(*calls, call, threads, needs);
    };
    auto planned = plugin != nullptr ? PlannedCall::planByPlugin(plugin->name, ask, std::move(asked), threadsFor(bound))
                                     : PlannedCall::plan(*library, std::move(asked), threadsFor(bound));
    if (!planned) return {.refusal = planned.error().message};
    PreparedSegment::Call call;
    for (const Node* node : (*planned)->call().operands()) call.operands.push_back(hostFunction.numberOf(*node));
    call.plan = std::move(*planned);
    return call;
}

}  // namespace cutaway
