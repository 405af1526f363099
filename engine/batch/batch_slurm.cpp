// By Slurm's own commands. Which jobs there are, the queue alone knows: an array has the name of the batch's folder, so
// a program that is started again finds those that an earlier one has submitted.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cutaway/program.h"
#include "engine/batch/batch_plan.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/process.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostOfArray = 1000;  // Slurm's default of MaxArraySize is 1001
constexpr double kCommandSeconds = 120;
constexpr int kMostSilent = 20;  // questions that a controller which starts again leaves without an answer
constexpr double kLeastWait = 0.5, kMostWait = 10;
/// After the last job has gone: a file that another machine wrote may be seen a little later.
constexpr double kSettle = 3;

// The array's number is a line of the list, which names the task.
constexpr std::string_view kScript =
    "#!/bin/sh\nexec \"$1\" batch \"$2\" --task \"$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" \"$3\")\"\n";

Result<std::string> slurmCommand(const std::vector<std::string>& words, const Progress& progress) {
    ProcessOptions options;
    options.argv = words;
    options.wallSeconds = kCommandSeconds;
    auto end = runProcess(options, {}, progress);
    if (!end && end.error().code == ErrorCode::NotFound)
        return Error{ErrorCode::NotFound,
                     "there is no " + words.front() + ", so no Slurm, on this machine",
                     {},
                     {"without --slurm the batch runs on this machine's cores"}};
    if (!end) return std::move(end).error();
    if (end->ok()) return end->output;
    std::string said = end->errors.substr(0, end->errors.find_last_not_of('\n') + 1);
    return Error{ErrorCode::ToolFailed, words.front() + " " + end->text() + (said.empty() ? "" : ": " + said), {}, {}};
}

class Cluster {
  public:
    Cluster(const BatchPlan& plan, const Progress& progress)
        : m_plan(plan),
          m_progress(progress),
          m_name("cutaway-" + Hasher().add(std::string_view(plan.folder)).finish().hex().substr(0, 12)),
          m_folder(fs::path(plan.folder) / "slurm") {}

    Result<void> run(const std::function<void(const BatchState&)>& watch) {
        CT_TRY(BatchState state, queue());
        // What an earlier program submitted comes first: a task that is asked for twice would be done twice.
        if (state.waiting + state.running > 0) CT_TRY_VOID(follow(watch));
        for (int round = 0; round <= m_plan.retries; ++round) {
            const auto open = openBatchTasks(m_plan);
            if (open.empty()) return {};
            CT_TRY_VOID(submit(open));
            CT_TRY_VOID(follow(watch));
        }
        return {};
    }

  private:
    Result<BatchState> queue() const {
        CT_TRY(const std::string text, slurmCommand({"squeue", "--noheader", "--array", "--name", m_name, "--user",
                                                     std::to_string(::getuid()), "--format=%T"},
                                                    m_progress));
        BatchState state;
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            const std::string_view line = std::string_view(text).substr(begin, end - begin);
            if (!line.empty()) ++(line.starts_with("PENDING") ? state.waiting : state.running);
            begin = end + 1;
        }
        return state;
    }

    Result<void> submit(const std::vector<const BatchTask*>& open) const {
        std::error_code failed;
        fs::create_directories(m_folder, failed);
        if (failed)
            return Error{ErrorCode::ToolFailed, "cannot make the folder: " + failed.message(), m_folder.string(), {}};
        CT_TRY(const std::string program, findHelper("cutaway-cli", "CUTAWAY_CLI"));
        const std::string script = (m_folder / "task.sh").string();
        CT_TRY_VOID(replaceFile(script, kScript));
        for (size_t first = 0; first < open.size(); first += kMostOfArray) {
            const size_t count = std::min(kMostOfArray, open.size() - first);
            std::string lines;
            for (size_t i = first; i < first + count; ++i) lines += open[i]->id + "\n";
            // Named after what it holds: an array that still runs goes on to read its own.
            const std::string list =
                (m_folder / (Hasher().add(std::string_view(lines)).finish().hex() + ".tasks")).string();
            CT_TRY_VOID(replaceFile(list, lines));
            std::vector<std::string> words = {"sbatch", "--parsable", "--job-name=" + m_name,
                                              "--array=0-" + std::to_string(count - 1),
                                              "--output=" + (m_folder / "%A_%a.log").string()};
            words.insert(words.end(), m_plan.slurm.begin(), m_plan.slurm.end());
            words.insert(words.end(), {script, program, m_plan.folder, list});
            CT_TRY_VOID(slurmCommand(words, m_progress));
        }
        return {};
    }

    /// Until everything has a result, or the queue has none of our jobs.
    Result<void> follow(const std::function<void(const BatchState&)>& watch) const {
        double wait = kLeastWait;
        for (int silent = 0;;) {
            BatchState state = batchState(m_plan);
            if (state.done == state.all) {
                if (watch) watch(state);
                return {};
            }
            const auto queued = queue();
            if (m_progress.cancelled())
                return Error{ErrorCode::Cancelled,
                             "the batch is no longer followed; its jobs go on, and the same command follows them again",
                             m_plan.folder,
                             {"scancel --name " + m_name + " ends them"}};
            if (!queued) {
                if (++silent == kMostSilent || queued.error().code == ErrorCode::NotFound) return queued.error();
            } else {
                silent = 0;
                state.waiting = queued->waiting;
                state.running = queued->running;
                if (watch) watch(state);
                if (state.waiting + state.running == 0) return settle(watch);
            }
            pause(wait);
            wait = std::min(wait * 1.5, kMostWait);
        }
    }
    Result<void> settle(const std::function<void(const BatchState&)>& watch) const {
        BatchState state = batchState(m_plan);
        for (double waited = 0; waited < kSettle && state.done < state.all; waited += kLeastWait) {
            pause(kLeastWait);
            state = batchState(m_plan);
        }
        if (watch) watch(state);
        return {};
    }
    void pause(double seconds) const {
        constexpr double kPiece = 0.1;
        for (double waited = 0; waited < seconds && !m_progress.cancelled(); waited += kPiece)
            std::this_thread::sleep_for(std::chrono::duration<double>(kPiece));
    }

    const BatchPlan& m_plan;
    const Progress& m_progress;
    std::string m_name;
    fs::path m_folder;
};

}  // namespace

Result<void> runBatchOnSlurm(const BatchPlan& plan, const std::function<void(const BatchState&)>& watch,
                             const Progress& progress) {
    return Cluster(plan, progress).run(watch);
}

}  // namespace cutaway
