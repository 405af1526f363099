#include "app/cli/gradient_report.h"

#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"

namespace cutaway::cli {

Json toJson(const GradientCheck& check) {
    Json each = Json::array(), calls = Json::array();
    for (const GradientRow& row : check.each)
        each.push_back({{"input", row.input},
                        {"node", row.output},
                        {"gradient", realJson(row.gradient)},
                        {"difference", realJson(row.difference)},
                        {"verdict", wordOf(row.verdict)}});
    for (const DerivativeRow& row : check.calls)
        calls.push_back({{"node", row.name},
                         {"op", row.op},
                         {"operand", row.operand},
                         {"gradient", realJson(row.gradient)},
                         {"difference", realJson(row.difference)},
                         {"verdict", wordOf(row.verdict)},
                         {"why", row.why}});
    return {{"summary", check.summary},
            {"wrong", check.wrong()},
            {"seed", check.seed},
            {"gradients", check.gradients},
            {"verdict", wordOf(check.all.verdict)},
            {"gradient", realJson(check.all.gradient)},
            {"difference", realJson(check.all.difference)},
            {"each", std::move(each)},
            {"calls_checked", check.callsChecked},
            {"calls", std::move(calls)},
            {"runs", check.runs},
            {"remarks", check.remarks}};
}

Json shapeOfGradientCheck() {
    const Json each{{"input", "string: whose gradient it is"},
                    {"node", "string: the node that computes it"},
                    {"gradient", "real: times the direction"},
                    {"difference", "real: the central difference along it"},
                    {"verdict", "string: wrong or undecided"}};
    const Json call{{"node", "string: the call"},
                    {"op", "string"},
                    {"operand", "string: the parameter by which it is differentiated"},
                    {"gradient", "real: times the direction"},
                    {"difference", "real: the central difference along it"},
                    {"verdict", "string: wrong, kink or undecided"},
                    {"why", "string: a sentence"}};
    return {{"summary", "string: a sentence"},
            {"wrong", "boolean: a gradient or a derivative is"},
            {"seed", "integer: of the directions"},
            {"gradients", "integer: that the joint graph returns"},
            {"verdict", "string: of all together: right, wrong, kink or undecided"},
            {"gradient", "real: all of them times one direction"},
            {"difference", "real: the central difference along it"},
            {"each", Json::array({each})},
            {"calls_checked", "integer: whose derivatives were looked at alone"},
            {"calls", Json::array({call})},
            {"runs", "integer: of the graph"},
            {"remarks", Json::array({"string: a sentence"})}};
}

void print(const GradientCheck& check) {
    for (const std::string& remark : check.remarks) std::cout << "note: " << remark << "\n";
    for (const GradientRow& row : check.each)
        std::cout << "gradient of " << row.input << " (" << row.output << ") is " << wordOf(row.verdict) << ": "
                  << row.why << "\n";
    for (const DerivativeRow& row : check.calls)
        std::cout << "derivative of " << row.op << " by " << row.operand << " at " << row.name << " is "
                  << wordOf(row.verdict) << ": " << row.why << "\n";
}

}  // namespace cutaway::cli
