#pragma once
// What a lowering rule sees: the call as an expression per result element. A rule is pure: it says which elements of
// which operands are read for the result element at index(), and what is computed from them. The scheduler calls it
// with whatever index expressions the reader needs, so producers dissolve into their consumers (engine/schedule).
//
// How rules are written
//   elementwise   c.load(0) * c.load(1)                     operands broadcast and converted for you
//   cast, select  where(c.loadOwn(0), c.load(1), c.load(2)) loadOwn: broadcast, but in the operand's own dtype
//   view          c.loadAt(0, {i[1], i[0]})                 views are index arithmetic; reindex() serves view/reshape
//   reduction     c.reduce(ReduceKind::Sum, sizes, [&](auto& r) { return c.loadAt(0, {i[0], r[0]}); })
//   ragged        c.reduceUpTo(ReduceKind::Sum, count, [&](auto& r) { ... })   a length that comes from data
//   window, pad   c.guarded(inside, [&] { return c.loadAt(0, at); }, zero)
//   gather        c.loadAt(0, {c.checkedIndex(c.loadAt(1, at), size)})
//   several results: the rule is called once per result that is read; resultNumber() says which, index() is over its
//                  dims. Both results of var_mean may compute the mean: equal expressions are computed once.
// The value returned may have any dtype; it is converted to the result's (f16 and bf16 stay f32 until stored).
// A rule that cannot serve a call returns a null Expr; then the reference kernel or a library runs. Complex and 8-bit
// float calls never reach a rule. Rules must not depend on strides (so as_strided has none).
#include "engine/ir/infer.h"

namespace cutaway {

/// Sum and Prod accumulate in the dtype of the body (widen integers first: Expr::cast(x, DType::I64)). Max and Min
/// propagate NaN. ArgMax and ArgMin give the row-major position (I64) of the first extreme element, NaN being extreme.
/// Any and All take bools. Over nothing: 0, 1, false, true; the others need at least one element.
enum class ReduceKind : uint8_t { Sum, Prod, Max, Min, ArgMax, ArgMin, Any, All };

/// The dtype in which elements of `dtype` are computed: itself, or f32 for f16 and bf16.
inline DType computeTypeOf(DType dtype) { return isHalf(dtype) ? DType::F32 : dtype; }

class LowerContext : public InferContext {
  public:
    using Body = std::function<Expr(const std::vector<Expr>&)>;

    LowerContext(const Op& op, std::span<const Argument> args, const ValueType& result)
        : InferContext(op, args), m_result(&result) {}
    virtual ~LowerContext() = default;

    /// Type of result number `result` (0 for ops with one).
    const TensorType& out(size_t result = 0) const {
        if (const TupleType* tuple = m_result->tuple()) return *(*tuple)[result].tensor();
        return *m_result->tensor();
    }
    /// Which result of a tuple is wanted.
    virtual size_t resultNumber() const = 0;
    /// Index of the wanted element of that result, one expression (I64) per dim.
    virtual const std::vector<Expr>& index() const = 0;

    /// Operand at the broadcast output index, in computeType(). Literals become constants.
    Expr load(size_t operand);
    /// The same where PyTorch's kernel has rounded operands to the common dtype before: a number beside bf16 is bf16.
    Expr loadRounded(size_t operand);
    /// The same in the operand's own dtype (f16, bf16 widened to f32): conditions, casts, predicates of one operand.
    Expr loadOwn(size_t operand);
    /// Operand at an explicit index (one expression per dim of the operand), in its own dtype (f16, bf16 as f32).
    virtual Expr loadAt(size_t operand, const std::vector<Expr>& at) = 0;
    /// The same for item `item` of a Tensor[] operand (None items may not be asked for).
    virtual Expr loadItemAt(size_t operand, size_t item, const std::vector<Expr>& at) = 0;
    /// Reduces body(r) over r in the box of the given sizes; r has one expression per size.
    virtual Expr reduce(ReduceKind kind, const SymDims& sizes, const Body& body) = 0;
    /// Reduces body(r) over r in 0..count-1, where the count (I64) may come from data, but not depend on the r of a
    /// reduction around this one. For count 0, Max and Min give the lowest and highest value, ArgMax and ArgMin
    /// -1.
    virtual Expr reduceUpTo(ReduceKind kind, const Expr& count, const std::function<Expr(const Expr&)>& body) = 0;
    /// `value()` where the condition holds, else `otherwise`: what value() loads is read only where it holds, so its
    /// indices may be out of bounds elsewhere.
    virtual Expr guarded(const Expr& condition, const std::function<Expr()>& value, const Expr& otherwise) = 0;
    /// The divisor of an integer division. One that follows from indices is 1 where a guarded() around it fails,
    /// so that the run does not fail for an element that nobody reads.
    virtual Expr divisorWhereRead(const Expr& divisor) { return divisor; }
    /// An index that comes from data: outside 0..size-1 the run fails with an error.
    static Expr checkedIndex(const Expr& index, const SymInt& size);
    /// The same where a negative one counts from the end: -size..size-1.
    static Expr wrappedIndex(const Expr& index, const SymInt& size);
    /// A number: a literal, a size, or a 0-d operand.
    Expr numberAt(std::string_view param, DType dtype);
    /// The dtype in which load() gives operands: the result's, or for bool results the promoted operands'; f16 and bf16
    /// compute in f32.
    DType computeType() const { return computeTypeOf(commonType()); }
    /// The same, f16 and bf16 as they are.
    DType commonType() const;

