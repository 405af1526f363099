#include "engine/runtime/cpu/worker.h"

#include <cstdio>
#include <exception>
#include <new>

#include "engine/support/files.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

constexpr uint64_t kMagic = 0x31304b52574b5443;  // "CTKWRK01"
constexpr int kOutOfMemory = 70;

void writeError(ByteWriter& out, const Error& error) {
    out.pod(false);
    out.pod(error.code);
    out.text(error.message);
    out.text(error.where);
    out.pod(static_cast<uint64_t>(error.notes.size()));
    for (const std::string& note : error.notes) out.text(note);
}

std::string reply(const Result<ExecutionResult>& result) {
    ByteWriter out;
    out.pod(kMagic);
    if (!result) {
        writeError(out, result.error());
        return std::move(out.bytes);
    }
    out.pod(true);
    out.pod(static_cast<uint64_t>(result->outputs.size()));
    for (const Tensor& tensor : result->outputs) writeTensor(out, tensor);
    for (const auto* times : {&result->callMicroseconds, &result->totalMilliseconds}) {
        out.pod(static_cast<uint64_t>(times->size()));
        for (double time : *times) out.pod(time);
    }
    return std::move(out.bytes);
}

Result<ExecutionResult> readReply(std::string_view bytes) {
    const Error damaged{ErrorCode::ToolFailed, "the worker's reply is damaged", "", {}};
    ByteReader in(bytes);
    if (in.pod<uint64_t>() != kMagic) return damaged;
    if (!in.pod<bool>()) {
        Error error;
        error.code = in.pod<ErrorCode>();
        error.message = in.text();
        error.where = in.text();
        const size_t notes = in.count();
        for (size_t i = 0; i < notes && !in.failed(); ++i) error.notes.push_back(in.text());
        return error;
    }
    ExecutionResult result;
    const size_t outputs = in.count();
    for (size_t i = 0; i < outputs && !in.failed(); ++i) result.outputs.push_back(readTensor(in));
    for (auto* times : {&result.callMicroseconds, &result.totalMilliseconds}) {
        const size_t count = in.count();
        for (size_t i = 0; i < count && !in.failed(); ++i) times->push_back(in.pod<double>());
    }
    if (in.failed()) return damaged;
    return result;
}

Result<ExecutionResult> runRequest(std::string_view bytes) {
    ByteReader in(bytes);
    if (in.pod<uint64_t>() != kMagic) return invalidInput("not a request for cutaway-worker of this version");
    const int repeat = in.pod<int>(), threads = in.pod<int>();
    const std::string library = in.text(), planBytes = in.text();
    CT_TRY(const Plan plan, deserializePlan(planBytes));
    std::vector<Tensor> given;
    const size_t count = in.count();
    for (size_t i = 0; i < count && !in.failed(); ++i) given.push_back(readTensor(in));
    if (in.failed()) return invalidInput("the request is damaged");
    return execute(plan, given, library, repeat, threads);
}

Error describeEnd(const ProcessEnd& end, const std::string& log) {
    const std::string tail = log.substr(log.size() > 1000 ? log.size() - 1000 : 0);
    std::vector<std::string> notes;
    if (!tail.empty()) notes.push_back("its last words: " + tail);
    using How = ProcessEnd::How;
    if (end.how == How::Cancelled) return {ErrorCode::Cancelled, "cancelled while running the compiled graph", "", {}};
    if (end.how == How::TimedOut) return {ErrorCode::Limit, "the compiled graph " + end.text(), "", {"raise the time limit, or look at its kernels' times with fewer repeats"}};
    if (end.exitCode == kOutOfMemory && end.how == How::Exited) return {ErrorCode::Limit, "the compiled graph ran out of memory", "", {"give smaller inputs or raise the memory limit"}};
    if (end.how == How::Signalled && end.signal == 9) notes.push_back("the system may have run out of memory");
    return {ErrorCode::ToolFailed, "the worker " + end.text() + " while running the compiled graph", "", std::move(notes)};
}

}  // namespace

Result<ExecutionResult> runInWorker(const Plan& plan, const std::vector<Tensor>& given, const std::string& library, const WorkerOptions& options, const Progress& progress) {
    CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
    CT_TRY(const TempDir folder, TempDir::create("run"));
    ByteWriter request;
    request.pod(kMagic);
    request.pod(options.repeat);
    request.pod(options.threads);
    request.text(library);
    request.text(serialize(plan));
    request.pod(static_cast<uint64_t>(given.size()));
    for (const Tensor& tensor : given) {
        if (tensor.defined()) CT_TRY_VOID(tensor.storage()->load());
        writeTensor(request, tensor);
    }
    const std::string requestFile = folder.file("request"), replyFile = folder.file("reply");
    CT_TRY_VOID(writeFile(requestFile, request.bytes));
    ProcessOptions process;
    process.argv = {worker, "run", requestFile, replyFile};
    process.wallSeconds = options.timeoutSeconds;
    process.addressSpaceBytes = options.memoryBytes;
    // OpenMP threads of the library that wait actively would take the cores from our own.
    process.environment = {{"GOMP_SPINCOUNT", "10000"}};
    if (options.threads > 0) process.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options.threads));
    CT_TRY(const ProcessEnd end, runProcess(process, {}, progress));
    if (!end.ok()) return describeEnd(end, end.errors);
    CT_TRY(const std::string answer, readFile(replyFile));
    return readReply(answer);
}

int workerMain(int argc, char** argv) {
    if (argc != 4 || std::string_view(argv[1]) != "run") {
        std::fprintf(stderr, "usage: cutaway-worker run REQUEST REPLY\nStarted by cutaway; runs a compiled graph in a process of its own.\n");
        return 2;
    }
    try {
        const auto request = readFile(argv[2]);
        const auto result = request ? runRequest(*request) : Result<ExecutionResult>(request.error());
        const auto written = writeFile(argv[3], reply(result));
        if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
        return written ? 0 : 1;
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "out of memory\n");
        return kOutOfMemory;
    } catch (const std::exception& error) {
        static_cast<void>(writeFile(argv[3], reply(Error{ErrorCode::Internal, error.what(), "cutaway-worker", {}})));
        return 0;
    }
}

}  // namespace cutaway
