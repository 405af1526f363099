// Vector loops whose conditions change at known places, in pieces where they do not: padding and concatenation are then
// plain loads and no gathers.
#include <set>

#include "engine/loops/index.h"
#include "engine/loops/vectorise.h"

namespace cutaway {
namespace {

constexpr size_t kMostPieces = 6;  // each is the loop's body again

bool isComparison(const Expr& e) {
    return e->kind >= ExprKind::Eq && e->kind <= ExprKind::Ge && e->operands[0]->dtype == DType::I64;
}

/// coefficient * axis + rest compared with 0.
struct Guard {
    int64_t coefficient = 0, rest = 0;
};
std::optional<Guard> guardOn(const Expr& e, int axis) {
    if (!isComparison(e) || !reads(e, axis)) return std::nullopt;
    const Expr difference = Expr::make(ExprKind::Sub, {e->operands[0], e->operands[1]});
    const auto affine = affineIn(difference, axis);
    if (!affine) return std::nullopt;
    const auto coefficient = affine->coefficient.asInt(), rest = affine->rest.asInt();
    if (!coefficient || !rest || *coefficient == 0) return std::nullopt;
    return Guard{*coefficient, *rest};
}

/// The positions of the axis where coefficient * axis + rest may change its sign: at its zero and right behind it.
void addChanges(const Guard& guard, std::set<int64_t>& at) {
    const int64_t zero = floorDivide(-guard.rest, guard.coefficient);
    at.insert({zero, zero + 1});
}
bool holds(ExprKind kind, const Guard& guard, int64_t x) {
    const int64_t value = guard.coefficient * x + guard.rest;
    switch (kind) {
        case ExprKind::Eq: return value == 0;
        case ExprKind::Ne: return value != 0;
        case ExprKind::Lt: return value < 0;
        case ExprKind::Le: return value <= 0;
        case ExprKind::Gt: return value > 0;
        default: return value >= 0;
    }
}

/// The loop in pieces in which no condition changes; the whole loop if none changes, or for over kMostPieces pieces.
std::vector<For> piecesOf(For loop) {
    const auto from = loop.from.asInt(), to = loop.to.asInt();
    if (loop.lanes == 1 || !from || !to || *from >= *to) return {std::move(loop)};
    std::set<int64_t> changes;
    forEachValueIn(loop.body, [&](const Expr& value) {
        forEachExpr({value}, [&](const Expr& e) {
            if (const auto guard = guardOn(e, loop.axis)) addChanges(*guard, changes);
        });
    });
    auto truths = [&](int64_t x) {
        std::vector<bool> all;
        forEachValueIn(loop.body, [&](const Expr& value) {
            forEachExpr({value}, [&](const Expr& e) {
                if (const auto guard = guardOn(e, loop.axis)) all.push_back(holds(e->kind, *guard, x));
            });
        });
        return all;
    };
    std::vector<int64_t> starts = {*from};
    for (const int64_t at : changes)
        if (at > *from && at < *to && truths(at) != truths(starts.back())) starts.push_back(at);
    if (starts.size() > kMostPieces || changes.empty()) return {std::move(loop)};
    std::vector<For> pieces;
    for (size_t i = 0; i < starts.size(); ++i) {
        For piece = loop;
        piece.from = Expr::integer(starts[i]);
        piece.to = i + 1 < starts.size() ? Expr::integer(starts[i + 1]) : loop.to;
        forEachValueIn(piece.body, [&](Expr& value) {
            value = rewriteShared(value, [&](const Expr& e) {
                const auto guard = guardOn(e, loop.axis);
                return guard ? Expr::boolean(holds(e->kind, *guard, starts[i])) : Expr();
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
