// batch: many models, each by several requests and checks, on this machine's cores or as an array of Slurm's.
#include "cutaway/batch.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "cutaway/words.h"

namespace cutaway::cli {
namespace {

struct BatchArguments {
    std::string path, json, html, task;
    bool slurm = false, reportOnly = false;
    int jobs = -1;
};

Json batchJson(const BatchReport& report) {
    Json rows = Json::array(), groups = Json::array(), counts = Json::object();
    for (const BatchRow& row : report.rows)
        rows.push_back({{"model", row.task.model},
                        {"request", row.task.request},
                        {"check", row.task.check},
                        {"verdict", nameOf(row.result.verdict)},
                        {"seconds", row.result.seconds},
                        {"message", row.result.message},
                        {"signature", row.result.signature},
                        {"reproducer", row.result.reproducer},
                        {"minified", row.result.minified},
                        {"minify_seconds", row.result.minifySeconds},
                        {"command", row.task.command}});
    for (const BatchGroup& group : report.groups) {
        Json members = Json::array();
        for (const size_t row : group.rows) members.push_back(shownNumber(static_cast<int>(row)));
        groups.push_back({{"signature", group.signature}, {"tasks", members}});
    }
    for (const BatchVerdict verdict : {BatchVerdict::Passes, BatchVerdict::Differs, BatchVerdict::Fails,
                                       BatchVerdict::Crashes, BatchVerdict::Hangs, BatchVerdict::Lost})
        counts[std::string(nameOf(verdict))] = report.count(verdict);
    return {{"name", report.name}, {"folder", report.folder}, {"counts", counts},
            {"tasks", rows},       {"signatures", groups},    {"seconds", report.seconds}};
}

void printBatch(const BatchReport& report, const std::string& page) {
    for (const BatchRow& row : report.rows) {
        const BatchResult& result = row.result;
        if (result.verdict == BatchVerdict::Passes) continue;
        print("%-8s %s, %s, %s%s%s\n", std::string(nameOf(result.verdict)).c_str(), row.task.model.c_str(),
              row.task.request.c_str(), row.task.check.c_str(), result.message.empty() ? "" : ": ",
              result.message.c_str());
        if (!result.minified.empty()) print("         %s\n", result.minified.c_str());
        if (!result.reproducer.empty()) print("         %s/%s\n", report.folder.c_str(), result.reproducer.c_str());
    }
    print("%zu tasks: %zu pass, %zu do not, %zu have no result; in %zu ways\n", report.rows.size(),
          report.count(BatchVerdict::Passes),
          report.rows.size() - report.count(BatchVerdict::Passes) - report.count(BatchVerdict::Lost),
          report.count(BatchVerdict::Lost), report.groups.size());
    print("report:  %s\n", page.c_str());
}

/// A line on a terminal that is written over; nothing elsewhere.
class BatchLine {
  public:
    void show(const BatchState& state) {
        if (!m_terminal) return;
        std::cerr << "\r\x1b[K" << state.done << " of " << state.all << " done, " << state.failed << " do not pass, "
                  << state.running << " running, " << state.waiting << " waiting" << std::flush;
        m_shown = true;
    }
    ~BatchLine() {
        if (m_shown) std::cerr << "\r\x1b[K" << std::flush;
    }

