#include "engine/passes/freezing/simple_rules.h"

#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {
namespace {

std::string_view unlessDtypeStays(const Match& m) {
    if (!m.isTensor("x")) return "{x} is not a tensor";
    const auto* dtype = m["dtype"].get<DType>();
    return dtype && *dtype == m.tensor("x").dtype ? "" : "it changes the dtype of {x}, {x:type}";
}

constexpr Rule kRules[] = {{.name = "same_dtype_conversion",
                            .find = "y = prims.convert_element_type.default(x, $dtype); return y",
                            .replace = "return x",
                            .unless = unlessDtypeStays,
                            .why = "a conversion to the dtype that a tensor has changes nothing"}};

}  // namespace

std::span<const Rule> freezingPattern0Rules() { return kRules; }
Result<bool> freezingPattern0(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kRules); }

}  // namespace cutaway
