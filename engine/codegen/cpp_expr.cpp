#include "engine/codegen/cpp_expr.h"

#include <cmath>
#include <cstdio>

#include "engine/support/check.h"

namespace cutaway {

std::string cppMemoryType(DType dtype) {
    switch (dtype) {
        case DType::F16:
        case DType::BF16: return "unsigned short";
        case DType::Bool: return "unsigned char";
        // Kernels read complex numbers through views as pairs only.
        case DType::C32: return "unsigned short";
        case DType::C64: return "float";
        case DType::C128: return "double";
        default: return cppValueType(dtype);
    }
}

std::string cppValueType(DType dtype) {
    switch (dtype) {
        case DType::F16:
        case DType::BF16:
        case DType::F32: return "float";
        case DType::F64: return "double";
        case DType::I64: return "long";
        case DType::U64: return "unsigned long";
        case DType::I32: return "int";
        case DType::U32: return "unsigned";
        case DType::I16: return "short";
        case DType::U16: return "unsigned short";
        case DType::I8: return "signed char";
        case DType::U8: return "unsigned char";
        case DType::Bool: return "bool";
        default: CT_CHECK(false, "lowering rules refuse dtypes that kernels cannot compute in");
    }
}

std::string cppValueSuffix(DType dtype) {
    if (isHalf(dtype)) return "f32";
    if (dtype == DType::Bool) return "b";
    return std::string(info(dtype).abbreviation);
}
std::string cppMemorySuffix(DType dtype) { return dtype == DType::Bool ? "b8" : std::string(info(dtype).abbreviation); }
std::string cppVectorType(DType dtype) { return "V_" + cppValueSuffix(dtype); }

std::string cppLiteral(const Expr& constant) {
    const DType dtype = constant->dtype;
    if (constant->kind == ExprKind::Bool) return constant->integer ? "true" : "false";
    if (constant->kind == ExprKind::Int) {
        if (constant->integer == std::numeric_limits<int64_t>::min()) return "(-0x7fffffffffffffffL - 1)";
        const std::string digits = std::to_string(constant->integer);
        return dtype == DType::I64 ? digits + "L" : "(" + cppValueType(dtype) + ")" + digits + "L";
    }
    const bool wide = dtype == DType::F64;
    if (std::isnan(constant->real)) return wide ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
    const double value = wide ? constant->real : static_cast<double>(static_cast<float>(constant->real));
    if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + (wide ? "__builtin_inf()" : "__builtin_inff()");
    char digits[64];
    std::snprintf(digits, sizeof digits, wide ? "%.17g" : "%.9g", value);
    std::string text = digits;
    if (text.find_first_of(".e") == std::string::npos) text += ".";
    return wide ? text : text + "f";
}

}  // namespace cutaway
