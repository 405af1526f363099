#include "engine/trials/testers.h"

#include <filesystem>

#include "cutaway/guarded.h"
#include "cutaway/plugins.h"
#include "engine/formats/safetensors.h"
#include "engine/support/elapsed.h"
#include "engine/support/files.h"
#include "engine/support/shell_words.h"
#include "engine/support/temp_dir.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

class ForkingTester : public Tester {
  public:
    ForkingTester(std::shared_ptr<const TensorTable> table, const TrialLimits& limits)
        : m_table(std::move(table)), m_limits(limits) {}

    Result<TrialOutcome> test(const TrialJob& job, const Progress& progress) override {
        const bool needs = !job.inputs.empty() || !job.constants.empty() || !job.syntheticWeights.empty();
        if (!m_server || (needs && !m_hasTensors)) CT_TRY_VOID(start(needs));
        auto outcome = m_server->run(job, m_limits, progress);
        // A server that is gone is started again once: a trial may have ended it.
        if (outcome || outcome.error().code == ErrorCode::Cancelled) return outcome;
        CT_TRY_VOID(start(needs));
        return m_server->run(job, m_limits, progress);
    }

  private:
    Result<void> start(bool withTensors) {
        m_server.reset();
        m_hasTensors = withTensors;
        CT_TRY(TrialServer server, TrialServer::start(withTensors ? m_table : std::make_shared<const TensorTable>()));
        m_server.emplace(std::move(server));
        return {};
    }

    bool m_hasTensors = false;
    std::shared_ptr<const TensorTable> m_table;
    TrialLimits m_limits;
    std::optional<TrialServer> m_server;
};

class CommandTester : public Tester {
  public:
    CommandTester(TempDir folder, std::string command, std::string match, const TrialLimits& limits)
        : m_folder(std::move(folder)), m_command(std::move(command)), m_match(std::move(match)), m_limits(limits) {}

    Result<TrialOutcome> test(const TrialJob& job, const Progress& progress) override {
        const std::string file = m_folder.file("graph.py");
        CT_TRY_VOID(writeRunnable(job, file));
        ProcessOptions process;
        process.argv = {"sh", "-c", commandOn(m_command, file)};
        process.wallSeconds = m_limits.seconds;
        process.addressSpaceBytes = m_limits.memoryBytes;
        const auto start = std::chrono::steady_clock::now();
        CT_TRY(ChildProcess child, ChildProcess::start(process));
        const ProcessEnd end = child.wait({progress.cancel, {}});
        if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "the trial was stopped", {}, {}};
        if (end.how == ProcessEnd::How::Exited && (end.exitCode == 126 || end.exitCode == 127))
            return Error{ErrorCode::ToolFailed, "the command cannot be run: " + end.errors, m_command, {}};
        TrialOutcome outcome;
        outcome.milliseconds =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        outcome.detail = "the command " + end.text();
        FailureSignature signature;
        signature.kind = end.how == ProcessEnd::How::TimedOut ? FailureKind::Hang : FailureKind::Command;
        signature.message = end.how == ProcessEnd::How::TimedOut ? "took longer than the limit" : end.text();
        if (m_match.empty()) {
            if (!end.ok()) outcome.failure = signature;
        } else if ((end.output + end.errors).find(m_match) != std::string::npos) {
            signature.kind = FailureKind::Command;
            signature.message = "prints " + m_match;
            outcome.failure = signature;
        }
        return outcome;
    }

  private:
    TempDir m_folder;
    std::string m_command, m_match;
    TrialLimits m_limits;
};

/// A plugin's oracle, on the graph as text.
class OracleTester : public Tester {
  public:
    OracleTester(std::string oracle, double seconds) : m_oracle(std::move(oracle)), m_seconds(seconds) {}

    Result<TrialOutcome> test(const TrialJob& job, const Progress& progress) override {
        const auto start = std::chrono::steady_clock::now();
        CT_TRY(const OracleVerdict verdict, askOracle(m_oracle, job.graph, m_seconds, progress));
        TrialOutcome outcome;
        outcome.milliseconds = millisecondsSince(start);
        outcome.detail = verdict.sentence;
        if (outcome.detail.empty())
            outcome.detail = "the oracle says that it " + std::string(verdict.fails ? "fails" : "is good");
        if (!verdict.fails) return outcome;
        FailureSignature signature;
        signature.kind = FailureKind::Command;
        signature.message = "the oracle " + m_oracle + " says that it fails";
        outcome.failure = std::move(signature);
        return outcome;
    }

