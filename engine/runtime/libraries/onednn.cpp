#include <algorithm>

#include "engine/runtime/libraries/onednn_plan.h"
#include "engine/runtime/libraries/table.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

using dnnl::algorithm;

bool makesElements(const CtCall& call) {
    return std::any_of(call.results, call.results + call.resultCount,
                       [](const CtTensor& result) { return result.rank >= 0 && elementsOf(result) > 0; });
}

std::unique_ptr<LibraryPlan> planOnednn(const CtCall& call, int threads, CtNeeds& needs) {
    using Planner = void (*)(const CallReader&, OneDnnPlan&);
    constexpr std::pair<std::string_view, Planner> kPlanners[] = {
        {"aten.mm.default", planProduct},
        {"aten.bmm.default", planProduct},
        {"aten.addmm.default", planProduct},
        {"aten.baddbmm.default", planProduct},
        {"mkl._mkl_linear", planProduct},
        {"mkldnn._linear_pointwise.default", planProduct},
        {"mkldnn._linear_pointwise.binary", planProduct},
        {"aten.convolution.default", planConvolution},
        {"mkldnn._convolution_pointwise.default", planConvolution},
        {"mkldnn._convolution_pointwise.binary", planConvolution},
        {"mkldnn._convolution_pointwise_.binary", planConvolution},
        {"mkldnn._convolution_transpose_pointwise.default", planConvolution},
        {"aten.convolution_backward.default", planConvolutionGradients},
    };
    for (const auto& [op, planner] : kPlanners)
        if (op == call.op) {
            auto plan = std::make_unique<OneDnnPlan>(call, threads);
            lendThreads(threads);  // a primitive is made for a number of threads
            if (makesElements(call)) planner(CallReader(call), *plan);
            needs = plan->finish();
            return plan;
        }
    throw LibraryRefusal("it does not compute this operator");
}

}  // namespace

dnnl::algorithm binaryFunction(std::string_view name) {
    constexpr std::pair<std::string_view, algorithm> kFunctions[] = {{"add", algorithm::binary_add},
                                                                     {"sub", algorithm::binary_sub},
                                                                     {"mul", algorithm::binary_mul},
                                                                     {"div", algorithm::binary_div}};
    for (const auto& [known, function] : kFunctions)
        if (name == known) return function;
    throw LibraryRefusal("it has no function " + std::string(name) + " of two operands");
}

const CtLibrary& oneDnnLibrary() {
    static const CtLibrary library = makeLibrary<planOnednn>("oneDNN");
    return library;
}

const char* oneDnnVersion() {
    static const std::string text = [] {
        const dnnl::version_t* version = dnnl::version();
        return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
               std::to_string(version->patch);
    }();
    return text.c_str();
}

}  // namespace cutaway
