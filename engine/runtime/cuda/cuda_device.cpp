#include "engine/runtime/cuda/cuda_device.h"

#include <mutex>
#include <optional>
#include <sstream>

#include "cutaway/program.h"
#include "engine/support/process.h"

namespace cutaway {
namespace {

/// The worker that uses the GPU: one for all questions of the program, started by the first and again when it has gone.
class GpuWorker {
  public:
    Result<std::string> ask(const std::string& question, const Progress& progress) {
        const std::lock_guard lock(m_mutex);
        const bool known = m_child && m_child->running();
        auto answer = askOnce(question, progress);
        // One that has been idle may leave while it is being asked.
        if (!answer && known && !m_child && answer.error().code != ErrorCode::Cancelled)
            answer = askOnce(question, progress);
        return answer;
    }

  private:
    Result<std::string> askOnce(const std::string& question, const Progress& progress) {
        if (!m_child || !m_child->running()) {
            CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
            ProcessOptions process;
            process.argv = {worker, "cuda"};
            process.wallSeconds = 0;
            CT_TRY(ChildProcess child, ChildProcess::start(process));
            m_child.emplace(std::move(child));
        }
        if (const auto sent = m_child->write(question); !sent) return lost();
        CT_TRY(const std::string line, replyLine(progress));
        std::istringstream words(line);
        std::string word;
        size_t length = 0;
        if (!(words >> word >> length) || (word != "ok" && word != "failed")) return lost();
        auto text = m_child->readBytes(length, kPatience);
        if (!text) return lost();
        if (word == "ok") return text;
        return Error{ErrorCode::ToolFailed, *text, "", {}};
    }
    Result<std::string> replyLine(const Progress& progress) {
        for (double waited = 0; waited < kPatience; waited += kGlance) {
            auto line = m_child->readLine(kGlance);
            if (line) return line;
            if (progress.cancelled()) {
                m_child.reset();
                return Error{ErrorCode::Cancelled, "cancelled while asking the GPU", "", {}};
            }
            if (line.error().code != ErrorCode::Limit) return lost();
        }
        m_child->kill();
        return lost();
    }
    /// Drops a worker that is of no use any more; the error has the last that it wrote to stderr.
    Error lost() {
        const ProcessEnd end = m_child->wait();
        m_child.reset();
        const std::string words = end.errors.substr(end.errors.size() > 1000 ? end.errors.size() - 1000 : 0);
        return Error{ErrorCode::ToolFailed, "the worker " + end.text() + " while it used the GPU", "",
                     words.empty() ? std::vector<std::string>{} : std::vector{"its last words: " + words}};
    }

    static constexpr double kPatience = 120, kGlance = 0.25;  // seconds
    std::mutex m_mutex;
    std::optional<ChildProcess> m_child;
};

Result<std::string> askWorker(const std::string& question, const Progress& progress) {
    static GpuWorker worker;
    return worker.ask(question, progress);
}

}  // namespace

Result<CudaFacts> cudaFacts(const Progress& progress) {
    CT_TRY(const std::string reply, askWorker("facts\n", progress));
    CudaFacts facts;
    std::istringstream lines(reply);
    std::getline(lines, facts.name);
    std::getline(lines, facts.versions);
    std::string name;
    for (double value = 0; lines >> name >> value;) facts.numbers[name] = value;
    if (facts.name.empty() || facts.numbers.empty())
        return Error{ErrorCode::ToolFailed, "the worker's reply about the GPU is damaged", "", {}};
    return facts;
}

Result<double> timeOnCuda(const std::string& graph, bool tf32, const Progress& progress) {
    CT_TRY(
        const std::string reply,
        askWorker(std::string("time ") + (tf32 ? "1 " : "0 ") + std::to_string(graph.size()) + "\n" + graph, progress));
    std::istringstream line(reply);
    double milliseconds = 0;
    if (!(line >> milliseconds) || !(milliseconds > 0))
        return Error{ErrorCode::ToolFailed, "the worker's reply about the GPU is damaged", "", {}};
    return milliseconds;
}

}  // namespace cutaway
