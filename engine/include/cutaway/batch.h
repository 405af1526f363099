#pragma once
// Batches: many models, each by several requests and checks, on this machine's cores or as an array of Slurm's. A batch
// is a folder. A task is a function of the bytes that it reads, the request and the engine; its result is one file
// there, named after all of these, so what is done is what is there, and whoever starts a batch again goes on with the
// rest.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct BatchTask {
    std::string id;                     // of all that the result depends on
    std::string model, request, check;  // as the report shows them
    std::vector<std::string> command;   // words of cutaway-cli
    std::vector<std::string> minify;    // the same for what fails, without check and folder; empty: it is not minified
    double seconds = 600, minifySeconds = 600;  // that the two may take
    int64_t bytes = 0;                          // of the model
};

/// What a file of TOML says, with every path made absolute.
struct BatchPlan {
    std::string name, folder;
    std::vector<BatchTask> tasks;
    int jobs = 0;                    // tasks at once, on this machine; 0: one a core
    int retries = 2;                 // of a task that somebody killed
    std::vector<std::string> slurm;  // further options of sbatch
};
/// Errors name file and line: no TOML, an unknown key with the nearest one, a value of another type, a pattern that no
/// model has, a file that is missing, a request that parseRequest refuses.
Result<BatchPlan> readBatch(const std::string& file);

enum class BatchVerdict : uint8_t {
    Passes,
    Differs,  // from what was expected
    Fails,    // the command says why
    Crashes,  // a signal ended it
    Hangs,    // it took longer than it may
    Lost,     // no result: whoever ran it was killed, each time
};
/// "passes", "differs", ...
std::string_view nameOf(BatchVerdict verdict);

struct BatchResult {
    BatchVerdict verdict = BatchVerdict::Lost;
    double seconds = 0;        // of the check; a minifier's are its own
    std::string message;       // the first line of the error
    std::string signature;     // as `minify --signature` takes it; failures of one signature fall together
    std::string reproducer;    // folder for run-repro, in the batch's; empty: none
    std::string minified;      // why it was not minified, or how small it became; empty: nobody asked
    double minifySeconds = 0;  // beside `seconds`
};
struct BatchRow {
    BatchTask task;
    BatchResult result;
};
/// Rows of one signature.
struct BatchGroup {
    std::string signature;
    std::vector<size_t> rows;
};
struct BatchReport {
    std::string name, folder;
    std::vector<BatchRow> rows;      // in the order of the plan
    std::vector<BatchGroup> groups;  // the largest first
    double seconds = 0;              // of all tasks, one after the other

    size_t count(BatchVerdict verdict) const;
};

/// Of a batch at work.
struct BatchState {
    size_t all = 0, done = 0, failed = 0;
    size_t waiting = 0, running = 0;  // of those that are not done, as far as Slurm says so
};
struct BatchRun {
    BatchReport report;
    size_t known = 0;  // tasks that had a result before
    double seconds = 0;
};
enum class BatchPlace : uint8_t { Here, Slurm };

/// Runs what has no result yet and makes the report. Cancelling ends what runs here; what Slurm has goes on. Errors:
/// the folder cannot be written, another program works in it, Slurm's commands fail.
Result<BatchRun> runBatch(const BatchPlan& plan, BatchPlace place,
                          const std::function<void(const BatchState&)>& watch = {}, const Progress& progress = {});
/// What an array's job does: one task of the folder's plan, unless it has a result already.
Result<void> runBatchTask(const std::string& folder, const std::string& id);
/// Of the results that are there.
Result<BatchReport> batchReport(const BatchPlan& plan);
/// A page that needs nothing beside it but the reproducers that it names.
std::string batchHtml(const BatchReport& report);

}  // namespace cutaway
