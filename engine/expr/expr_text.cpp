// Infix printing, with the spacing and parentheses PyTorch uses for symbolic sizes.
#include <cmath>

#include "engine/expr/expr.h"

namespace cutaway {
namespace {

std::string number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char buffer[40];
    for (int digits = 1; digits <= 17; ++digits) {
        std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
        if (std::strtod(buffer, nullptr) == value) break;
    }
    std::string out = buffer;
    if (out.find_first_of(".en") == std::string::npos) out += ".0";
    return out;
}

// Binding strength, weakest first.
enum Strength { kCompare = 1, kSum, kProduct, kUnary, kPower, kAtom };

Strength strengthOf(const Expr& e) {
    switch (e->kind) {
        case ExprKind::Eq:
        case ExprKind::Ne:
        case ExprKind::Lt:
        case ExprKind::Le:
        case ExprKind::Gt:
        case ExprKind::Ge: return kCompare;
        case ExprKind::Add:
        case ExprKind::Sub: return kSum;
        case ExprKind::Mul:
        case ExprKind::Div: return kProduct;
        case ExprKind::Neg: return kUnary;
        case ExprKind::Pow: return kPower;
        case ExprKind::Int: return e->integer < 0 ? kUnary : kAtom;
        default: return kAtom;
    }
}

void print(std::string& out, const Expr& e, int strength);

void printInfix(std::string& out, const Expr& e, const char* symbol, int strength) {
    for (size_t i = 0; i < e->operands.size(); ++i) {
        if (i > 0) out += symbol;
        print(out, e->operands[i], i > 0 ? strength + 1 : strength);
    }
}

void printCall(std::string& out, std::string_view function, const Expr& e) {
    out += function;
    out += '(';
    for (size_t i = 0; i < e->operands.size(); ++i) {
        if (i > 0) out += ", ";
        print(out, e->operands[i], 0);
    }
    out += ')';
}

void print(std::string& out, const Expr& e, int strength) {
    const bool wrap = strengthOf(e) < strength;
    if (wrap) out += '(';
    switch (e->kind) {
        case ExprKind::Int: out += std::to_string(e->integer); break;
        case ExprKind::Float: out += number(e->real); break;
        case ExprKind::Bool: out += e->integer ? "True" : "False"; break;
        case ExprKind::Symbol: out += e->name; break;
        case ExprKind::Add:
            for (size_t i = 0; i < e->operands.size(); ++i) {
                std::string term;
                print(term, e->operands[i], i > 0 ? kSum + 1 : kSum);
                if (i == 0) out += term;
                else if (term.starts_with("-")) out += " - " + term.substr(1);
                else if (term.starts_with("(-") && e->operands[i]->kind == ExprKind::Int)
                    out += " - " + term.substr(2, term.size() - 3);
                else out += " + " + term;
            }
            break;
        case ExprKind::Mul:
            if (e->operands[0].asInt() == -1) {
                out += '-';
                for (size_t i = 1; i < e->operands.size(); ++i) {
                    if (i > 1) out += '*';
                    print(out, e->operands[i], kProduct + 1);
                }
            } else {
                for (size_t i = 0; i < e->operands.size(); ++i) {
                    if (i > 0) out += '*';
                    print(out, e->operands[i], i > 0 ? kProduct + 1 : kProduct);
                }
            }
            break;
        case ExprKind::Sub: printInfix(out, e, " - ", kSum); break;
        case ExprKind::Div: printInfix(out, e, "/", kProduct); break;
        case ExprKind::Neg:
            out += '-';
            print(out, e->operands[0], kUnary);
            break;
        case ExprKind::Pow: printInfix(out, e, "**", kPower); break;
        case ExprKind::FloorDiv:
            out += '(';
            printInfix(out, e, "//", kProduct + 1);
            out += ')';
            break;
        case ExprKind::Mod:
            out += '(';
            printInfix(out, e, "%", kProduct + 1);
            out += ')';
            break;
        case ExprKind::Eq: printInfix(out, e, " == ", kCompare); break;
        case ExprKind::Ne: printInfix(out, e, " != ", kCompare); break;
        case ExprKind::Lt: printInfix(out, e, " < ", kCompare); break;
        case ExprKind::Le: printInfix(out, e, " <= ", kCompare); break;
        case ExprKind::Gt: printInfix(out, e, " > ", kCompare); break;
        case ExprKind::Ge: printInfix(out, e, " >= ", kCompare); break;
        case ExprKind::BitAnd:
            out += '(';
            printInfix(out, e, " & ", kAtom);
            out += ')';
            break;
        case ExprKind::BitOr:
            out += '(';
            printInfix(out, e, " | ", kAtom);
            out += ')';
            break;
        case ExprKind::BitXor:
            out += '(';
            printInfix(out, e, " ^ ", kAtom);
            out += ')';
            break;
        case ExprKind::BitNot:
            out += '~';
            print(out, e->operands[0], kAtom);
            break;
        case ExprKind::ShiftLeft:
            out += '(';
            printInfix(out, e, " << ", kAtom);
            out += ')';
            break;
        case ExprKind::ShiftRight:
            out += '(';
            printInfix(out, e, " >> ", kAtom);
            out += ')';
            break;
        case ExprKind::Min: printCall(out, "Min", e); break;
        case ExprKind::Max: printCall(out, "Max", e); break;
        case ExprKind::And: printCall(out, "And", e); break;
        case ExprKind::Or: printCall(out, "Or", e); break;
        case ExprKind::Not: printCall(out, "Not", e); break;
        case ExprKind::Where: printCall(out, "Where", e); break;
        case ExprKind::Cast: printCall(out, info(e->dtype).abbreviation, e); break;
        case ExprKind::Load:
            out += e->name;
            out += '[';
            print(out, e->operands[0], 0);
            out += ']';
            break;
        case ExprKind::Call: printCall(out, e->name, e); break;
        case ExprKind::Axis: out += "x" + std::to_string(e->integer); break;
        case ExprKind::Var: out += "t" + std::to_string(e->integer); break;
        case ExprKind::Reduce: printCall(out, "reduce" + std::to_string(e->integer), e); break;
    }
    if (wrap) out += ')';
}

}  // namespace

std::string text(const Expr& expr) {
    std::string out;
    if (expr) print(out, expr, 0);
    return out;
}

}  // namespace cutaway