  private:
    bool m_terminal = ::isatty(STDERR_FILENO) == 1, m_shown = false;
};

Result<int> reportBatch(const BatchReport& report, const BatchArguments& arguments) {
    namespace fs = std::filesystem;
    std::error_code failed;
    fs::create_directories(report.folder, failed);
    const std::string page = arguments.html.empty() ? report.folder + "/report.html" : arguments.html;
    int status = writeText(page, batchHtml(report));
    const std::string json = dump(batchJson(report));
    status |= writeText(report.folder + "/report.json", json);
    if (!arguments.json.empty()) status |= writeText(arguments.json, json);
    else printBatch(report, page);
    const size_t passes = report.count(BatchVerdict::Passes);
    if (passes == report.rows.size()) return status;
    const size_t lost = report.count(BatchVerdict::Lost);
    return Error{ErrorCode::ToolFailed,
                 std::to_string(report.rows.size() - passes) + " of " + std::to_string(report.rows.size()) +
                     " tasks do not pass",
                 report.name,
                 lost == 0 ? std::vector<std::string>()
                           : std::vector<std::string>{std::to_string(lost) +
                                                      " have no result; the same command runs them again"}};
}

Result<int> doBatch(const BatchArguments& arguments) {
    if (!arguments.task.empty()) {
        CT_TRY_VOID(runBatchTask(arguments.path, arguments.task));
        return 0;
    }
    CT_TRY(BatchPlan plan, readBatch(arguments.path));
    if (arguments.jobs >= 0) plan.jobs = arguments.jobs;
    if (arguments.reportOnly) {
        CT_TRY(const BatchReport report, batchReport(plan));
        return reportBatch(report, arguments);
    }
    Result<BatchRun> run = [&] {
        BatchLine line;
        return runBatch(plan, arguments.slurm ? BatchPlace::Slurm : BatchPlace::Here,
                        [&line](const BatchState& state) { line.show(state); });
    }();
    if (!run) return std::move(run).error();
    if (arguments.json.empty() && run->known > 0) print("%zu tasks had a result before\n", run->known);
    if (arguments.json.empty()) print("took %.2f s\n", run->seconds);
    return reportBatch(run->report, arguments);
}

void addBatchOptions(CLI::App& command, Context& context) {
    auto arguments = std::make_shared<BatchArguments>();
    command
        .add_option("FILE", arguments->path,
                    "What to do, as TOML: [[model]] with path (a pattern), inputs, expect, gradients, graph, sizes; "
                    "[[request]] with name, options, checks, backend; name, folder, checks, backend, seconds, jobs, "
                    "retries, cache; minify, or [minify] with seconds, trial_seconds, trials; [slurm] with options")
        ->required();
    command.add_flag("--slurm", arguments->slurm,
                     "Run the tasks as job arrays of Slurm, by sbatch and squeue, instead of on this machine's cores");
    command
        .add_option("--jobs", arguments->jobs,
                    "Tasks at once on this machine; 0: one per core; default: what FILE says")
        ->type_name("N")
        ->check(wholeNumber(0, 1024))
        ->default_str("");
    command.add_flag("--report", arguments->reportOnly, "Run nothing; the report is of the results that are there");
    command
        .add_option("--html", arguments->html,
                    "Where the page goes (default: report.html in the batch's folder, beside report.json)")
        ->type_name("PAGE");
    command
        .add_option("--task", arguments->task,
                    "What a job of an array does: this task alone, of the batch whose folder stands for FILE")
        ->type_name("ID");
    addJson(command, arguments->json);
    command.callback([arguments, &context] { context.status = statusOf(doBatch(*arguments)); });
}

/// What --json writes.
std::vector<JsonReport> batchReports() {
    const Json task{{"model", "string: its path, seen from FILE, with graph and sizes where they are given"},
                    {"request", "string: its name"},
                    {"check", "string: compile, run or freeze"},
                    {"verdict", "string: passes, differs, fails, crashes, hangs or lost"},
                    {"seconds", "real: of the check"},
                    {"message", "string: the error's first line; empty if it passes"},
                    {"signature", "string: as minify takes it; failures that are alike have the same"},
                    {"reproducer", "string: a folder in the batch's, for run-repro; empty if there is none"},
                    {"minified", "string: how small the graph became, or why it was not minified; empty if not asked"},
                    {"minify_seconds", "real: beside seconds"},
                    {"command", Json::array({"string: a word of cutaway-cli"})}};
    return {{"--json",
             {{"name", "string: of the batch"},
              {"folder", "string: of its results"},
              {"counts", {{"*", "integer: tasks of this verdict"}}},
              {"tasks", Json::array({task})},
              {"signatures",
               Json::array({Json{{"signature", "string"}, {"tasks", Json::array({"integer: counted from 1"})}}})},
              {"seconds", "real: of all tasks, one after the other"}}}};
}

}  // namespace

extern const Command batchCommand{
    .name = "batch",
    .summary = "Many models by many requests and checks, on this machine or by Slurm; goes on where it was stopped",
    .add = addBatchOptions,
    .refuses = "a task does not pass, or has no result",
    .reports = batchReports};

}  // namespace cutaway::cli
