#include "engine/codegen/cpp_operation.h"

#include "engine/codegen/cpp_expr.h"
#include "engine/ops/lower.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

std::string arithmeticCode(const Expr& expr, const std::vector<Code>& in, bool vector, std::set<std::string>& helpers) {
    const DType dtype = expr->operands[0]->dtype;
    const bool boolean = dtype == DType::Bool, floating = isFloating(dtype);
    // C promotes narrow integers to int; the result wraps at its own width.
    const std::string narrow = vector || floating || boolean ? "" : "(" + cppValueType(expr->dtype) + ")";
    auto joined = [&](const std::string& sign) {
        std::string text = in[0].text;
        for (size_t i = 1; i < in.size(); ++i) text += " " + sign + " " + in[i].text;
        return narrow.empty() ? text : narrow + "(" + text + ")";
    };
    auto compared = [&](const std::string& sign, const std::string& function) {
        if (!vector) return in[0].text + " " + sign + " " + in[1].text;
        const std::string bit = boolean ? " & 1" : "";
        return function + "(" + in[0].text + bit + ", " + in[1].text + bit + ")";
    };
    auto chained = [&](const std::string& function) {
        helpers.insert("minmax");
        std::string text = in[0].text;
        for (size_t i = 1; i < in.size(); ++i)
            text = function + (vector ? "V(" : "S(") + text + ", " + in[i].text + ")";
        return text;
    };
    auto divided = [&](const std::string& function) {
        helpers.insert("intdiv");
        return function + "(" + in[0].text + ", " + in[1].text + (vector ? ", n" : "") + ", fault)";
    };
    switch (expr->kind) {
        case ExprKind::Add: return joined(boolean ? "|" : "+");
        case ExprKind::Mul: return joined(boolean ? "&" : "*");
        case ExprKind::Sub: return joined(boolean ? "^" : "-");
        case ExprKind::Div: return floating ? joined("/") : divided("divTrunc");
        case ExprKind::FloorDiv:
        case ExprKind::Mod: {
            const bool quotient = expr->kind == ExprKind::FloorDiv;
            if (!floating) return divided(quotient ? "divFloor" : "modFloor");
            helpers.insert("floormod");
            return std::string(quotient ? "floorDiv" : "floorMod") + (vector ? "V(" : "F(") + in[0].text + ", " +
                   in[1].text + ")";
        }
        case ExprKind::Neg: return narrow + "(-(" + in[0].text + "))";  // of a negative literal, too
        case ExprKind::Min: return boolean ? joined("&") : chained("min");
        case ExprKind::Max: return boolean ? joined("|") : chained("max");
        case ExprKind::Pow: helpers.insert("f_pow"); return "f_pow(" + in[0].text + ", " + in[1].text + ")";
        case ExprKind::Eq: return compared("==", "eq");
        case ExprKind::Ne: return compared("!=", "ne");
        case ExprKind::Lt: return compared("<", "lt");
        case ExprKind::Le: return compared("<=", "le");
        case ExprKind::Gt: return compared(">", "gt");
        case ExprKind::Ge: return compared(">=", "ge");
        case ExprKind::And:
        case ExprKind::BitAnd: return joined("&");
        case ExprKind::Or:
        case ExprKind::BitOr: return joined("|");
        case ExprKind::BitXor: return joined("^");
        case ExprKind::Not: return vector ? "~" + in[0].text : "!" + in[0].text;
        case ExprKind::BitNot:
            return boolean          ? (vector ? "~" : "!") + in[0].text
                   : narrow.empty() ? "~" + in[0].text
                                    : narrow + "(~" + in[0].text + ")";
        case ExprKind::ShiftLeft:
        case ExprKind::ShiftRight:
            helpers.insert("shift");
            return std::string(expr->kind == ExprKind::ShiftLeft ? "shl" : "shr") + (vector ? "v(" : "(") + in[0].text +
                   ", " + in[1].text + ")";
        default: CT_CHECK(false, "every arithmetic kind is printed");
    }
}

/// Float to integer through a signed register of 32 bits, or of 64 for uint8 and 64-bit integers, as PyTorch does it.
std::string integerCode(DType to, const Code& in, bool vector, std::set<std::string>& helpers) {
    if (to == DType::U32 || to == DType::U64) {
        helpers.insert("unsigned");
        return std::string(to == DType::U32 ? "toU32" : "toU64") + (vector ? "V(" : "(") + in.text + ")";
    }
    const DType through = to == DType::U8 ? DType::I64 : byteSize(to) < 4 ? DType::I32 : to;
    if (!vector) return "(" + cppValueType(to) + ")(" + cppValueType(through) + ")" + in.text;
    const std::string wide = "CONV(" + in.text + ", " + cppVectorType(through) + ")";
    return through == to ? wide : "CONV(" + wide + ", " + cppVectorType(to) + ")";
}

