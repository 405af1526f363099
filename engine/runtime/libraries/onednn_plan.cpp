#include "engine/runtime/libraries/onednn_plan.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "engine/runtime/libraries/halves.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using Type = dnnl::memory::data_type;

Type typeOf(int32_t dtype) {
    switch (dtype) {
        case CT_F32: return Type::f32;
        case CT_BF16: return Type::bf16;
        case CT_F16: return Type::f16;
        case CT_I8: return Type::s8;
        case CT_U8: return Type::u8;
        case CT_I32: return Type::s32;
        default: throw LibraryRefusal("it has no such element type");
    }
}
constexpr int64_t rounded(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); }

constexpr std::align_val_t kAlignment{64};

/// Whether elements share memory, lie in reverse, or between others: the library takes no such strides.
bool overlap(const Dims& sizes, const Dims& strides) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
    for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
    std::sort(dims.begin(), dims.end());
    int64_t end = 1;
    for (const auto& [stride, size] : dims) {
        if (stride < end) return true;
        end = stride * size;
    }
    return false;
}
/// Whether float16 become f32, or the other way round, by our own loop over memory from the first element to the last:
/// the library's takes them one by one.
bool isConverted(const DnnlLayout& given, const dnnl::memory::desc& inside) {
    int64_t elements = 1;
    for (const int64_t size : given.sizes) elements *= size;
    return given.type == Type::f16 && typeIn(inside) == Type::f32 && given.extent() == elements;
}
struct StridedElements {
    const std::byte* first;
    const Dims &sizes, &strides;
    size_t bytes;  // of an element
};
/// Rows [begin, end) of the elements, one after the other.
void copyRows(const StridedElements& given, int64_t begin, int64_t end, std::byte* to) {
    const size_t last = given.sizes.size() - 1, bytes = given.bytes;
    const int64_t count = given.sizes[last], step = given.strides[last] * static_cast<int64_t>(bytes);
    for (int64_t row = begin; row < end; ++row) {
        int64_t offset = 0, rest = row;
        for (size_t d = last; d-- > 0; rest /= given.sizes[d]) offset += rest % given.sizes[d] * given.strides[d];
        const std::byte* from = given.first + offset * static_cast<int64_t>(bytes);
        std::byte* into = to + static_cast<size_t>(row * count) * bytes;
        if (given.strides[last] == 1) std::memcpy(into, from, static_cast<size_t>(count) * bytes);
        else
            for (int64_t i = 0; i < count; ++i, from += step, into += bytes) std::memcpy(into, from, bytes);
    }
}

}  // namespace

dnnl::engine& oneDnnEngine() {
    static auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives all threads
    return engine;
}

Type typeIn(const dnnl::memory::desc& layout) {
#if DNNL_VERSION_MAJOR >= 3
    return layout.get_data_type();
#else
    return layout.data_type();
#endif
}

DnnlLayout::DnnlLayout(dnnl::memory::data_type ofType, Dims ofSizes, Dims ofStrides)
    : type(ofType), sizes(std::move(ofSizes)), strides(std::move(ofStrides)) {}

DnnlLayout::DnnlLayout(const CtTensor& tensor)
    : type(typeOf(tensor.dtype)), sizes(sizesOf(tensor)), strides(stridesOf(tensor)) {
    for (const int64_t size : sizes)
        if (size == 0) throw LibraryRefusal("a tensor has no elements");
    if (!overlap(sizes, strides)) return;
    copied = std::make_shared<const std::pair<Dims, Dims>>(sizes, strides);
    strides = contiguousStridesOf(sizes);
}

int64_t DnnlLayout::extent() const {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last + 1;
}

void appendFunction(dnnl::post_ops& ops, dnnl::algorithm function, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(function, alpha, beta);
#else
    ops.append_eltwise(1, function, alpha, beta);
#endif
}

dnnl::primitive_attr callersScratch() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

void refuseSlow(Type type, const char* implementation) {
    if (type != Type::f32 && std::string_view(implementation).find("ref") == 0)
        throw LibraryRefusal("this processor does not compute in that type");
}

OneDnnPlan::Place OneDnnPlan::place(Place::Kind kind, const dnnl::memory::desc& layout) {
    int64_t& used = [&]() -> int64_t& {
        if (kind == Place::Kind::Packed) return m_needs.packed;
        return kind == Place::Kind::Temporary ? m_temporary : m_needs.scratch;
    }();
    const Place made{kind, used, layout};
    used += rounded(layout.get_size());
    return made;
}
OneDnnPlan::Place OneDnnPlan::scratch(const dnnl::memory::desc& layout) { return place(Place::Kind::Scratch, layout); }

