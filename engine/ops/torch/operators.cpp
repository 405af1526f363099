// Python's operators: on tensors the operator's ATen function, on sizes arithmetic while compiling.
#include <algorithm>

#include "engine/ops/torch/python_call.h"
#include "engine/support/check.h"

namespace cutaway::torchcalls {
namespace {

bool bothNumbers(PythonCall& c) { return isPythonNumber(c["a"]) && isPythonNumber(c["b"]); }

using SizeRule = SymInt (*)(const SymInt&, const SymInt&);
using RealRule = double (*)(double, double);

/// What an operator with a row of its own makes of numbers of which some depend on sizes: a number, or an expression
/// over them.
Argument overSizes(PythonCall& c, std::string_view op, const std::vector<Argument>& args) {
    // A float that was read from a tensor stands for the tensor.
    constexpr std::pair<std::string_view, std::string_view> kOfTensors[] = {
        {"torch._sym_sqrt", "sqrt"}, {"math.sqrt", "sqrt"},   {"torch.sym_not", "logical_not"},
        {"math.ceil", "ceil"},       {"math.floor", "floor"}, {"math.trunc", "trunc"}};
    for (const auto& [function, packet] : kOfTensors)
        if (function == op && tensorOf(args[0])) return c.aten(packet, args);
    if (op == "torch.sym_float" && tensorOf(args[0])) return args[0];
    const auto type = inferCall(requireOp(op), args);
    const SymType* number = type ? type->sym() : nullptr;
    if (number == nullptr || !number->expr)
        return c.fail("arithmetic on numbers that are known only at run time",
                      {"fix the sizes of the inputs (dynamic=False) and record the graph again"});
    if (number->dtype == DType::I64) return Argument(SymInt(number->expr));
    if (number->expr->kind == ExprKind::Float) return Argument(number->expr->real);
    return number->expr->kind == ExprKind::Bool ? Argument(number->expr->integer != 0) : Argument(number->expr);
}

/// Arithmetic on two numbers that are known while compiling, which the operator `op` does at run time.
Argument compute(PythonCall& c, std::string_view op, SizeRule sizes, RealRule reals) {
    const bool exact = !c["a"].get<double>() && !c["b"].get<double>();
    const auto left = symIntOf(c["a"]), right = symIntOf(c["b"]);
    if (exact && left && right && sizes) return Argument(sizes(*left, *right));
    const auto a = c["a"].asReal(), b = c["b"].asReal();
    if (a && b && reals) return Argument(reals(*a, *b));
    return overSizes(c, op, {c["a"], c["b"]});
}

/// Python's operator by the name of the tensor operator.
std::string_view numberOperator(std::string_view packet) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"add", "operator.add"},
                                                                        {"sub", "operator.sub"},
                                                                        {"mul", "operator.mul"},
                                                                        {"div", "operator.truediv"},
                                                                        {"floor_divide", "operator.floordiv"},
                                                                        {"remainder", "operator.mod"},
                                                                        {"pow", "operator.pow"},
                                                                        {"bitwise_and", "operator.and_"},
                                                                        {"bitwise_or", "operator.or_"},
                                                                        {"bitwise_xor", "operator.xor"}};
    const auto found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.first == packet; });
    CT_CHECK(found != std::end(kNames), "the table names every operator that this file asks for");
    return found->second;
}

/// `packet` on tensors; `reflected` when only the right operand is one.
Argument arithmetic(PythonCall& c, std::string_view packet, std::string_view reflected, SizeRule sizes,
                    RealRule reals = nullptr) {
    if (bothNumbers(c)) return compute(c, numberOperator(packet), sizes, reals);
    if (isPythonNumber(c["a"]) && !reflected.empty()) return c.aten(reflected, {c["b"], c["a"]});
    return c.aten(packet, {c["a"], c["b"]});
}

