#include "engine/runtime/cuda/cuda_device.h"

#include <sstream>

#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

/// The lines behind "ok".
Result<std::string> askWorker(std::vector<std::string> arguments, const Progress& progress) {
    CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
    ProcessOptions process;
    process.argv = {worker};
    process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
    process.wallSeconds = 120;
    CT_TRY(const ProcessEnd end, runProcess(process, {}, progress));
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "cancelled while asking the GPU", "", {}};
    const std::string& text = end.output;
    if (end.ok() && text.starts_with("ok\n")) return text.substr(3);
    if (end.ok() && text.starts_with("failed\n")) return Error{ErrorCode::ToolFailed, text.substr(7, text.find_last_not_of('\n') - 6), "", {}};
    const std::string words = end.errors.substr(end.errors.size() > 1000 ? end.errors.size() - 1000 : 0);
    return Error{ErrorCode::ToolFailed, "the worker " + end.text() + " while it used the GPU", "", words.empty() ? std::vector<std::string>{} : std::vector{"its last words: " + words}};
}

}  // namespace

Result<CudaFacts> cudaFacts(const Progress& progress) {
    CT_TRY(const std::string reply, askWorker({"cuda-facts"}, progress));
    CudaFacts facts;
    std::istringstream lines(reply);
    std::getline(lines, facts.name);
    std::getline(lines, facts.versions);
    std::string name;
    for (double value = 0; lines >> name >> value;) facts.numbers[name] = value;
    if (facts.name.empty() || facts.numbers.empty()) return Error{ErrorCode::ToolFailed, "the worker's reply about the GPU is damaged", "", {}};
    return facts;
}

Result<double> timeOnCuda(const std::string& graph, bool tf32, const Progress& progress) {
    CT_TRY(const TempDir folder, TempDir::create("cutaway-cuda"));
    const std::string file = folder.file("graph.txt");
    CT_TRY_VOID(writeFile(file, graph));
    CT_TRY(const std::string reply, askWorker({"cuda-time", file, tf32 ? "1" : "0"}, progress));
    std::istringstream line(reply);
    double milliseconds = 0;
    if (!(line >> milliseconds) || !(milliseconds > 0)) return Error{ErrorCode::ToolFailed, "the worker's reply about the GPU is damaged", "", {}};
    return milliseconds;
}

}  // namespace cutaway
