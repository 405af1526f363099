// checked-run: each value of a graph beside its reference, in the graph's dtypes and in f64.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/gradient_report.h"
#include "app/cli/json.h"
#include "cutaway/backends.h"
#include "cutaway/numerics.h"

namespace cutaway::cli {
namespace {

struct CheckedRunArguments {
    std::string path, step, judge = "own", json, node, side = "checked", backend = "reference";
    double tolerance = 0;
    int top = 20;
    bool every = false;
    bool noGradients = false;
    std::vector<int64_t> at;
    CheckedRunOptions checked;
    GradientCheckOptions gradients;
    CompileArguments compile;
};

Json jsonOf(const NodeNumbers& row) {
    return {{"node", row.name},
            {"op", row.op},
            {"type", row.type},
            {"reference", row.reference},
            {"verdict", wordOf(row.verdict)},
            {"why", row.why},
            {"elements", row.elements},
            {"nans", row.nans},
            {"infinities", row.infinities},
            {"new_non_finite", row.newNonFinite},
            {"different", row.different},
            {"max_absolute", realJson(row.maxAbsolute)},
            {"max_relative", realJson(row.maxRelative)},
            {"max_ulp", row.maxUlp < 0 ? Json() : realJson(row.maxUlp)},
            {"cosine", realJson(row.cosine)},
            {"worst", row.worst},
            {"rmse", row.rmse < 0 ? Json() : realJson(row.rmse)},
            {"reference_rmse", row.referenceRmse < 0 ? Json() : realJson(row.referenceRmse)}};
}

/// What somebody wants to see first: what diverges, in the order in which it ran, then the largest errors.
std::vector<const NodeNumbers*> worstFirst(const CheckedRun& run) {
    std::vector<const NodeNumbers*> rows;
    for (const NodeNumbers& row : run.nodes) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [](const NodeNumbers* a, const NodeNumbers* b) {
        const bool x = diverges(a->verdict), y = diverges(b->verdict);
        return x != y ? x : !x && a->maxRelative > b->maxRelative;
    });
    return rows;
}

std::string distance(double value) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2e", value);
    return value < 0 ? "-" : text;
}

void printNumbers(const CheckedRun& run, int top) {
    print("%-10s %-28s %9s %9s %8s %9s %9s %9s\n", "verdict", "node", "max abs", "max rel", "ulp", "cosine", "from f64",
          "reference");
    int left = top;
    for (const NodeNumbers* row : worstFirst(run)) {
        if (left-- == 0) break;
        const std::string name = row->name.size() > 28 ? row->name.substr(0, 27) + "~" : row->name;
        print("%-10s %-28s %9.2e %9.2e %8s %9.6f %9s %9s\n", wordOf(row->verdict), name.c_str(), row->maxAbsolute,
              row->maxRelative, row->maxUlp < 0 ? "-" : distance(row->maxUlp).c_str(), row->cosine,
              distance(row->rmse).c_str(), distance(row->referenceRmse).c_str());
        if (diverges(row->verdict)) std::cout << "           " << row->why << "\n";
    }
    if (const int more = static_cast<int>(run.nodes.size()) - top; more > 0)
        std::cout << "and " << more << " more (--top, --json)\n";
}

Json jsonOf(const CheckedRun& run, const std::vector<StepInfo>& steps, const FirstDivergence* first,
            const GradientCheck* gradients) {
    const auto nameOf = [&](const Place& place) {
        return place.step < 0 ? std::string() : steps[static_cast<size_t>(place.step)].key();
    };
    const auto rowAt = [&](const std::optional<size_t>& at) { return at ? Json(run.nodes[*at].name) : Json(); };
    Json rows = Json::array();
    for (const NodeNumbers& row : run.nodes) rows.push_back(jsonOf(row));
    Json json{{"step", nameOf(run.place)},
              {"against", nameOf(run.reference)},
              {"inputs", run.inputsFrom},
              {"summary", first && first->found ? first->summary : run.summary},
              {"diverges", run.firstDivergent.has_value() || !run.failed.empty()},
              {"first_divergent", rowAt(run.firstDivergent)},
              {"first_non_finite", rowAt(run.firstNonFinite)},
              {"remarks", run.remarks},
              {"nodes", std::move(rows)}};
    if (first && first->found) json["first_step"] = first->step.key();
    if (gradients) json["gradients"] = toJson(*gradients);
    return json;
}

