#pragma once
// What a lowering rule sees: the call as an expression per result element. A rule is pure: it says which element of
// which operand is read at the current output index, and what is computed from it. Fusion substitutes producers for
// loads (engine/schedule).
#include "engine/ir/infer.h"

namespace cutaway {

enum class ReduceKind : uint8_t { Sum, Prod, Max, Min, ArgMax, ArgMin, Any, All, WelfordMean, WelfordVariance };

class LowerContext : public InferContext {
  public:
    LowerContext(const Op& op, std::span<const Argument> args, const ValueType& result)
        : InferContext(op, args), m_result(&result) {}
    virtual ~LowerContext() = default;

    const TensorType& out(size_t result = 0) const {
        if (const TupleType* tuple = m_result->tuple()) return *(*tuple)[result].tensor();
        return *m_result->tensor();
    }
    /// Which result of a tuple is being lowered.
    virtual size_t resultNumber() const = 0;
    /// Output index, one expression per dim.
    virtual const std::vector<Expr>& index() const = 0;
    /// Operand at the broadcast output index, in the compute dtype: the result's, or for predicates the promoted
    /// operands'; f16 and bf16 compute in f32. Literals become constants.
    virtual Expr load(size_t operand) = 0;
    /// Operand at an explicit index, in its own dtype (f16, bf16 widened to f32).
    virtual Expr loadAt(size_t operand, const std::vector<Expr>& at) = 0;
    /// Item `item` of a Tensor[] operand.
    virtual Expr loadItemAt(size_t operand, size_t item, const std::vector<Expr>& at) = 0;
    /// Reduces `body(reduction indices)` over dims of the given sizes.
    virtual Expr reduce(ReduceKind kind, const SymDims& sizes, const std::function<Expr(const std::vector<Expr>&)>& body) = 0;
    /// A number: literal, or a 0-d operand.
    virtual Expr numberAt(std::string_view param, DType dtype) = 0;
    /// The dtype that load() gives.
    virtual DType computeType() const = 0;

  private:
    const ValueType* m_result;
};

// Arithmetic on element expressions of one dtype.
inline Expr operator+(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}, a->dtype); }
inline Expr operator-(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Sub, {a, b}, a->dtype); }
inline Expr operator*(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}, a->dtype); }
inline Expr operator/(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Div, {a, b}, a->dtype); }
inline Expr operator-(const Expr& a) { return Expr::make(ExprKind::Neg, {a}, a->dtype); }
inline Expr compare(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}, DType::Bool); }
/// A constant of the same dtype as `like`.
Expr constantLike(const Expr& like, double value);
/// A one-argument function of the same dtype: call1("exp", x).
inline Expr call1(std::string_view function, const Expr& x) { return Expr::call(function, {x}, x->dtype); }

}  // namespace cutaway
