#include "engine/runtime/cpu/loaded_program.h"

#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

/// Whether a library's plan of one serves the other, too: constants lie where they lie.
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
            const BoundValue &own = a.values[static_cast<size_t>(value)], &other = b.values[static_cast<size_t>(value)];
            if (own.sizes != other.sizes || own.strides != other.strides) return false;
            if (function.values[static_cast<size_t>(value)].constant && own.offset != other.offset) return false;
        }
    return true;
}

}  // namespace

LoadedProgram::LoadedProgram(HostProgram program, std::unique_ptr<KernelCode> code, std::vector<Tensor> constants,
                             std::vector<std::vector<Tensor>> weights, const ProgramOptions& options)
    : m_program(std::move(program)),
      m_code(std::move(code)),
      m_constants(std::move(constants)),
      m_weights(std::move(weights)),
      m_pool(options.threads),
      m_splitSmall(options.splitSmall) {}

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

Result<std::shared_ptr<const PreparedSegment>> LoadedProgram::prepare(size_t function, size_t segment,
                                                                      const SymbolValues& sizes,
                                                                      const PreparedSegment* before) {
    constexpr size_t kSegments = 16;
    const std::lock_guard lock(m_mutex);
    const auto known = std::find_if(m_kept.begin(), m_kept.end(), [&](const Kept& kept) {
        return kept.function == function && kept.segment == segment && kept.sizes == sizes;
    });
    if (known != m_kept.end()) {
        m_kept.splice(m_kept.begin(), m_kept, known);
        return m_kept.front().prepared;
    }
    auto fresh = before ? std::make_shared<PreparedSegment>(*before) : std::make_shared<PreparedSegment>();
    const HostFunction& own = m_program.functions[function];
    CT_TRY_VOID(bindSegment(m_program, own, segment, sizes, fresh->bound));
    fresh->calls.resize(own.steps.size());
    const auto [first, end] = own.stepsOf(segment);
    for (size_t i = first; i < end; ++i) {
        if (own.steps[i].kind != HostStepKind::Library) continue;
        // A number from data mostly changes offsets alone.
        const auto planned = std::find_if(m_kept.begin(), m_kept.end(), [&](const Kept& kept) {
            return kept.function == function && kept.segment == segment && kept.prepared->calls[i].plan &&
                   samePlan(own, own.steps[i], i, kept.prepared->bound, fresh->bound);
        });
        if (planned != m_kept.end()) {
            fresh->calls[i] = planned->prepared->calls[i];
        } else {
            CT_TRY(fresh->calls[i], plan(function, own.steps[i], fresh->bound.steps[i], fresh->bound));
        }
        if (fresh->calls[i].plan) fresh->scratch = std::max(fresh->scratch, fresh->calls[i].plan->scratchBytes());
    }
    m_kept.push_front({function, segment, sizes, std::move(fresh)});
    if (m_kept.size() > kSegments) m_kept.pop_back();
    return m_kept.front().prepared;
}

Result<PreparedSegment::Call> LoadedProgram::plan(size_t function, const HostStep& step, const BoundStep& bound,
                                                  const BoundFunction& values) const {
    const CtLibrary* const library = libraryNamed(step.library);
    if (library == nullptr) return PreparedSegment::Call{};
    const HostFunction& own = m_program.functions[function];
    const auto constantOf = [&](int64_t number) {
        const HostValue* value = &own.values[static_cast<size_t>(number)];
        int64_t offset = 0;
        while (value->kind == HostValue::Kind::View) {
            offset += values.values[static_cast<size_t>(number)].offset * byteSize(value->type.dtype);
            number = value->index;
            value = &own.values[static_cast<size_t>(number)];
        }
        const Tensor tensor = value->constant ? constant(function, *value) : Tensor();
        return tensor.defined() ? static_cast<const std::byte*>(tensor.data()) + offset : nullptr;
    };
    const auto describe = [&](int64_t number) {
        const HostValue& value = own.values[static_cast<size_t>(number)];
        const BoundValue& numbers = values.values[static_cast<size_t>(number)];
        const void* const data = value.constant ? constantOf(number) : nullptr;
        return CallTensor{value.type.dtype, numbers.sizes, numbers.strides, data != nullptr, data};
    };
    std::vector<CallTensor> results;
    for (const int64_t number : step.results) {
        if (number >= 0) results.push_back(describe(number));
        else results.push_back({.absent = true});
    }
    auto planned = PlannedCall::plan(
        *library,
        std::make_unique<OwnedCall>(
            step.op, bound.args, [&](const Node& node) { return describe(own.numberOf(node)); }, results),
        threadsFor(bound));
    if (!planned) return PreparedSegment::Call{};  // the reference computes it
    PreparedSegment::Call call;
    std::vector<const void*> operands;
    for (const Node* node : (*planned)->call().operands()) {
        call.operands.push_back(own.numberOf(*node));
        operands.push_back(constantOf(call.operands.back()));
    }
    CT_TRY_VOID((*planned)->pack(operands));
    call.plan = std::move(*planned);
    return call;
}

}  // namespace cutaway
