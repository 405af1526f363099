#include "app/cli/option_checks.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "cutaway/backends.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

template <class Number>
bool readsAs(const std::string& text, Number& value) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc() && end == text.data() + text.size();
}
std::string shown(const std::string& text) { return "'" + visibleText(text) + "'"; }

}  // namespace

CLI::Validator wholeNumber(int64_t least, int64_t most) {
    const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
    const auto check = [=](std::string& text) -> std::string {
        int64_t value = 0;
        return readsAs(text, value) && value >= least && value <= most
                   ? ""
                   : "takes a whole number " + range + ", not " + shown(text);
    };
    const bool open = most == std::numeric_limits<int64_t>::max();
    return CLI::Validator(check, open ? "from " + std::to_string(least) + " on" : range, "");
}

CLI::Validator shareOrNumber() {
    const auto check = [](std::string& text) -> std::string {
        double value = 0;
        return readsAs(text, value) && std::isfinite(value) && value >= 0
                   ? ""
                   : "takes a number that is 0 or more, not " + shown(text);
    };
    return CLI::Validator(check, "from 0 on", "");
}

CLI::Validator oneOf(std::vector<std::string> words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    const auto check = [words, all](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        const std::vector<std::string_view> names(words.begin(), words.end());
        const std::string near = suggestion(text, names);
        return "takes one of " + all + ", not " + shown(text) + (near.empty() ? "" : "; " + near);
    };
    return CLI::Validator(check, "{" + all + "}", "");
}

CLI::Validator aBackend() {
    std::vector<std::string> names;
    for (const Backend backend : {Backend::Reference, Backend::Cpu, Backend::Cuda})
        names.emplace_back(backendName(backend));
    return oneOf(std::move(names));
}

void refuseEmptyValues(CLI::App& app) {
    const CLI::Validator given(
        [](std::string& text) { return std::string(text.empty() ? "an empty value means nothing here" : ""); }, "", "");
    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        for (CLI::Option* option : command->get_options())
            if (option->get_items_expected_max() > 0) option->check(given);
}

}  // namespace cutaway::cli
