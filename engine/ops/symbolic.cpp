// Projections of tuples, and arithmetic on sizes as a traced Python program does it. Operators of Python on tensors
// stand in graphs from before tracing to aten; they mean the aten op and get its type and value.
#include <cmath>

#include "engine/ops/arithmetic.h"
#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

// -- sizes of tensors

SymType integerType(const SymInt& value) { return SymType{DType::I64, value.expr()}; }
/// The size or stride of one dim.
Result<SymInt> ofDim(const InferContext& c, const TensorType& self, const SymDims& values) {
    CT_TRY(const int64_t dim, c.dim("dim", self.rank()));
    if (self.rank() == 0) return c.fail("a 0-d tensor has no dims");
    return values[static_cast<size_t>(dim)];
}
TupleType integerTypes(const SymDims& values) {
    TupleType types;
    for (const SymInt& value : values) types.push_back(integerType(value));
    return types;
}
Tensor integerTensor(int64_t value) { return Tensor::scalar(DType::I64, value); }
TensorList integerTensors(const Dims& values) {
    TensorList tensors;
    for (int64_t value : values) tensors.push_back(integerTensor(value));
    return tensors;
}

// -- arithmetic on numbers

/// What an operator does to numbers, and the aten op that it is for tensors (empty: none).
struct Operator {
    std::string_view name;
    std::string_view aten;
};
constexpr Operator kOperators[] = {
    {"add", "aten.add.Tensor"},
    {"sub", "aten.sub.Tensor"},
    {"mul", "aten.mul.Tensor"},
    {"truediv", "aten.div.Tensor"},
    {"floordiv", "aten.floor_divide.default"},
    {"mod", "aten.remainder.Tensor"},
    {"pow", "aten.pow.Tensor_Tensor"},
    {"neg", "aten.neg.default"},
    {"eq", "aten.eq.Tensor"},
    {"ne", "aten.ne.Tensor"},
    {"lt", "aten.lt.Tensor"},
    {"le", "aten.le.Tensor"},
    {"gt", "aten.gt.Tensor"},
    {"ge", "aten.ge.Tensor"},
    {"and_", "aten.bitwise_and.Tensor"},
    {"or_", "aten.bitwise_or.Tensor"},
    {"xor", "aten.bitwise_xor.Tensor"},
    {"invert", "aten.bitwise_not.default"},
    {"abs", "aten.abs.default"},
};
std::string_view atenOf(const Op& op) {
    for (const Operator& known : kOperators)
        if (known.name == op.baseName()) return known.aten;
    return {};
}

/// A number as an expression, with its dtype (I64, F64 or Bool); a null Expr for anything else.
Expr symbolicNumber(const Argument& argument) {
    if (const Node* node = argument.node()) {
        const SymType* type = node->type().sym();
        return type ? type->expr : Expr();
    }
    if (const auto* flag = argument.get<bool>()) return Expr::boolean(*flag);
    if (const auto integer = argument.asInt()) return Expr::integer(*integer);
    if (const auto* real = argument.get<double>()) return Expr::real(*real, DType::F64);
    if (const auto* expr = argument.get<Expr>()) return *expr;
    return Expr();
}
Expr as(const Expr& x, DType dtype) {
    if (x->kind == ExprKind::Bool && dtype == DType::I64) return Expr::integer(x->integer);
    return x->dtype == dtype ? x : Expr::cast(x, dtype);
}
Expr floatCall(std::string_view function, const Expr& x) {
    return Expr::call(function, {as(x, DType::F64)}, DType::F64);
}

