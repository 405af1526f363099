#include "engine/ir/schema.h"

#include <charconv>

#include "engine/ir/node.h"

namespace cutaway {
namespace {

class SchemaParser {
  public:
    explicit SchemaParser(std::string_view text) : m_text(text) {}

    Result<Schema> parse() {
        Schema schema;
        const auto open = m_text.find('(');
        if (open == std::string_view::npos) return fail("no parameter list");
        schema.name = std::string(m_text.substr(0, open));
        m_at = open + 1;
        bool keywordOnly = false;
        while (!accept(")")) {
            if (accept("*")) {
                keywordOnly = true;
            } else {
                CT_TRY(Param param, parseParam());
                param.keywordOnly = keywordOnly;
                schema.params.push_back(std::move(param));
            }
            accept(",");
            if (m_at >= m_text.size()) return fail("parameter list does not end");
        }
        if (!accept("->")) return fail("no '->'");
        if (accept("(")) {
            while (!accept(")")) {
                CT_TRY(Return one, parseReturn());
                schema.returns.push_back(one);
                accept(",");
                if (m_at >= m_text.size()) return fail("result list does not end");
            }
        } else {
            CT_TRY(Return one, parseReturn());
            schema.returns.push_back(one);
        }
        return schema;
    }

  private:
    Error fail(std::string what) const { return invalidInput("schema: " + what, std::string(m_text)); }

    void skip() {
        while (m_at < m_text.size() && m_text[m_at] == ' ') ++m_at;
    }
    bool accept(std::string_view token) {
        skip();
        if (!m_text.substr(m_at).starts_with(token)) return false;
        m_at += token.size();
        return true;
    }
    std::string_view word() {
        skip();
        const size_t start = m_at;
        while (m_at < m_text.size() &&
               (std::isalnum(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_' || m_text[m_at] == '.'))
            ++m_at;
        return m_text.substr(start, m_at - start);
    }

    struct TypeText {
        ParamKind kind = ParamKind::Any;
        bool list = false, optional = false, itemOptional = false, mutated = false;
        int listSize = 0;
        char alias = 0;
    };
    Result<TypeText> parseType() {
        static constexpr std::pair<std::string_view, ParamKind> kNames[] = {{"Tensor", ParamKind::Tensor},
                                                                            {"int", ParamKind::Int},
                                                                            {"SymInt", ParamKind::Int},
                                                                            {"float", ParamKind::Float},
                                                                            {"SymFloat", ParamKind::Float},
                                                                            {"bool", ParamKind::Bool},
                                                                            {"SymBool", ParamKind::Bool},
                                                                            {"Scalar", ParamKind::Number},
                                                                            {"str", ParamKind::String},
                                                                            {"ScalarType", ParamKind::DType},
                                                                            {"Layout", ParamKind::Layout},
                                                                            {"Device", ParamKind::Device},
                                                                            {"MemoryFormat", ParamKind::MemoryFormat},
                                                                            {"Generator", ParamKind::Generator},
                                                                            {"Any", ParamKind::Any}};
        TypeText type;
        const std::string_view name = word();
        bool known = false;
        for (const auto& [text, kind] : kNames)
            if (text == name) {
                type.kind = kind;
                known = true;
            }
        if (!known) return fail("unknown type '" + std::string(name) + "'");
        if (accept("(")) {
            skip();
            if (m_at >= m_text.size()) return fail("alias set does not end");
            type.alias = m_text[m_at++];
            type.mutated = accept("!");
            while (!accept(")")) {
                if (m_at >= m_text.size()) return fail("alias set does not end");
                ++m_at;  // "a -> *" and unions: the first letter is what we use
            }
        }
        if (accept("?")) type.optional = true;
        if (accept("[")) {
            type.list = true;
            type.itemOptional = type.optional;
            type.optional = false;
            skip();
            int size = 0;
            while (m_at < m_text.size() && std::isdigit(static_cast<unsigned char>(m_text[m_at])) && size < 1000)
                size = size * 10 + (m_text[m_at++] - '0');
            type.listSize = size;
            if (!accept("]")) return fail("']' expected");
            if (accept("(")) {  // alias of the list itself
                skip();
                if (m_at >= m_text.size()) return fail("alias set does not end");
                type.alias = m_text[m_at++];
                while (!accept(")")) {
                    if (m_at >= m_text.size()) return fail("alias set does not end");
                    ++m_at;
                }
            }
            if (accept("?")) type.optional = true;
        }
        return type;
    }

    Result<Param> parseParam() {
        CT_TRY(TypeText type, parseType());
        Param param;
        param.kind = type.kind;
        param.list = type.list;
        param.listSize = type.listSize;
        param.optional = type.optional;
        param.itemOptional = type.itemOptional;
        param.alias = type.alias;
        param.mutated = type.mutated;
        param.name = std::string(word());
        if (param.name.empty()) return fail("parameter without a name");
        if (accept("=")) {
            param.hasDefault = true;
            CT_TRY(param.defaultValue, parseDefault(param.kind));
            if (param.list && param.listSize > 0 && param.defaultValue.isNumber())
                param.defaultValue =
                    Argument(std::vector<Argument>(static_cast<size_t>(param.listSize), param.defaultValue));
        }
        return param;
    }

    Result<Argument> parseDefault(ParamKind kind) {
        if (accept("[")) {
            std::vector<Argument> items;
            while (!accept("]")) {
                CT_TRY(Argument item, parseDefault(kind));
                items.push_back(std::move(item));
                accept(",");
                if (m_at >= m_text.size()) return fail("default list does not end");
            }
            return Argument(std::move(items));
        }
        if (accept("\"") || accept("'")) {
            const char quote = m_text[m_at - 1];
            const auto end = m_text.find(quote, m_at);
            if (end == std::string_view::npos) return fail("string does not end");
            std::string value(m_text.substr(m_at, end - m_at));
            m_at = end + 1;
            return Argument(std::move(value));
        }
        skip();
        const size_t start = m_at;
        while (m_at < m_text.size() && m_text[m_at] != ',' && m_text[m_at] != ')' && m_text[m_at] != ']' &&
               m_text[m_at] != ' ')
            ++m_at;
        const std::string token(m_text.substr(start, m_at - start));
        if (token == "None") return Argument();
        if (token == "True") return Argument(true);
        if (token == "False") return Argument(false);
        if (token == "Mean") return Argument(1);  // at::Reduction::Mean
        if (token == "inf") return Argument(std::numeric_limits<double>::infinity());
        if (auto layout = layoutFromName(token)) return Argument(*layout);
        if (auto format = memoryFormatFromName(token)) return Argument(*format);
        if (token == "long") return Argument(DType::I64);
        int64_t integer = 0;
        if (auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), integer);
            error == std::errc() && end == token.data() + token.size()) {
            // PyTorch prints a dtype's number.
            if (kind == ParamKind::DType)
                for (int i = 0; i < kDTypeCount; ++i)
                    if (info(static_cast<DType>(i)).c10Code == integer) return Argument(static_cast<DType>(i));
            return kind == ParamKind::Float ? Argument(static_cast<double>(integer)) : Argument(integer);
        }
        char* end = nullptr;
        const double real = std::strtod(token.c_str(), &end);
        if (end != token.c_str() && *end == 0) return Argument(real);
        return fail("default '" + token + "' not understood");
    }

    Result<Return> parseReturn() {
        CT_TRY(TypeText type, parseType());
        skip();
        word();  // results may be named
        return Return{type.kind, type.list, type.alias, type.mutated};
    }

    std::string_view m_text;
    size_t m_at = 0;
};

}  // namespace

Result<Schema> parseSchema(std::string_view text) { return SchemaParser(text).parse(); }

int Schema::find(std::string_view param) const {
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].name == param) return static_cast<int>(i);
    return -1;
}
bool Schema::mutates() const {
    return std::any_of(params.begin(), params.end(), [](const Param& param) { return param.mutated; });
}

