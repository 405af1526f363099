#include "engine/loops/known_indices.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "engine/loops/cell.h"
#include "engine/loops/index.h"

namespace cutaway {
namespace {

bool isKnownLiteral(const Expr& e) {
    return e->kind == ExprKind::Int || e->kind == ExprKind::Float || e->kind == ExprKind::Bool;
}

struct AxisUse {
    bool alone = false;  // it is of literals and the axis alone
    bool reads = false;  // it reads the axis
};
/// By part of the value.
std::unordered_map<const ExprNode*, AxisUse> usesOf(const Expr& value, int axis) {
    std::unordered_map<const ExprNode*, AxisUse> uses;
    forEachExpr({value}, [&](const Expr& e) {
        AxisUse use{e->kind != ExprKind::Load && !isReduce(e), false};
        if (e->operands.empty()) {
            use.reads = e->kind == ExprKind::Axis && e->integer == axis;
            use.alone = use.reads || isKnownLiteral(e);
        }
        for (const Expr& operand : e->operands) {
            const AxisUse& axisUse = uses.at(&*operand);
            use.alone &= axisUse.alone;
            use.reads |= axisUse.reads;
        }
        uses.emplace(&*e, use);
    });
    return uses;
}

/// Evaluates an expression of one axis alone, and of a choice only what is chosen.
class PositionValues {
  public:
    explicit PositionValues(const Expr& root) : m_root(number(root)) {}
    std::optional<int64_t> at(int64_t position) {
        m_position = position;
        ++m_round;
        m_fault = KernelFault::None;
        const Cell value = evaluate(m_root);
        return m_fault == KernelFault::None ? std::optional(value.whole) : std::nullopt;
    }

  private:
    static constexpr size_t kFewOperands = 4;
    struct Slot {
        Expr expr;
        std::vector<size_t> in;
        Cell value;
        uint64_t round = 0;  // that `value` is of
    };
    size_t number(const Expr& e) {
        if (const auto found = m_numbers.find(&*e); found != m_numbers.end()) return found->second;
        Slot slot{e, {}, {}, 0};
        for (const Expr& operand : e->operands) slot.in.push_back(number(operand));
        m_slots.push_back(std::move(slot));
        return m_numbers.emplace(&*e, m_slots.size() - 1).first->second;
    }
    Cell evaluate(size_t at) {
        Slot& slot = m_slots[at];
        if (slot.round == m_round) return slot.value;
        slot.round = m_round;
        if (slot.expr->kind == ExprKind::Axis) return slot.value = Cell{0, m_position};
        if (isKnownLiteral(slot.expr)) return slot.value = literalCell(slot.expr);
        if (slot.expr->kind == ExprKind::Where)
            return slot.value = evaluate(slot.in[evaluate(slot.in[0]).whole != 0 ? 1 : 2]);
        std::array<Cell, kFewOperands> few;
        std::vector<Cell> many(slot.in.size() > kFewOperands ? slot.in.size() : 0);
        const std::span<Cell> in(many.empty() ? few.data() : many.data(), slot.in.size());
        for (size_t i = 0; i < in.size(); ++i) in[i] = evaluate(slot.in[i]);
        KernelFault fault = KernelFault::None;
        slot.value = applyOperation(*slot.expr, in, fault);
        if (fault != KernelFault::None) m_fault = fault;
        return slot.value;
    }

    std::vector<Slot> m_slots;
    std::unordered_map<const ExprNode*, size_t> m_numbers;
    size_t m_root;
    int64_t m_position = 0;
    uint64_t m_round = 0;
    KernelFault m_fault = KernelFault::None;
};

/// a + b * c as compiled kernels have it.
int64_t wrapping(int64_t a, int64_t b, int64_t c) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
}

/// The piece that begins there and has the most positions, and how many.
std::pair<IndexPiece, size_t> longestPiece(const std::vector<int64_t>& values, size_t begin, int64_t from) {
    const IndexPiece one{from + static_cast<int64_t>(begin), values[begin], 0, 1};
    std::pair<IndexPiece, size_t> longest{one, 1};
    for (const int64_t times : {1, 2, 4, 8, 16}) {
        const size_t next = begin + static_cast<size_t>(times);
        if (next >= values.size()) break;
        IndexPiece piece = one;
        piece.times = times;
        piece.slope = wrapping(values[next], -1, values[begin]);
        size_t end = begin + 1;
        while (end < values.size() &&
               wrapping(piece.base, piece.slope, static_cast<int64_t>(end - begin) / times) == values[end])
            ++end;
        if (end - begin > longest.second) longest = {piece, end - begin};
    }
    // Any two positions are straight; what begins behind the first may be longer.
    const bool last = begin + longest.second == values.size();
    return longest.second > 2 || last ? longest : std::pair{one, size_t{1}};
}

bool isStraight(const Expr& index, int axis) {
    const auto affine = affineIn(index, axis);
    return affine && affine->coefficient.asInt() && affine->rest.asInt();
}

}  // namespace

Expr IndexPiece::along(int axis) const {
    if (times == 1) return Expr::axis(axis) * Expr::integer(slope) + Expr::integer(wrapping(base, -slope, from));
    // As a quotient of what is never negative, as the loop's positions are not.
    const int64_t before = (from + times - 1) / times;
    const Expr steps =
        Expr::make(ExprKind::FloorDiv, {Expr::axis(axis) + Expr::integer(before * times - from), Expr::integer(times)});
    return steps * Expr::integer(slope) + Expr::integer(wrapping(base, -slope, before));
}

std::optional<std::vector<IndexPiece>> indexPieces(const Expr& index, int axis, int64_t from, int64_t to, size_t most) {
    // Numbers that are drawn for each position, and their like, show themselves soon.
    constexpr int64_t kEnough = 64;
    if (!usesOf(index, axis).at(&*index).alone) return std::nullopt;
    PositionValues at(index);
    std::vector<int64_t> values;
    std::vector<IndexPiece> pieces;
    for (const int64_t end : {std::min(to, from + kEnough), to}) {
        for (int64_t x = from + static_cast<int64_t>(values.size()); x < end; ++x) {
            const auto value = at.at(x);
            if (!value) return std::nullopt;
            values.push_back(*value);
        }
        pieces.clear();
        for (size_t begin = 0; begin < values.size();) {
            if (pieces.size() == most) return std::nullopt;
            const auto [piece, positions] = longestPiece(values, begin, from);
            pieces.push_back(piece);
            begin += positions;
        }
    }
    return pieces;
}

std::vector<Expr> indicesOf(const Expr& value, int axis) {
    const auto uses = usesOf(value, axis);
    std::vector<Expr> found;
    std::unordered_set<const ExprNode*> seen;
    const auto visit = [&](auto&& self, const Expr& e) -> void {
        const AxisUse& use = uses.at(&*e);
        if (!use.reads || !seen.insert(&*e).second) return;
        if (use.alone && e->dtype == DType::I64) {
            if (!isStraight(e, axis)) found.push_back(e);
            return;
        }
        for (const Expr& operand : e->operands) self(self, operand);
    };
    visit(visit, value);
    return found;
}

}  // namespace cutaway
