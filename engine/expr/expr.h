#pragma once
// Immutable expressions: symbolic sizes, indices into buffers, and the bodies of kernels. One kind of tree for all
// three, so that one simplifier and one printer serve them.
//
// Integers are mathematical (no wrap) when they stand for sizes and indices; in kernel bodies the dtype says how wide
// they are. So constants are folded only where the result fits: what does not stays as it is written, marked
// outOfRange, which kernels compute as wrapping integers and SymInt refuses. Float rules are IEEE: nothing here
// re-associates or contracts floating-point arithmetic.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/support/hash.h"
#include "engine/tensor/dtype.h"

namespace cutaway {

enum class ExprKind : uint8_t {
    Int,
    Float,
    Bool,
    Symbol,  // leaves
    Add,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
    Pow,  // Add and Mul are n-ary over integers, binary otherwise
    Sub,
    Div,
    Neg,  // floating point only; over integers Add and Mul serve
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
    Not,
    Where,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
    Cast,    // to dtype
    Load,    // name = buffer, operand 0 = element index; in loop nests operand 1 = step from lane to lane
    Call,    // name = function: exp, erf, floor, ...
    Axis,    // leaf: the loop of this number (engine/loops)
    Var,     // leaf: the variable of this number of a loop nest
    Reduce,  // integer = reducer; operands: body, then an Axis and its size for each loop it runs over
};

struct ExprNode;

/// A shared handle to an immutable node; null only when default-constructed. Compared by structure.
class Expr {
  public:
    Expr() = default;
    explicit Expr(std::shared_ptr<const ExprNode> node) : m_node(std::move(node)) {}
    explicit operator bool() const { return m_node != nullptr; }
    const ExprNode& operator*() const { return *m_node; }
    const ExprNode* operator->() const { return m_node.get(); }
    bool operator==(const Expr& other) const;

    static Expr integer(int64_t value, DType dtype = DType::I64);
    static Expr real(double value, DType dtype);
    static Expr boolean(bool value);
    /// Integer symbols stand for sizes and loop indices: never negative.
    static Expr symbol(std::string name, DType dtype = DType::I64);
    static Expr load(std::string buffer, Expr index, DType dtype);
    /// Of a vector loop: the elements index, index + step, ...
    static Expr loadAlong(std::string buffer, Expr index, Expr step, DType dtype);
    /// Where a loop stands: an index, never negative.
    static Expr axis(int number);
    static Expr var(int number, DType dtype);
    static Expr reduce(int reducer, std::vector<Expr> operands, DType dtype);
    static Expr call(std::string_view function, std::vector<Expr> operands, DType dtype);
    static Expr cast(Expr operand, DType dtype);
    static Expr where(Expr condition, Expr yes, Expr no);
    /// Any other kind, simplified as it is built. Integer rules: constants fold, sums and products flatten and sort,
    /// like terms combine, a constant factor distributes over a sum, exact FloorDiv and Mod cancel.
    static Expr make(ExprKind kind, std::vector<Expr> operands, DType dtype = DType::I64);

    std::optional<int64_t> asInt() const;  // the value of an Int leaf

  private:
    std::shared_ptr<const ExprNode> m_node;
};

struct ExprNode {
    ExprKind kind;
    DType dtype;
    int64_t integer = 0;  // Int, Bool; number of an Axis, Var or reducer
    double real = 0;      // Float
    std::string name;     // Symbol, Load, Call
    std::vector<Expr> operands;
    uint64_t hash = 0;        // structural
    bool outOfRange = false;  // holds an operation on constants that has no result of 64 bits: 2**62 * 4, 7 // 0
};

/// Infix as PyTorch prints symbolic sizes: "s0 + 1", "4*s77", "((s0 + 1)//2)".
std::string text(const Expr& expr);
/// Total structural order; stable across runs.
int compareExpr(const Expr& a, const Expr& b);
/// Replaces symbols by what `lookup` gives (a null Expr keeps the symbol), simplifying on the way up.
template <class Lookup>
Expr substitute(const Expr& expr, const Lookup& lookup);
/// All symbol names, sorted, each once.
std::vector<std::string> symbolsOf(const Expr& expr);

/// A size, stride, offset or integer argument: a number, or an expression over symbols when shapes are dynamic.
/// Arithmetic on it is checked: what does not fit into 64 bits throws SizeError.
class SymInt {
  public:
    SymInt(int64_t value = 0) : m_value(value) {}
    SymInt(int value) : m_value(value) {}
    SymInt(size_t value) : m_value(static_cast<int64_t>(value)) {}
    explicit SymInt(Expr expr);  // collapses to a number when constant; throws SizeError if outOfRange

    bool isInt() const { return !m_expr; }
    /// The number; it is a bug to ask a symbolic value for one.
    int64_t value() const;
    std::optional<int64_t> asInt() const { return m_expr ? std::nullopt : std::optional<int64_t>(m_value); }
    Expr expr() const { return m_expr ? m_expr : Expr::integer(m_value); }
    std::string text() const;
    /// Same number, or expressions that are equal whatever their symbols are; others may still be equal at run time.
    bool operator==(const SymInt& other) const;

  private:
    int64_t m_value = 0;
    Expr m_expr;
};

SymInt operator+(const SymInt& a, const SymInt& b);
SymInt operator-(const SymInt& a, const SymInt& b);
SymInt operator*(const SymInt& a, const SymInt& b);
SymInt floorDiv(const SymInt& a, const SymInt& b);
SymInt mod(const SymInt& a, const SymInt& b);
SymInt min(const SymInt& a, const SymInt& b);
SymInt max(const SymInt& a, const SymInt& b);
/// True only if it holds for every value of the symbols: at least 1 for sizes of inputs (s0, s77), at least 0 for all
/// others.
inline bool knownEqual(const SymInt& a, const SymInt& b) { return a == b; }
bool knownLessEqual(const SymInt& a, const SymInt& b);

using SymDims = std::vector<SymInt>;
bool allInts(const SymDims& dims);
/// The numbers; the caller has checked allInts.
std::vector<int64_t> toInts(const SymDims& dims);
SymDims toSymDims(const std::vector<int64_t>& dims);
SymInt numel(const SymDims& sizes);
SymDims contiguousStrides(const SymDims& sizes);

template <class Lookup>
Expr substitute(const Expr& expr, const Lookup& lookup) {
    if (!expr) return expr;
    if (expr->kind == ExprKind::Symbol) {
        Expr found = lookup(expr->name);
        return found ? found : expr;
    }
    if (expr->operands.empty()) return expr;
    std::vector<Expr> operands;
    bool changed = false;
    for (const Expr& operand : expr->operands) {
        operands.push_back(substitute(operand, lookup));
        changed |= !(operands.back() == operand);
    }
    if (!changed) return expr;
    switch (expr->kind) {
        case ExprKind::Load: return Expr::load(expr->name, std::move(operands[0]), expr->dtype);
        case ExprKind::Call: return Expr::call(expr->name, std::move(operands), expr->dtype);
        case ExprKind::Cast: return Expr::cast(std::move(operands[0]), expr->dtype);
        case ExprKind::Reduce: return Expr::reduce(static_cast<int>(expr->integer), std::move(operands), expr->dtype);
        default: return Expr::make(expr->kind, std::move(operands), expr->dtype);
    }
}

}  // namespace cutaway