template <class Compare>
Argument comparison(PythonCall& c, std::string_view packet, std::string_view reflected, Compare compare) {
    if (bothNumbers(c)) {
        const auto a = c["a"].asReal(), b = c["b"].asReal();
        if (a && b) return Argument(static_cast<bool>(compare(*a, *b)));
        return overSizes(c, "operator." + std::string(packet), {c["a"], c["b"]});
    }
    if (isPythonNumber(c["a"])) return c.aten(reflected, {c["b"], c["a"]});
    return c.aten(packet, {c["a"], c["b"]});
}

/// x += y: in place on a tensor; on a number, which cannot be written to, the plain operator.
Argument augmented(PythonCall& c, std::string_view packet, SizeRule sizes, RealRule reals = nullptr) {
    if (isPythonNumber(c["a"])) return arithmetic(c, packet, {}, sizes, reals);
    return c.aten(std::string(packet) + "_", {c["a"], c["b"]});
}

SymInt addSizes(const SymInt& a, const SymInt& b) { return a + b; }
SymInt subSizes(const SymInt& a, const SymInt& b) { return a - b; }
SymInt mulSizes(const SymInt& a, const SymInt& b) { return a * b; }
double addReals(double a, double b) { return a + b; }
double subReals(double a, double b) { return a - b; }
double mulReals(double a, double b) { return a * b; }
double divReals(double a, double b) { return a / b; }
double powReals(double a, double b) { return std::pow(a, b); }

Argument trueDivision(PythonCall& c) {
    if (bothNumbers(c)) return compute(c, "operator.truediv", nullptr, divReals);
    if (isPythonNumber(c["a"])) return c.aten("mul", {c.aten("reciprocal", {c["b"]}), c["a"]});
    return c.aten("div", {c["a"], c["b"]});
}
Argument subtraction(PythonCall& c) {
    if (!bothNumbers(c) && isPythonNumber(c["a"])) return c.aten("rsub", {c["b"], c["a"]});
    return arithmetic(c, "sub", {}, subSizes, subReals);
}
Argument floorDivision(PythonCall& c) {
    if (bothNumbers(c)) {
        if (c["b"].asInt() == 0) return c.fail("division by zero");
        return compute(c, "operator.floordiv", floorDiv, nullptr);
    }
    if (isPythonNumber(c["a"])) return c.aten("floor_divide", {c.constant(c["a"], {}), c["b"]});
    return c.aten("floor_divide", {c["a"], c["b"]});
}
Argument remainder(PythonCall& c) {
    if (bothNumbers(c)) {
        if (c["b"].asInt() == 0) return c.fail("division by zero");
        return compute(c, "operator.mod", mod, nullptr);
    }
    if (isPythonNumber(c["a"])) return c.aten("remainder", {c.constant(c["a"], {}), c["b"]});
    return c.aten("remainder", {c["a"], c["b"]});
}
Argument power(PythonCall& c) {
    if (!bothNumbers(c)) return c.aten("pow", {c["a"], c["b"]});
    const auto base = symIntOf(c["a"]);
    const auto exponent = c["b"].get<int64_t>() ? c["b"].asInt() : std::nullopt;
    if (!base || !exponent || *exponent < 0 || *exponent > 16) return compute(c, "operator.pow", nullptr, powReals);
    SymInt result = 1;
    for (int64_t i = 0; i < *exponent; ++i) result = result * *base;
    return Argument(result);
}
Argument bitwise(PythonCall& c, std::string_view packet) {
    if (bothNumbers(c))
        return overSizes(c,
                         packet == "__and__"  ? "operator.and_"
                         : packet == "__or__" ? "operator.or_"
                                              : "operator.xor",
                         {c["a"], c["b"]});
    if (isPythonNumber(c["a"])) return c.aten(packet, {c["b"], c["a"]});
    return c.aten(packet, {c["a"], c["b"]});
}
Argument negation(PythonCall& c) {
    if (const auto* real = c["a"].get<double>()) return Argument(-*real);
    if (const auto size = isPythonNumber(c["a"]) ? symIntOf(c["a"]) : std::nullopt) return Argument(SymInt(0) - *size);
    return c.aten("neg", {c["a"]});
}

