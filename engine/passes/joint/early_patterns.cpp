#include "engine/passes/joint/early_patterns.h"

#include "engine/ir/infer.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

std::string_view unlessShapeIsRestored(const Match& m) {
    if (!m.isTensor("x")) return "{x} is not a tensor";
    if (m.tensor("x").sizes == m.tensor("y").sizes) return "";
    m.note(m.tensor("x").text() + " and " + m.tensor("y").text());
    return "the shapes of {x} and {y} differ";
}

std::string_view unlessPermutesCancel(const Match& m) {
    const int64_t rank = m.tensor("y").rank();
    const auto inner = InferContext(m.node("p").op(), m.node("p").args()).dims("dims", rank, false);
    const auto outer = InferContext(m.node("y").op(), m.node("y").args()).dims("dims", rank, false);
    if (!inner || !outer) return "the dims, {a} and {b}, are not permutations";
    for (size_t i = 0; i < outer->size(); ++i)
        if ((*inner)[static_cast<size_t>((*outer)[i])] != static_cast<int64_t>(i)) {
            m.note(constantText(m["a"]) + " and then " + constantText(m["b"]));
            return "{y} does not undo {p}";
        }
    return "";
}

constexpr Rule kEarlyRules[] = {
    {.name = "pointless_view",
     .find = "y = aten.view.default(x, _); return y",
     .replace = "return x",
     .unless = unlessShapeIsRestored,
     .why = "the shape is the same",
     .countsRefused = true},
    {.name = "pointless_view_pair",
     .find = "v = aten.view.default(x, _); y = aten.view.default(v, _); return y",
     .replace = "return x",
     .unless = unlessShapeIsRestored,
     .why = "the second view restores the shape that the first one changed",
     .countsRefused = true},
    {.name = "pointless_permute_pair",
     .find = "p = aten.permute.default(x, $a); y = aten.permute.default(p, $b); return y",
     .replace = "return x",
     .unless = unlessPermutesCancel,
     .why = "the second permute undoes the first",
     .countsRefused = true},
};

}  // namespace

std::span<const Rule> earlyRules() { return kEarlyRules; }
Result<bool> earlyPatterns(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kEarlyRules); }

}  // namespace cutaway