/// Sums, products and the like of two numbers; floats where one is.
Expr arithmetic(std::string_view name, Expr a, Expr b) {
    const bool real = a->dtype == DType::F64 || b->dtype == DType::F64 || name == "truediv" || name == "int_truediv";
    const DType dtype = real ? DType::F64 : DType::I64;
    a = as(a, dtype);
    b = as(b, dtype);
    if (name == "add") return Expr::make(ExprKind::Add, {a, b}, dtype);
    if (name == "sub")
        return real ? Expr::make(ExprKind::Sub, {a, b}, dtype)
                    : Expr::make(ExprKind::Add, {a, Expr::make(ExprKind::Mul, {b, Expr::integer(-1)})});
    if (name == "mul") return Expr::make(ExprKind::Mul, {a, b}, dtype);
    if (name == "truediv" || name == "int_truediv") return Expr::make(ExprKind::Div, {a, b}, dtype);
    if (name == "floordiv") return Expr::make(ExprKind::FloorDiv, {a, b}, dtype);
    if (name == "mod") return Expr::make(ExprKind::Mod, {a, b}, dtype);
    if (name == "pow") return real ? Expr::call("pow", {a, b}, dtype) : Expr::make(ExprKind::Pow, {a, b}, dtype);
    if (name == "sym_max") return Expr::make(ExprKind::Max, {a, b}, dtype);
    if (name == "sym_min") return Expr::make(ExprKind::Min, {a, b}, dtype);
    static constexpr std::pair<std::string_view, ExprKind> kComparisons[] = {
        {"eq", ExprKind::Eq}, {"ne", ExprKind::Ne}, {"lt", ExprKind::Lt},
        {"le", ExprKind::Le}, {"gt", ExprKind::Gt}, {"ge", ExprKind::Ge}};
    for (const auto& [comparison, kind] : kComparisons)
        if (name == comparison) return Expr::make(kind, {a, b}, DType::Bool);
    return Expr();
}
Expr logical(std::string_view name, const Expr& a, const Expr& b) {
    const bool bools = a->dtype == DType::Bool && b->dtype == DType::Bool;
    if (name == "and_")
        return Expr::make(bools ? ExprKind::And : ExprKind::BitAnd, {a, b}, bools ? DType::Bool : DType::I64);
    if (name == "or_")
        return Expr::make(bools ? ExprKind::Or : ExprKind::BitOr, {a, b}, bools ? DType::Bool : DType::I64);
    if (name == "xor")
        return bools ? Expr::make(ExprKind::Ne, {a, b}, DType::Bool) : Expr::make(ExprKind::BitXor, {a, b}, DType::I64);
    return Expr();
}
Expr ofOne(std::string_view name, const Expr& x) {
    if (name == "neg")
        return x->dtype == DType::F64 ? Expr::make(ExprKind::Neg, {x}, DType::F64)
                                      : Expr::make(ExprKind::Mul, {as(x, DType::I64), Expr::integer(-1)});
    if (name == "pos") return x;
    if (name == "abs")
        return x->dtype == DType::F64
                   ? floatCall("abs", x)
                   : Expr::make(ExprKind::Max, {x, Expr::make(ExprKind::Mul, {x, Expr::integer(-1)})});
    if (name == "not_" || name == "sym_not") return Expr::make(ExprKind::Not, {as(x, DType::Bool)}, DType::Bool);
    if (name == "invert") return Expr::make(ExprKind::BitNot, {x}, DType::I64);
    if (name == "sym_float") return as(x, DType::F64);
    if (name == "sym_int" || name == "trunc") return x->dtype == DType::F64 ? as(floatCall("trunc", x), DType::I64) : x;
    if (name == "ceil" || name == "floor") return x->dtype == DType::F64 ? as(floatCall(name, x), DType::I64) : x;
    if (name == "sqrt" || name == "_sym_sqrt") return floatCall("sqrt", x);
    return floatCall(name, x);  // exp, log, sin, ...: the functions of Python's math
}

/// a where the condition holds, else b.
Expr chosen(const Expr& condition, const Expr& a, const Expr& b) {
    const auto either = [&](DType dtype) { return a->dtype == dtype || b->dtype == dtype; };
    const DType dtype = either(DType::F64) ? DType::F64 : either(DType::I64) ? DType::I64 : DType::Bool;
    return Expr::where(as(condition, DType::Bool), as(a, dtype), as(b, dtype));
}

bool isTensor(const Argument& argument) { return argument.node() && argument.node()->type().tensor(); }

