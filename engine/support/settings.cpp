#include "cutaway/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cutaway/words.h"

namespace cutaway {
namespace {

bool holdsWord(std::string_view words, std::string_view word) {
    while (!words.empty()) {
        const size_t end = std::min(words.find(' '), words.size());
        if (words.substr(0, end) == word) return true;
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return false;
}

std::string numberText(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

bool Setting::belongsTo(std::string_view owner) const {
    return owners.empty() ? owner != kRequest : holdsWord(owners, owner);
}

std::string Setting::takes() const {
    const std::string range =
        most >= kMany ? " from " + numberText(least) + " on" : " from " + numberText(least) + " to " + numberText(most);
    switch (kind) {
        case Kind::Flag: return "true or false";
        case Kind::Integer: return "a whole number" + range;
        case Kind::Real: return "a number" + range;
        case Kind::Choice: return "one of " + std::string(choices);
        case Kind::File: return "the name of a file";
        case Kind::Name:
        case Kind::List: return std::string(choices);
    }
    return {};
}

bool Setting::isFor(Mode mode) const { return modes.empty() || holdsWord(modes, modeName(mode)); }

bool Setting::fits(std::string_view value) const {
    if (kind == Kind::Choice) return holdsWord(choices, value);
    if (kind == Kind::Flag) return holdsWord("0 1 false true False True", value);
    if (kind != Kind::Integer && kind != Kind::Real) return !value.empty();
    double number = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = kind == Kind::Real || number == std::floor(number);
    return status == std::errc() && end == value.data() + value.size() && whole && number >= least &&
           (number <= most || most >= kMany);
}

Result<void> checkSettings(const OptionalPass& wanted) {
    std::vector<std::string_view> keys, given;
    for (const Setting& setting : settings())
        if (setting.belongsTo(wanted.name)) keys.push_back(setting.key);
    for (const auto& [key, value] : wanted.settings) {
        const auto found = std::find_if(settings().begin(), settings().end(), [&, &name = key](const Setting& one) {
            return one.key == name && one.belongsTo(wanted.name);
        });
        if (found == settings().end()) {
            Error error = invalidInput("'" + wanted.name + "' has no setting '" + visibleText(key) + "'");
            if (std::string near = suggestion(key, keys); !near.empty()) error.notes.push_back(std::move(near));
            std::string all;
            for (const std::string_view name : keys) all += (all.empty() ? "it has: " : ", ") + std::string(name);
            error.notes.push_back(std::move(all));
            return error;
        }
        if (!found->fits(value))
            return invalidInput("the setting '" + key + "' of '" + wanted.name + "' is " + found->takes() + ", not '" +
                                visibleText(value) + "'");
        if (std::find(given.begin(), given.end(), key) != given.end())
            return invalidInput("the setting '" + key + "' of '" + wanted.name + "' is given twice");
        given.push_back(key);
    }
    return {};
}

}  // namespace cutaway
