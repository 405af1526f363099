#include "engine/batch/batch_toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "cutaway/backends.h"
#include "cutaway/words.h"

namespace cutaway {
namespace {

constexpr std::string_view kChecks[] = {"compile", "run", "freeze"};
constexpr std::string_view kFileKeys[] = {"name",    "folder", "checks", "backend", "seconds", "jobs",
                                          "retries", "cache",  "minify", "model",   "request", "slurm"};
constexpr std::string_view kModelKeys[] = {"path", "inputs", "expect", "gradients", "graph", "sizes"};
constexpr std::string_view kRequestKeys[] = {"name", "options", "checks", "backend"};
constexpr std::string_view kMinifyKeys[] = {"seconds", "trial_seconds", "trials"};
constexpr std::string_view kSlurmKeys[] = {"options"};

std::string wordOf(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table: return "a table";
        case toml::node_type::array: return "a list";
        case toml::node_type::string: return "a string";
        case toml::node_type::integer: return "an integer";
        case toml::node_type::floating_point: return "a number";
        case toml::node_type::boolean: return "true or false";
        default: return "a date or time";
    }
}

/// A table of the file. What it has not, is left as it was.
class Section {
  public:
    Section(const toml::table& table, const std::string& file, std::string what)
        : m_table(table), m_file(file), m_what(std::move(what)) {}

    std::string at(const toml::source_region& source) const { return m_file + ":" + std::to_string(source.begin.line); }
    Error wrong(const toml::node& node, std::string message) const {
        return invalidInput(std::move(message), at(node.source()));
    }
    Error wrong(std::string message) const { return wrong(m_table, std::move(message)); }
    Error otherType(std::string_view key, const toml::node& node, std::string_view wanted) const {
        return wrong(node, "'" + std::string(key) + "' is " + std::string(wanted) + ", not " + wordOf(node));
    }

    Result<void> onlyKnown(std::span<const std::string_view> known) const {
        for (const auto& [key, node] : m_table) {
            if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
            Error error = invalidInput(m_what + " has no key '" + std::string(key.str()) + "'", at(key.source()));
            std::string all = "there are: ";
            for (const std::string_view name : known) all.append(name == known.front() ? "" : ", ").append(name);
            if (std::string near = suggestion(key.str(), known); !near.empty()) error.notes.push_back(std::move(near));
            error.notes.push_back(std::move(all));
            return error;
        }
        return {};
    }

    Result<std::optional<Located<std::string>>> said(std::string_view key) const {
        const toml::node* node = m_table.get(key);
        if (!node) return std::optional<Located<std::string>>();
        if (!node->is_string()) return otherType(key, *node, "a string");
        std::string text = *node->value<std::string>();
        if (text.empty()) return wrong(*node, "'" + std::string(key) + "' is empty");
        if (text.find('\0') != std::string::npos)
            return wrong(*node, "'" + std::string(key) + "' has a character that no path or option has");
        return std::optional(Located<std::string>{std::move(text), at(node->source())});
    }
    Result<void> text(std::string_view key, std::string& into) const {
        CT_TRY(auto found, said(key));
        if (found) into = std::move(found->value);
        return {};
    }
    Result<void> texts(std::string_view key, std::vector<std::string>& into,
                       std::span<const std::string_view> allowed = {}) const {
        const toml::node* node = m_table.get(key);
        if (!node) return {};
        const toml::array* list = node->as_array();
        if (!list) return otherType(key, *node, "a list of strings");
        if (list->empty()) return wrong(*node, "'" + std::string(key) + "' is empty");
        into.clear();
        for (const toml::node& item : *list) {
            const auto word = item.value<std::string>();
            if (!item.is_string() || !word) return otherType(key, item, "a list of strings");
            if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), *word) == allowed.end())
                return unknownWord(key, item, *word, allowed);
            into.push_back(*word);
        }
        return {};
    }
    Error unknownWord(std::string_view key, const toml::node& node, std::string_view word,
                      std::span<const std::string_view> allowed) const {
        std::string all = "there are: ";
        for (const std::string_view name : allowed) all.append(name == allowed.front() ? "" : ", ").append(name);
        return {ErrorCode::InvalidInput,
                "'" + std::string(key) + "' has no value '" + std::string(word) + "'",
                at(node.source()),
                {std::move(all)}};
    }
    Result<void> backend(std::string& into) const {
        const toml::node* node = m_table.get("backend");
        if (!node) return {};
        CT_TRY_VOID(text("backend", into));
        if (const auto known = backendNamed(into); !known) return wrong(*node, known.error().message);
        return {};
    }
    template <class T>
    Result<void> whole(std::string_view key, T& into, int64_t least, int64_t most) const {
        const toml::node* node = m_table.get(key);
        if (!node) return {};
        if (!node->is_integer()) return otherType(key, *node, "an integer");
        const int64_t value = *node->value<int64_t>();
        if (value < least || value > most)
            return wrong(*node, "'" + std::string(key) + "' is from " + std::to_string(least) + " to " +
                                    std::to_string(most) + ", not " + std::to_string(value));
        into = static_cast<T>(value);
        return {};
    }
    Result<void> seconds(std::string_view key, double& into) const {
        const toml::node* node = m_table.get(key);
        if (!node) return {};
        if (!node->is_number()) return otherType(key, *node, "a number of seconds");
        const double value = *node->value<double>();
        if (!std::isfinite(value) || value <= 0)
            return wrong(*node, "'" + std::string(key) + "' is more than 0 seconds");
        into = value;
        return {};
    }
    /// The tables of [[key]].
    Result<std::vector<const toml::table*>> tables(std::string_view key) const {
        std::vector<const toml::table*> out;
        const toml::node* node = m_table.get(key);
        if (!node) return out;
        const toml::array* list = node->as_array();
        if (!list || list->empty())
            return wrong(*node, "'" + std::string(key) + "' is written as [[" + std::string(key) + "]]");
        for (const toml::node& item : *list) {
            if (!item.is_table()) return otherType(key, item, "a list of tables");
            out.push_back(item.as_table());
        }
        return out;
    }
    const toml::table& table() const { return m_table; }

  private:
    const toml::table& m_table;
    const std::string& m_file;
    std::string m_what;
};

