#include "engine/runtime/worker.h"

#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cutaway/guarded.h"
#include "cutaway/program.h"
#include "engine/runtime/checked.h"
#include "engine/runtime/cpu/program_worker.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/plugin_io.h"
#include "engine/runtime/reference.h"
#include "engine/runtime/sent_constants.h"
#include "engine/runtime/worker_pool.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"
#include "engine/support/process.h"
#include "engine/support/process_memory.h"
#include "engine/support/sanitized.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

constexpr int kOutOfMemory = 70;
constexpr size_t kStatusBytes = 4096;  // a page before the reply
constexpr std::string_view kAnswered = ".";
constexpr std::string_view kPlugins = "p";  // in front of what their calls took

/// Weights are kept for later requests, but not a compiled program's, which gives them back once they are packed.
bool keepsConstants(WorkerTask task) { return task == WorkerTask::Reference || task == WorkerTask::Checked; }

Error describeEnd(const ProcessEnd& end, const std::string& doing, const StatusPage& board) {
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

/// The memory that the machine has left, plus room for threads' stacks and libraries; 0 if the process inherits a
/// limit.
int64_t addressSpaceLimit() {
    rlimit inherited{};
    const auto available = availableMemory(ForProcess::NewChild);
    if (!available || ::getrlimit(RLIMIT_AS, &inherited) != 0 || inherited.rlim_cur != RLIM_INFINITY) return 0;
    constexpr int64_t kLibraries = int64_t{2} << 30, kThread = int64_t{160} << 20;
    return available->bytes + kLibraries + kThread * static_cast<int64_t>(std::thread::hardware_concurrency());
}

}  // namespace

struct Worker::State {
    ChildProcess child;
    SentConstants sent{};
    std::shared_ptr<RemoteValues> retained{};  // of the latest answer

    State(ChildProcess process) : child(std::move(process)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { forgetLeft(); }

    void forgetLeft() {
        if (retained) retained->end();
        retained.reset();
    }
    bool hasLeft(const Tensor& tensor) const {
        return retained && tensor.defined() && retained->find(*tensor.storage());
    }

    /// Waits for the answer, telling how far the worker is. False if there will be none: then `end` says why.
    bool follow(const std::string& doing, const StatusPage& board, const WorkerOptions& options,
                const Progress& progress, ProcessEnd& end) {
        constexpr double kLook = 0.1;
        const auto start = std::chrono::steady_clock::now();
        double told = 0;
        while (true) {
            const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            const double remaining = options.timeoutSeconds > 0 ? options.timeoutSeconds - seconds : kLook;
            const auto line = child.readLine(std::clamp(remaining, 0.0, kLook));
            if (line && *line == kAnswered) return true;
            if (line && line->starts_with(kPlugins)) addPluginUse(bytesOfHex(line->substr(kPlugins.size())));
            else if (line && options.told) options.told(bytesOfHex(*line));
            // What it has said is read to its end even when it has ended.
            if (!line && (!child.running() || line.error().code != ErrorCode::Limit)) {
                end = child.wait();
                return false;
            }
            const bool late = remaining <= 0;
            if (late || progress.cancelled()) {
                child.kill();
                end = child.wait();
                end.how = late ? ProcessEnd::How::TimedOut : ProcessEnd::How::Cancelled;
                end.limitSeconds = options.timeoutSeconds;
                return false;
            }
            if (const double fraction = board.fraction(); fraction > told)
                progress.say(told = fraction, "running " + doing);
        }
    }
};

Worker::Worker(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;
void Worker::unload() {
    constexpr double kSeconds = 5;
    if (!ask(WorkerTask::Unload, "what it has loaded", {}, {}, {0, kSeconds, 0, {}}, {})) m_state->child.kill();
}
void Worker::end() { m_state->child.wait(); }
int Worker::process() const { return m_state->child.pid(); }
bool Worker::running() { return m_state && m_state->child.running(); }

Result<Worker> Worker::start(const WorkerOptions& options, bool lasting) {
    CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
    ProcessOptions process;
    process.argv = {worker, "serve"};
    process.wallSeconds = 0;
    process.addressSpaceBytes = options.device            ? 0
                                : options.memoryBytes > 0 ? options.memoryBytes
                                                          : addressSpaceLimit();
    if (options.threads > 0) process.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options.threads));
    if (faultsAsked()) process.environment.emplace_back("CUTAWAY_FAULT", askedFaults());
    CT_TRY(ChildProcess child, lasting ? startLasting(process) : ChildProcess::start(process));
    return Worker(std::make_unique<State>(std::move(child)));
}

