#include "app/cli/explain_values.h"

#include <algorithm>
#include <iostream>

#include "cutaway/node_names.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

double shareOfZeros(const ValueSummary& values) {
    return static_cast<double>(values.zeros) / static_cast<double>(std::max<int64_t>(values.elements, 1));
}

void printNumbers(const char* indent, const ValueSummary& values) {
    print("%sleast %.6g, most %.6g, mean %.6g, %.1f %% zeros of %lld", indent, values.least, values.most, values.mean,
          100 * shareOfZeros(values), static_cast<long long>(values.elements));
    if (values.notFinite) print(", %lld not finite", static_cast<long long>(values.notFinite));
    if (values.madeUp) print(" (made up: the file has no data)");
    print("\n%sfirst", indent);
    for (const double value : values.first) print(" %.6g", value);
    print("%s\n", values.elements > static_cast<int64_t>(values.first.size()) ? " ..." : "");
}

Json jsonOf(const ValueSummary& values) {
    Json first = Json::array();
    for (const double value : values.first) first.push_back(realJson(value));
    return {{"elements", values.elements},   {"least", realJson(values.least)},
            {"most", realJson(values.most)}, {"mean", realJson(values.mean)},
            {"zeros", values.zeros},         {"not_finite", values.notFinite},
            {"histogram", values.histogram}, {"first", first},
            {"made_up", values.madeUp}};
}

/// Where the node was made or changed, a line for each step.
std::vector<std::pair<std::string, std::string>> historyOf(const Compiled& compiled, const NodeDetails& details) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const NodeDetails::Life& life : details.history) {
        const bool known = life.step >= 0 && static_cast<size_t>(life.step) < compiled.steps.size();
        lines.emplace_back(
            known ? std::to_string(shownNumber(life.step)) + " " + compiled.steps[static_cast<size_t>(life.step)].name
                  : "the file",
            life.what);
    }
    return lines;
}

}  // namespace

Result<int> explainValues(Compiled& compiled, const std::string& name, const std::string& step,
                          const std::string& json) {
    Place place{compiled.run, static_cast<int>(compiled.steps.size()) - 1, -1};
    if (!step.empty()) {
        CT_TRY(const StepPosition found, findStep(compiled.steps, step));
        place = {compiled.run, found.index, found.rewrites.value_or(0)};
    }
    CT_TRY(const NodeKey key, findNode(compiled.session, place, name));
    CT_TRY(const NodeDetails details, compiled.session.node(place, key));
    if (!details.constant)
        return Error{ErrorCode::InvalidInput,
                     "it is not a constant of this graph",
                     name,
                     {"--freeze makes constants of parameters; --step chooses another graph of the run"}};
    const ConstantInfo& constant = *details.constant;
    CT_TRY(const ValueSummary values, compiled.session.values(place, key));
    const auto history = historyOf(compiled, details);
    if (!json.empty()) {
        Json sources = Json::array(), steps = Json::array();
        for (size_t i = 0; i < constant.sources.size(); ++i) {
            const ValueSummary& summary = i < values.sources.size() ? values.sources[i] : values;
            sources.push_back({{"tensor", constant.sources[i].first},
                               {"type", constant.sources[i].second},
                               {"values", jsonOf(summary)}});
        }
        for (const auto& [where, what] : history) steps.push_back({{"step", where}, {"what", what}});
        return writeText(json, dump({{"node", details.node.name},
                                     {"type", details.node.type},
                                     {"bytes", constant.bytes},
                                     {"shared", constant.shared},
                                     {"values", jsonOf(values)},
                                     {"sources", sources},
                                     {"recipe", constant.recipe},
                                     {"history", steps}}));
    }
    std::cout << details.node.name << ": " << details.node.type << ", " << bytesText(constant.bytes)
              << (constant.shared ? " that it shares with what it is made from" : "") << "\n";
    printNumbers("  ", values);
    for (size_t i = 0; i < constant.sources.size(); ++i) {
        std::cout << "made from " << constant.sources[i].first << ": " << constant.sources[i].second << "\n";
        if (i < values.sources.size()) printNumbers("  ", values.sources[i]);
    }
    for (const std::string& line : constant.recipe) std::cout << "computed as " << line << "\n";
    for (const auto& [where, what] : history) std::cout << "step " << where << ": " << what << "\n";
    return 0;
}

Json shapeOfValues() {
    const Json numbers{{"elements", "integer"},
                       {"least", "real: of the finite ones"},
                       {"most", "real"},
                       {"mean", "real"},
                       {"zeros", "integer: how many"},
                       {"not_finite", "integer: how many"},
                       {"histogram", Json::array({"integer: elements in a bar, from least to most"})},
                       {"first", Json::array({"real: the first elements"})},
                       {"made_up", "boolean: the file has no data for it"}};
    const Json source{{"tensor", "string: name in the program"}, {"type", "string"}, {"values", numbers}};
    const Json step{{"step", "string: number and name"}, {"what", "string: what it did to the node"}};
    return {{"node", "string: name"},
            {"type", "string"},
            {"bytes", "integer"},
            {"shared", "boolean: it lies in the memory of what it is made from"},
            {"values", numbers},
            {"sources", Json::array({source})},
            {"recipe", Json::array({"string: a call, as FX text"})},
            {"history", Json::array({step})}};
}

}  // namespace cutaway::cli