std::string cell(double value) {
    char text[16];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

/// One slice of a node's value, as many numbers as a screen takes.
Result<int> printValue(Compiled& compiled, const Place& place, const CheckedRunArguments& arguments) {
    CT_TRY(const GraphText text, compiled.session.text(place));
    NodeKey key = NodeKey::None;
    for (const NodeKey each : text.lineNodes) {
        if (each == NodeKey::None) continue;
        CT_TRY(const NodeDetails details, compiled.session.node(place, each));
        if (details.node.name == arguments.node) key = each;
    }
    if (key == NodeKey::None)
        return Error{ErrorCode::NotFound, "no node is called '" + arguments.node + "' at this step", {}, {}};
    const ValueSide side = arguments.side == "reference"    ? ValueSide::Reference
                           : arguments.side == "f64"        ? ValueSide::Reference64
                           : arguments.side == "difference" ? ValueSide::Difference
                                                            : ValueSide::Checked;
    CT_TRY(const auto value, valueAt(compiled.session, place, key, side, arguments.checked));
    constexpr int64_t kRows = 24, kColumns = 8;
    const ValueSlice slice = value->slice(arguments.at, kRows, kColumns);
    if (!arguments.json.empty()) {
        Json numbers = Json::array();
        for (const double number : slice.numbers) numbers.push_back(realJson(number));
        return writeText(arguments.json, dump({{"node", arguments.node},
                                               {"type", value->type()},
                                               {"rows", slice.rows},
                                               {"columns", slice.columns},
                                               {"every_row", slice.everyRow},
                                               {"every_column", slice.everyColumn},
                                               {"least", realJson(slice.least)},
                                               {"most", realJson(slice.most)},
                                               {"nans", slice.nans},
                                               {"infinities", slice.infinities},
                                               {"numbers", std::move(numbers)}}));
    }
    std::cout << arguments.node << ": " << value->type() << ", from " << cell(slice.least) << " to " << cell(slice.most)
              << ", " << slice.nans << " NaN, " << slice.infinities << " infinite\n";
    if (slice.everyRow > 1 || slice.everyColumn > 1)
        std::cout << "each number stands for " << slice.everyRow << " x " << slice.everyColumn
                  << ": the one of the largest magnitude\n";
    for (int64_t row = 0; row < slice.rows; ++row) {
        for (int64_t column = 0; column < slice.columns; ++column)
            print("%12s", cell(slice.numbers[static_cast<size_t>(row * slice.columns + column)]).c_str());
        std::cout << "\n";
    }
    return 0;
}

/// Checks gradients by central differences: graphs before differentiation have none to compare them with.
Result<std::optional<GradientCheck>> gradientsOf(Compiled& compiled, const CheckedRunArguments& arguments) {
    CT_TRY(const CompileRequest request, arguments.compile.resolved());
    if (request.mode != Mode::Training || arguments.noGradients || !arguments.step.empty()) return std::nullopt;
    GradientCheckOptions options = arguments.gradients;
    options.inputsFile = arguments.checked.inputsFile;
    options.timeoutSeconds = arguments.checked.timeoutSeconds;
    Result<GradientCheck> check = checkGradients(compiled.session, compiled.run, options);
    if (!check && check.error().code == ErrorCode::Unsupported) return std::nullopt;  // nothing was differentiated
    if (!check) return check.error();
    return std::move(*check);
}

Result<int> check(Compiled& compiled, const Place& place, const CheckedRunArguments& arguments) {
    const CheckedRunOptions& options = arguments.checked;
    CT_TRY(CheckedRun run, checkedRun(compiled.session, place, options));
    CT_TRY(const std::optional<GradientCheck> gradients, gradientsOf(compiled, arguments));
    // Errors from before differentiation show where that graph is compared with the graph as it was opened.
    if (gradients && gradients->place.step > 0 && !run.firstDivergent && run.failed.empty()) {
        CT_TRY(CheckedRun before, checkedRun(compiled.session, {place.run, gradients->place.step - 1, -1}, options));
        if (before.firstDivergent || !before.failed.empty()) run = std::move(before);
    }
    std::optional<FirstDivergence> first;
    const bool everywhere = arguments.step.empty() && options.backend == Backend::Reference;
    if (everywhere && (run.firstDivergent || arguments.every)) {
        CT_TRY(first, firstDivergence(compiled.session, compiled.run, options));
        const std::string from = run.inputsFrom;
        if (first->found) {
            run = first->checked;
            run.inputsFrom = from;
        }
    }
    const bool diverges = run.firstDivergent.has_value() || !run.failed.empty();
    const bool bad = diverges || (gradients && gradients->wrong());
    const std::string& values = first && first->found ? first->summary : run.summary;
    const std::string summary = diverges || !bad ? values : gradients->summary;
    int status = 0;
    if (!arguments.json.empty()) {
        status =
            writeText(arguments.json,
                      dump(jsonOf(run, compiled.steps, first ? &*first : nullptr, gradients ? &*gradients : nullptr)));
    } else {
        std::cout << "inputs: " << run.inputsFrom << "\n";
        for (const std::string& remark : run.remarks) std::cout << "note: " << remark << "\n";
        printNumbers(run, arguments.top);
        if (run.firstNonFinite) {
            const NodeNumbers& row = run.nodes[*run.firstNonFinite];
            std::cout << "first value that is not finite: " << row.name << ", " << row.nans << " NaN, "
                      << row.infinities << " infinite of " << row.elements << "\n";
        }
        if (!diverges) std::cout << values << "\n";
        if (gradients) {
            cli::print(*gradients);
            if (diverges || !bad) std::cout << gradients->summary << "\n";
        }
    }
    if (bad) return Error{ErrorCode::InvalidInput, summary, arguments.path, {}};
    return status;
}

Result<void> resolve(CheckedRunArguments& arguments, bool tolerance) {
    const std::string& judge = arguments.judge;
    JudgeOptions& options = arguments.checked.judge;
    options.judge = judge == "own"      ? Judge::F64Error
                    : judge == "same"   ? Judge::Same
                    : judge == "strict" ? Judge::Strict
                                        : Judge::Plugin;
    if (options.judge == Judge::Plugin) options.plugin = judge;
    if (tolerance && options.judge != Judge::F64Error && options.judge != Judge::Same)
        return invalidInput("--tolerance has no meaning for --judge " + judge);
    if (tolerance) arguments.checked.judge.tolerance = arguments.tolerance;
    CT_TRY(arguments.checked.backend, arguments.compile.backend(arguments.backend));
    if (arguments.checked.backend != Backend::Reference && !arguments.step.empty())
        return invalidInput("--backend " + arguments.backend + " runs what all steps have made: leave --step out");
    return {};
}

void addJudge(CLI::App& command, CheckedRunArguments& arguments, CLI::Option*& tolerance) {
    command
        .add_option("--judge", arguments.judge,
                    "What is wrong. own: a value farther from the f64 run than some times as far as the reference is. "
                    "same: what PyTorch's same() refuses. strict: another bit than the reference. PLUGIN or "
                    "PLUGIN.JUDGE: what a plugin's judge refuses, asked about each value and its reference")
        ->type_name("NAME");
    tolerance =
        command.add_option("--tolerance", arguments.tolerance,
                           "Of --judge own: how many times as far from the f64 run as the reference a value may "
                           "be (4); of --judge same: its tol (0.0001)");
    tolerance->type_name("X")->check(shareOrNumber());
    JudgeOptions& judge = arguments.checked.judge;
    command.add_flag("--cosine", judge.cosineSimilarity, "Of --judge same: a cosine of 0.99 is enough");
    command.add_flag("--ignore-integers", judge.ignoreNonFloat,
                     "Of --judge same: only values of floats count (ignore_non_fp)");
}

void addCheckedRunOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<CheckedRunArguments>();
    addModel(command, arguments->path)->required();
    command
        .add_option("--step", arguments->step,
                    "The graph after this step: key, name or number, as `steps` lists them; of a single rewrite with "
                    ":N. Default: after all, and if a value diverges there, after the first step after which one does")
        ->type_name("STEP");
    command.add_flag("--every-step", arguments->every, "Look after each step, even if no value diverges at the end");
    CLI::Option* tolerance = nullptr;
    addJudge(command, *arguments, tolerance);
    command
        .add_option("--backend", arguments->backend,
                    "What is checked: the interpreter's values, or the compiled CPU code's results; what its kernels "
                    "fuse is never stored")
        ->check(aBackend());
    command
        .add_option("--inputs", arguments->checked.inputsFile,
                    "Input tensors (safetensors); default: the file's sample inputs, else random ones")
        ->type_name("FILE");
    command.add_option("--timeout", arguments->checked.timeoutSeconds, "Seconds that one run may take; 0: no limit")
        ->type_name("SECONDS")
        ->check(shareOrNumber());
    command.add_option("--top", arguments->top, "Rows of the table: what diverges first, then the largest errors")
        ->type_name("N")
        ->check(wholeNumber(1, 1'000'000));
    auto* node = command.add_option("--values", arguments->node, "Numbers of this node in place of the table");
    node->type_name("NODE");
    command.add_option("--side", arguments->side, "With --values: which run they are taken from")
        ->check(oneOf({"checked", "reference", "f64", "difference"}))
        ->needs(node);
    command
        .add_option("--at", arguments->at,
                    "With --values: an index for each dim but the last two, separated by commas; default: 0")
        ->type_name("I,J")
        ->delimiter(',')
        ->check(wholeNumber(0, 1'000'000'000))
        ->needs(node);
    auto* without = command.add_flag("--no-gradients", arguments->noGradients,
                                     "With --mode training, do not compare the gradients with central differences");
    command
        .add_flag("--every-derivative", arguments->gradients.everyCall,
                  "With --mode training, compare the derivative of each call with central differences, even where the "
                  "gradients together are right")
        ->excludes(without);
    command
        .add_option("--seed", arguments->gradients.seed,
                    "With --mode training: of the directions along which gradients are looked at")
        ->type_name("N")
        ->check(wholeNumber(0, 1'000'000'000))
        ->excludes(without);
    addJson(command, arguments->json);
    arguments->compile.addTo(command);
    command.callback([arguments, tolerance, &context] {
        const auto run = [&]() -> Result<int> {
            CT_TRY_VOID(resolve(*arguments, tolerance->count() > 0));
            CT_TRY(Compiled compiled, openAndCompile(arguments->path, arguments->compile));
            Place place{compiled.run, static_cast<int>(compiled.steps.size()) - 1, -1};
            if (!arguments->step.empty()) {
                CT_TRY(const StepPosition step, findStep(compiled.steps, arguments->step));
                place = {compiled.run, step.index, step.rewrites.value_or(-1)};
            }
            if (!arguments->node.empty()) return printValue(compiled, place, *arguments);
            return check(compiled, place, *arguments);
        };
        context.status = statusOf(run());
    });
}

/// What --json writes.
std::vector<JsonReport> checkedRunReports() {
    const Json node{{"node", "string: name"},
                    {"op", "string: empty for inputs"},
                    {"type", "string: what the graph says"},
                    {"reference", "string: the node that computes this value in the reference; empty for none"},
                    {"verdict", "string: equal, close, wrong, not finite, wrong type, fails or unmatched"},
                    {"why", "string: a sentence"},
                    {"elements", "integer: numbers in the value"},
                    {"nans", "integer: elements"},
                    {"infinities", "integer: elements"},
                    {"new_non_finite", "integer: not finite, and finite in the reference"},
                    {"different", "integer: from the reference"},
                    {"max_absolute", "real: largest error against the reference"},
                    {"max_relative", "real: the same as a share"},
                    {"max_ulp?", "real: in steps between neighbours of the dtype"},
                    {"cosine", "real: of value and reference"},
                    {"worst", Json::array({"integer: index of the element that is furthest off"})},
                    {"rmse?", "real: root mean square distance to the f64 run"},
                    {"reference_rmse?", "real: the reference's"}};
    const Json numbers{{"node", "string: name"},
                       {"type", "string: of the value"},
                       {"rows", "integer: of `numbers`"},
                       {"columns", "integer: of `numbers`"},
                       {"every_row", "integer: rows that one stands for"},
                       {"every_column", "integer: columns that one stands for"},
                       {"least", "real: of the slice's finite elements"},
                       {"most", "real: of the slice's finite elements"},
                       {"nans", "integer: in the slice"},
                       {"infinities", "integer: in the slice"},
                       {"numbers", Json::array({"real: row by row"})}};
    return {{"--json",
             {{"step", "string: key; empty for the graph as it was opened"},
              {"against", "string: key of the step whose graph is the reference"},
              {"inputs", "string: where they come from"},
              {"summary", "string: a sentence"},
              {"diverges", "boolean: some value does, or the graph did not run"},
              {"first_divergent?", "string: name of the node"},
              {"first_non_finite?", "string: name of the node"},
              {"first_step?", "string: key of the first step after which a value diverges"},
              {"remarks", Json::array({"string: a sentence"})},
              {"gradients?", shapeOfGradientCheck()},
              {"nodes", Json::array({node})}}},
            {"--json --values", numbers}};
}

}  // namespace

extern const Command checkedRunCommand{
    .name = "checked-run",
    .summary = "Compares each value of a graph with the graph it came from, in its dtypes and in f64",
    .add = addCheckedRunOptions,
    .refuses = "a value diverges",
    .reports = checkedRunReports};

}  // namespace cutaway::cli
