#include "engine/trials/trial_server.h"

#include <unistd.h>

#include <charconv>
#include <cstring>

#include "cutaway/program.h"
#include "engine/support/fault_points.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

constexpr double kLook = 0.1;    // seconds between two checks for cancellation
constexpr double kPatience = 5;  // seconds that the server may take beside the trial's own limit

/// The signature of a process that ended without an answer.
TrialOutcome died(FailureKind kind, const std::string& how, const StatusPage& board, const std::string& words) {
    TrialOutcome outcome;
    FailureSignature signature;
    signature.kind = kind;
    signature.message = normalisedMessage(how);
    signature.pass = board.pass();
    outcome.failure = signature;
    outcome.detail = how + " (" + board.where() + ")" + (words.empty() ? "" : ": " + words);
    return outcome;
}

std::optional<int> numberIn(std::string_view text) {
    int value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

TrialServer::TrialServer(std::shared_ptr<const TensorTable> table, SharedMemory request, SharedMemory reply,
                         SharedMemory errors, ChildProcess child)
    : m_table(std::move(table)),
      m_request(std::move(request)),
      m_reply(std::move(reply)),
      m_errors(std::move(errors)),
      m_child(std::move(child)) {}

Result<TrialServer> TrialServer::start(std::shared_ptr<const TensorTable> table) {
    CT_TRY(const std::string program, findHelper("cutaway-trials", "CUTAWAY_TRIALS"));
    CT_TRY(SharedMemory request, SharedMemory::create("the graph"));
    CT_TRY(SharedMemory reply, SharedMemory::create("the answer"));
    CT_TRY(SharedMemory errors, SharedMemory::create("messages"));
    CT_TRY(const SharedMemory* const tensors, table->shared());
    ProcessOptions options;
    options.argv = {program};
    for (const SharedMemory* memory : std::initializer_list<const SharedMemory*>{&request, &reply, &errors, tensors}) {
        options.descriptors.push_back(memory->descriptor());
        options.argv.push_back(std::to_string(memory->descriptor()));
    }
    options.wallSeconds = 0;
    options.environment.emplace_back("CUTAWAY_REPROS", "off");  // a trial's failure is what is looked for
    if (faultsAsked()) options.environment.emplace_back("CUTAWAY_FAULT", askedFaults());
    CT_TRY(ChildProcess child, ChildProcess::start(options));
    return TrialServer(std::move(table), std::move(request), std::move(reply), std::move(errors), std::move(child));
}

std::string TrialServer::lastWords() const {
    std::shared_ptr<const void> owner;
    const auto bytes = m_errors.map(owner);
    if (!bytes) return {};
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const std::string_view shown = text.substr(0, text.find('\0'));
    return std::string(shown.substr(shown.size() > 400 ? shown.size() - 400 : 0));
}

Result<TrialOutcome> TrialServer::run(const TrialJob& job, const TrialLimits& limits, const Progress& progress) {
    std::shared_ptr<const void> boardOwner;
    CT_TRY(const auto page, m_reply.share(kStatusBytes, boardOwner));
    const StatusPage& board = *new (page.data()) StatusPage;
    auto outcome = outcomeOf(job, limits, board, progress);
    if (outcome) {
        outcome->rewrites = board.rewrites();
        outcome->lastRewrite = board.lastRewrite();
        outcome->changed = board.changedPasses();
    }
    return outcome;
}

Result<TrialOutcome> TrialServer::outcomeOf(const TrialJob& job, const TrialLimits& limits, const StatusPage& board,
                                            const Progress& progress) {
    const Message message = writeJob(job, *m_table);
    CT_TRY_VOID(writeMessage(m_request, 0, message.text, message.tensors));
    int64_t memory = limits.memoryBytes;
    if (memory == 0)
        if (const auto available = availableMemory(ForProcess::NewChild)) memory = available->bytes;
    CT_TRY_VOID(m_child.write("run " + std::to_string(limits.seconds) + " " + std::to_string(memory) + "\n"));
    Result<std::string> line = Error{};
    bool stopped = false;
    for (double waited = 0;; waited += kLook) {
        line = m_child.readLine(kLook);
        if (line || line.error().code != ErrorCode::Limit) break;
        if (waited > limits.seconds + kPatience)
            return Error{ErrorCode::ToolFailed, "the process that makes trials does not answer", {}, {}};
        if (progress.cancelled() && !std::exchange(stopped, true)) CT_TRY_VOID(m_child.write("kill\n"));
    }
    if (!line) return line.error();
    if (stopped) return Error{ErrorCode::Cancelled, "the trial was stopped", {}, {}};
    if (*line == "time") {
        TrialOutcome outcome = died(FailureKind::Hang, "took longer than the limit", board, {});
        outcome.milliseconds = limits.seconds * 1000;
        return outcome;
    }
    if (line->starts_with("signal ")) {
        const int signal = numberIn(std::string_view(*line).substr(7)).value_or(0);
        return died(FailureKind::Crash, std::string("was ended by a signal: ") + ::strsignal(signal), board,
                    lastWords());
    }
    if (*line == "memory") return died(FailureKind::Memory, std::string(kTooMuchMemory), board, {});
    if (*line != "exit 0")
        return died(FailureKind::Crash, "ended by itself with another status than 0", board, lastWords());
    CT_TRY(const Message reply, readMessage(m_reply, kStatusBytes));
    return readOutcome(reply.text);
}

}  // namespace cutaway