    // Literals that the shape rule has accepted.
    TensorType in(size_t operand) const;
    TensorType in(std::string_view param) const { return in(static_cast<size_t>(position(param))); }
    std::vector<TensorType> inList(std::string_view param) const;
    int64_t integerOr(std::string_view param, int64_t fallback) const;
    std::vector<int64_t> integersOf(std::string_view param) const;
    int64_t dimOf(std::string_view param, int64_t rank) const;
    std::vector<int64_t> dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const;
    SymDims sizesOf(std::string_view param) const;

  private:
    const ValueType* m_result;
};

// Functions a rule may use in Expr::call / call1; floats in, same dtype out unless said otherwise:
//   exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
//   erf erfc erfinv lgamma digamma sigmoid floor ceil trunc round (half to even)
//   abs (integers too), isnan isinf isfinite signbit (Bool), pow atan2 fmod hypot copysign nextafter (two operands)
/// True for the names above.
bool isKernelFunction(std::string_view name);
/// A number made of sizes in the functions that kernels have, all operands of an operation of one kind: files write
/// them in PyTorch's (TruncToInt, IntTrueDiv). Throws SizeError for a function that kernels have not.
Expr kernelNumber(const Expr& expr);
// Kinds: Min and Max propagate NaN; Div over integers truncates, FloorDiv and Mod (sign of the divisor) floor, for
// floats too; integer division by zero fails the run; shifts by the width or more give 0 or the sign; Add, Mul, Max
// and Min over Bool are or, and, or, and. Integers wrap. Comparisons give Bool.

/// Mean of body over the box, in the body's (floating) dtype.
Expr reduceMean(LowerContext& c, const SymDims& sizes, const LowerContext::Body& body);
/// Sum of squared deviations from that mean; divide by (count - correction) for the variance.
Expr reduceSquaredDeviations(LowerContext& c, const SymDims& sizes, const LowerContext::Body& body);
/// Index into `to` of the element that `index` is in `from`; both row-major, same number of elements. What view,
/// reshape, flatten read: c.loadAt(0, reindex(c.index(), c.out().sizes, c.in(0).sizes)).
std::vector<Expr> reindex(const std::vector<Expr>& index, const SymDims& from, const SymDims& to);

// Arithmetic on element expressions of one dtype.
inline Expr operator+(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}, a->dtype); }
inline Expr operator-(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Sub, {a, b}, a->dtype); }
inline Expr operator*(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}, a->dtype); }
inline Expr operator/(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Div, {a, b}, a->dtype); }
inline Expr operator-(const Expr& a) { return Expr::make(ExprKind::Neg, {a}, a->dtype); }
inline Expr compare(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make(kind, {a, b}, DType::Bool); }
inline Expr operator&&(const Expr& a, const Expr& b) { return Expr::make(ExprKind::And, {a, b}, DType::Bool); }
inline Expr operator||(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Or, {a, b}, DType::Bool); }
/// "not a". There is no operator!, which asks whether an Expr is null.
inline Expr logicalNot(const Expr& a) { return Expr::make(ExprKind::Not, {a}, DType::Bool); }
/// A number of any dtype.
Expr constantOf(const Scalar& value, DType dtype);
/// A constant of the same dtype as `like`.
Expr constantLike(const Expr& like, double value);
/// A one-argument function of the same dtype: call1("exp", x).
inline Expr call1(std::string_view function, const Expr& x) { return Expr::call(function, {x}, x->dtype); }

}  // namespace cutaway
