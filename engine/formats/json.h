#pragma once
// JSON with errors as values: a thin layer over simdjson's tree, with one call for each thing that is read often.
#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cutaway/result.h"

namespace cutaway {

/// One value of a document. Borrows: it must not outlive the JsonDocument.
class Json {
  public:
    Json() = default;
    Json(simdjson::dom::element element) : m_element(element) {}

    bool isNull() const { return m_element.is_null(); }
    bool isObject() const { return m_element.is_object(); }
    bool isArray() const { return m_element.is_array(); }
    std::optional<bool> flag() const { return get<bool>(); }
    std::optional<int64_t> integer() const { return m_element.is_int64() ? get<int64_t>() : std::nullopt; }
    /// A number, or one of the strings Infinity, -Infinity, NaN.
    std::optional<double> real() const;
    std::optional<std::string_view> text() const { return get<std::string_view>(); }
    /// Items and members; empty for anything else.
    simdjson::dom::array items() const;
    simdjson::dom::object members() const;
    const simdjson::dom::element& raw() const { return m_element; }
    /// The first member of that key; nothing if it is absent or null.
    std::optional<Json> find(std::string_view key) const;
    /// The member of an object that has exactly one, which is how unions are written.
    std::optional<std::pair<std::string_view, Json>> onlyMember() const;

    // Members that must be there. Errors name the key, what was expected, and `where`.
    Result<Json> at(std::string_view key, const std::string& where) const;
    Result<std::string_view> textAt(std::string_view key, const std::string& where) const;
    Result<int64_t> integerAt(std::string_view key, const std::string& where) const;
    Result<Json> arrayAt(std::string_view key, const std::string& where) const;
    Result<Json> objectAt(std::string_view key, const std::string& where) const;

  private:
    template <class T>
    std::optional<T> get() const {
        T value;
        return m_element.get(value) == simdjson::SUCCESS ? std::optional<T>(value) : std::nullopt;
    }
    simdjson::dom::element m_element;
};

struct JsonDocument {
    simdjson::dom::parser parser;
    Json root;
};

/// At most 1024 levels deep. The error says what is wrong, not where: simdjson does not know.
Result<std::unique_ptr<JsonDocument>> parseJson(std::string_view text, const std::string& where);

/// Text as a JSON string, quotes included.
std::string jsonString(std::string_view text);

}  // namespace cutaway