  private:
    std::string m_oracle;
    double m_seconds;
};

}  // namespace

MakeTester forkingTesters(std::shared_ptr<const TensorTable> table, const TrialLimits& limits) {
    return [table, limits]() -> Result<std::unique_ptr<Tester>> {
        return std::unique_ptr<Tester>(std::make_unique<ForkingTester>(table, limits));
    };
}

MakeTester commandTesters(const std::string& command, const std::string& match, const TrialLimits& limits) {
    return [command, match, limits]() -> Result<std::unique_ptr<Tester>> {
        if (const auto oracle = oracleOf(command))
            return std::unique_ptr<Tester>(std::make_unique<OracleTester>(*oracle, limits.seconds));
        CT_TRY(TempDir folder, TempDir::create("trial"));
        return std::unique_ptr<Tester>(std::make_unique<CommandTester>(std::move(folder), command, match, limits));
    };
}

TesterPool::TesterPool(int threads, MakeTester make) {
    for (int i = 0; i < std::max(1, threads); ++i) m_threads.emplace_back([this, make] { work(make); });
}

TesterPool::~TesterPool() {
    {
        const std::lock_guard lock(m_mutex);
        m_ending = true;
        for (Task& task : m_tasks) task.cancel->cancel();
    }
    m_some.notify_all();
    for (std::thread& thread : m_threads) thread.join();
}

std::future<Result<TrialOutcome>> TesterPool::submit(TrialJob job, std::shared_ptr<CancelToken> cancel) {
    Task task{std::move(job), std::move(cancel), {}};
    auto answer = task.answer.get_future();
    {
        const std::lock_guard lock(m_mutex);
        m_tasks.push_back(std::move(task));
    }
    m_some.notify_one();
    return answer;
}

void TesterPool::work(const MakeTester& make) {
    std::unique_ptr<Tester> tester;
    while (true) {
        std::unique_lock lock(m_mutex);
        m_some.wait(lock, [&] { return m_ending || !m_tasks.empty(); });
        if (m_tasks.empty()) return;
        Task task = std::move(m_tasks.front());
        m_tasks.pop_front();
        lock.unlock();
        task.answer.set_value(guarded([&]() -> Result<TrialOutcome> {
            if (task.cancel->cancelled()) return Error{ErrorCode::Cancelled, "the trial was stopped", {}, {}};
            if (!tester) {
                CT_TRY(tester, make());
            }
            return tester->test(task.job, {task.cancel, {}});
        }));
    }
}

namespace {

constexpr int64_t kMostInputBytes = int64_t{16} << 20;  // that are written beside each file

}  // namespace

Result<std::string> runnableOf(const TrialJob& job) {
    CT_TRY(const auto module, parseText(job.graph));
    for (const auto& [name, tensor] : job.constants)
        if (tensor.defined()) module->tensors.insert_or_assign(name, tensor);
    CT_TRY_VOID(checkRunnable(*module));
    PrintOptions print;
    print.runnable = print.storedInputs = true;
    return printText(*module, print).text;
}

Result<void> writeRunnable(const TrialJob& job, const std::string& file) {
    CT_TRY(const std::string text, runnableOf(job));
    CT_TRY_VOID(writeFile(file, text));
    CT_TRY(const auto module, parseText(job.graph));
    SafeTensors inputs;
    std::vector<Tensor> all;
    size_t next = 0;
    const std::vector<Node*> placeholders = module->graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const InputSpec& spec = module->inputs[i];
        Tensor value;
        if (spec.isGiven()) {
            if (next < job.inputs.size()) value = job.inputs[next++];
        } else {
            for (const auto& [name, tensor] : job.constants)
                if (name == spec.target) value = tensor;
        }
        if (!value.defined()) continue;
        all.push_back(value);
        inputs.tensors.emplace_back(placeholders[i]->name(), value);
    }
    const std::string path = (std::filesystem::path(file).parent_path() / "inputs.safetensors").string();
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (all.empty() || bytesOf(all) > kMostInputBytes) return {};
    return writeSafeTensors(path, inputs);
}

}  // namespace cutaway
