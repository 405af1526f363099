// memory: what the values of the compiled code take, when, and what lives at the peak.
#include "cutaway/memory.h"

#include <algorithm>
#include <iostream>
#include <numeric>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

constexpr size_t kShown = 20;

struct MemoryArguments {
    std::string path, json;
    bool all = false;
    CompileArguments compile;
};

std::string kindOf(const MemoryPlan& plan, const MemoryValue& value) {
    std::string kind(nameOf(plan.calls[static_cast<size_t>(value.first)].maker));
    if (value.workspace) kind += ", workspace";
    if (value.place == MemoryValue::Place::Heap) kind += ", own memory";
    if (!value.over.empty()) kind += ", over " + value.over;
    if (value.output) kind += ", returned";
    return kind;
}

std::string counted(size_t count, const char* one) {
    return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

void printRows(const MemoryPlan& plan, const std::vector<size_t>& rows, bool all) {
    const size_t shown = all ? rows.size() : std::min(rows.size(), kShown);
    for (size_t i = 0; i < shown; ++i) {
        const MemoryValue& value = plan.values[rows[i]];
        const std::string at = value.place == MemoryValue::Place::Heap ? "own" : std::to_string(value.offset);
        print("  %12s  at %-12s calls %5d to %5d  %s %s  (%s)\n", bytesText(value.bytes).c_str(), at.c_str(),
              shownNumber(value.first), shownNumber(value.last), value.name.c_str(), value.type.c_str(),
              kindOf(plan, value).c_str());
    }
    if (shown < rows.size()) print("  and %zu more: --all lists them\n", rows.size() - shown);
}

void printPlan(const MemoryPlan& plan, bool all) {
    if (!plan.graphName.empty()) std::cout << plan.graphName << "\n";
    print("%s, %s; arena %s, peak live %s\n", counted(plan.calls.size(), "call").c_str(),
          counted(plan.values.size(), "value").c_str(), bytesText(plan.arena).c_str(),
          bytesText(plan.largestLive()).c_str());
    print("held by the caller: %s, %s; %s, %s\n", counted(static_cast<size_t>(plan.inputs.count), "input").c_str(),
          bytesText(plan.inputs.bytes).c_str(), counted(static_cast<size_t>(plan.constants.count), "constant").c_str(),
          bytesText(plan.constants.bytes).c_str());
    for (const auto& [symbol, value] : plan.sizes)
        print("size %s = %lld, %s\n", symbol.c_str(), static_cast<long long>(value),
              plan.assumed.contains(symbol) ? "which data decide: shown for as many as they have elements"
                                            : "the example's");
    if (plan.peak < 0) return;
    const MemoryCall& peak = plan.calls[static_cast<size_t>(plan.peak)];
    const std::vector<size_t> living = livingAt(plan, plan.peak);
    print("peak: call %d, %s (%s), with %s\n", shownNumber(plan.peak), peak.name.c_str(), peak.kind.c_str(),
          counted(living.size(), "value").c_str());
    printRows(plan, living, all);
    std::vector<size_t> others(plan.values.size());
    std::iota(others.begin(), others.end(), size_t{0});
    std::erase_if(others, [&](size_t i) { return std::find(living.begin(), living.end(), i) != living.end(); });
    std::stable_sort(others.begin(), others.end(),
                     [&](size_t a, size_t b) { return plan.values[a].bytes > plan.values[b].bytes; });
    if (others.empty()) return;
    std::cout << "at other times\n";
    printRows(plan, others, all);
}

Json jsonOf(const MemoryTotal& total) { return {{"count", total.count}, {"bytes", total.bytes}}; }
Json jsonOf(const MemoryPlan& plan) {
    Json calls = Json::array(), values = Json::array(), sizes = Json::object(), atPeak = Json::array();
    for (size_t i = 0; i < plan.calls.size(); ++i) {
        const MemoryCall& call = plan.calls[i];
        calls.push_back({{"name", call.name},
                         {"made_by", std::string(nameOf(call.maker))},
                         {"kind", call.kind},
                         {"nodes", call.nodeNames},
                         {"live_bytes", plan.live[i]}});
    }
    for (const MemoryValue& value : plan.values)
        values.push_back({{"name", value.name},
                          {"type", value.type},
                          {"bytes", value.bytes},
                          {"own_memory", value.place == MemoryValue::Place::Heap},
                          {"offset", value.offset},
                          {"first_call", shownNumber(value.first)},
                          {"last_call", shownNumber(value.last)},
                          {"over", value.over.empty() ? Json() : Json(value.over)},
                          {"returned", value.output},
                          {"workspace", value.workspace}});
    for (const auto& [symbol, value] : plan.sizes) sizes[symbol] = value;
    if (plan.peak >= 0)
        for (const size_t value : livingAt(plan, plan.peak)) atPeak.push_back(plan.values[value].name);
    return {{"track", plan.graphName.empty() ? "main" : plan.graphName},
            {"arena_bytes", plan.arena},
            {"largest_live_bytes", plan.largestLive()},
            {"peak_call", plan.peak < 0 ? Json() : Json(shownNumber(plan.peak))},
            {"at_peak", atPeak},
            {"inputs", jsonOf(plan.inputs)},
            {"constants", jsonOf(plan.constants)},
            {"sizes", sizes},
            {"assumed_sizes", plan.assumed},
            {"calls", calls},
            {"values", values}};
}

Result<int> memory(const MemoryArguments& arguments) {
    CT_TRY(Compiled compiled, openAndCompile(arguments.path, arguments.compile));
    CT_TRY(const std::vector<MemoryPlan> plans, memoryPlans(compiled.session, compiled.run));
    if (!arguments.json.empty()) {
        Json rows = Json::array();
        for (const MemoryPlan& plan : plans) rows.push_back(jsonOf(plan));
        return writeText(arguments.json, dump({{"plans", rows}}));
    }
    for (const MemoryPlan& plan : plans) printPlan(plan, arguments.all);
    return 0;
}

void addMemoryOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<MemoryArguments>();
    addModel(command, arguments->path)->required();
    command.add_flag("--all", arguments->all, "Every value, not only the " + std::to_string(kShown) + " largest");
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, &context] { context.status = statusOf(memory(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> memoryReports() {
    const Json total{{"count", "integer"}, {"bytes", "integer"}};
    const Json call{{"name", "string: a kernel, or the node of a library or fallback call"},
                    {"made_by", "string: kernel, library, fallback"},
                    {"kind", "string: pointwise, reduction, or what computes it"},
                    {"nodes", Json::array({"string: name of a node that it computes"})},
                    {"live_bytes", "integer: that live while it runs, in blocks of 64"}};
    const Json value{
        {"name", "string: its node's, with [N] for a tuple's item"},
        {"type", "string"},
        {"bytes", "integer"},
        {"own_memory", "boolean: returned by a fallback call, outside of the arena"},
        {"offset", "integer: bytes from the arena's start; own memory: beside others of its kind"},
        {"first_call", "integer: from 1 on"},
        {"last_call", "integer"},
        {"over?", "string: name of the value in whose place it is written; null: it has a place of its own"},
        {"returned", "boolean: it lives to the end"},
        {"workspace", "boolean: a kernel's own, of no node"}};
    return {{"--json",
             {{"plans", Json::array({{{"track", "string: main, forward, backward"},
                                      {"arena_bytes", "integer: what the compiled program allocates"},
                                      {"largest_live_bytes", "integer: at the peak, in blocks of 64"},
                                      {"peak_call?", "integer: the first at which most bytes live; null without calls"},
                                      {"at_peak", Json::array({"string: name of a value that lives, largest first"})},
                                      {"inputs", total},
                                      {"constants", total},
                                      {"sizes", {{"*", "integer: what stands for a size symbol"}}},
                                      {"assumed_sizes", {"string: a symbol whose size data decide"}},
                                      {"calls", Json::array({call})},
                                      {"values", Json::array({value})}}})}}}};
}

}  // namespace

extern const Command memoryCommand{.name = "memory",
                                   .summary = "What each value takes in memory and when, and who holds the peak",
                                   .add = addMemoryOptions,
                                   .refuses = "",
                                   .reports = memoryReports};

}  // namespace cutaway::cli
