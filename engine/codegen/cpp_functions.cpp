// Mathematical functions of generated C++: for numbers, and for vectors lane by lane or whole.
#include <algorithm>

#include "engine/codegen/cpp_prelude.h"

namespace cutaway {
namespace {

/// Functions of the C library: one call per lane, but where f32 has a vector form of our own or, `vector`, of the C
/// library's vectors (libmvec, within 4 units in the last place). {name, float builtin, double builtin, operands}.
struct LaneFunction {
    std::string_view name, single, wide;
    int operands;
    bool vector = false;
};
constexpr LaneFunction kLaneFunctions[] = {
    {"exp", "__builtin_expf", "__builtin_exp", 1},
    {"exp2", "__builtin_exp2f", "__builtin_exp2", 1, true},
    {"expm1", "__builtin_expm1f", "__builtin_expm1", 1},
    {"log", "__builtin_logf", "__builtin_log", 1},
    {"log2", "__builtin_log2f", "__builtin_log2", 1, true},
    {"log10", "__builtin_log10f", "__builtin_log10", 1, true},
    {"log1p", "__builtin_log1pf", "__builtin_log1p", 1},
    {"sqrt", "__builtin_sqrtf", "__builtin_sqrt", 1},
    {"sin", "__builtin_sinf", "__builtin_sin", 1, true},
    {"cos", "__builtin_cosf", "__builtin_cos", 1, true},
    {"tan", "__builtin_tanf", "__builtin_tan", 1, true},
    {"asin", "__builtin_asinf", "__builtin_asin", 1, true},
    {"acos", "__builtin_acosf", "__builtin_acos", 1, true},
    {"atan", "__builtin_atanf", "__builtin_atan", 1, true},
    {"sinh", "__builtin_sinhf", "__builtin_sinh", 1, true},
    {"cosh", "__builtin_coshf", "__builtin_cosh", 1, true},
    {"tanh", "__builtin_tanhf", "__builtin_tanh", 1},
    {"asinh", "__builtin_asinhf", "__builtin_asinh", 1, true},
    {"acosh", "__builtin_acoshf", "__builtin_acosh", 1, true},
    {"atanh", "__builtin_atanhf", "__builtin_atanh", 1, true},
    {"erf", "__builtin_erff", "__builtin_erf", 1},
    {"erfc", "__builtin_erfcf", "__builtin_erfc", 1, true},
    {"lgamma", "__builtin_lgammaf", "__builtin_lgamma", 1},
    {"floor", "__builtin_floorf", "__builtin_floor", 1},
    {"ceil", "__builtin_ceilf", "__builtin_ceil", 1},
    {"trunc", "__builtin_truncf", "__builtin_trunc", 1},
    {"round", "__builtin_rintf", "__builtin_rint", 1},
    {"digamma", "digamma_", "digamma_", 1},
    {"erfinv", "erfinv_", "erfinv_", 1},
    {"pow", "__builtin_powf", "__builtin_pow", 2, true},
    {"atan2", "__builtin_atan2f", "__builtin_atan2", 2, true},
    {"fmod", "__builtin_fmodf", "__builtin_fmod", 2},
    {"hypot", "__builtin_hypotf", "__builtin_hypot", 2, true},
    {"copysign", "__builtin_copysignf", "__builtin_copysign", 2},
    {"nextafter", "__builtin_nextafterf", "__builtin_nextafter", 2},
};
/// Those whose f32 vector form is a snippet of the prelude, and that snippet's name.
std::string_view vectorSnippet(std::string_view name) {
    constexpr std::string_view kOwn[] = {"exp",     "expm1", "log",    "log1p", "tanh",      "erf",     "sqrt",
                                         "sigmoid", "rsqrt", "lgamma", "fmod",  "nextafter", "copysign"};
    if (std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn)) return name;
    if (name == "floor" || name == "ceil" || name == "trunc" || name == "round") return "round";
    if (name == "erfinv") return "erfinv vectors";
    return {};
}

/// Whether it has one of f64, too.
bool ofBoth(std::string_view snippet) {
    return snippet == "sqrt" || snippet == "round" || snippet == "nextafter" || snippet == "copysign";
}

std::string laneFunctionText(const LaneFunction& f) {
    const std::string name(f.name), single(f.single), wide(f.wide);
    const std::string_view snippet = vectorSnippet(f.name);
    const bool own = !snippet.empty(), both = ofBoth(snippet);
    auto vector = [&](const std::string& type, const std::string& callee) {
        if (f.operands == 1)
            return "FN " + type + " f_" + name + "(" + type + " x) { " + type + " r = {}; LANES put(r, k, " + callee +
                   "(x[k])); return r; }\n";
        return "FN " + type + " f_" + name + "(" + type + " x, " + type + " y) { " + type +
               " r = {}; LANES put(r, k, " + callee + "(x[k], y[k])); return r; }\n";
    };
    auto scalar = [&](const std::string& type, const std::string& callee) {
        if (f.operands == 1) return "FN " + type + " f_" + name + "(" + type + " x) { return " + callee + "(x); }\n";
        return "FN " + type + " f_" + name + "(" + type + " x, " + type + " y) { return " + callee + "(x, y); }\n";
    };
    std::string text = scalar("float", single) + scalar("double", wide);
    if (f.vector)
        text += "#ifdef LIBRARY_VECTORS\nLIBRARY_VECTORS" + std::to_string(f.operands) + "(" + name + ")\n#else\n" +
                vector("V_f32", single) + "#endif\n";
    else if (!own) text += vector("V_f32", single);
    if (!both) text += vector("V_f64", wide);
    return text;
}

constexpr std::string_view kSigmoidScalars = R"(FN float f_sigmoid(float x) { return 1.f / (1.f + __builtin_expf(-x)); }
FN double f_sigmoid(double x) { return 1. / (1. + __builtin_exp(-x)); }
FN V_f64 f_sigmoid(V_f64 x) { V_f64 r = {}; LANES put(r, k, f_sigmoid((double)x[k])); return r; }
)";
constexpr std::string_view kRsqrtScalars = R"(FN float f_rsqrt(float x) { return 1.f / __builtin_sqrtf(x); }
FN double f_rsqrt(double x) { return 1. / __builtin_sqrt(x); }
)";

}  // namespace

bool hasCppFunction(const std::string& name) {
    if (name == "sigmoid" || name == "rsqrt") return true;
    return std::any_of(std::begin(kLaneFunctions), std::end(kLaneFunctions),
                       [&](const LaneFunction& f) { return f.name == name; });
}

std::string_view cppFunctionNeeds(const std::string& name) {
    if (const std::string_view own = vectorSnippet(name); !own.empty()) return own;
    if (name == "digamma") return "digamma";
    const auto* const found = std::find_if(std::begin(kLaneFunctions), std::end(kLaneFunctions),
                                           [&](const LaneFunction& f) { return f.name == name; });
    return found != std::end(kLaneFunctions) && found->vector ? "library vectors" : "";
}

std::string cppFunctions(const std::set<std::string>& names) {
    std::string text;
    for (const LaneFunction& f : kLaneFunctions)
        if (names.contains(std::string(f.name))) text += laneFunctionText(f);
    if (names.contains("sigmoid")) text += kSigmoidScalars;
    if (names.contains("rsqrt")) text += kRsqrtScalars;
    return text;
}

}  // namespace cutaway
