#include "engine/text/annotation.h"

#include <algorithm>
#include <charconv>

#include "engine/expr/expr_parse.h"
#include "engine/support/trimmed.h"

namespace cutaway::fxtext {
namespace {

Error bad(std::string_view text, std::string what) {
    return invalidInput("type \"" + std::string(text.substr(0, 80)) + "\": " + std::move(what));
}

std::string_view trimmed(std::string_view text) { return cutaway::trimmed(text, " "); }

/// Length of the bracketed group at the front, brackets included; 0 if it does not close.
size_t groupLength(std::string_view text) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[' || text[i] == '(') ++depth;
        if ((text[i] == ']' || text[i] == ')') && --depth == 0) return i + 1;
    }
    return 0;
}

Result<SymInt> parseSize(std::string_view item, std::set<std::string>& symbols) {
    int64_t value = 0;
    const auto [stop, status] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (status == std::errc() && stop == item.data() + item.size()) return SymInt(value);
    CT_TRY(Expr expr, parseExpr(item));
    if (expr->dtype != DType::I64) return bad(item, "a size is an integer");
    for (std::string& name : symbolsOf(expr)) symbols.insert(std::move(name));
    return SymInt(std::move(expr));
}

Result<SymDims> parseDims(std::string_view list, std::set<std::string>& symbols) {
    SymDims dims;
    int depth = 0;
    size_t begin = 0;
    if (trimmed(list).empty()) return dims;
    for (size_t i = 0; i <= list.size(); ++i) {
        if (i < list.size()) {
            if (list[i] == '(' || list[i] == '[') ++depth;
            if (list[i] == ')' || list[i] == ']') --depth;
            if (list[i] != ',' || depth != 0) continue;
        }
        CT_TRY(SymInt size, parseSize(trimmed(list.substr(begin, i - begin)), symbols));
        dims.push_back(std::move(size));
        begin = i + 1;
    }
    return dims;
}

/// Sizes whose number of elements and row-major strides fit into int64; symbols count as 1. The largest stride is the
/// product of all sizes but the first, those of 0 counted as 1; where one is 0 there are no elements.
bool fits(const SymDims& sizes) {
    int64_t stride = 1;
    bool empty = false;
    for (size_t i = sizes.size(); i-- > 0;) {
        const int64_t value = sizes[i].asInt().value_or(1);
        if (value < 0) return false;
        empty = empty || value == 0;
        if ((i > 0 || !empty) && __builtin_mul_overflow(stride, std::max<int64_t>(value, 1), &stride)) return false;
    }
    return true;
}

Result<Annotation> parseTensor(std::string_view whole, size_t bracket, std::set<std::string>& symbols) {
    if (isForeignDtype(whole.substr(0, bracket))) {
        Annotation shown;
        shown.type = OpaqueType{std::string(whole)};
        return shown;
    }
    const auto dtype = dtypeFromAbbreviation(whole.substr(0, bracket));
    if (!dtype) return bad(whole, "'" + std::string(whole.substr(0, bracket)) + "' is not a dtype abbreviation");
    std::string_view rest = whole.substr(bracket);
    const size_t sizesLength = groupLength(rest);
    if (sizesLength == 0) return bad(whole, "']' is missing");
    Annotation result;
    CT_TRY(SymDims sizes, parseDims(rest.substr(1, sizesLength - 2), symbols));
    if (!fits(sizes)) return bad(whole, "sizes are not negative and their product fits into 64 bits");
    TensorType type;
    rest.remove_prefix(sizesLength);
    if (rest.starts_with("[")) {
        const size_t length = groupLength(rest);
        if (length == 0) return bad(whole, "']' is missing");
        CT_TRY(type.strides, parseDims(rest.substr(1, length - 2), symbols));
        if (type.strides.size() != sizes.size()) return bad(whole, "there is one stride per size");
        rest.remove_prefix(length);
        result.hasStrides = true;
    } else type.strides = contiguousStrides(sizes);
    type.sizes = std::move(sizes);
    type.dtype = *dtype;
    if (!rest.empty()) {
        const auto device = deviceFromText(rest);
        if (!device)
            return bad(whole, "'" + std::string(rest) + "' is not a device that Cutaway knows (cpu, cuda, meta)");
        type.device = *device;
        result.hasDevice = true;
    }
    result.type = std::move(type);
    return result;
}

DType symDType(const Expr& expr) {
    if (expr->dtype == DType::Bool) return DType::Bool;
    return expr->dtype == DType::F64 || expr->dtype == DType::F32 ? DType::F64 : DType::I64;
}

Result<Annotation> parseAt(std::string_view text, std::set<std::string>& symbols, int depth) {
    text = trimmed(text);
    if (depth > 8) return bad(text, "nested too deep");
    const size_t open = text.find_first_of("[(");
    if (open == std::string_view::npos) {
        Annotation unknown;
        unknown.type = OpaqueType{std::string(text)};
        return unknown;
    }
    if (text[open] == '[') return parseTensor(text, open, symbols);
    if (groupLength(text.substr(open)) != text.size() - open) return bad(text, "')' is missing");
    const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
    if (text.substr(0, open) == "Sym") {
        Annotation result;
        if (inner.empty()) {
            result.type = SymType{};
            return result;
        }
        CT_TRY(Expr expr, parseExpr(inner));
        for (std::string& name : symbolsOf(expr)) symbols.insert(std::move(name));
        const DType dtype = symDType(expr);
        result.type = SymType{dtype, std::move(expr)};
        return result;
    }
    int nesting = 0;
    size_t end = 0;
    for (; end < inner.size(); ++end) {
        if (inner[end] == '(' || inner[end] == '[') ++nesting;
        if (inner[end] == ')' || inner[end] == ']') --nesting;
        if (inner[end] == ',' && nesting == 0) break;
    }
    CT_TRY(Annotation core, parseAt(inner.substr(0, end), symbols, depth + 1));
    core.subclass = std::string(text.substr(0, open));
    return core;
}

}  // namespace

bool isForeignDtype(std::string_view name) {
    constexpr std::string_view kNames[] = {"bc32", "torch.bcomplex32", "b2x4", "torch.bits2x4",
                                           "b4x2", "torch.bits4x2",    "b8x1", "torch.bits8"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Result<Annotation> parseAnnotation(std::string_view text, std::set<std::string>& symbols) {
    return parseAt(text, symbols, 0);
}

}  // namespace cutaway::fxtext
