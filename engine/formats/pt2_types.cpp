#include "engine/formats/pt2_types.h"

#include "engine/expr/expr_parse.h"

namespace cutaway {

Result<Expr> Pt2Types::expression(std::string_view text, const std::string& where) {
    std::string key(text);
    if (const auto found = m_expressions.find(key); found != m_expressions.end()) return found->second;
    auto parsed = parseExpr(text);
    if (!parsed) {
        Error error = std::move(parsed).error();
        error.where = where + (error.where.empty() ? "" : ": " + error.where);
        return error;
    }
    for (const std::string& symbol : symbolsOf(*parsed)) m_symbols[symbol];
    return m_expressions.emplace(std::move(key), *parsed).first->second;
}

Result<SymType> Pt2Types::symValue(const Json& value, DType dtype, const std::string& where) {
    const auto member = value.onlyMember();
    if (!member) return invalidInput("malformed symbolic value: expected a tagged union", where);
    const auto& [variant, inner] = *member;
    if (variant == "as_int" && inner.integer()) return SymType{dtype, Expr::integer(*inner.integer())};
    if (variant == "as_bool" && inner.flag()) return SymType{dtype, Expr::boolean(*inner.flag())};
    if (variant == "as_float" && inner.real()) return SymType{dtype, Expr::real(*inner.real(), DType::F64)};
    if (variant != "as_expr") return invalidInput("unknown symbolic value '" + std::string(variant) + "'", where);
    CT_TRY(const std::string_view text, inner.textAt("expr_str", where));
    CT_TRY(Expr expr, expression(text, where));
    if (expr->kind == ExprKind::Symbol)
        if (const auto hint = inner.find("hint"))
            if (const auto number = hint->find("as_int")) {
                SymbolInfo& info = m_symbols[expr->name];
                if (!info.hint) info.hint = number->integer();
            }
    return SymType{dtype, std::move(expr)};
}
Result<SymInt> Pt2Types::symInt(const Json& value, const std::string& where) {
    if (const auto plain = value.find("as_int"))
        if (const auto number = plain->integer()) return SymInt(*number);
    CT_TRY(SymType type, symValue(value, DType::I64, where));
    if (type.expr->dtype != DType::I64)
        return invalidInput("an integer is expected, not '" + text(type.expr) + "'", where);
    return SymInt(std::move(type.expr));
}

namespace {
Result<int> code(const Json& value, const char* what, const std::string& where) {
    const auto number = value.integer();
    if (!number || *number < 0 || *number > 1000)
        return invalidInput(std::string("the ") + what + " is not code", where);
    return static_cast<int>(*number);
}
}  // namespace

Result<DType> Pt2Types::dtype(const Json& value, const std::string& where) const {
    CT_TRY(const int number, code(value, "dtype", where));
    if (const auto found = dtypeFromExportCode(number)) return *found;
    return invalidInput("unknown dtype code " + std::to_string(number), where);
}
Result<Layout> Pt2Types::layout(const Json& value, const std::string& where) const {
    CT_TRY(const int number, code(value, "layout", where));
    if (number > static_cast<int>(Layout::Strided))
        return invalidInput("unknown layout code " + std::to_string(number), where);
    return static_cast<Layout>(number);
}
Result<MemoryFormat> Pt2Types::memoryFormat(const Json& value, const std::string& where) const {
    CT_TRY(const int number, code(value, "memory format", where));
    if (number > static_cast<int>(MemoryFormat::Preserve))
        return invalidInput("unknown memory format code " + std::to_string(number), where);
    return static_cast<MemoryFormat>(number);
}
Result<Device> Pt2Types::device(const Json& value, const std::string& where) const {
    CT_TRY(const std::string_view type, value.textAt("type", where));
    const auto index = value.find("index");
    std::string text(type);
    if (index && index->integer()) text += ":" + std::to_string(*index->integer());
    if (const auto device = deviceFromText(text)) return *device;
    return unsupported("device '" + text + "'", where, {"export the model on cpu or cuda"});
}

Result<TensorType> Pt2Types::tensor(const Json& meta, const std::string& where) {
    TensorType type;
    CT_TRY(const Json dtypeCode, meta.at("dtype", where));
    CT_TRY(type.dtype, dtype(dtypeCode, where));
    CT_TRY(const Json deviceField, meta.at("device", where));
    CT_TRY(type.device, device(deviceField, where));
    CT_TRY(const Json layoutCode, meta.at("layout", where));
    CT_TRY(type.layout, layout(layoutCode, where));
    CT_TRY(const Json sizes, meta.arrayAt("sizes", where));
    CT_TRY(const Json strides, meta.arrayAt("strides", where));
    for (auto [from, to] : {std::pair(&sizes, &type.sizes), std::pair(&strides, &type.strides)})
        for (const Json item : from->items()) {
            CT_TRY(SymInt value, symInt(item, where));
            if (value.isInt() && value.value() < 0)
                return invalidInput("negative size or stride " + value.text(), where);
            to->push_back(std::move(value));
        }
    int64_t elements = 1;
    for (const SymInt& size : type.sizes)
        if (__builtin_mul_overflow(elements, std::max<int64_t>(size.asInt().value_or(1), 1), &elements))
            return invalidInput("the product of the sizes overflows 64 bits", where);
    if (type.layout == Layout::Strided && type.sizes.size() != type.strides.size())
        return invalidInput(
            std::to_string(type.sizes.size()) + " sizes but " + std::to_string(type.strides.size()) + " strides",
            where);
    const bool sparse = type.layout >= Layout::SparseCoo && type.layout <= Layout::SparseBsc;
    if (sparse) type.layout = Layout::Strided;  // kept as the dense tensor that it stands for (ops/sparse.cpp)
    if (sparse || type.strides.size() != type.sizes.size()) type.strides = contiguousStrides(type.sizes);
    if (const auto offset = meta.find("storage_offset")) {
        CT_TRY(type.offset, symInt(*offset, where));
        if (type.offset.isInt() && type.offset.value() < 0) return invalidInput("negative storage offset", where);
    }
    if (const auto grad = meta.find("requires_grad")) type.requiresGrad = grad->flag().value_or(false);
    return type;
}

Result<void> Pt2Types::readRanges(const Json& constraints, const std::string& where) {
    for (const auto& [symbol, range] : constraints.members()) {
        SymbolInfo& info = m_symbols[std::string(symbol)];
        if (const auto low = Json(range).find("min_val")) info.lower = low->integer();
        if (const auto high = Json(range).find("max_val")) info.upper = high->integer();
        if (info.lower && info.upper && *info.lower > *info.upper)
            return invalidInput("symbol '" + std::string(symbol) + "' has an empty range", where);
    }
    return {};
}

std::shared_ptr<const std::string> Pt2Types::shared(std::string_view text) {
    auto& slot = m_strings[std::string(text)];
    if (!slot) slot = std::make_shared<const std::string>(text);
    return slot;
}

namespace {

/// Splits at commas that stand outside brackets.
std::vector<std::string_view> splitAtCommas(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(' || text[i] == '[') ++depth;
        else if (text[i] == ')' || text[i] == ']') --depth;
        else if (text[i] == ',' && depth == 0) {
            parts.push_back(text.substr(start, i - start));
            start = i + 1;
        }
    }
    parts.push_back(text.substr(start));
    return parts;
}

}  // namespace

namespace {

/// from_node: a list of earlier nodes, each with its own list; the first of each list leads on (§3.6).
std::shared_ptr<const std::vector<SourceStep>> readHistory(std::string_view text) {
    constexpr size_t kMaxSteps = 32;
    const auto document = parseJson(text, "from_node");
    if (!document) return nullptr;
    auto steps = std::make_shared<std::vector<SourceStep>>();
    Json list = (*document)->root;
    while (steps->size() < kMaxSteps && list.isArray() && list.items().size() > 0) {
        const Json item(*list.items().begin());
        const auto field = [&](const char* key) {
            const auto found = item.find(key);
            return found && found->text() ? std::string(*found->text()) : std::string();
        };
        steps->push_back({field("name"), field("pass_name"), field("action")});
        const auto earlier = item.find("from_node");
        if (!earlier) break;
        list = *earlier;
    }
    return steps->empty() ? nullptr : std::shared_ptr<const std::vector<SourceStep>>(std::move(steps));
}

}  // namespace

Provenance Pt2Types::provenance(const Json& metadata) {
    Provenance out;
    if (const auto history = metadata.find("from_node"))
        if (const auto text = history->text()) out.history = readHistory(*text);
    if (const auto trace = metadata.find("stack_trace"))
        if (const auto text = trace->text()) out.stackTrace = shared(*text);
    const auto stack = metadata.find("nn_module_stack");
    const auto text = stack ? stack->text() : std::nullopt;
    if (!text || text->empty()) return out;
    const auto parts = splitAtCommas(text->substr(text->rfind(';') + 1));  // npos + 1 is 0: one item only
    if (parts.size() != 3 || (parts[0] == parts[1] && parts[1] == parts[2])) return out;
    std::string_view path = parts[1];
    if (path == "L['self']") path = {};
    else if (path.starts_with("L['self'].")) path.remove_prefix(10);
    out.modulePath = shared(path);
    out.moduleType = shared(parts[2]);
    return out;
}

}  // namespace cutaway