void OneDnnPlan::reorder(const Place& from, const Place& to, std::vector<Step>& steps) {
    const dnnl::reorder::primitive_desc description(oneDnnEngine(), from.layout, oneDnnEngine(), to.layout,
                                                    callersScratch());
    Arguments arguments{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (const auto own = description.scratchpad_desc(); own.get_size() > 0)
        arguments.emplace_back(DNNL_ARG_SCRATCHPAD,
                               place(&steps == &m_packing ? Place::Kind::Temporary : Place::Kind::Scratch, own));
    steps.push_back({dnnl::reorder(description), std::move(arguments)});
}
void OneDnnPlan::convert(const Place& from, const Place& to, const DnnlLayout& layout, std::vector<Step>& steps) const {
    const int64_t elements = layout.extent();
    const bool widens = typeIn(from.layout) == Type::f16;
    const auto work = [elements, widens, threads = m_threads](const std::vector<void*>& at, const LibraryRun&) {
        constexpr int64_t kUnit = 4096;
        runRange(elements, kUnit, threads, [&](int64_t begin, int64_t end) {
            if (widens)
                widenHalves(static_cast<const uint16_t*>(at[0]) + begin, end - begin,
                            static_cast<float*>(at[1]) + begin);
            else
                narrowToHalves(static_cast<const float*>(at[0]) + begin, end - begin,
                               static_cast<uint16_t*>(at[1]) + begin);
        });
    };
    steps.push_back({{}, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, work, {elements}});
}
DnnlLayout OneDnnPlan::layout(int number, const Dims& sizes, const Dims& strides) const {
    CtTensor tensor = m_call->operands[number];
    tensor.rank = static_cast<int32_t>(sizes.size());
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
    return DnnlLayout(tensor);
}
DnnlLayout OneDnnPlan::expand(int number, const Dims& sizes) const {
    const CtTensor& tensor = m_call->operands[number];
    const size_t added = sizes.size() - static_cast<size_t>(tensor.rank);
    Dims strides(sizes.size(), 0);
    for (size_t d = added; d < sizes.size(); ++d)
        if (tensor.sizes[d - added] == sizes[d]) strides[d] = tensor.strides[d - added];
    DnnlLayout made(typeOf(tensor.dtype), sizes, contiguousStridesOf(sizes));
    made.copied = std::make_shared<const std::pair<Dims, Dims>>(sizes, std::move(strides));
    return made;
}
/// The operand in a row-major copy; one made while packing lies in memory that is gone afterwards.
OneDnnPlan::Place OneDnnPlan::copied(int number, const DnnlLayout& copy, std::vector<Step>& steps) {
    const Place from{Place::Kind::Operand, number, copy.desc()},
        to = place(&steps == &m_packing ? Place::Kind::Temporary : Place::Kind::Scratch, copy.desc());
    const auto bytes = static_cast<size_t>(ct::bytesOf(m_call->operands[number].dtype));
    const Dims &sizes = copy.copied->first, &strides = copy.copied->second;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < sizes.size(); ++d) rows *= sizes[d];
    const auto work = [sizes, strides, bytes, rows, threads = m_threads](const std::vector<void*>& at,
                                                                         const LibraryRun&) {
        runRange(rows, 1, threads, [&](int64_t begin, int64_t end) {
            copyRows({static_cast<const std::byte*>(at[0]), sizes, strides, bytes}, begin, end,
                     static_cast<std::byte*>(at[1]));
        });
    };
    Dims numbers = sizes;
    numbers.insert(numbers.end(), strides.begin(), strides.end());
    steps.push_back({{}, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, work, std::move(numbers)});
    return to;
}

OneDnnPlan::Place OneDnnPlan::operand(int number, const DnnlLayout& given, const dnnl::memory::desc& wanted) {
    const bool constant = m_call->constant[number] != 0;
    std::vector<Step>& steps = constant ? m_packing : m_steps;
    for (const Laid& known : m_laid)  // what two primitives want alike is laid out once
        if (known.operand == number && known.given == given.desc() && known.place.layout == wanted) return known.place;
    Place from = given.copied ? copied(number, given, steps) : Place{Place::Kind::Operand, number, given.desc()};
    if (from.layout == wanted && from.kind != Place::Kind::Temporary) return from;
    const auto kept = constant ? Place::Kind::Packed : Place::Kind::Scratch;
    if (isConverted(given, wanted)) {
        const auto wide = given.as(Type::f32).desc();
        const Place to = place(constant && wide != wanted ? Place::Kind::Temporary : kept, wide);
        convert(from, to, given, steps);
        if (wide == wanted) return to;
        from = to;
    }
    const Place to = place(kept, wanted);
    reorder(from, to, steps);
    m_laid.push_back({number, given.desc(), to});
    return to;
}

void OneDnnPlan::copyOperand(int number, const DnnlLayout& given, const Place& to) {
    if (m_call->constant[number] != 0 || given.copied) return reorder(operand(number, given, to.layout), to, m_steps);
    const Place from{Place::Kind::Operand, number, given.desc()};
    if (!isConverted(given, to.layout)) {
        reorder(from, to, m_steps);
        m_steps.back().inPlace = from.layout == to.layout;
        return;
    }
    const auto wide = given.as(Type::f32).desc();
    const Place between = wide == to.layout ? to : scratch(wide);
    convert(from, between, given, m_steps);
    if (wide != to.layout) reorder(between, to, m_steps);
}

