// operators: those that files define.
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/files.h"
#include "cutaway/operator_files.h"

namespace cutaway::cli {
namespace {

constexpr size_t kMostBytes = 4 << 20;

struct OperatorArguments {
    std::string check, start, json;
};

Result<int> showStarts(const std::string& model) {
    Session session;
    CT_TRY_VOID(session.open(model));
    CT_TRY(const auto starts, definitionsToStart(session));
    if (starts.empty()) std::cout << "# every operator that " << model << " calls is known\n";
    for (size_t i = 0; i < starts.size(); ++i) std::cout << (i > 0 ? "\n" : "") << starts[i];
    return 0;
}

Result<int> showOperators(const OperatorArguments& arguments) {
    if (!arguments.start.empty()) return showStarts(arguments.start);
    std::vector<std::string> remarks;
    std::vector<DefinedOperator> all = loadDefinedOperators(&remarks);
    if (!arguments.check.empty()) {
        CT_TRY(const std::string text, readTextFile(arguments.check, kMostBytes));
        CT_TRY(all, checkOperators(text, arguments.check));
        remarks.clear();
    }
    Json rows = Json::array();
    for (const DefinedOperator& one : all) {
        rows.push_back({{"name", one.name}, {"file", one.file}, {"from", one.from}, {"definition", one.text}});
        if (!arguments.json.empty()) continue;
        std::cout << one.name << "  " << (one.from.empty() ? "" : one.from + ": ") << one.file << "\n";
    }
    for (const std::string& remark : remarks) std::cerr << remark << "\n";
    if (!arguments.json.empty()) return writeText(arguments.json, dump(rows));
    if (all.empty()) {
        std::cout << "no file defines an operator; they are looked for in:\n";
        for (const OperatorFolder& folder : operatorFolders())
            std::cout << "  " << folder.path << (folder.problem.empty() ? "" : ": " + folder.problem) << "\n";
    }
    return 0;
}

std::vector<JsonReport> operatorReports() {
    const Json row{{"name", "string: mylib.scale.default"},
                   {"file", "string: where it is defined"},
                   {"from", "string: CUTAWAY_OPERATORS, user or Cutaway; empty with --check"},
                   {"definition", "string: as a file of rules holds it"}};
    return {{"--json", Json::array({row})}};
}

void addOperatorsOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<OperatorArguments>();
    auto* check =
        command.add_option("--check", arguments->check,
                           "Only the definitions of this file of rules; says what is wrong with one, and where");
    command
        .add_option("--start", arguments->start,
                    "Writes a definition to go on with for each operator of this model that is not known")
        ->excludes(check);
    addJson(command, arguments->json);
    command.callback([arguments, &context] { context.status = statusOf(showOperators(*arguments)); });
}

}  // namespace

extern const Command operatorsCommand{
    "operators", "Operators that files define, and definitions to go on with", addOperatorsOptions,
    "A file of rules (--rules, or *.txt in a folder) defines an operator by its schema and by what it computes: types, "
    "values and gradients follow from that. `operator mylib::scale_add(Tensor x, Tensor y, Tensor? bias=None) -> Tensor`, "
    "below it `  computes` or `  computes when bias is None`, then statements, indented by four spaces. One call "
    "a line; the last is `return NAME`. Conditions: NAME is None, NAME == 2, rank(NAME) > 2, dtype_of(NAME) == "
    "torch.uint8, NAME, not NAME, with `and` between; the first that holds counts. Parameters that are not tensors are "
    "written in. Folders: those and files that CUTAWAY_OPERATORS names (absolute, with : between), "
    "~/.local/share/cutaway/operators, and Cutaway's own share/cutaway/operators; the first that defines a name counts, "
    "a definition among the rules of --rules before all. Nothing is read from beside a model.",
    operatorReports};

}  // namespace cutaway::cli
