#include "engine/trials/trial_job.h"

#include "engine/passes/defined_operators.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

void writeTensor(ByteWriter& out, const Tensor& tensor, const TensorTable& table, std::vector<Tensor>& sent) {
    const int known = tensor.defined() ? table.find(tensor) : -1;
    out.pod(known);
    if (known < 0) sent.push_back(tensor);
}

Tensor readTensor(ByteReader& in, const std::vector<Tensor>& table, const std::vector<Tensor>& sent, size_t& next) {
    const int known = in.pod<int>();
    if (known >= 0 && known < static_cast<int>(table.size())) return table[static_cast<size_t>(known)];
    if (known >= 0 || next >= sent.size()) {
        in.fail();
        return {};
    }
    return sent[next++];
}

}  // namespace

Result<const SharedMemory*> TensorTable::shared() const {
    const std::lock_guard lock(m_mutex);
    if (!m_memory) {
        CT_TRY(SharedMemory memory, SharedMemory::create("the weights"));
        if (m_make) m_tensors = m_make();
        CT_TRY_VOID(writeMessage(memory, 0, {}, m_tensors));
        m_memory.emplace(std::move(memory));
    }
    return &*m_memory;
}

int TensorTable::find(const Tensor& tensor) const {
    for (size_t i = 0; i < m_tensors.size(); ++i) {
        const Tensor& each = m_tensors[i];
        if (each.defined() && each.storage() == tensor.storage() && each.dtype() == tensor.dtype() &&
            each.sizes() == tensor.sizes() && each.strides() == tensor.strides() && each.offset() == tensor.offset())
            return static_cast<int>(i);
    }
    return -1;
}

Message writeJob(const TrialJob& job, const TensorTable& table) {
    ByteWriter out;
    Message message;
    out.text(job.graph);
    out.text(job.stage);
    out.text(job.request.text());
    out.pod(job.check.level);
    out.pod(job.check.backend);
    out.pod(job.check.tolerance);
    out.pod(job.check.namesPass);
    out.text(job.check.pass);
    out.pod(job.check.derivatives);
    out.text(job.check.judge);
    out.text(job.passFuel ? job.passFuel->pass : std::string());
    out.pod(job.passFuel ? job.passFuel->rewrites : int64_t{0});
    out.count(job.constants.size() + job.syntheticWeights.size());
    for (const auto* list : {&job.constants, &job.syntheticWeights})
        for (const auto& [name, tensor] : *list) {
            out.text(name);
            writeTensor(out, tensor, table, message.tensors);
        }
    out.count(job.inputs.size());
    for (const Tensor& tensor : job.inputs) writeTensor(out, tensor, table, message.tensors);
    message.text = std::move(out.bytes);
    return message;
}

Result<TrialJob> readJob(const Message& message, const std::vector<Tensor>& table) {
    ByteReader in(message.text);
    TrialJob job;
    job.graph = in.text();
    job.stage = in.text();
    CT_TRY(job.request, parseRequest(in.text()));
    job.check.level = in.pod<TrialCheck::Level>();
    job.check.backend = in.pod<Backend>();
    job.check.tolerance = in.pod<double>();
    job.check.namesPass = in.pod<bool>();
    job.check.pass = in.text();
    job.check.derivatives = in.pod<bool>();
    job.check.judge = in.text();
    PassFuel fuel{std::string(in.text()), 0};
    fuel.rewrites = in.pod<int64_t>();
    if (!fuel.pass.empty()) job.passFuel = std::move(fuel);
    size_t next = 0;
    in.each([&] {
        std::string name(in.text());
        job.constants.emplace_back(std::move(name), readTensor(in, table, message.tensors, next));
    });
    in.each([&] { job.inputs.push_back(readTensor(in, table, message.tensors, next)); });
    if (in.failed()) return Error{ErrorCode::ToolFailed, "the trial that was sent is damaged", {}, {}};
    return job;
}

TrialOutcome runJob(const TrialJob& job, StatusPage& board) {
    board.at("reading the graph");
    const auto defined = defineOperators(job.request);
    auto module = defined ? parseText(job.graph) : Result<std::unique_ptr<Module>>(defined.error());
    if (!module) {
        FailureSignature signature;
        signature.kind = FailureKind::Run;
        signature.message = normalisedMessage(module.error().message);
        return {signature, "the graph does not read back: " + module.error().text(), 0};
    }
    (*module)->origin.stage = job.stage;
    for (const auto& [name, tensor] : job.constants)
        if (tensor.defined()) (*module)->tensors.insert_or_assign(name, tensor);
    std::optional<PassFuelScope> limit;
    if (job.passFuel) limit.emplace(*job.passFuel);
    return tryHere(std::shared_ptr<const Module>(std::move(*module)), job.request, job.inputs, job.check, board);
}

std::string writeOutcome(const TrialOutcome& outcome) {
    ByteWriter out;
    out.pod(outcome.failure.has_value());
    const FailureSignature signature = outcome.failure.value_or(FailureSignature());
    out.pod(signature.kind);
    for (const std::string* text : {&signature.message, &signature.pass, &signature.op, &outcome.detail})
        out.text(*text);
    out.pod(outcome.milliseconds);
    out.count(outcome.near.size());
    for (const auto& group : outcome.near) {
        out.count(group.size());
        for (const std::string& name : group) out.text(name);
    }
    return std::move(out.bytes);
}

Result<TrialOutcome> readOutcome(std::string_view bytes) {
    ByteReader in(bytes);
    TrialOutcome outcome;
    const bool failed = in.pod<bool>();
    FailureSignature signature;
    signature.kind = in.pod<FailureKind>();
    for (std::string* text : {&signature.message, &signature.pass, &signature.op, &outcome.detail}) *text = in.text();
    outcome.milliseconds = in.pod<double>();
    in.each([&] {
        auto& group = outcome.near.emplace_back();
        in.each([&] { group.emplace_back(in.text()); });
    });
    if (in.failed()) return Error{ErrorCode::ToolFailed, "what the trial answered is damaged", {}, {}};
    if (failed) outcome.failure = std::move(signature);
    return outcome;
}

}  // namespace cutaway
