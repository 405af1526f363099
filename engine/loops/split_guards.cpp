// Vector loops whose conditions change at known places, in pieces where they do not: padding and concatenation are then
// plain loads and no gathers.
#include <algorithm>
#include <map>
#include <set>

#include "engine/loops/index.h"
#include "engine/loops/known_indices.h"
#include "engine/loops/vectorise.h"

namespace cutaway {
namespace {

constexpr size_t kMostPieces = 6;         // each is the loop's body again
constexpr int64_t kMostPositions = 4096;  // that are looked at one by one

bool isComparison(const Expr& e) {
    return e->kind >= ExprKind::Eq && e->kind <= ExprKind::Ge && e->operands[0]->dtype == DType::I64;
}

/// First and last position of the loops within a loop, by axis; of several over one axis all that any of them takes.
using Ranges = std::map<int, std::pair<int64_t, int64_t>>;

void addRanges(const Body& body, Ranges& ranges) {
    for (const Stmt& stmt : body) {
        if (const auto* branch = std::get_if<If>(&stmt.node)) addRanges(branch->body, ranges);
        const auto* loop = std::get_if<For>(&stmt.node);
        if (loop == nullptr) continue;
        addRanges(loop->body, ranges);
        const auto from = loop->from.asInt(), to = loop->to.asInt();
        if (!from || !to || *from >= *to) continue;
        const auto [found, isNew] = ranges.emplace(loop->axis, std::pair(*from, *to - 1));
        if (isNew) continue;
        found->second = {std::min(found->second.first, *from), std::max(found->second.second, *to - 1)};
    }
}

/// coefficient * axis + [low, high] compared with 0: between the two by where the loops within are, as in a window.
struct Guard {
    int64_t coefficient = 0, low = 0, high = 0;
};
std::optional<Guard> guardOn(const Expr& e, int axis, const Ranges& within) {
    if (!isComparison(e) || !reads(e, axis)) return std::nullopt;
    const Expr difference = Expr::make(ExprKind::Sub, {e->operands[0], e->operands[1]});
    auto affine = affineIn(difference, axis);
    if (!affine) return std::nullopt;
    const auto coefficient = affine->coefficient.asInt();
    if (!coefficient || *coefficient == 0) return std::nullopt;
    Guard guard{*coefficient, 0, 0};
    Expr rest = affine->rest;
    for (const auto& [inner, range] : within) {
        if (!reads(rest, inner)) continue;
        affine = affineIn(rest, inner);
        const auto factor = affine ? affine->coefficient.asInt() : std::nullopt;
        if (!factor) return std::nullopt;
        guard.low += *factor * (*factor > 0 ? range.first : range.second);
        guard.high += *factor * (*factor > 0 ? range.second : range.first);
        rest = affine->rest;
    }
    const auto constant = rest.asInt();
    if (!constant) return std::nullopt;
    guard.low += *constant;
    guard.high += *constant;
    return guard;
}

/// The positions of the axis where either end may change its sign: at its zero and right behind it.
void addChanges(const Guard& guard, std::set<int64_t>& at) {
    for (const int64_t rest : {guard.low, guard.high}) {
        const int64_t zero = floorDivide(-rest, guard.coefficient);
        at.insert({zero, zero + 1});
    }
}

/// Whether the condition is so at a position wherever the loops within are; nothing if that depends on them.
std::optional<bool> holds(ExprKind kind, const Guard& guard, int64_t x) {
    const int64_t low = guard.coefficient * x + guard.low, high = guard.coefficient * x + guard.high;
    const auto decided = [](bool always, bool never) { return always || never ? std::optional(always) : std::nullopt; };
    switch (kind) {
        case ExprKind::Eq: return decided(low == 0 && high == 0, low > 0 || high < 0);
        case ExprKind::Ne: return decided(low > 0 || high < 0, low == 0 && high == 0);
        case ExprKind::Lt: return decided(high < 0, low >= 0);
        case ExprKind::Le: return decided(high <= 0, low > 0);
        case ExprKind::Gt: return decided(low > 0, high <= 0);
        default: return decided(low >= 0, high < 0);
    }
}

/// Indices that are known, by their expressions.
using KnownIndices = std::map<const ExprNode*, std::vector<IndexPiece>>;

KnownIndices knownIndices(For& loop, int64_t from, int64_t to) {
    KnownIndices indices;
    if (to - from > kMostPositions || to - from < loop.lanes) return indices;
    forEachValueIn(loop.body, [&](const Expr& value) {
        for (const Expr& index : indicesOf(value, loop.axis)) {
            if (indices.contains(&*index)) continue;
            if (auto pieces = indexPieces(index, loop.axis, from, to, kMostPieces))
                indices.emplace(&*index, std::move(*pieces));
        }
    });
    return indices;
}

/// Numbers that the loop's bounds do not go beyond: a block's lower end is at least 0, its upper one a minimum.
std::optional<int64_t> lowestOf(const Expr& from) {
    if (const auto number = from.asInt()) return number;
    return indexNeverNegative(from) ? std::optional<int64_t>(0) : std::nullopt;
}
std::optional<int64_t> highestOf(const Expr& to) {
    if (const auto number = to.asInt()) return number;
    if (to->kind != ExprKind::Min) return std::nullopt;
    const auto first = to->operands[0].asInt();
    return first ? first : to->operands[1].asInt();
}

/// The loop in pieces in which no condition changes, but for those on loops within, and each known index is of one
/// piece; the whole loop if there is nothing to split, or for over kMostPieces pieces.
std::vector<For> piecesOf(For loop) {
    const auto from = lowestOf(loop.from), to = highestOf(loop.to);
    if (loop.lanes == 1 || !from || !to || *from >= *to) return {std::move(loop)};
    Ranges within;
    addRanges(loop.body, within);
    KnownIndices indices = knownIndices(loop, *from, *to);
    std::set<int64_t> changes;
    forEachValueIn(loop.body, [&](const Expr& value) {
        forEachExpr({value}, [&](const Expr& e) {
            if (const auto guard = guardOn(e, loop.axis, within)) addChanges(*guard, changes);
        });
    });
    auto truths = [&](int64_t x) {
        std::vector<std::optional<bool>> all;
        forEachValueIn(loop.body, [&](const Expr& value) {
            forEachExpr({value}, [&](const Expr& e) {
                if (const auto guard = guardOn(e, loop.axis, within)) all.push_back(holds(e->kind, *guard, x));
            });
        });
        return all;
    };
    std::vector<int64_t> starts = {*from};
    for (const int64_t at : changes)
        if (at > *from && at < *to && truths(at) != truths(starts.back())) starts.push_back(at);
    std::set<int64_t> all(starts.begin(), starts.end());
    for (const auto& [index, pieces] : indices)
        for (const IndexPiece& piece : pieces) all.insert(piece.from);
    if (all.size() <= kMostPieces) starts.assign(all.begin(), all.end());
    else indices.clear();
    if (starts.size() > kMostPieces || (changes.empty() && indices.empty())) return {std::move(loop)};
    const auto bound = [](ExprKind kind, const Expr& expr, int64_t at) {
        return expr.asInt() ? Expr::integer(at) : Expr::make(kind, {expr, Expr::integer(at)}, DType::I64);
    };
    std::vector<For> pieces;
    for (size_t i = 0; i < starts.size(); ++i) {
        For piece = loop;
        if (i > 0) piece.from = bound(ExprKind::Max, loop.from, starts[i]);
        if (i + 1 < starts.size()) piece.to = bound(ExprKind::Min, loop.to, starts[i + 1]);
        forEachValueIn(piece.body, [&](Expr& value) {
            value = rewriteShared(value, [&](const Expr& e) {
                if (const auto found = indices.find(&*e); found != indices.end()) {
                    const auto behind =
                        std::upper_bound(found->second.begin(), found->second.end(), starts[i],
                                         [](int64_t at, const IndexPiece& indexPiece) { return at < indexPiece.from; });
                    return std::prev(behind)->along(loop.axis);
                }
                const auto guard = guardOn(e, loop.axis, within);
                const auto decided = guard ? holds(e->kind, *guard, starts[i]) : std::nullopt;
                return decided ? Expr::boolean(*decided) : Expr();
            });
        });
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

void splitIn(Body& body) {
    Body result;
    for (Stmt& stmt : body) {
        if (auto* branch = std::get_if<If>(&stmt.node)) splitIn(branch->body);
        auto* loop = std::get_if<For>(&stmt.node);
        if (loop == nullptr) {
            result.push_back(std::move(stmt));
            continue;
        }
        splitIn(loop->body);
        for (For& piece : piecesOf(std::move(*loop))) result.push_back({std::move(piece)});
    }
    body = std::move(result);
}

}  // namespace

void splitGuards(LoopNest& nest) { splitIn(nest.body); }

}  // namespace cutaway
