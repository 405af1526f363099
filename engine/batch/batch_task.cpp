#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "cutaway/failure.h"
#include "cutaway/program.h"
#include "cutaway/words.h"
#include "engine/batch/batch_plan.h"
#include "engine/formats/json.h"
#include "engine/support/files.h"
#include "engine/support/process.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kProgram = "cutaway-cli: ";

/// Whoever sends one of these means the process, not the model: an administrator, a scheduler, a system without memory.
bool comesFromOutside(int signal) {
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}
bool wasKilled(const ProcessEnd& end) {
    return end.how == ProcessEnd::How::Cancelled ||
           (end.how == ProcessEnd::How::Signalled && comesFromOutside(end.signal));
}

/// The last error that the program has told, without its notes: what came before it are remarks.
std::string errorOf(const std::string& stderrText) {
    std::string found;
    for (size_t begin = 0; begin < stderrText.size();) {
        const size_t end = std::min(stderrText.find('\n', begin), stderrText.size());
        const std::string_view line = std::string_view(stderrText).substr(begin, end - begin);
        if (line.starts_with(kProgram)) found = line.substr(kProgram.size());
        else if (found.empty() && !line.empty()) found = line;
        begin = end + 1;
    }
    return visibleText(found);
}

/// A program of the task: its end, and the report that it wrote.
struct ProgramResult {
    ProcessEnd end;
    std::unique_ptr<JsonDocument> report;
};

class TaskRunner {
  public:
    TaskRunner(const BatchTask& task, const std::string& folder, int threads, const Progress& progress)
        : m_task(task), m_own(batchTaskFolder(folder, task.id)), m_threads(threads), m_progress(progress) {}

    Result<std::optional<BatchResult>> run() {
        CT_TRY_VOID(clear());
        CT_TRY(const ProgramResult check, start(m_task.command, "check.json", m_task.seconds));
        if (wasKilled(check.end)) return std::optional<BatchResult>();
        m_result.seconds = check.end.seconds;
        judge(check);
        if (m_result.verdict != BatchVerdict::Passes) {
            keepReproducer();
            if (!m_task.minify.empty()) {
                CT_TRY(const bool ended, minify());
                if (!ended) return std::optional<BatchResult>();
            }
        } else {
            std::error_code ignored;
            fs::remove_all(m_own, ignored);
        }
        return std::optional(m_result);
    }

  private:
    /// What a run that was killed has left; a minifier goes on where it was.
    Result<void> clear() {
        std::error_code failed;
        fs::create_directories(m_own, failed);
        if (failed)
            return Error{ErrorCode::ToolFailed, "cannot make the folder: " + failed.message(), m_own.string(), {}};
        for (const char* name : {"check.json", "minify.json", "reproducers", "reproducer"})
            fs::remove_all(m_own / name, failed);
        return {};
    }

    Result<ProgramResult> start(std::vector<std::string> words, const std::string& report, double seconds) {
        CT_TRY(const std::string program, findHelper("cutaway-cli", "CUTAWAY_CLI"));
        ProcessOptions options;
        options.argv = {program};
        options.argv.insert(options.argv.end(), words.begin(), words.end());
        const std::string path = (m_own / report).string();
        options.argv.insert(options.argv.end(), {"--json", path});
        options.environment = {{"CUTAWAY_REPROS", (m_own / "reproducers").string()}};
        if (!std::getenv("OMP_NUM_THREADS"))
            options.environment.emplace_back("OMP_NUM_THREADS", std::to_string(m_threads));
        options.wallSeconds = seconds;
        options.outputLimit = size_t{1} << 20;
        CT_TRY(ProcessEnd end, runProcess(options, {}, m_progress));
        ProgramResult ended{std::move(end), nullptr};
        std::error_code failed;
        if (fs::exists(path, failed))
            if (const auto text = readFile(path); text)
                if (auto document = parseJson(*text, path); document) ended.report = std::move(*document);
        return ended;
    }

