#include "engine/codegen/vector_loop.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "engine/codegen/cpp_prelude.h"
#include "engine/schedule/index.h"
#include "engine/schedule/rewrite_reductions.h"

namespace cutaway {
namespace {

/// Of one load or store, by the step between lanes; no step: each lane has an index of its own.
double costOfStride(std::optional<int64_t> stride) {
    if (!stride) return 12;
    if (*stride == 1) return 1;
    return *stride == 0 ? 0.5 : 6;
}

/// The cost, in instructions, of reading or writing a vector of elements along a symbol at these indices.
double accessCost(const std::vector<Expr>& indices, const std::string& symbol) {
    double cost = 0;
    for (const Expr& index : indices) {
        const auto affine = affineIn(index, symbol);
        const auto stride = affine ? affine->coefficient.asInt() : std::nullopt;
        cost += costOfStride(stride);
    }
    return cost;
}
std::vector<Expr> loadsUnder(const Expr& value) {
    std::vector<Expr> found;
    forEachExpr({value}, [&](const Expr& e) {
        if (e->kind == ExprKind::Load) found.push_back(e->operands[0]);
    });
    return found;
}

/// The share of a vector's lanes that a loop fills: in a short loop most lanes are idle.
double filled(const Loop& loop) {
    return static_cast<double>(std::clamp<int64_t>(loop.size.asInt().value_or(kLanes), 1, kLanes)) / kLanes;
}

/// Renames symbols of `shared` in the reduction where they are not the innermost loop.
Expr renameOuterLoops(ReduceKind kind, const Expr& reduction, const std::set<std::string>& shared) {
    std::vector<Loop> loops = reduceLoops(reduction);
    std::set<std::string> changed;
    for (size_t i = 0; i + 1 < loops.size(); ++i) {
        if (!shared.contains(loops[i].symbol)) continue;
        changed.insert(loops[i].symbol);
        loops[i].symbol += "o";
    }
    if (changed.empty()) return reduction;
    const Expr body = substituteShared(reduction->operands[0], [&](const std::string& name) {
        return changed.contains(name) ? Expr::symbol(name + "o") : Expr();
    });
    return makeReduce(kind, loops, body);
}

}  // namespace

void nameInnermostLoopsApart(Kernel& kernel) {
    std::set<std::string> innermost, outside, shared;
    for (const Store& store : kernel.stores)
        forEachExpr({store.value}, [&](const Expr& e) {
            if (!reduceKindOf(e)) return;
            const std::vector<Loop> loops = reduceLoops(e);
            for (size_t i = 0; i < loops.size(); ++i)
                (i + 1 == loops.size() ? innermost : outside).insert(loops[i].symbol);
        });
    std::set_intersection(innermost.begin(), innermost.end(), outside.begin(), outside.end(),
                          std::inserter(shared, shared.end()));
    if (shared.empty()) return;
    ReductionRewriter renamer(
        [&](ReduceKind kind, const Expr& reduction) { return renameOuterLoops(kind, reduction, shared); });
    for (Store& store : kernel.stores) store.value = renamer.rewrite(store.value);
}

VectorLoop chooseVectorLoop(const Kernel& kernel) {
    VectorLoop chosen;
    // Row-level loops: reductions that read only outer symbols, and stores with inner loops.
    std::vector<std::pair<std::vector<Loop>, std::vector<Expr>>> inner;
    double operations = 0;
    for (const Store& store : kernel.stores) {
        forEachExpr({store.value},
                    [&](const Expr& e) { operations += !e->operands.empty() && e->kind != ExprKind::Load; });
        if (!store.inner.empty()) {
            inner.emplace_back(store.inner, std::vector<Expr>{store.index});
            for (const Expr& load : loadsUnder(store.value)) inner.back().second.push_back(load);
        }
        forEachExpr({store.value}, [&](const Expr& e) {
            if (reduceKindOf(e)) inner.emplace_back(reduceLoops(e), loadsUnder(e->operands[0]));
        });
    }
    chosen.outer = inner.empty();
    if (!inner.empty() && !kernel.outer.empty()) {
        const Loop& last = kernel.outer.back();
        double along = 0, across = 0;
        for (const auto& [loops, accesses] : inner) {
            along += (operations + accessCost(accesses, loops.back().symbol)) / filled(loops.back());
            across += (operations + accessCost(accesses, last.symbol)) / filled(last);
        }
        chosen.outer = across < along;
    }
    if (chosen.outer) {
        if (!kernel.outer.empty()) chosen.symbols.insert(kernel.outer.back().symbol);
    } else {
        for (const auto& [loops, loads] : inner) chosen.symbols.insert(loops.back().symbol);
    }
    return chosen;
}

}  // namespace cutaway
