#include "engine/formats/pt2_arguments.h"

#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Error wrong(std::string_view variant, const std::string& where) {
    return invalidInput("'" + std::string(variant) + "' with a value of another kind", where);
}

Result<Argument> integer(const Json& value, const std::string& where) {
    if (const auto number = value.integer()) return Argument(*number);
    return wrong("as_int", where);
}
Result<Argument> real(const Json& value, const std::string& where) {
    if (const auto number = value.real()) return Argument(*number);
    return wrong("as_float", where);
}
Result<Argument> flag(const Json& value, const std::string& where) {
    if (const auto boolean = value.flag()) return Argument(*boolean);
    return wrong("as_bool", where);
}
Result<Argument> string(const Json& value, const std::string& where) {
    if (const auto text = value.text()) return Argument(std::string(*text));
    return wrong("as_string", where);
}

template <class ReadItem>
Result<Argument> list(const Json& value, const std::string& where, const ReadItem& readItem) {
    if (!value.isArray()) return invalidInput("a list is expected", where);
    std::vector<Argument> items;
    for (const Json item : value.items()) {
        CT_TRY(Argument one, readItem(item, where));
        items.push_back(std::move(one));
    }
    return Argument(std::move(items));
}

}  // namespace

Result<Argument> Pt2Arguments::named(std::string_view name, const std::string& where) const {
    const auto found = m_values.find(std::string(name));
    if (found == m_values.end())
        return invalidInput("value '" + std::string(name) + "' is read before it is defined", where);
    return Argument(found->second);
}
Result<Argument> Pt2Arguments::value(const Json& argument, const std::string& where) const {
    CT_TRY(const std::string_view name, argument.textAt("name", where));
    return named(name, where);
}
Result<Argument> Pt2Arguments::symbolic(const Json& argument, DType dtype, const std::string& where) {
    if (const auto name = argument.find("as_name"); name && name->text()) return named(*name->text(), where);
    if (const auto number = argument.find("as_int"); number && number->integer()) return Argument(*number->integer());
    if (const auto boolean = argument.find("as_bool"); boolean && boolean->flag()) return Argument(*boolean->flag());
    if (const auto number = argument.find("as_float"); number && number->real()) return Argument(*number->real());
    CT_TRY(SymType type, m_types.symValue(argument, dtype, where));
    return Argument(std::move(type.expr));
}
Result<Argument> Pt2Arguments::dict(const Json& members, const std::string& where) {
    ArgumentDict out;
    for (const auto& [key, item] : members.members()) {
        CT_TRY(Argument one, read(Json(item), where));
        out.items.emplace_back(std::string(key), std::move(one));
    }
    return Argument(std::make_shared<const ArgumentDict>(std::move(out)));
}

Result<Argument> Pt2Arguments::read(const Json& argument, const std::string& where) {
    const auto member = argument.onlyMember();
    if (!member) return invalidInput("malformed argument: expected a tagged union", where);
    const auto& [variant, inner] = *member;
    const auto tensor = [this](const Json& item, const std::string& at) { return value(item, at); };
    const auto nested = [this](const Json& item, const std::string& at) { return read(item, at); };
    const auto symInt = [this](const Json& item, const std::string& at) { return symbolic(item, DType::I64, at); };
    const auto symBool = [this](const Json& item, const std::string& at) { return symbolic(item, DType::Bool, at); };
    const auto symFloat = [this](const Json& item, const std::string& at) { return symbolic(item, DType::F64, at); };
    const auto listOf = [](const auto& readItem) {
        return [&readItem](const Json& item, const std::string& at) { return list(item, at, readItem); };
    };

    if (variant == "as_tensor") return value(inner, where);
    if (variant == "as_int") return integer(inner, where);
    if (variant == "as_ints") return list(inner, where, integer);
    if (variant == "as_tensors") return list(inner, where, tensor);
    if (variant == "as_none") return Argument();
    if (variant == "as_float") return real(inner, where);
    if (variant == "as_floats") return list(inner, where, real);
    if (variant == "as_bool") return flag(inner, where);
    if (variant == "as_bools") return list(inner, where, flag);
    if (variant == "as_string") return string(inner, where);
    if (variant == "as_strings") return list(inner, where, string);
    if (variant == "as_sym_int") return symInt(inner, where);
    if (variant == "as_sym_ints") return list(inner, where, symInt);
    if (variant == "as_sym_bool") return symBool(inner, where);
    if (variant == "as_sym_bools") return list(inner, where, symBool);
    if (variant == "as_sym_float") return symFloat(inner, where);
    if (variant == "as_sym_floats") return list(inner, where, symFloat);
    if (variant == "as_optional_tensor") return read(inner, where);
    if (variant == "as_optional_tensors") return list(inner, where, nested);
    if (variant == "as_nested_tensors") return list(inner, where, listOf(tensor));
    if (variant == "as_int_lists") return list(inner, where, listOf(integer));
    if (variant == "as_float_lists") return list(inner, where, listOf(real));
    if (variant == "as_custom_obj") return value(inner, where);
    if (variant == "as_string_to_argument") return dict(inner, where);
    if (variant == "as_scalar_type") {
        CT_TRY(const DType dtype, m_types.dtype(inner, where));
        return Argument(dtype);
    }
    if (variant == "as_memory_format") {
        CT_TRY(const MemoryFormat format, m_types.memoryFormat(inner, where));
        return Argument(format);
    }
    if (variant == "as_layout") {
        CT_TRY(const Layout layout, m_types.layout(inner, where));
        return Argument(layout);
    }
    if (variant == "as_device") {
        CT_TRY(const Device device, m_types.device(inner, where));
        return Argument(device);
    }
    if (variant == "as_graph") {
        CT_TRY(std::string name, m_addSubgraph(inner, where));
        return Argument(SubgraphRef{std::move(name)});
    }
    if (variant == "as_operator") {
        const auto text = inner.text();
        if (!text) return wrong(variant, where);
        return Argument(OpRef{&findOrMakeOpaque(text->starts_with("torch.ops.") ? text->substr(10) : *text)});
    }
    if (variant == "as_complex") {
        const auto re = inner.find("real"), im = inner.find("imag");
        if (!re || !im || !re->real() || !im->real()) return wrong(variant, where);
        return Argument(std::complex<double>(*re->real(), *im->real()));
    }
    if (std::find(m_unknown.begin(), m_unknown.end(), variant) == m_unknown.end()) m_unknown.emplace_back(variant);
    return Argument(std::string(variant));
}

}  // namespace cutaway
