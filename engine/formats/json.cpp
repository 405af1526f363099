#include "engine/formats/json.h"

#include <cstdio>
#include <limits>

namespace cutaway {

std::optional<double> Json::real() const {
    if (m_element.is_number()) return get<double>();
    if (const auto word = text()) {
        if (*word == "Infinity") return std::numeric_limits<double>::infinity();
        if (*word == "-Infinity") return -std::numeric_limits<double>::infinity();
        if (*word == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
    return std::nullopt;
}
namespace {
const simdjson::dom::element& emptyOf(bool array) {
    static const auto kDocument = [] {
        auto document = parseJson(R"({"a": [], "o": {}})", "");
        return std::move(document).value();
    }();
    static const simdjson::dom::element kArray = kDocument->root.find("a")->raw();
    static const simdjson::dom::element kObject = kDocument->root.find("o")->raw();
    return array ? kArray : kObject;
}
}  // namespace
simdjson::dom::array Json::items() const {
    simdjson::dom::array items;
    if (m_element.get(items) != simdjson::SUCCESS) items = emptyOf(true).get_array().value_unsafe();
    return items;
}
simdjson::dom::object Json::members() const {
    simdjson::dom::object members;
    if (m_element.get(members) != simdjson::SUCCESS) members = emptyOf(false).get_object().value_unsafe();
    return members;
}
std::optional<Json> Json::find(std::string_view key) const {
    simdjson::dom::element found;
    if (m_element.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
    return Json(found);
}
std::optional<std::pair<std::string_view, Json>> Json::onlyMember() const {
    simdjson::dom::object members;
    if (m_element.get(members) != simdjson::SUCCESS || members.size() != 1) return std::nullopt;
    const auto member = *members.begin();
    return std::pair(member.key, Json(member.value));
}

Result<Json> Json::at(std::string_view key, const std::string& where) const {
    if (const auto found = find(key)) return *found;
    return invalidInput("'" + std::string(key) + "' is missing", where);
}
Result<std::string_view> Json::textAt(std::string_view key, const std::string& where) const {
    CT_TRY(const Json value, at(key, where));
    if (const auto word = value.text()) return *word;
    return invalidInput("'" + std::string(key) + "' is not a string", where);
}
Result<int64_t> Json::integerAt(std::string_view key, const std::string& where) const {
    CT_TRY(const Json value, at(key, where));
    if (const auto number = value.integer()) return *number;
    return invalidInput("'" + std::string(key) + "' is not an integer", where);
}
Result<Json> Json::arrayAt(std::string_view key, const std::string& where) const {
    CT_TRY(const Json value, at(key, where));
    if (value.isArray()) return value;
    return invalidInput("'" + std::string(key) + "' is not a list", where);
}
Result<Json> Json::objectAt(std::string_view key, const std::string& where) const {
    CT_TRY(const Json value, at(key, where));
    if (value.isObject()) return value;
    return invalidInput("'" + std::string(key) + "' is not an object", where);
}

namespace {
/// simdjson's own sentences differ between its versions.
const char* whatIsWrong(simdjson::error_code code) {
    switch (code) {
        case simdjson::EMPTY: return "it is empty";
        case simdjson::DEPTH_ERROR: return "nested more than 1024 levels deep";
        case simdjson::UTF8_ERROR: return "it is not UTF-8";
        case simdjson::CAPACITY: return "it is larger than 4 GiB";
        case simdjson::NUMBER_ERROR: return "a malformed number, or one that does not fit 64 bits";
        case simdjson::STRING_ERROR:
        case simdjson::UNCLOSED_STRING:
        case simdjson::UNESCAPED_CHARS: return "a malformed string";
        case simdjson::T_ATOM_ERROR:
        case simdjson::F_ATOM_ERROR:
        case simdjson::N_ATOM_ERROR: return "a malformed literal";
        default: return "commas, colons, braces or brackets do not fit";
    }
}
}  // namespace

Result<std::unique_ptr<JsonDocument>> parseJson(std::string_view text, const std::string& where) {
    auto document = std::make_unique<JsonDocument>();
    simdjson::dom::element root;
    const auto code = document->parser.parse(text.data(), text.size(), true).get(root);
    if (code != simdjson::SUCCESS) return invalidInput(std::string("not valid JSON: ") + whatIsWrong(code), where);
    document->root = Json(root);
    return document;
}

std::string jsonString(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) {
            out += c;
            continue;
        }
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += escaped;
    }
    return out + '"';
}

}  // namespace cutaway