Result<ValueType> inferNumber(const InferContext& c) {
    for (size_t i = 0; i < c.count(); ++i) {
        if (!isTensor(c.arg(i))) continue;
        const std::string_view aten = atenOf(c.op());
        if (aten.empty()) return ValueType(OpaqueType{});
        const Op& op = requireOp(aten);
        std::vector<Argument> args;
        for (size_t k = 0; k < c.count(); ++k) {
            if (!isTensor(c.arg(k)) && !c.arg(k).isNumber() && !symbolicNumber(c.arg(k)))
                return c.fail("takes tensors and numbers");
            args.push_back(c.arg(k));
        }
        while (args.size() < op.schema()->params.size()) args.push_back(op.schema()->params[args.size()].defaultValue);
        return inferCall(op, args);
    }
    const Expr a = symbolicNumber(c.arg(0)), b = c.count() > 1 ? symbolicNumber(c.arg(1)) : a;
    if (!a || !b) return ValueType(OpaqueType{});
    const std::string_view name = c.op().baseName();
    if (c.count() == 3) {
        const Expr other = symbolicNumber(c.arg(2));
        if (!other) return ValueType(OpaqueType{});
        const Expr choice = chosen(a, b, other);
        return ValueType(SymType{choice->dtype, choice});
    }
    Expr result = c.count() == 1 ? ofOne(name, a) : logical(name, a, b);
    if (!result) result = arithmetic(name, a, b);
    if (result && result->outOfRange) return c.fail(text(result) + " is not a number of 64 bits");
    return ValueType(SymType{result->dtype, result});
}

double realText(const Scalar& number) { return toDouble(number); }
/// Python's arithmetic on two numbers, in integers where both are.
Scalar computed(std::string_view name, const Scalar& a, const Scalar& b, bool real64) {
    auto compute = [&](auto x, auto y) -> Scalar {
        using T = decltype(x);
        if (name == "add") return wrapAdd(x, y);
        if (name == "sub") return wrapSub(x, y);
        if (name == "mul") return wrapMul(x, y);
        if (name == "floordiv") return floorDivide<T>(x, y);
        if (name == "mod") return remainderOf<T>(x, y);
        if (name == "pow") return powerOf<T>(x, y);
        if (name == "sym_max") return std::max(x, y);
        if (name == "sym_min") return std::min(x, y);
        if (name == "eq") return x == y;
        if (name == "ne" || name == "xor") return x != y;
        if (name == "lt") return x < y;
        if (name == "le") return x <= y;
        if (name == "gt") return x > y;
        if (name == "ge") return x >= y;
        if (name == "and_") return static_cast<int64_t>(x) & static_cast<int64_t>(y);
        if (name == "or_") return static_cast<int64_t>(x) | static_cast<int64_t>(y);
        return static_cast<double>(x) / static_cast<double>(y);  // truediv
    };
    return real64 ? compute(realText(a), realText(b)) : compute(toInt(a), toInt(b));
}
Scalar computedOfOne(std::string_view name, const Scalar& x, bool real64) {
    const double value = realText(x);
    if (name == "neg") return real64 ? Scalar(-value) : Scalar(-toInt(x));
    if (name == "abs") return real64 ? Scalar(std::fabs(value)) : Scalar(std::abs(toInt(x)));
    if (name == "not_" || name == "sym_not") return value == 0;
    if (name == "invert") return ~toInt(x);
    if (name == "sym_float") return value;
    if (name == "ceil") return static_cast<int64_t>(std::ceil(value));
    if (name == "floor") return static_cast<int64_t>(std::floor(value));
    if (name == "sym_int" || name == "trunc") return static_cast<int64_t>(value);
    static constexpr std::pair<std::string_view, double (*)(double)> kFunctions[] = {
        {"sqrt", std::sqrt}, {"_sym_sqrt", std::sqrt}, {"exp", std::exp},   {"log", std::log},   {"log2", std::log2},
        {"sin", std::sin},   {"cos", std::cos},        {"tan", std::tan},   {"asin", std::asin}, {"acos", std::acos},
        {"atan", std::atan}, {"sinh", std::sinh},      {"cosh", std::cosh}, {"tanh", std::tanh}};
    for (const auto& [function, compute] : kFunctions)
        if (name == function) return compute(value);
    return x;  // pos
}
EvalResult evalSymbolicNumber(const EvalContext& c) {
    for (size_t i = 0; i < c.count(); ++i) {
        if (!isTensor(c.arg(i))) continue;
        const Op& op = requireOp(atenOf(c.op()));
        std::vector<Argument> args;
        for (size_t k = 0; k < c.count(); ++k) {
            if (!isTensor(c.arg(k)) && !c.arg(k).isNumber() && !symbolicNumber(c.arg(k)))
                return c.fail("takes tensors and numbers");
            args.push_back(c.arg(k));
        }
        while (args.size() < op.schema()->params.size()) args.push_back(op.schema()->params[args.size()].defaultValue);
        return evaluateCall(op, args, c.resultValueType(), c.values());
    }
    const std::string_view name = c.op().baseName();
    const SymType* type = c.resultValueType().sym();
    if (name == "sym_ite")
        return Tensor::scalar(type ? type->dtype : DType::F64,
                              c.number(realText(c.number("condition")) != 0 ? "a" : "b"));
    const std::string first = c.op().schema()->params[0].name;
    const Scalar a = c.number(first), b = c.count() > 1 ? c.number("b") : a;
    if ((name == "floordiv" || name == "mod" || name == "truediv") && realText(b) == 0)
        return c.fail("division by zero");
    const bool real64 = isFloatingScalar(a) || isFloatingScalar(b);
    return Tensor::scalar(type ? type->dtype : DType::F64,
                          c.count() == 1 ? computedOfOne(name, a, real64) : computed(name, a, b, real64));
}