Result<Message> Worker::ask(WorkerTask task, std::string_view doing, std::string_view text,
                            const std::vector<Tensor>& tensors, const WorkerOptions& options,
                            const Progress& progress) {
    CT_TRY(SharedMemory request, SharedMemory::create("the inputs and weights"));
    CT_TRY(SharedMemory reply, SharedMemory::create("the results"));
    ByteWriter head;
    std::vector<Tensor> given = tensors;
    std::optional<SharedMemory> constants;
    if (keepsConstants(task)) {
        CT_TRY(constants, m_state->sent.take(given, head));
    }
    // Loading and unloading drop all that the worker keeps.
    if (task == WorkerTask::Load || task == WorkerTask::Unload) m_state->sent = {};
    if (m_state->retained) m_state->retained->keepOnly(given);
    ByteWriter all;
    all.pod(mayReadProcess(process()));
    all.text(head.bytes);
    all.bytes += text;
    // What compiling has freed goes back to the system before weights are written, what computing them has freed after.
    constexpr int64_t kMuch = 16 << 20;
    const bool much = bytesOf(given) > kMuch;
    if (much) returnFreeMemory();
    CT_TRY_VOID(writeMessage(request, 0, all.bytes, given, much ? threadCount() : 1, progress,
                             {.atReader = m_state->retained.get()}));
    if (much) returnFreeMemory();
    std::shared_ptr<const void> boardOwner;
    CT_TRY(const auto page, reply.share(kStatusBytes, boardOwner));
    const StatusPage& board = *new (page.data()) StatusPage;
    // A failed send means that the worker has gone; follow() sees that and tells how it ended.
    std::vector<int> descriptors = {request.descriptor(), reply.descriptor()};
    if (constants) descriptors.push_back(constants->descriptor());
    static_cast<void>(m_state->child.send(static_cast<char>(task), descriptors).has_value());
    ProcessEnd end;
    if (!m_state->follow(std::string(doing), board, options, progress, end))
        return describeEnd(end, std::string(doing), board);
    const auto fresh = std::make_shared<RemoteValues>(process());
    auto answer = readMessage(reply, kStatusBytes, {process(), options.leaves, fresh, options.memory});
    if (!answer && !running()) return describeEnd(m_state->child.wait(), std::string(doing), board);
    CT_TRY(Message message, std::move(answer));
    ByteReader in(message.text);
    const bool answered = in.pod<bool>();
    message.peakBytes = in.pod<int64_t>();
    if (!answered) {
        Error error = readError(in);
        return error;
    }
    m_state->forgetLeft();
    if (options.leaves) m_state->retained = fresh;
    else if (message.stayed)
        static_cast<void>(m_state->child.send(static_cast<char>(WorkerTask::Fetched), {}).has_value());
    message.text.erase(0, sizeof(bool) + sizeof(int64_t));
    return message;
}

Result<void> Worker::fetchLeft(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors)
        if (m_state->hasLeft(tensor)) CT_TRY_VOID(tensor.storage()->load());
    return {};
}

bool neverBegan(const Error& error) {
    return error.where == StatusPage::kNotBegun && error.code == ErrorCode::ToolFailed;
}

Result<Message> askWorker(WorkerTask task, std::string_view doing, std::string_view text,
                          const std::vector<Tensor>& tensors, const WorkerOptions& options, const Progress& progress) {
    // Limits hold for a whole process, and faults are asked of it when it starts.
    if (options.memoryBytes > 0 || options.threads > 0 || faultsAsked()) {
        CT_TRY(Worker worker, Worker::start(options, false));
        auto answer = worker.ask(task, doing, text, tensors, options, progress);
        worker.end();
        return answer;
    }
    while (true) {
        CT_TRY(PooledWorker taken, takeWorker());
        auto answer = taken.worker.ask(task, doing, text, tensors, options, progress);
        const bool lives = taken.worker.running();
        if (lives) giveWorker(std::move(taken.worker));
        // One that waited may have ended while nobody looked, before this request began.
        if (!taken.waited || lives || answer || !neverBegan(answer.error())) return answer;
    }
}

namespace {
void sayInHex(std::string_view mark, std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string line(mark);
    line.reserve(line.size() + 2 * bytes.size() + 1);
    for (const char byte : bytes) {
        line.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
        line.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
    }
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}
}  // namespace

void tell(std::string_view bytes) { sayInHex({}, bytes); }

namespace {

/// When memory is short, the system should end this process rather than the one with the windows.
void raiseOomScore() { std::ofstream("/proc/self/oom_score_adj") << 500; }

/// What the latest answer left here: results that its program has not read yet, or wants to stay.
struct RetainedResults {
    std::vector<Tensor> tensors;
    bool readable = false;  // by the program of the present request

