#include "cutaway/step_key.h"

#include <algorithm>
#include <charconv>

#include "cutaway/words.h"

namespace cutaway {
namespace {

/// Takes "MARK number" off the end of the text, if it ends like that.
std::optional<int> takeNumber(std::string& text, char mark) {
    const size_t at = text.rfind(mark);
    if (at == std::string::npos || at + 1 == text.size()) return std::nullopt;
    int number = 0;
    const auto [end, status] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    if (status != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
    text.resize(at);
    return number;
}

/// Takes what stands behind the last slash off the text.
std::string takeLast(std::string& text) {
    const size_t slash = text.rfind('/');
    std::string last = text.substr(slash == std::string::npos ? 0 : slash + 1);
    text.resize(slash == std::string::npos ? 0 : slash);
    return last;
}

bool fits(const StepKey& key, const StepInfo& step) {
    return key.pass == step.name && (key.stage.empty() || key.stage == step.stage) &&
           (key.graphName.empty() || key.graphName == step.graphName) &&
           key.occurrence.value_or(step.occurrence) == step.occurrence;
}

Error noStep(const std::vector<StepInfo>& steps, const std::string& text, const std::string& pass) {
    std::string all;
    std::vector<std::string_view> names;
    for (const StepInfo& step : steps) {
        names.push_back(step.name);
        all += (all.empty() ? "steps: " : ", ") + step.name;
    }
    Error error{ErrorCode::NotFound, "no step named '" + visibleText(text) + "'", {}, {all}};
    if (std::string near = suggestion(pass, names); !near.empty())
        error.notes.insert(error.notes.begin(), std::move(near));
    return error;
}

}  // namespace

std::string StepInfo::key() const { return StepKey{graphName, stage, name, occurrence, {}}.text(); }

std::string StepKey::text() const {
    std::string out;
    if (!graphName.empty()) out += graphName + "/";
    if (!stage.empty()) out += stage + "/";
    out += pass;
    if (occurrence) out += "#" + std::to_string(*occurrence);
    if (rewrites) out += ":" + std::to_string(*rewrites);
    return out;
}

Result<StepKey> parseStepKey(const std::string& text) {
    StepKey key;
    std::string rest = text;
    key.rewrites = takeNumber(rest, ':');
    key.occurrence = takeNumber(rest, '#');
    const auto slashes = std::count(rest.begin(), rest.end(), '/');
    key.pass = takeLast(rest);
    if (slashes > 0) key.stage = takeLast(rest);
    if (slashes > 1) key.graphName = takeLast(rest);
    const bool whole =
        !key.pass.empty() && (slashes < 1 || !key.stage.empty()) && (slashes < 2 || !key.graphName.empty());
    if (!whole || slashes > 2 || key.occurrence == 0)
        return invalidInput("'" + visibleText(text) +
                            "' is not a step: write TRACK/STAGE/PASS#K:REWRITES, or the end of it");
    return key;
}

Result<StepPosition> findStep(const std::vector<StepInfo>& steps, const std::string& text) {
    std::string rest = text;
    StepPosition out;
    int number = 0;
    const std::optional<int> ofNumber = takeNumber(rest, ':');
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (status == std::errc() && end == rest.data() + rest.size()) {
        if (number < 1 || number > static_cast<int>(steps.size())) return noStep(steps, text, text);
        out = {number - 1, ofNumber};
    } else {
        CT_TRY(const StepKey key, parseStepKey(text));
        std::vector<const StepInfo*> found;
        for (const StepInfo& step : steps)
            if (fits(key, step)) found.push_back(&step);
        if (found.empty()) return noStep(steps, text, key.pass);
        const bool told = std::all_of(found.begin(), found.end(), [&](const StepInfo* step) {
            return step->graphName == found[0]->graphName && step->stage == found[0]->stage;
        });
        if (!told) {
            Error error = invalidInput("several steps are named '" + visibleText(text) + "'");
            for (const StepInfo* step : found) error.notes.push_back(step->key());
            return error;
        }
        out = {found[0]->index, key.rewrites};
    }
    const StepInfo& step = steps[static_cast<size_t>(out.index)];
    if (out.rewrites && *out.rewrites > step.rewrites)
        return invalidInput("step " + step.name + " has " + std::to_string(step.rewrites) + " rewrites, not " +
                            std::to_string(*out.rewrites));
    return out;
}

}  // namespace cutaway
