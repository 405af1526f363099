// Quantized layers: oneDNN sums products of bytes exactly, and what follows is what the portable functions do, so that
// both give the same bits.
#include "engine/runtime/libraries/onednn_plan.h"
#include "engine/runtime/libraries/table.h"
#include "engine/runtime/portable/quantized_finish.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using Place = OneDnnPlan::Place;
constexpr int kZeroArgument = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC;

/// Older processors add pairs of products in 16 bits, which may not hold them.
bool addsExactly() {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto has = [isa](dnnl::cpu_isa wanted) { return (isa & unsigned(wanted)) == unsigned(wanted); };
    return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

/// The number that a zero of the input is stored as, for the library to read in a run; none if that is 0 always.
std::optional<Place> zeroOf(const CallReader& call, OneDnnPlan& plan, dnnl::primitive_attr& attributes) {
    const CtArgument* const zero = call.find("x_zero_point");
    if (zero == nullptr || (zero->kind == CT_INT && zero->integer == 0)) return std::nullopt;
#if DNNL_VERSION_MAJOR >= 3
    attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
#else
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {DNNL_RUNTIME_S32_VAL});
#endif
    const Place place = plan.scratch({{1}, dnnl::memory::data_type::s32, dnnl::memory::format_tag::x});
    const CtCall* const own = &call.call();
    plan.add(
        [own](const std::vector<void*>& at, const LibraryRun& run) {
            const portable::Run reading{own, run.operands, run.results, nullptr, run.parallel, 1};
            const auto number = portable::Finish::number<int64_t>(reading, portable::find(*own, {"x_zero_point"}), 0);
            *static_cast<int32_t*>(at[0]) = static_cast<int32_t>(static_cast<uint32_t>(number));
        },
        {{DNNL_ARG_DST, place}});
    return place;
}

/// Sums become the result, whose channels are dim `channels`. They lie in rows of one position's channels.
void finish(const CallReader& call, OneDnnPlan& plan, const Place& sums, int32_t channels) {
    const CtCall* const own = &call.call();
    const int64_t width = own->results[0].sizes[channels], rows = elementsOf(own->results[0]) / width;
    plan.add(
        [=, threads = plan.threads()](const std::vector<void*>& at, const LibraryRun& run) {
            const portable::Finish each({own, run.operands, run.results, nullptr, run.parallel, threads});
            constexpr int64_t kUnit = 16;
            runRange(rows, kUnit, threads, [&](int64_t begin, int64_t end) {
                std::vector<float> row(static_cast<size_t>(width));
                for (int64_t r = begin; r < end; ++r)
                    each.store(static_cast<const int32_t*>(at[0]) + r * width, r, channels, row.data());
            });
        },
        {{DNNL_ARG_SRC, sums}});
    // Scales, bias and what is added; of x and the weight the library reads, or has packed, its own.
    for (int32_t operand = 0; operand < own->operandCount; ++operand)
        if (!plan.packs(operand)) plan.readByWork(operand);
}

std::unique_ptr<LibraryPlan> planQuantized(const CtCall& call, int threads, CtNeeds& needs) {
    const CallReader reader(call);
    if (addsExactly() && elementsOf(call.results[0]) > 0) try {
            auto plan = std::make_unique<OneDnnPlan>(call, threads);
            lendThreads(threads);
            dnnl::primitive_attr attributes = callersScratch();
            OneDnnPlan::Arguments arguments;
            if (const auto zero = zeroOf(reader, *plan, attributes)) arguments.emplace_back(kZeroArgument, *zero);
            const bool windows = reader.find("stride") != nullptr;
            const auto sums = windows ? planByteConvolution : planByteProduct;
            finish(reader, *plan, sums(reader, *plan, attributes, std::move(arguments)),
                   windows ? 1 : call.results[0].rank - 1);
            needs = plan->finish();
            return plan;
        } catch (const std::exception&) {  // portable functions do what the library does not
        }
    return planPortable(call, threads, needs);
}

}  // namespace

const CtLibrary& oneDnnBytesLibrary() {
    static const CtLibrary library = makeLibrary<planQuantized>("oneDNN int8");
    return library;
}

}  // namespace cutaway
