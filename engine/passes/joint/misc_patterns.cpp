#include "engine/passes/joint/misc_patterns.h"

#include "engine/ir/infer.h"
#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

/// The indices are a beginning of the permutation of x's rows.
std::string_view unlessRowsOfX(const Match& m) {
    if (!m.isTensor("x") || m.tensor("x").rank() == 0) return "{x} has no rows";
    const auto rows = symIntOf(m["n"]);
    return rows && *rows == m.tensor("x").sizes[0] ? "" : "the permutation is not of the rows of {x}";
}
std::string_view unlessRowsAreAdded(const Match& m) {
    if (!m.isTensor("x") || !m.isTensor("y")) return "{y} is not a tensor";
    const SymDims &into = m.tensor("x").sizes, &rows = m.tensor("y").sizes;
    if (rows.size() != into.size() || !std::equal(into.begin() + 1, into.end(), rows.begin() + 1)) return "{y} does not hold whole rows of {x}";
    if (!(rows[0] == m.tensor("i").sizes[0])) return "{y} has another number of rows than {i}";
    return unlessRowsOfX(m);
}

constexpr Rule kRules[] = {
    {.name = "randperm_index_add",
     .find = "p = aten.randperm.default(n, ...); i: shared = aten.slice.Tensor(p, 0, 0, k); r = aten.index_put.default(x, [i], y, True); return r",
     .replace = "g = aten._unsafe_index.Tensor(x, [i]); s = aten.add.Tensor(g, y); r = aten.index_put.default(x, [i], s); return r",
     .unless = unlessRowsAreAdded,
     .why = "no row is named twice, so adding needs no atomic accumulation"},
    // Of a whole permutation only: PyTorch's entry loses its slice while it is traced (H-5).
    {.name = "randperm_index",
     .find = "i: shared = aten.randperm.default(n, ...); r = aten.index.Tensor(x, [i]); return r",
     .replace = "r = aten._unsafe_index.Tensor(x, [i]); return r",
     .unless = unlessRowsOfX,
     .why = "a permutation is never out of range"},
};

}  // namespace

std::span<const Rule> randpermRules() { return kRules; }

}  // namespace cutaway