OneDnnPlan::Place OneDnnPlan::result(int number, const DnnlLayout& given, const dnnl::memory::desc& made) {
    const Place to{Place::Kind::Result, number, given.desc()};
    if (to.layout == made) return to;
    const Place from = scratch(made);
    if (!isConverted(given, made)) {
        reorder(from, to, m_last);
        return from;
    }
    const auto wide = given.as(Type::f32).desc();
    const Place between = wide == made ? from : scratch(wide);
    if (wide != made) reorder(from, between, m_last);
    convert(between, to, given, m_last);
    return from;
}

OneDnnPlan::Place OneDnnPlan::scaled(const Place& from, float factor) {
    const auto forward = dnnl::prop_kind::forward_inference;
    const auto linear = dnnl::algorithm::eltwise_linear;
#if DNNL_VERSION_MAJOR >= 3
    const auto description = describePrimitive<dnnl::eltwise_forward>(callersScratch(), forward, linear, from.layout,
                                                                      from.layout, factor, 0.0f);
#else
    const auto description =
        describePrimitive<dnnl::eltwise_forward>(callersScratch(), forward, linear, from.layout, factor, 0.0f);
#endif
    const Place made = scratch(from.layout);
    add(dnnl::eltwise_forward(description), description, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, made}});
    return made;
}

CtNeeds OneDnnPlan::finish() {
    m_steps.insert(m_steps.end(), m_last.begin(), m_last.end());
    m_last.clear();
    m_call = nullptr;
    return m_needs;
}

void OneDnnPlan::execute(const std::vector<Step>& steps, const LibraryRun& run, std::byte* temporary,
                         Handles& handles) const {
    // The library splits its work among the threads for which a primitive was made.
    lendThreads(m_threads);
    thread_local dnnl::stream stream(oneDnnEngine());
    const auto addressOf = [&](const Place& place) -> void* {
        const auto offset = static_cast<size_t>(place.at);
        switch (place.kind) {
            case Place::Kind::Operand: return run.operands[place.at].data;
            case Place::Kind::Result: return run.results[place.at].data;
            case Place::Kind::Scratch: return run.scratch + offset;
            case Place::Kind::Packed: return run.packed + offset;
            case Place::Kind::Temporary: return temporary + offset;
        }
        return nullptr;
    };
    handles.resize(steps.size());
    std::vector<void*> addresses;
    for (size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        // The result lies over the operand: its elements are there.
        if (step.inPlace && addressOf(step.arguments[0].second) == addressOf(step.arguments[1].second)) continue;
        if (step.work) {
            addresses.clear();
            for (const auto& argument : step.arguments) addresses.push_back(addressOf(argument.second));
            step.work(addresses, run);
            continue;
        }
        auto& own = handles[i];
        for (const auto& [argument, place] : step.arguments) {
            void* const address = addressOf(place);
            const auto known = own.find(argument);
            if (known == own.end()) own.emplace(argument, dnnl::memory(place.layout, oneDnnEngine(), address));
            else if (known->second.get_data_handle() != address) known->second.set_data_handle(address);
        }
        step.primitive.execute(stream, own);
    }
    stream.wait();
}

bool OneDnnPlan::uses(const std::vector<Step>& steps, int operand) {
    for (const Step& step : steps)
        for (const auto& argument : step.arguments)
            if (argument.second.kind == Place::Kind::Operand && argument.second.at == operand) return true;
    return false;
}

bool OneDnnPlan::packsLike(const LibraryPlan& other) const {
    const auto* plan = dynamic_cast<const OneDnnPlan*>(&other);
    const auto same = [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.kind == b.second.kind && a.second.at == b.second.at &&
               a.second.layout == b.second.layout;
    };
    return plan != nullptr && std::equal(m_packing.begin(), m_packing.end(), plan->m_packing.begin(),
                                         plan->m_packing.end(), [&](const Step& a, const Step& b) {
                                             return a.numbers == b.numbers &&
                                                    std::equal(a.arguments.begin(), a.arguments.end(),
                                                               b.arguments.begin(), b.arguments.end(), same);
                                         });
}

void OneDnnPlan::pack(const CtTensor* operands, std::byte* packed) const {
    struct Freed {
        void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
    };
    const std::unique_ptr<std::byte, Freed> temporary(
        static_cast<std::byte*>(::operator new(static_cast<size_t>(m_temporary), kAlignment)));
    Handles handles;
    execute(m_packing, {operands, nullptr, packed, nullptr, nullptr}, temporary.get(), handles);
}
void OneDnnPlan::run(const LibraryRun& run) const {
    Handles handles;
    {
        const std::lock_guard lock(m_mutex);
        if (!m_idle.empty()) {
            handles = std::move(m_idle.back());
            m_idle.pop_back();
        }
    }
    execute(m_steps, run, nullptr, handles);
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(std::move(handles));
}

}  // namespace cutaway