/// torch.sym_sum([a, b, c])
Argument sumOfNumbers(PythonCall& c) {
    const auto* items = c["args"].list();
    if (items == nullptr) return c.fail("takes a list of numbers");
    Argument sum(0);
    for (const Argument& item : *items) sum = overSizes(c, "operator.add", {sum, item});
    return sum;
}
/// torch.sym_ite(condition, a, b)
Argument choice(PythonCall& c) {
    const auto* flag = c["condition"].get<bool>();
    return flag ? c[*flag ? "a" : "b"] : overSizes(c, "torch.sym_ite", {c["condition"], c["a"], c["b"]});
}

/// An item of a tuple, of a known list, or of a tensor.
Argument item(PythonCall& c) {
    const Argument& object = c["a"];
    if (const auto* items = object.list()) {
        if (auto position = c["b"].asInt()) {
            const auto count = static_cast<int64_t>(items->size());
            if (*position < 0) *position += count;
            if (*position < 0 || *position >= count)
                return c.fail("item " + std::to_string(*position) + " of a list of " + std::to_string(count));
            return (*items)[static_cast<size_t>(*position)];
        }
        const auto* range = c["b"].get<std::shared_ptr<const ArgumentSlice>>();
        if (range == nullptr) return c.fail("the index of a list is a number or a slice");
        const auto count = static_cast<int64_t>(items->size());
        const int64_t step = (*range)->step.asInt().value_or(1);
        if (step < 1) return c.fail("a slice of a list with a step below one");
        const auto bound = [&](const Argument& value, int64_t fallback) {
            int64_t at = value.asInt().value_or(fallback);
            if (at < 0) at += count;
            return std::clamp<int64_t>(at, 0, count);
        };
        ArgumentList out{{}, true};
        for (int64_t at = bound((*range)->start, 0); at < bound((*range)->stop, count); at += step)
            out.items.push_back((*items)[static_cast<size_t>(at)]);
        return Argument(std::move(out));
    }
    if (object.node() && object.node()->type().tuple())
        return c.builder().call("operator.getitem", {object, c["b"]}).node();
    return subscript(c, object, c["b"]);
}

