#include "engine/runtime/cpu/host_values.h"

#include <algorithm>
#include <numeric>

#include "engine/expr/evaluate.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/support/check.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

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

/// The number of bytes that memory has at least.
size_t atLeast(int64_t bytes) { return static_cast<size_t>(std::max<int64_t>(bytes, 64)); }

}  // namespace

Tensor atEndOfMemory(DType dtype, const Dims& sizes, const Dims& strides) {
    // Allocations are multiples of 64 bytes.
    const auto bytes = static_cast<size_t>(extent(sizes, strides) * byteSize(dtype)),
               whole = std::max<size_t>((bytes + 63) / 64 * 64, 64);
    return Tensor(Storage::allocateUninitialized(whole), dtype, sizes, strides,
                  static_cast<int64_t>(whole - bytes) / byteSize(dtype));
}

HostValues::HostValues(const std::shared_ptr<LoadedProgram>& program, size_t function, bool apart)
    : m_program(program),
      m_number(function),
      m_function(&program->program().functions[function]),
      m_apart(apart && program->device().isHost()),
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

Result<void> HostValues::setInputs(const std::vector<Tensor>& inputs, bool all) {
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
            CT_TRY(Tensor memory, memoryFor(from));
            m_values[i] = {std::move(memory)};
            forgetPlaces(0);
        }
        if (const size_t bytes = spannedBytes(from); bytes > 0)
            CT_TRY_VOID(device().toDevice(m_values[i][0].address(), from.data(), bytes));
    }
    return {};
}

