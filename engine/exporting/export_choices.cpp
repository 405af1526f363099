// What an export may be, as the command line and the window offer it.
#include <algorithm>

#include "cutaway/export.h"
#include "engine/exporting/export_folder.h"
#include "engine/runtime/exported/processor_needs.h"

namespace cutaway {
namespace {

constexpr ExportChoice kTargets[] = {
    {"native", "This processor", "all that the processor of this machine has"},
    {"x86-64", "Every x86-64 processor", "no vectors wider than 16 bytes"},
    {"x86-64-v2", "x86-64-v2", "SSE4.2 (2009)"},
    {"x86-64-v3", "x86-64-v3", "AVX2 and FMA (2013)"},
    {"x86-64-v4", "x86-64-v4", "AVX-512 (2017)"},
};
constexpr ExportChoice kWeights[] = {
    {"beside", "In a file beside the library", "in weights.safetensors, which is mapped when the program is opened"},
    {"embedded", "In the library", "in the library itself"},
    {"none", "Left out", "left out: whoever opens the program gives them"},
};

/// What each level of the x86-64 psABI adds to the one before it, in the order of the table (section 3.1.1).
struct LevelNeeds {
    std::string_view target;
    const char* needs[8];
};
constexpr LevelNeeds kLevels[] = {
    {"x86-64-v2", {"cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3", nullptr}},
    {"x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "movbe", nullptr}},
    {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", nullptr}},
};

Result<std::string_view> chosen(std::span<const ExportChoice> from, const std::string& word, const char* what) {
    if (word.empty()) return from[0].word;
    std::string all;
    for (const ExportChoice& each : from) {
        if (each.word == word) return each.word;
        all += (all.empty() ? "" : ", ") + std::string(each.word);
    }
    return Error{
        ErrorCode::InvalidInput, std::string(what) + " '" + word + "' is not known", "", {"take one of " + all}};
}

}  // namespace

std::span<const ExportChoice> exportTargets() {
#if defined(__x86_64__)
    return kTargets;
#else
    return std::span(kTargets).first(1);
#endif
}
std::span<const ExportChoice> exportWeights() { return kWeights; }

std::string lackingFor(std::string_view target) {
    std::string all, lacking;
    for (const LevelNeeds& level : kLevels) {
        if (const std::string lacks = ct::lackingOf(level.needs); !lacks.empty())
            all += (all.empty() ? "" : ", ") + lacks;
        if (level.target == target) lacking = all;
    }
    return lacking;
}

Result<ExportForm> exportForm(const ExportOptions& options) {
    ExportForm form;
    CT_TRY(const std::string_view target, chosen(exportTargets(), options.target, "the target"));
    CT_TRY(const std::string_view weights, chosen(exportWeights(), options.weights, "the place of the weights"));
    form.target = target;
    form.weights = weights == "embedded" ? ExportForm::Weights::Embedded
                   : weights == "none"   ? ExportForm::Weights::None
                                         : ExportForm::Weights::Beside;
    form.debug = options.debug;
    return form;
}

}  // namespace cutaway
