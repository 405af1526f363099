#include "app/cli/json_shape.h"

#include <cmath>

namespace cutaway::cli {
namespace {

bool isReal(const Json& json) { return json.is_number() || json == "NaN" || json == "Infinity" || json == "-Infinity"; }

std::string valueProblem(const Json& json, const std::string& sentence, const std::string& at) {
    const std::string type = sentence.substr(0, sentence.find(':'));
    const bool fits = type == "string"    ? json.is_string()
                      : type == "integer" ? json.is_number_integer()
                      : type == "number"  ? json.is_number()
                      : type == "boolean" ? json.is_boolean()
                      : type == "real"    ? isReal(json)
                                          : false;
    return fits ? "" : at + " is " + json.dump() + ", not: " + sentence;
}

std::string objectProblem(const Json& json, const Json& shape, const std::string& at) {
    if (!json.is_object()) return at + " is not an object";
    const auto any = shape.find("*");
    for (const auto& [key, part] : shape.items()) {
        const bool optional = key.ends_with('?');
        const std::string name = optional ? key.substr(0, key.size() - 1) : key;
        const auto found = json.find(name);
        if (key == "*" || (optional && (found == json.end() || found->is_null()))) continue;
        if (found == json.end()) return at + " lacks " + name;
        if (std::string problem = shapeProblem(*found, part, at + "." + name); !problem.empty()) return problem;
    }
    for (const auto& [key, part] : json.items()) {
        if (shape.contains(key) || shape.contains(key + "?")) continue;
        if (any == shape.end()) return at + " has " + key + ", of which the shape says nothing";
        if (std::string problem = shapeProblem(part, *any, at + "." + key); !problem.empty()) return problem;
    }
    return "";
}

}  // namespace

std::string shapeProblem(const Json& json, const Json& shape, const std::string& at) {
    if (shape.is_string()) return valueProblem(json, shape.get<std::string>(), at);
    if (shape.is_object()) return objectProblem(json, shape, at);
    if (!json.is_array()) return at + " is not a list";
    const bool fixed = shape.size() > 1;
    if (fixed && json.size() != shape.size())
        return at + " has " + std::to_string(json.size()) + " items, not " + std::to_string(shape.size());
    for (size_t i = 0; i < json.size(); ++i)
        if (std::string problem = shapeProblem(json[i], shape[fixed ? i : 0], at + "[" + std::to_string(i) + "]");
            !problem.empty())
            return problem;
    return "";
}

}  // namespace cutaway::cli