void HostValues::forgetInputs() {
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

/// Nothing is copied that need not be: what a forward has saved for its backward may be most of the memory.
bool HostValues::staysWhereItIs(const HostValue& value, const Tensor& input) const {
    constexpr size_t kAlignment = 64;
    return device().isHost() && !m_apart && !value.written &&
           reinterpret_cast<uintptr_t>(input.data()) % kAlignment == 0;
}

Result<Tensor> HostValues::memoryFor(const Tensor& like) const {
    if (m_apart) return atEndOfMemory(like.dtype(), like.sizes(), like.strides());
    CT_TRY(auto storage, device().allocate(atLeast(static_cast<int64_t>(spannedBytes(like)))));
    return Tensor(std::move(storage), like.dtype(), like.sizes(), like.strides(), 0, like.device());
}

/// What looks at memory that is another one now is found again.
void HostValues::forgetPlaces(size_t firstSegment) {
    ++m_places;
    for (size_t i = 0; i < m_values.size(); ++i)
        if (m_function->values[i].kind == HostValue::Kind::View) m_values[i].clear();
    for (size_t i = m_function->segments[firstSegment]; i < m_steps.size(); ++i) m_steps[i].located = false;
}

Result<void> HostValues::enter(size_t segment, const SymbolValues& sizes) {
    CT_TRY(auto prepared,
           m_program->prepare(m_number, segment, sizes, segment == 0 ? nullptr : m_prepared[segment - 1].get()));
    m_segment = segment;
    if (m_prepared[segment] == prepared) return {};
    m_prepared[segment] = std::move(prepared);
    const size_t bytes = atLeast(m_apart ? 0 : m_prepared[segment]->memory);
    if (!m_arenas[segment] || m_arenas[segment]->size() < bytes) {
        m_arenas[segment].reset();
        CT_TRY(m_arenas[segment], device().allocate(bytes));
    }
    for (size_t i = 0; i < m_values.size(); ++i) {
        const HostValue& value = m_function->values[i];
        const BoundValue& boundValue = bound().values[i];
        const DType dtype = value.type.dtype;
        if (value.kind == HostValue::Kind::Slot &&
            m_function->memory[static_cast<size_t>(value.index)].segment == segment)
            m_values[i] = {m_apart ? atEndOfMemory(dtype, boundValue.sizes, boundValue.strides)
                                   : Tensor(m_arenas[segment], dtype, boundValue.sizes, boundValue.strides,
                                            boundValue.offset / byteSize(dtype))};
        else if (value.constant && value.kind != HostValue::Kind::View)
            m_values[i] = {m_program->constant(m_number, value)};
    }
    const size_t scratch = atLeast(m_prepared[segment]->scratch);
    if (m_apart && (!m_scratch || m_scratch->size() < scratch)) m_scratch = Storage::allocateUninitialized(scratch);
    forgetPlaces(segment);
    return {};
}

bool HostValues::moves(int64_t number) const {
    const HostValue& value = m_function->values[static_cast<size_t>(number)];
    return value.kind == HostValue::Kind::StepOwned || (value.kind == HostValue::Kind::View && moves(value.index));
}

/// Views are made anew only if what they look at is.
const Tensor& HostValues::value(int64_t number) {
    const HostValue& hostValue = m_function->values[static_cast<size_t>(number)];
    TensorList& slot = m_values[static_cast<size_t>(number)];
    if (hostValue.kind == HostValue::Kind::View && (slot.empty() || moves(number))) {
        const Tensor& base = value(hostValue.index);
        const BoundValue& numbers = bound().values[static_cast<size_t>(number)];
        slot = {Tensor(base.storage(), hostValue.type.dtype, numbers.sizes, numbers.strides,
                       base.offset() * byteSize(base.dtype()) / byteSize(hostValue.type.dtype) + numbers.offset)};
    }
    CT_CHECK(!slot.empty(), "steps stand in the order of their data");
    return slot[0];
}

void* const* HostValues::buffersOf(size_t number) {
    const HostStep& step = m_function->steps[number];
    Step& own = m_steps[number];
    if (!own.located || own.moving)
        for (size_t i = 0; i < step.buffers.size(); ++i) own.pointers[i] = value(step.buffers[i]).address();
    if (own.moving) ++m_places;
    own.located = true;
    return own.pointers.data();
}

void* HostValues::scratchOf(const PreparedSegment::Call& planned) const {
    return m_apart ? m_scratch->data() : m_arenas[m_segment]->address() + planned.scratchAt;
}

Result<void> HostValues::bring(const HostStep& step) {
    m_brought.clear();
    if (device().isHost()) return {};
    for (const int64_t operand : step.operands) {
        if (operand < 0 || m_brought.contains(operand)) continue;
        CT_TRY(Tensor copy, onHost(device(), value(operand)));
        m_brought[operand] = {std::move(copy)};
    }
    return {};
}

Result<void> HostValues::writeBack(const HostStep& step, const Op& op) {
    if (device().isHost() || !op.mutates()) return {};
    std::vector<int64_t> written;
    for (size_t i = 0; i < step.args.size(); ++i)
        if (op.schema()->params[i].mutated)
            static_cast<void>(step.args[i].mapNodes([&](Node* operand) {
                written.push_back(m_function->numberOf(*operand));
                return operand;
            }));
    for (const int64_t number : written) {
        const Tensor &place = value(number), &copy = m_brought.at(number)[0];
        if (const size_t bytes = spannedBytes(copy); bytes > 0)
            CT_TRY_VOID(device().toDevice(place.address(), copy.data(), bytes));
    }
    return {};
}

const TensorList& HostValues::valueOf(const Node& node) const {
    const int64_t number = m_function->numberOf(node);
    if (const auto copy = m_brought.find(number); copy != m_brought.end()) return copy->second;
    const_cast<HostValues*>(this)->value(number);
    return m_values[static_cast<size_t>(number)];
}

Result<void> HostValues::adopt(const HostStep& step, int64_t number, Tensor tensor) {
    const HostValue& value = m_function->values[static_cast<size_t>(number)];
    TensorList& place = m_values[static_cast<size_t>(number)];
    if (value.kind == HostValue::Kind::Slot) {
        if (device().isHost()) {
            copyInto(place[0], tensor);
            return {};
        }
        const size_t bytes = spannedBytes(place[0]);
        Tensor laid(Storage::allocate(std::max<size_t>(bytes, 1)), tensor.dtype(), place[0].sizes(),
                    place[0].strides());
        copyInto(laid, tensor);
        return bytes == 0 ? Result<void>() : device().toDevice(place[0].address(), laid.data(), bytes);
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
    if (!device().isHost()) {
        CT_TRY(tensor, onDevice(device(), tensor));
    }
    place = {tensor};
    return {};
}

Result<Tensor> HostValues::handedOut(const Tensor& tensor, bool inPlace) const {
    CT_TRY(const Tensor here, onHost(device(), tensor));
    const bool dense = here.isContiguous() || !denseStrides(here).empty();
    if (inPlace && dense && here.numel() > 0) {  // memory of its own, as far as the reader knows
        const auto memory = Storage::view(here.data(), spannedBytes(here), here.storage());
        return Tensor(memory, here.dtype(), here.sizes(), here.strides(), 0, here.device());
    }
    // Copied with its strides: the arena is written again by the next run.
    Tensor copy = Tensor::empty(here.dtype(), here.sizes(), denseStrides(here));
    copyInto(copy, here);
    return copy;
}

Result<std::vector<Tensor>> HostValues::outputs(bool inPlace, const SymbolValues& sizes) {
    std::vector<Tensor> result;
    for (int64_t number : m_function->results) {
        if (number < 0 || (inPlace && m_function->isConstantInput(number))) {
            result.emplace_back();
            continue;
        }
        CT_TRY(Tensor one, handedOut(value(number), inPlace));
        result.push_back(std::move(one));
    }
    for (const HostNumber& number : m_function->returnedNumbers)
        if (number.real) result[number.result] = Tensor::scalar(number.dtype, *number.real);
        else if (const auto value = literalScalar(withValues(number.value.expr(), sizes)))
            result[number.result] = Tensor::scalar(number.dtype, *value);
    return result;
}

Result<std::vector<std::pair<size_t, Tensor>>> HostValues::writtenInputs() {
    std::vector<std::pair<size_t, Tensor>> result;
    for (size_t i = 0; i < m_values.size(); ++i) {
        const HostValue& value = m_function->values[i];
        if (value.kind != HostValue::Kind::Input || !value.written || m_values[i].empty()) continue;
        CT_TRY(Tensor one, handedOut(m_values[i][0], true));
        result.emplace_back(static_cast<size_t>(value.index), std::move(one));
    }
    return result;
}

std::vector<std::pair<size_t, std::string>> HostValues::refused() const {
    std::vector<std::pair<size_t, std::string>> found;
    const std::vector<PreparedSegment::Call>& calls = m_prepared.back()->calls;  // of all segments
    for (size_t step = 0; step < calls.size(); ++step)
        if (!calls[step].refusal.empty()) found.emplace_back(step, calls[step].refusal);
    return found;
}

void HostValues::keepOnly(const std::vector<Tensor>& kept) {
    if (!device().isHost()) return;  // what is handed out has been copied
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

int64_t HostValues::memoryBytes() const {
    size_t bytes = m_scratch ? m_scratch->size() : 0;
    for (const auto& arena : m_arenas) bytes += arena ? arena->size() : 0;
    return static_cast<int64_t>(bytes);
}

}  // namespace cutaway