std::string_view Op::packet() const {
    const std::string_view name = m_name;
    const auto first = name.find('.');
    if (first == std::string_view::npos) return name;
    const auto second = name.find('.', first + 1);
    return name.substr(0, second);
}
std::string_view Op::baseName() const {
    std::string_view name = m_schema ? packet() : std::string_view(m_name);
    // A function of PyTorch's own, as FX prints it: the module, then the name.
    constexpr std::string_view kHandlers = "torch__inductor_fx_passes_post_grad_";
    if (name.starts_with(kHandlers)) return name.substr(kHandlers.size());
    if (m_schema || name.starts_with("aten.") || name.starts_with("prims.")) {
        if (!m_schema) name = packet();
        return name.substr(name.find('.') + 1);
    }
    // An operator without a row: the last part of its name, without ".default".
    if (name.ends_with(".default")) name.remove_suffix(8);
    return name.substr(name.rfind('.') + 1);
}

namespace {

/// Whether the value is a node that stands for a number known at run time only (a size). A tensor of one element does
/// not count: rules would not see its value. Asked by acceptsOne, which says whether an argument fits a parameter as
/// one value, not as a list.
bool mayBeNumber(const Argument& value) { return value.node() != nullptr && value.node()->type().tensor() == nullptr; }

bool acceptsOne(const Param& param, const Argument& value) {
    switch (param.kind) {
        case ParamKind::Tensor: return value.node() != nullptr || value.isNumber() || value.get<LostTensor>();
        case ParamKind::Int: return mayBeNumber(value) || value.asInt() || value.get<Expr>();
        case ParamKind::Bool: return mayBeNumber(value) || value.asInt();
        case ParamKind::Float:
        case ParamKind::Number: return mayBeNumber(value) || value.isNumber();
        case ParamKind::String: return value.get<std::string>() != nullptr;
        case ParamKind::DType: return value.get<DType>() != nullptr;
        case ParamKind::Layout: return value.get<Layout>() != nullptr;
        case ParamKind::Device: return value.get<Device>() != nullptr;
        case ParamKind::MemoryFormat: return value.get<MemoryFormat>() != nullptr;
        case ParamKind::Generator: return false;
        case ParamKind::Any: return true;
    }
    return false;
}

}  // namespace

bool accepts(const Param& param, const Argument& value) {
    const bool noneByDefault = param.hasDefault && param.defaultValue.isNone();
    if (value.isNone()) return param.optional || noneByDefault;
    if (!param.list) return acceptsOne(param, value);
    // int[2] may be shorter, or longer where an operator has a use for it; bool[3] is as many flags as there are
    // results.
    const bool flags = param.kind == ParamKind::Bool && param.listSize > 0;
    if (const auto* items = value.list())
        return (!flags || items->size() == static_cast<size_t>(param.listSize)) &&
               std::all_of(items->begin(), items->end(), [&](const Argument& item) {
                   return item.isNone() ? param.itemOptional || noneByDefault : acceptsOne(param, item);
               });
    const bool spreads = param.listSize > 0 || param.kind == ParamKind::Int;
    const bool stands = param.kind == ParamKind::Tensor ? value.node() != nullptr : mayBeNumber(value);
    return stands || (spreads && value.isNumber() && acceptsOne(param, value));
}

}  // namespace cutaway
