#include "engine/runtime/libraries/onednn_slices.h"

#include <algorithm>
#include <string_view>

#include "engine/support/threads.h"

namespace cutaway {
namespace {

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// One thread's view of the arguments: of a whole slice, or of the last one.
class Arranged {
  public:
    Arranged(const dnnl::matmul::primitive_desc& description, const OneDnnPlan::Arguments& arguments,
             const std::vector<SlicedArgument>& layouts, const ProductSlice& slice)
        : m_primitive(description), m_scratch(description.scratchpad_desc()) {
        for (size_t i = 0; i < arguments.size(); ++i)
            m_parts.push_back({arguments[i].first, layouts[i].slice(slice).desc(), layouts[i].step(slice)});
    }
    size_t scratchBytes() const { return m_scratch.get_size(); }
    /// The slice that begins `offset` rows (or columns, or matrices) from the first one.
    void run(const std::vector<void*>& addresses, int64_t offset, void* scratch) const {
        thread_local dnnl::stream stream(oneDnnEngine());
        std::unordered_map<int, dnnl::memory> own;
        for (size_t i = 0; i < m_parts.size(); ++i)
            own.emplace(m_parts[i].argument, dnnl::memory(m_parts[i].layout, oneDnnEngine(),
                                                          static_cast<std::byte*>(addresses[i]) +
                                                              static_cast<size_t>(offset * m_parts[i].step)));
        if (scratchBytes() > 0) own.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(m_scratch, oneDnnEngine(), scratch));
        m_primitive.execute(stream, own);
        stream.wait();
    }

  private:
    struct Part {
        int argument;
        dnnl::memory::desc layout;
        int64_t step;  // bytes
    };
    dnnl::matmul m_primitive;
    dnnl::memory::desc m_scratch;
    std::vector<Part> m_parts;
};

}  // namespace

DnnlLayout SlicedArgument::slice(const ProductSlice& slice) const {
    DnnlLayout made = layout;
    if (step(slice) != 0) made.sizes[slice.dim] = slice.size;
    return made;
}
int64_t SlicedArgument::step(const ProductSlice& slice) const {
    if (!follows || layout.sizes[slice.dim] == 1) return 0;
    return layout.strides[slice.dim] * static_cast<int64_t>(dnnl::memory::data_type_size(layout.type));
}

bool dependsOnThreads(const char* implementation) { return std::string_view(implementation).find("gemm") == 0; }

ProductSlice sliceOf(const Dims& result) {
    constexpr int64_t kMost = 64, kFewMatrices = 16, kFewRows = 128;  // most: slices of a product
    const size_t rank = result.size();
    const int64_t rows = result[rank - 2], columns = result[rank - 1];
    const auto size = [](int64_t whole, int64_t least, int64_t unit) {
        return std::min(whole, std::max(least, roundedUp((whole + kMost - 1) / kMost, unit)));
    };
    if (rank > 2 && result[0] >= kFewMatrices) return {0, size(result[0], 1, 1)};
    if (rows >= kFewRows || rows >= columns) return {rank - 2, size(rows, 32, 8)};
    return {rank - 1, size(columns, 64, 16)};
}

void addInSlices(OneDnnPlan& plan, const ProductSlice& slice, int64_t whole,
                 const std::function<dnnl::matmul::primitive_desc(const ProductSlice&)>& describe,
                 const OneDnnPlan::Arguments& arguments, const std::vector<SlicedArgument>& layouts) {
    lendThreads(1);  // for which the library then makes the primitives
    std::vector<Arranged> kinds;
    const int64_t count = (whole + slice.size - 1) / slice.size, left = whole - (count - 1) * slice.size;
    for (const int64_t size : {slice.size, left}) {
        const ProductSlice own{slice.dim, size};
        const auto description = describe(own);
        if (kinds.empty()) plan.name(description.impl_info_str() + std::string(", in slices"));
        kinds.emplace_back(description, arguments, layouts, own);
    }
    lendThreads(plan.threads());
    const int parts = static_cast<int>(std::min<int64_t>(count, plan.threads()));
    const auto each = std::max<size_t>(64, std::max(kinds[0].scratchBytes(), kinds[1].scratchBytes()));
    OneDnnPlan::Arguments all = arguments;
    all.emplace_back(
        DNNL_ARG_SCRATCHPAD,
        plan.scratch({{parts, static_cast<int64_t>(each)}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::ab}));
    const auto work = [kinds = std::move(kinds), count, size = slice.size, parts, each, threads = plan.threads()](
                          const std::vector<void*>& addresses, const LibraryRun&) {
        struct OneThread {  // of the library's, within each of ours
            explicit OneThread(int all) : threads(all) { lendThreads(1); }
            ~OneThread() { lendThreads(threads); }
            int threads;
        } const one(threads);
        runParts(parts, [&](int part) {
            auto* const scratch = static_cast<std::byte*>(addresses.back()) + static_cast<size_t>(part) * each;
            for (int64_t i = part; i < count; i += parts)
                kinds[i + 1 == count ? 1 : 0].run(addresses, i * size, scratch);
        });
    };
    plan.add(work, std::move(all));
}

}  // namespace cutaway