    std::shared_ptr<const void> find(uint64_t address, size_t bytes) const {
        for (const Tensor& tensor : tensors) {
            if (!tensor.defined()) continue;
            const auto first = reinterpret_cast<uintptr_t>(tensor.storage()->data());
            const size_t size = tensor.storage()->size();
            if (address >= first && bytes <= size && address - first <= size - bytes) return tensor.storage();
        }
        return nullptr;
    }
};

Result<Message> perform(WorkerTask task, const SharedMemory& memory, const SharedMemory* constants, StatusPage& board,
                        RetainedResults& retained) {
    static ReceivedConstants kept;
    bool refers = false;
    ReadOptions options;
    options.own = [&](uint64_t address, size_t bytes) {
        refers = true;
        return retained.find(address, bytes);
    };
    CT_TRY(Message request, readMessage(memory, 0, options));
    if (!refers) retained.tensors.clear();
    ByteReader start(request.text);
    retained.readable = start.pod<bool>();
    const std::string told(start.text());
    if (start.failed()) return invalidInput("the request is damaged");
    request.text.erase(0, sizeof(bool) + sizeof(uint64_t) + told.size());
    if (keepsConstants(task)) {
        ByteReader head(told);
        CT_TRY(const bool sound, kept.restore(head, constants, request.tensors));
        if (!sound) return invalidInput("the weights that were sent are damaged");
    }
    if (task == WorkerTask::Load || task == WorkerTask::Unload) kept = {};
    if (task != WorkerTask::Compiled) resetPeakMemory();
    switch (task) {
        case WorkerTask::Load: return answerLoad(request, memory);
        case WorkerTask::Compiled: return answerCompiled(request, board);
        case WorkerTask::Unload: return answerUnload();
        case WorkerTask::Reference: return answerReference(request, board);
        case WorkerTask::Checked: return answerChecked(request, board);
        case WorkerTask::FindCuda: return answerFindCuda();
        case WorkerTask::CompileCuda: return answerCompileCuda(request);
        case WorkerTask::Fetched: break;
    }
    return invalidInput("cutaway-worker of this version does not know the task");
}

Result<void> serve(WorkerTask task, const std::vector<int>& descriptors, RetainedResults& retained) {
    const SharedMemory request(descriptors[0], "the inputs and weights");
    SharedMemory reply(descriptors[1], "the results");
    std::optional<SharedMemory> constants;
    if (descriptors.size() > 2) constants.emplace(descriptors[2], "the weights");
    std::shared_ptr<const void> owner;
    CT_TRY(const auto page, reply.share(kStatusBytes, owner));
    StatusPage& board = *reinterpret_cast<StatusPage*>(page.data());
    auto answer = guarded([&] { return perform(task, request, constants ? &*constants : nullptr, board, retained); });
    ByteWriter out;
    out.pod(answer.has_value());
    out.pod(peakMemory());
    if (answer) {
        out.bytes += answer->text;
        retained.tensors = std::move(answer->tensors);
        return writeMessage(reply, kStatusBytes, out.bytes, retained.tensors, 1, {}, {.addresses = retained.readable});
    }
    if (answer.error().where.empty()) answer.error().where = board.where();
    writeError(out, answer.error());
    return writeMessage(reply, kStatusBytes, out.bytes, {});
}

}  // namespace

int workerMain(int argc, char** argv) {
    if (argc != 2 || std::string_view(argv[1]) != "serve") {
        std::fprintf(stderr, "usage: cutaway-worker serve\nStarted by cutaway; runs graphs in a process of its own.\n");
        return 2;
    }
    keepHeapSmall();
    // One request; false at the end of the input. What a lack of memory throws ends the process with a status of its
    // own.
    RetainedResults retained;
    const auto serveNext = [&]() -> Result<bool> {
        constexpr int kIdleSeconds = 15;
        if (idlesOnDevice() && !awaitDescriptors(kIdleSeconds)) return false;
        const auto asked = receiveDescriptors();
        if (!asked) return false;
        if (static_cast<WorkerTask>(asked->byte) == WorkerTask::Fetched) {
            retained.tensors.clear();
            return true;
        }
        if (asked->descriptors.size() < 2) return invalidInput("a request comes with two descriptors or three");
        const auto task = static_cast<WorkerTask>(asked->byte);
        CT_TRY_VOID(serve(task, asked->descriptors, retained));
        if (const std::string use = takenPluginUse(); !use.empty()) sayInHex(kPlugins, use);
        // While its program reads the answer. After loading there is much, and the first run is waiting.
        const bool first = task == WorkerTask::Load;
        if (first) returnFreeMemory();
        std::printf("%s\n", std::string(kAnswered).c_str());
        std::fflush(stdout);
        if (!first) returnFreeMemory();
        return !deviceIsBroken();
    };
    Result<bool> served = guarded([&]() -> Result<bool> {
        raiseOomScore();
        forgetCode();  // tables that only starting needs
        return true;
    });
    while (served && *served) served = guarded(serveNext);
    if (served) return 0;
    std::fprintf(stderr, "%s\n", served.error().message.c_str());
    return served.error().code == ErrorCode::Limit ? kOutOfMemory : 1;
}

}  // namespace cutaway
