#include "engine/runtime/worker.h"

#include <sys/resource.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cutaway/guarded.h"
#include "cutaway/program.h"
#include "engine/runtime/checked.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/reference.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"
#include "engine/support/process.h"

namespace cutaway {
namespace {

constexpr int kOutOfMemory = 70;
constexpr size_t kBoardBytes = 4096;  // a page before the reply

Error describeEnd(const ProcessEnd& end, const std::string& doing, const Board& board) {
    const std::string tail = end.errors.substr(end.errors.size() > 1000 ? end.errors.size() - 1000 : 0);
    std::vector<std::string> notes;
    if (!tail.empty()) notes.push_back("its last words: " + tail);
    using How = ProcessEnd::How;
    if (end.how == How::Cancelled) return {ErrorCode::Cancelled, "cancelled while running " + doing, board.where(), {}};
    if (end.how == How::TimedOut)
        return {ErrorCode::Limit,
                doing + " " + end.text(),
                board.where(),
                {"raise the time limit, or look at its kernels' times with fewer repeats"}};
    if (end.exitCode == kOutOfMemory && end.how == How::Exited)
        return {ErrorCode::Limit,
                doing + " ran out of memory",
                board.where(),
                {"give smaller inputs or raise the memory limit"}};
    if (end.how == How::Signalled && end.signal == SIGKILL) notes.push_back("the system may have run out of memory");
    return {ErrorCode::ToolFailed, "the worker " + end.text() + " while running " + doing, board.where(),
            std::move(notes)};
}

/// Lines carry bytes as hexadecimal digits.
std::string bytesOfHex(std::string_view line) {
    std::string bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
        unsigned value = 0;
        std::from_chars(line.data() + i, line.data() + i + 2, value, 16);
        bytes.push_back(static_cast<char>(value));
    }
    return bytes;
}

/// Waits for the end, telling how far the worker is.
ProcessEnd follow(ChildProcess& child, const std::string& doing, const Board& board, const WorkerOptions& options,
                  const Progress& progress) {
    constexpr double kLook = 0.1;
    double told = 0;
    while (!progress.cancelled()) {
        const auto line = child.readLine(kLook);
        if (line && options.told) options.told(bytesOfHex(*line));
        // What it has said is read to its end even when it has ended.
        if (!line && (!child.running() || line.error().code != ErrorCode::Limit)) break;
        if (const double fraction = board.fraction(); fraction > told)
            progress.say(told = fraction, "running " + doing);
    }
    return child.wait(progress);
}

/// The memory that the machine has left, plus room for threads' stacks and libraries; 0 if the process inherits a
/// limit.
int64_t addressSpaceLimit() {
    rlimit inherited{};
    const auto available = availableMemory(Whose::ChildOwn);
    if (!available || ::getrlimit(RLIMIT_AS, &inherited) != 0 || inherited.rlim_cur != RLIM_INFINITY) return 0;
    constexpr int64_t kLibraries = int64_t{2} << 30, kThread = int64_t{160} << 20;
    return available->bytes + kLibraries + kThread * static_cast<int64_t>(std::thread::hardware_concurrency());
}

}  // namespace

Result<Message> askWorker(WorkerTask task, std::string_view doing, std::string_view text,
                          const std::vector<Tensor>& tensors, const WorkerOptions& options, const Progress& progress) {
    CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
    CT_TRY(SharedMemory request, SharedMemory::create("the inputs and weights"));
    CT_TRY(SharedMemory reply, SharedMemory::create("the results"));
    CT_TRY_VOID(writeMessage(request, 0, text, tensors));
    std::shared_ptr<const void> boardOwner;
    CT_TRY(const auto page, reply.share(kBoardBytes, boardOwner));
    const Board& board = *new (page.data()) Board;

    ProcessOptions process;
    process.argv = {worker, "run", std::to_string(static_cast<int>(task)), std::to_string(request.descriptor()),
                    std::to_string(reply.descriptor())};
    process.descriptors = {request.descriptor(), reply.descriptor()};
    process.wallSeconds = options.timeoutSeconds;
    process.addressSpaceBytes = options.memoryBytes > 0 ? options.memoryBytes : addressSpaceLimit();
    // Threads that wait for the next piece of work sleep: on a busy machine those that spin keep it from being done.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) process.environment.emplace_back("OMP_WAIT_POLICY", "passive");
    if (options.threads > 0) process.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options.threads));
    if (faultsAsked()) process.environment.emplace_back("CUTAWAY_FAULT", askedFaults());
    CT_TRY(ChildProcess child, ChildProcess::start(process));
    const ProcessEnd end = follow(child, std::string(doing), board, options, progress);
    if (!end.ok()) return describeEnd(end, std::string(doing), board);
    CT_TRY(Message message, readMessage(reply, kBoardBytes));
    ByteReader in(message.text);
    if (!in.pod<bool>()) {
        Error error = readError(in);
        return error;
    }
    message.text.erase(0, sizeof(bool));
    return message;
}

void tell(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string line;
    line.reserve(2 * bytes.size() + 1);
    for (const char byte : bytes) {
        line.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
        line.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
    }
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

namespace {

/// When memory is short, the system should end this process rather than the one with the windows.
void volunteer() { std::ofstream("/proc/self/oom_score_adj") << 500; }

Result<Message> perform(WorkerTask task, const SharedMemory& memory, Board& board) {
    CT_TRY(Message request, readMessage(memory, 0));
    switch (task) {
        case WorkerTask::Compiled: return answerCompiled(request, board);
        case WorkerTask::Reference: return answerReference(request, board);
        case WorkerTask::Checked: return answerChecked(request, board);
    }
    return invalidInput("cutaway-worker of this version does not know the task");
}

Result<void> serve(WorkerTask task, int requestDescriptor, int replyDescriptor) {
    const SharedMemory request(requestDescriptor, "the inputs and weights");
    SharedMemory reply(replyDescriptor, "the results");
    std::shared_ptr<const void> owner;
    CT_TRY(const auto page, reply.share(kBoardBytes, owner));
    Board& board = *reinterpret_cast<Board*>(page.data());
    auto answer = guarded([&] { return perform(task, request, board); });
    ByteWriter out;
    out.pod(answer.has_value());
    if (answer) {
        out.bytes += answer->text;
        return writeMessage(reply, kBoardBytes, out.bytes, answer->tensors);
    }
    if (answer.error().where.empty()) answer.error().where = board.where();
    writeError(out, answer.error());
    return writeMessage(reply, kBoardBytes, out.bytes, {});
}

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && value >= 0 ? std::optional(value)
                                                                                             : std::nullopt;
}

}  // namespace

int workerMain(int argc, char** argv) {
    const bool run = argc == 5 && std::string_view(argv[1]) == "run";
    const auto task = run ? number(argv[2]) : std::nullopt, request = run ? number(argv[3]) : std::nullopt,
               reply = run ? number(argv[4]) : std::nullopt;
    if (!task || !request || !reply) {
        std::fprintf(
            stderr,
            "usage: cutaway-worker run TASK REQUEST REPLY\nStarted by cutaway; runs a graph in a process of its own.\n");
        return 2;
    }
    const auto served = guarded([&] {
        volunteer();
        return serve(static_cast<WorkerTask>(*task), *request, *reply);
    });
    if (served) return 0;
    std::fprintf(stderr, "%s\n", served.error().message.c_str());
    return served.error().code == ErrorCode::Limit ? kOutOfMemory : 1;
}

}  // namespace cutaway
