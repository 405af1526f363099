#include "engine/runtime/libraries/onednn_plan.h"

#include "engine/support/threads.h"

namespace cutaway {
namespace {

dnnl::memory::data_type typeOf(int32_t dtype) {
    using Type = dnnl::memory::data_type;
    switch (dtype) {
        case CT_F32: return Type::f32;
        case CT_BF16: return Type::bf16;
        case CT_I8: return Type::s8;
        case CT_U8: return Type::u8;
        case CT_I32: return Type::s32;
        default: throw LibraryRefusal("it has no such element type");
    }
}
constexpr int64_t rounded(size_t bytes) { return static_cast<int64_t>((bytes + 63) / 64 * 64); }

}  // namespace

dnnl::engine& oneDnnEngine() {
    static auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // outlives all threads
    return engine;
}

DnnlLayout::DnnlLayout(dnnl::memory::data_type ofType, Dims ofSizes, Dims ofStrides)
    : type(ofType), sizes(std::move(ofSizes)), strides(std::move(ofStrides)) {}

DnnlLayout::DnnlLayout(const CtTensor& tensor)
    : type(typeOf(tensor.dtype)), sizes(sizesOf(tensor)), strides(stridesOf(tensor)) {
    for (size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 0) throw LibraryRefusal("a tensor has no elements");
        if (sizes[d] > 1 && strides[d] <= 0) throw LibraryRefusal("it reads no repeated or reversed elements");
    }
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

void refuseSlow(dnnl::memory::data_type type, const char* implementation) {
    if (type != dnnl::memory::data_type::f32 && std::string_view(implementation).find("ref") == 0)
        throw LibraryRefusal("this processor does not compute in that type");
}

OneDnnPlan::Place OneDnnPlan::scratch(const dnnl::memory::desc& layout) {
    const Place place{Place::Kind::Scratch, m_needs.scratch, layout};
    m_needs.scratch += rounded(layout.get_size());
    return place;
}

OneDnnPlan::Step OneDnnPlan::reorder(const Place& from, const Place& to, OneDnnPlan& plan) {
    const dnnl::reorder::primitive_desc description(oneDnnEngine(), from.layout, oneDnnEngine(), to.layout,
                                                    callersScratch());
    Arguments arguments{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (description.scratchpad_desc().get_size() > 0) {
        Place own = plan.scratch(description.scratchpad_desc());
        if (to.kind == Place::Kind::Packed) {  // packing has no scratch: what it needs lies behind what it packs
            own.kind = Place::Kind::Packed;
            own.at = plan.m_needs.packed;
            plan.m_needs.packed += rounded(own.layout.get_size());
        }
        arguments.emplace_back(DNNL_ARG_SCRATCHPAD, own);
    }
    return {dnnl::reorder(description), std::move(arguments)};
}

OneDnnPlan::Place OneDnnPlan::operand(int number, const DnnlLayout& given, const dnnl::memory::desc& wanted) {
    const Place outside{Place::Kind::Operand, number, given.desc()};
    if (outside.layout == wanted) return outside;
    if (m_call->constant[number] == 0) {
        const Place inside = scratch(wanted);
        m_steps.push_back(reorder(outside, inside, *this));
        return inside;
    }
    const Place inside{Place::Kind::Packed, m_needs.packed, wanted};
    m_needs.packed += rounded(wanted.get_size());
    m_packing.push_back(reorder(outside, inside, *this));
    return inside;
}

OneDnnPlan::Place OneDnnPlan::result(int number, const DnnlLayout& given, const dnnl::memory::desc& made) {
    const Place outside{Place::Kind::Result, number, given.desc()};
    if (outside.layout == made) return outside;
    const Place inside = scratch(made);
    m_last.push_back(reorder(inside, outside, *this));
    return inside;
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

void OneDnnPlan::execute(const std::vector<Step>& steps, const LibraryRun& run) const {
    // The library splits its work among the threads for which a primitive was made.
    lendThreads(m_threads);
    thread_local dnnl::stream stream(oneDnnEngine());
    std::unordered_map<int, dnnl::memory> arguments;
    for (const Step& step : steps) {
        arguments.clear();
        for (const auto& [argument, place] : step.arguments) {
            const auto offset = static_cast<size_t>(place.at);
            void* address = nullptr;
            switch (place.kind) {
                case Place::Kind::Operand: address = run.operands[place.at].data; break;
                case Place::Kind::Result: address = run.results[place.at].data; break;
                case Place::Kind::Scratch: address = run.scratch + offset; break;
                case Place::Kind::Packed: address = run.packed + offset; break;
            }
            arguments.emplace(argument, dnnl::memory(place.layout, oneDnnEngine(), address));
        }
        step.primitive.execute(stream, arguments);
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
                                             return std::equal(a.arguments.begin(), a.arguments.end(),
                                                               b.arguments.begin(), b.arguments.end(), same);
                                         });
}

void OneDnnPlan::pack(const CtTensor* operands, std::byte* packed) const {
    execute(m_packing, {operands, nullptr, packed, nullptr, nullptr});
}
void OneDnnPlan::run(const LibraryRun& run) const { execute(m_steps, run); }

}  // namespace cutaway