Result<BatchModels> modelsOf(const toml::table& table, const std::string& file) {
    const Section section(table, file, "[[model]]");
    CT_TRY_VOID(section.onlyKnown(kModelKeys));
    BatchModels models;
    CT_TRY(auto path, section.said("path"));
    if (!path) return section.wrong("[[model]] needs 'path', the model's file or a pattern of several");
    models.path = std::move(*path);
    CT_TRY(models.inputs, section.said("inputs"));
    CT_TRY(models.expect, section.said("expect"));
    CT_TRY(models.gradients, section.said("gradients"));
    CT_TRY_VOID(section.text("graph", models.graph));
    if (const toml::node* node = table.get("sizes")) {
        if (!node->is_table()) return section.otherType("sizes", *node, "a table, such as {s77 = 4}");
        const Section sizes(*node->as_table(), file, "sizes");
        for (const auto& [key, value] : *node->as_table()) {
            int64_t size = 0;
            CT_TRY_VOID(sizes.whole(key.str(), size, 0, std::numeric_limits<int64_t>::max()));
            models.sizes.emplace_back(key.str(), size);
        }
    }
    return models;
}

Result<BatchRequest> batchRequestOf(const toml::table& table, const std::string& file) {
    const Section section(table, file, "[[request]]");
    CT_TRY_VOID(section.onlyKnown(kRequestKeys));
    BatchRequest request;
    CT_TRY_VOID(section.text("name", request.name));
    if (request.name.empty()) return section.wrong("[[request]] needs 'name', as the report shows it");
    CT_TRY(auto options, section.said("options"));
    if (options) request.options = std::move(*options);
    CT_TRY_VOID(section.texts("checks", request.checks, kChecks));
    CT_TRY_VOID(section.backend(request.backend));
    return request;
}

Result<void> readMinify(const Section& section, const std::string& file, BatchText& out) {
    const toml::node* node = section.table().get("minify");
    if (!node) return {};
    if (const auto flag = node->value<bool>(); node->is_boolean()) {
        out.minify = *flag;
        return {};
    }
    if (!node->is_table()) return section.otherType("minify", *node, "true, false or a table");
    const Section minify(*node->as_table(), file, "[minify]");
    CT_TRY_VOID(minify.onlyKnown(kMinifyKeys));
    CT_TRY_VOID(minify.seconds("seconds", out.minifySeconds));
    CT_TRY_VOID(minify.seconds("trial_seconds", out.trialSeconds));
    CT_TRY_VOID(minify.whole("trials", out.trials, 0, 1'000'000'000));
    out.minify = true;
    return {};
}

}  // namespace

Result<BatchText> parseBatch(std::string_view text, const std::string& file) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed)
        return invalidInput("this is not TOML: " + std::string(parsed.error().description()),
                            file + ":" + std::to_string(parsed.error().source().begin.line));
    const toml::table& root = parsed.table();
    const Section section(root, file, "a batch");
    CT_TRY_VOID(section.onlyKnown(kFileKeys));
    BatchText out;
    CT_TRY_VOID(section.text("name", out.name));
    CT_TRY_VOID(section.text("folder", out.folder));
    CT_TRY_VOID(section.text("cache", out.cache));
    CT_TRY_VOID(section.texts("checks", out.checks, kChecks));
    CT_TRY_VOID(section.backend(out.backend));
    CT_TRY_VOID(section.seconds("seconds", out.seconds));
    CT_TRY_VOID(section.whole("jobs", out.jobs, 0, 1024));
    CT_TRY_VOID(section.whole("retries", out.retries, 0, 100));
    CT_TRY_VOID(readMinify(section, file, out));
    if (const toml::node* node = root.get("slurm")) {
        if (!node->is_table()) return section.otherType("slurm", *node, "a table");
        const Section slurm(*node->as_table(), file, "[slurm]");
        CT_TRY_VOID(slurm.onlyKnown(kSlurmKeys));
        CT_TRY_VOID(slurm.texts("options", out.slurm));
    }
    CT_TRY(const auto models, section.tables("model"));
    if (models.empty()) return invalidInput("a batch needs [[model]], with the path of a model or a pattern", file);
    for (const toml::table* table : models) {
        CT_TRY(out.models.emplace_back(), modelsOf(*table, file));
    }
    CT_TRY(const auto requests, section.tables("request"));
    std::set<std::string> names;
    for (const toml::table* table : requests) {
        CT_TRY(BatchRequest request, batchRequestOf(*table, file));
        if (!names.insert(request.name).second)
            return section.wrong(*table, "two requests have the name '" + request.name + "'");
        out.requests.push_back(std::move(request));
    }
    if (out.requests.empty()) out.requests.push_back({"default", {}, {}, {}});
    if (out.checks.empty()) out.checks = {"compile", "run"};
    return out;
}

}  // namespace cutaway
