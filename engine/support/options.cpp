#include "cutaway/options.h"

#include <algorithm>
#include <charconv>

namespace cutaway {

double OptionalPass::number(const std::string& key, double fallback) const {
    for (const auto& [setting, value] : settings) {
        if (setting != key) continue;
        double number = fallback;
        const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
        return status == std::errc() && end == value.data() + value.size() ? number : fallback;
    }
    return fallback;
}
bool OptionalPass::flag(const std::string& key, bool fallback) const {
    for (const auto& [setting, value] : settings)
        if (setting == key) return value == "1" || value == "true" || value == "True";
    return fallback;
}

std::optional<PassMove> parsePassMove(const std::string& text) {
    const size_t equals = text.find('='), colon = text.find(':', equals == std::string::npos ? 0 : equals);
    if (equals == 0 || equals == std::string::npos || colon == std::string::npos || colon + 1 == text.size())
        return std::nullopt;
    const std::string side = text.substr(equals + 1, colon - equals - 1);
    if (side != "before" && side != "after") return std::nullopt;
    return PassMove{text.substr(0, equals), side == "before", text.substr(colon + 1)};
}

std::optional<OptionalPass> parseOptionalPass(const std::string& text) {
    OptionalPass pass;
    const size_t equals = text.find('=');
    pass.name = text.substr(0, equals);
    if (pass.name.empty()) return std::nullopt;
    if (equals == std::string::npos) return pass;
    for (size_t begin = equals + 1; begin <= text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const size_t colon = text.find(':', begin);
        if (colon == std::string::npos || colon >= end || colon == begin) return std::nullopt;
        pass.settings.emplace_back(text.substr(begin, colon - begin), text.substr(colon + 1, end - colon - 1));
        begin = end + 1;
    }
    return pass;
}

const OptionalPass* CompileOptions::enabled(const std::string& name) const {
    const auto found = std::find_if(enabledPasses.begin(), enabledPasses.end(),
                                    [&](const OptionalPass& pass) { return pass.name == name; });
    return found == enabledPasses.end() ? nullptr : &*found;
}

}  // namespace cutaway
