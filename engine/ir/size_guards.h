#pragma once
// Guards: what must hold of the sizes of a graph's inputs for its types to hold. Type rules compare sizes by the three
// questions of infer.h. Numbers answer them. Where symbols leave an answer open, a rule goes on in the case that the
// graph was written for, as PyTorch does when it traces, and that case is a guard.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

struct SizeGuard {
    Expr condition;    // s0 >= 4, s0 % 2 == 0, s0*s1 == s2
    std::string node;  // of the first call that needs it
    std::string op;
    /// "s0 >= 4 (x.select: aten.select.int)"
    std::string text() const;
};
/// The least value of a symbol; nothing where it may be any: a number from data, as far as no range is known.
std::optional<int64_t> leastValue(const std::string& symbol, const SymbolInfo& info);

/// The guards of all calls, in their order, without those that follow from others or from the symbols' ranges. Bodies
/// of loops and conditions are not looked into: their sizes are those of what they are given. Takes one inference of
/// each call's type.
std::vector<SizeGuard> sizeGuards(const Module& module);
/// Those of one call.
std::vector<SizeGuard> sizeGuards(const Module& module, const Node& call);

}  // namespace cutaway