/// Whether some results of a call are lists: its value then holds all their items, one after the other.
bool holdsLists(const TupleType& items) {
    return std::any_of(items.begin(), items.end(), [](const ValueType& item) { return item.tuple() != nullptr; });
}
EvalResult itemAmongLists(const TupleType& items, const TensorList& all, int64_t position) {
    const auto count = [](const ValueType& item) { return item.tuple() ? item.tuple()->size() : size_t{1}; };
    const size_t wanted = static_cast<size_t>(position < 0 ? position + static_cast<int64_t>(items.size()) : position);
    size_t start = 0;
    for (size_t i = 0; i < wanted; ++i) start += count(items[i]);
    const auto first = all.begin() + static_cast<int64_t>(start);
    return TensorList(first, first + static_cast<int64_t>(count(items[wanted])));
}

constexpr OpDef numberRow(std::string_view schema) {
    return {.schema = schema, .tags = Tag::Symbolic, .infer = inferNumber, .eval = evalSymbolicNumber};
}

constexpr OpDef kSymbolicOps[] = {
    // Item `b` of a tuple. Python's indexing: negative positions count from the end. A tensor's subscript (slices,
    // None,
    // tensors as index) occurs in graphs from before tracing to aten; it is carried with the type that was written.
    {.schema = "operator.getitem(Any a, Any? b) -> Any",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         const Node* tuple = c.arg(0).node();
         if (tuple == nullptr) return c.fail("the first argument is not a value");
         if (tuple->type().isOpaque() || tuple->type().tensor()) return ValueType(OpaqueType{});
         const TupleType* items = tuple->type().tuple();
         if (items == nullptr) return c.fail("'" + tuple->name() + "' is not a tuple");
         CT_TRY(int64_t position, c.integer("b"));
         if (position < 0) position += static_cast<int64_t>(items->size());
         if (position < 0 || position >= static_cast<int64_t>(items->size()))
             return c.fail("item " + std::to_string(position) + " of a tuple of " + std::to_string(items->size()));
         return (*items)[static_cast<size_t>(position)];
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const TensorList& all = c.values().valueOf(*c.arg(size_t{0}).node());
         int64_t position = c.integerOr("b", 0);
         if (const TupleType* items = c.arg(size_t{0}).node()->type().tuple(); items && holdsLists(*items))
             return itemAmongLists(*items, all, position);
         if (position < 0) position += static_cast<int64_t>(all.size());
         if (position < 0 || position >= static_cast<int64_t>(all.size()))
             return c.fail("there are only " + std::to_string(all.size()) + " results");
         return all[static_cast<size_t>(position)];
     }},
    // Sizes and strides as numbers.
    {.schema = "aten.sym_size.int(Tensor self, int dim) -> SymInt",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const SymInt size, ofDim(c, self, self.sizes));
         return ValueType(integerType(size));
     },
     .eval =
         [](const EvalContext& c) {
             return integerTensor(c.in(size_t{0}).size(c.dimOf("dim", c.in(size_t{0}).rank())));
         }},
    {.schema = "aten.sym_stride.int(Tensor self, int dim) -> SymInt",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const SymInt stride, ofDim(c, self, self.strides));
         return ValueType(integerType(stride));
     },
     .eval =
         [](const EvalContext& c) {
             return integerTensor(c.in(size_t{0}).stride(c.dimOf("dim", c.in(size_t{0}).rank())));
         }},
    {.schema = "aten.sym_size.default(Tensor self) -> SymInt[]",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return ValueType(integerTypes(self.sizes));
     },
     .eval = [](const EvalContext& c) { return integerTensors(c.in(size_t{0}).sizes()); }},
    {.schema = "aten.sym_stride.default(Tensor self) -> SymInt[]",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return ValueType(integerTypes(self.strides));
     },
     .eval = [](const EvalContext& c) { return integerTensors(c.in(size_t{0}).strides()); }},
    {.schema = "aten.sym_numel.default(Tensor self) -> SymInt",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return ValueType(integerType(numel(self.sizes)));
     },
     .eval = [](const EvalContext& c) { return integerTensor(c.in(size_t{0}).numel()); }},
    {.schema = "aten.sym_storage_offset.default(Tensor self) -> SymInt",
     .tags = Tag::Symbolic,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return ValueType(integerType(self.offset));
     },
     .eval = [](const EvalContext& c) { return integerTensor(c.in(size_t{0}).offset()); }},
    // Python's operators.
    numberRow("operator.add(Any a, Any b) -> Any"),
    numberRow("operator.sub(Any a, Any b) -> Any"),
    numberRow("operator.mul(Any a, Any b) -> Any"),
    numberRow("operator.truediv(Any a, Any b) -> Any"),
    numberRow("operator.floordiv(Any a, Any b) -> Any"),
    numberRow("operator.mod(Any a, Any b) -> Any"),
    numberRow("operator.pow(Any a, Any b) -> Any"),
    numberRow("operator.neg(Any a) -> Any"),
    numberRow("operator.pos(Any a) -> Any"),
    numberRow("operator.eq(Any a, Any b) -> Any"),
    numberRow("operator.ne(Any a, Any b) -> Any"),
    numberRow("operator.lt(Any a, Any b) -> Any"),
    numberRow("operator.le(Any a, Any b) -> Any"),
    numberRow("operator.gt(Any a, Any b) -> Any"),
    numberRow("operator.ge(Any a, Any b) -> Any"),
    numberRow("operator.and_(Any a, Any b) -> Any"),
    numberRow("operator.or_(Any a, Any b) -> Any"),
    numberRow("operator.xor(Any a, Any b) -> Any"),
    numberRow("operator.not_(Any a) -> Any"),
    numberRow("operator.invert(Any a) -> Any"),
    numberRow("operator.abs(Any a) -> Any"),
    // What torch and Python's math add to them for sizes.
    numberRow("torch.sym_max(Any a, Any b) -> Any"),
    numberRow("torch.sym_min(Any a, Any b) -> Any"),
    numberRow("torch.sym_not(Any a) -> Any"),
    numberRow("torch.sym_ite(Any condition, Any a, Any b) -> Any"),
    numberRow("torch.sym_float(Any a) -> Any"),
    numberRow("torch.sym_int(Any a) -> Any"),
    numberRow("torch._sym_sqrt(Any f) -> Any"),
    numberRow("math.ceil(Any x) -> Any"),
    numberRow("math.floor(Any x) -> Any"),
    numberRow("math.trunc(Any x) -> Any"),
    numberRow("math.sqrt(Any x) -> Any"),
    numberRow("math.exp(Any x) -> Any"),
    numberRow("math.log(Any x) -> Any"),
    numberRow("math.log2(Any x) -> Any"),
    numberRow("math.sin(Any x) -> Any"),
    numberRow("math.cos(Any x) -> Any"),
    numberRow("math.tan(Any x) -> Any"),
    numberRow("math.asin(Any x) -> Any"),
    numberRow("math.acos(Any x) -> Any"),
    numberRow("math.atan(Any x) -> Any"),
    numberRow("math.sinh(Any x) -> Any"),
    numberRow("math.cosh(Any x) -> Any"),
    numberRow("math.tanh(Any x) -> Any"),
};

}  // namespace

std::span<const OpDef> symbolicOps() { return kSymbolicOps; }

}  // namespace cutaway