std::string castCode(const Expr& expr, const Code& in, bool vector, std::set<std::string>& helpers) {
    const DType from = computeTypeOf(expr->operands[0]->dtype), to = computeTypeOf(expr->dtype);
    if (from == to) return in.text;
    if (to == DType::Bool) return vector ? "ne(" + in.text + ", 0)" : in.text + " != 0";
    if (isFloating(from) && !isFloating(to)) return integerCode(to, in, vector, helpers);
    const ExprKind kind = expr->operands[0]->kind;
    const bool plain = kind == ExprKind::Int || kind == ExprKind::Axis || kind == ExprKind::Symbol;
    if (!vector && isFloating(to) && from != DType::Bool && !isFloating(from) && !plain) {
        helpers.insert("from_int");
        return "fromInt<" + cppValueType(to) + ">(" + in.text + ")";
    }
    if (!vector) return "(" + cppValueType(to) + ")" + in.text;
    if (from == DType::Bool) return "CONV(" + in.text + " & 1, " + cppVectorType(to) + ")";
    return "CONV(" + in.text + ", " + cppVectorType(to) + ")";
}

std::string callCode(const Expr& expr, const std::vector<Code>& in, bool vector, std::set<std::string>& helpers) {
    const std::string& name = expr->name;
    const DType dtype = computeTypeOf(expr->operands[0]->dtype);
    const std::string& x = in[0].text;
    const std::string inf = dtype == DType::F64 ? "__builtin_inf()" : "__builtin_inff()";
    if (name == "checked_index") {
        helpers.insert("checked_index");
        return "checkedIndex(" + (vector ? widened(in[0], DType::I64).text : x) + ", " + in[1].text +
               (vector ? ", n" : "") + ", fault)";
    }
    if (name == "quotient") return x + " / " + in[1].text;
    if (name == "remainder") return x + " % " + in[1].text;
    const std::string bits = dtype == DType::F64 ? "V_i64" : "V_i32";
    if (name == "abs") {
        if (isUnsigned(dtype) || dtype == DType::Bool) return x;
        if (!isFloating(dtype))
            return vector ? "sel(lt(" + x + ", 0), -(" + x + "), " + x + ")"
                          : "(" + cppValueType(dtype) + ")(" + x + " < 0 ? -(" + x + ") : " + x + ")";
        if (!vector) return (dtype == DType::F64 ? "__builtin_fabs(" : "__builtin_fabsf(") + x + ")";
        return "(" + cppVectorType(dtype) + ")((" + bits + ")" + x +
               (dtype == DType::F64 ? " & 0x7fffffffffffffffL)" : " & 0x7fffffff)");
    }
    if (!isFloating(dtype) && (name == "isnan" || name == "isinf")) return vector ? "bc_b(false)" : "false";
    if (!isFloating(dtype) && name == "isfinite") return vector ? "bc_b(true)" : "true";
    if (name == "isnan") return vector ? "ne(" + x + ", " + x + ")" : x + " != " + x;
    if (name == "isinf")
        return vector ? "eq(" + x + ", " + inf + ") | eq(" + x + ", -" + inf + ")"
                      : x + " == " + inf + " || " + x + " == -" + inf;
    if (name == "isfinite") return vector ? "eq(" + x + " - " + x + ", 0)" : x + " - " + x + " == 0";
    if (name == "signbit") {
        if (vector) return "lt(" + (isFloating(dtype) ? "(" + bits + ")" : std::string()) + x + ", 0)";
        return isFloating(dtype) ? "__builtin_signbit(" + x + ") != 0" : x + " < 0";
    }
    if (name == "round_f16" || name == "round_bf16") {
        helpers.insert(name == "round_f16" ? "mem_f16" : "mem_bf16");
        return name + "(" + x + ")";
    }
    helpers.insert("f_" + name);
    return "f_" + name + "(" + x + (in.size() > 1 ? ", " + in[1].text : "") + ")";
}

}  // namespace

Code widened(const Code& code, DType dtype) {
    if (code.vector) return code;
    return {"bc_" + cppValueSuffix(dtype) + "(" + code.text + ")", true};
}

std::string cppOperation(const Expr& expr, const std::vector<Code>& in, bool vector, std::set<std::string>& helpers) {
    switch (expr->kind) {
        case ExprKind::Call: return callCode(expr, in, vector, helpers);
        case ExprKind::Cast: return castCode(expr, in[0], vector, helpers);
        case ExprKind::Where:
            if (in[0].vector) return "sel(" + in[0].text + ", " + in[1].text + ", " + in[2].text + ")";
            // A branch, so that the operand that is not chosen is not computed: it may load outside of its buffer.
            if (vector) return in[0].text + " ? itself(" + in[1].text + ") : itself(" + in[2].text + ")";
            return in[0].text + " ? " + in[1].text + " : " + in[2].text;
        default: return arithmeticCode(expr, in, vector, helpers);
    }
}

}  // namespace cutaway