constexpr PythonFunction kOperatorsFunctions[] = {
    {"operator.add(Any a, Any b) -> Any",
     [](PythonCall& c) { return arithmetic(c, "add", "add", addSizes, addReals); }},
    {"operator.sub(Any a, Any b) -> Any", subtraction},
    {"operator.mul(Any a, Any b) -> Any",
     [](PythonCall& c) { return arithmetic(c, "mul", "mul", mulSizes, mulReals); }},
    {"operator.truediv(Any a, Any b) -> Any", trueDivision},
    {"operator.floordiv(Any a, Any b) -> Any", floorDivision},
    {"operator.mod(Any a, Any b) -> Any", remainder},
    {"operator.pow(Any a, Any b) -> Any", power},
    {"operator.matmul(Any a, Any b) -> Any",
     [](PythonCall& c) {
         return c.aten("matmul", {c["a"], c["b"]});
     }},
    {"operator.and_(Any a, Any b) -> Any", [](PythonCall& c) { return bitwise(c, "__and__"); }},
    {"operator.or_(Any a, Any b) -> Any", [](PythonCall& c) { return bitwise(c, "__or__"); }},
    {"operator.xor(Any a, Any b) -> Any", [](PythonCall& c) { return bitwise(c, "__xor__"); }},
    {"operator.lshift(Any a, Any b) -> Any",
     [](PythonCall& c) {
         return c.aten("bitwise_left_shift", {c["a"], c["b"]});
     }},
    {"operator.rshift(Any a, Any b) -> Any",
     [](PythonCall& c) {
         return c.aten("bitwise_right_shift", {c["a"], c["b"]});
     }},
    {"operator.eq(Any a, Any b) -> Any",
     [](PythonCall& c) { return comparison(c, "eq", "eq", std::equal_to<double>()); }},
    {"operator.ne(Any a, Any b) -> Any",
     [](PythonCall& c) { return comparison(c, "ne", "ne", std::not_equal_to<double>()); }},
    {"operator.lt(Any a, Any b) -> Any", [](PythonCall& c) { return comparison(c, "lt", "gt", std::less<double>()); }},
    {"operator.le(Any a, Any b) -> Any",
     [](PythonCall& c) { return comparison(c, "le", "ge", std::less_equal<double>()); }},
    {"operator.gt(Any a, Any b) -> Any",
     [](PythonCall& c) { return comparison(c, "gt", "lt", std::greater<double>()); }},
    {"operator.ge(Any a, Any b) -> Any",
     [](PythonCall& c) { return comparison(c, "ge", "le", std::greater_equal<double>()); }},
    {"operator.neg(Any a) -> Any", negation},
    {"operator.pos(Any a) -> Any", [](PythonCall& c) { return c["a"]; }},
    {"operator.abs(Any a) -> Any", [](PythonCall& c) { return c.aten("abs", {c["a"]}); }},
    {"builtins.abs(Any a) -> Any", [](PythonCall& c) { return c.aten("abs", {c["a"]}); }},
    {"operator.invert(Any a) -> Any", [](PythonCall& c) { return c.aten("bitwise_not", {c["a"]}); }},
    {"operator.iadd(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "add", addSizes, addReals); }},
    {"operator.isub(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "sub", subSizes, subReals); }},
    {"operator.imul(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "mul", mulSizes, mulReals); }},
    {"operator.itruediv(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "div", nullptr, divReals); }},
    {"operator.ifloordiv(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "floor_divide", floorDiv); }},
    {"operator.imod(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "remainder", mod); }},
    {"operator.ipow(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "pow", nullptr, powReals); }},
    {"operator.iand(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "bitwise_and", nullptr); }},
    {"operator.ior(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "bitwise_or", nullptr); }},
    {"operator.ixor(Any a, Any b) -> Any", [](PythonCall& c) { return augmented(c, "bitwise_xor", nullptr); }},
    {"operator.imatmul(Any a, Any b) -> Any",
     [](PythonCall& c) {
         return c.aten("matmul", {c["a"], c["b"]});
     }},
    {"operator.getitem(Any a, Any? b) -> Any", item},
    {"operator.setitem(Any a, Any b, Any c) -> Any",
     [](PythonCall& c) { return assignSubscript(c, c["a"], c["b"], c["c"]); }},
    {"torch.sym_max(Any a, Any b) -> Any", [](PythonCall& c) { return compute(c, "torch.sym_max", max, nullptr); }},
    {"torch.sym_min(Any a, Any b) -> Any", [](PythonCall& c) { return compute(c, "torch.sym_min", min, nullptr); }},
    {"builtins.max(Any a, Any b) -> Any", [](PythonCall& c) { return compute(c, "torch.sym_max", max, nullptr); }},
    {"builtins.min(Any a, Any b) -> Any", [](PythonCall& c) { return compute(c, "torch.sym_min", min, nullptr); }},
    {"torch.sym_sum(Any args) -> Any", sumOfNumbers},
    {"torch.sym_not(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_not", {c["a"]}); }},
    {"operator.not_(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_not", {c["a"]}); }},
    {"torch.sym_float(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_float", {c["a"]}); }},
    {"torch._sym_sqrt(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch._sym_sqrt", {c["a"]}); }},
    {"torch.sym_ite(Any condition, Any a, Any b) -> Any", choice},
    {"torch.sym_int(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_int", {c["a"]}); }},
    {"builtins.int(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_int", {c["a"]}); }},
    {"builtins.float(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "torch.sym_float", {c["a"]}); }},
    {"math.ceil(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "math.ceil", {c["a"]}); }},
    {"math.floor(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "math.floor", {c["a"]}); }},
    {"math.trunc(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "math.trunc", {c["a"]}); }},
    {"math.sqrt(Any a) -> Any", [](PythonCall& c) { return overSizes(c, "math.sqrt", {c["a"]}); }},
};

}  // namespace

std::span<const PythonFunction> operatorFunctions() { return kOperatorsFunctions; }

}  // namespace cutaway::torchcalls