    void judge(const ProgramResult& check) {
        FailureSignature signature;
        const ProcessEnd& end = check.end;
        if (end.ok()) {
            m_result.verdict = BatchVerdict::Passes;
            return;
        }
        if (end.how == ProcessEnd::How::TimedOut) {
            m_result.verdict = BatchVerdict::Hangs;
            signature.kind = FailureKind::Hang;
            m_result.message = "it " + end.text();
        } else if (end.how == ProcessEnd::How::Signalled) {
            m_result.verdict = BatchVerdict::Crashes;
            signature.kind = FailureKind::Crash;
            m_result.message = "it " + end.text();
        } else {
            m_result.message = withoutModel(errorOf(end.errors));
            m_result.verdict = differs(check) ? BatchVerdict::Differs : BatchVerdict::Fails;
            signature.kind = m_result.verdict == BatchVerdict::Differs ? FailureKind::Numbers
                             : m_task.command.front() == "run"         ? FailureKind::Run
                                                                       : FailureKind::PassError;
            failedStep(check, signature);
        }
        signature.message = normalisedMessage(m_result.message);
        m_result.signature = signature.text();
    }
    bool differs(const ProgramResult& check) const {
        if (!check.report || m_task.command.front() != "run") return false;
        const auto matches = check.report->root.find("matches");
        return matches && matches->flag() == false;
    }
    /// `compile` reports its steps, of which one may have failed.
    static void failedStep(const ProgramResult& check, FailureSignature& signature) {
        if (!check.report || !check.report->root.isArray()) return;
        for (const Json step : check.report->root.items()) {
            const auto error = step.find("error"), stage = step.find("stage"), name = step.find("name");
            if (!error || !stage || !name || error->text().value_or("").empty()) continue;
            signature.pass = std::string(stage->text().value_or("")) + "/" + std::string(name->text().value_or(""));
        }
    }
    std::string withoutModel(std::string text) const {
        const std::string where = m_task.command[1] + ": ";
        if (text.starts_with(where)) text.erase(0, where.size());
        return text;
    }

    /// Under a name of its own, whatever the program has called it.
    void keepReproducer() {
        std::error_code failed;
        std::vector<fs::path> found;
        for (const auto& entry : fs::directory_iterator(m_own / "reproducers", failed)) found.push_back(entry.path());
        std::sort(found.begin(), found.end());
        if (found.empty()) return;
        fs::rename(found.front(), m_own / "reproducer", failed);
        if (!failed) m_result.reproducer = "tasks/" + m_task.id + "/reproducer";
    }

    Result<bool> minify() {
        std::vector<std::string> words = m_task.minify;
        const bool numbers = m_result.verdict == BatchVerdict::Differs;
        words.insert(words.end(), {"--check", numbers ? "numbers" : "crash", "-o", (m_own / "minified").string(),
                                   "--jobs", std::to_string(m_threads)});
        CT_TRY(const ProgramResult minified, start(words, "minify.json", m_task.minifySeconds));
        if (wasKilled(minified.end)) return false;
        m_result.minifySeconds = minified.end.seconds;
        if (minified.report) {
            const Json& root = minified.report->root;
            const auto nodes = root.find("nodes"), before = root.find("nodes_before"), text = root.find("signature"),
                       reproduced = root.find("reproduced");
            if (nodes && before)
                m_result.minified = std::to_string(before->integer().value_or(0)) + " nodes became " +
                                    std::to_string(nodes->integer().value_or(0));
            if (text) m_result.signature = text->text().value_or("");
            if (reproduced && reproduced->flag() == false) m_result.minified += ", which does not fail alone";
        } else if (minified.end.how == ProcessEnd::How::TimedOut) {
            m_result.minified = "stopped after " + std::to_string(static_cast<int>(m_task.minifySeconds)) + " s";
        } else {
            m_result.minified = "not minified: " + withoutModel(errorOf(minified.end.errors));
        }
        std::error_code failed;
        if (fs::exists(m_own / "minified" / "best", failed))
            m_result.reproducer = "tasks/" + m_task.id + "/minified/best";
        return true;
    }

    const BatchTask& m_task;
    fs::path m_own;
    int m_threads;
    const Progress& m_progress;
    BatchResult m_result;
};

}  // namespace

Result<std::optional<BatchResult>> tryBatchTask(const BatchTask& task, const std::string& folder, int threads,
                                                const Progress& progress) {
    return TaskRunner(task, folder, threads, progress).run();
}

}  // namespace cutaway
