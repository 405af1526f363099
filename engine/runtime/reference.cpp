#include "engine/runtime/reference.h"

#include <chrono>

#include "engine/interpret/constants.h"
#include "engine/interpret/peak.h"
#include "engine/runtime/module_io.h"
#include "engine/support/machine.h"

namespace cutaway {
namespace {

using Candidates = std::map<std::string, std::vector<TensorList>>;

/// The tensors of a message, one after the other.
struct TensorReader {
    const std::vector<Tensor>& tensors;
    size_t next = 0;

    TensorList take(ByteReader& in) {
        TensorList list;
        in.each([&] {
            static_cast<void>(in.pod<uint8_t>());  // a count is believed only as far as there are bytes
            if (next < tensors.size()) list.push_back(tensors[next++]);
            else in.fail();
        });
        return list;
    }
};
void writeList(ByteWriter& out, const TensorList& list, std::vector<Tensor>& tensors) {
    out.count(list.size());
    for (const Tensor& tensor : list) {
        out.pod(uint8_t{1});
        tensors.push_back(tensor);
    }
}

void writeCandidates(ByteWriter& out, const Candidates& candidates, std::vector<Tensor>& tensors) {
    out.count(candidates.size());
    for (const auto& [name, lists] : candidates) {
        out.text(name);
        out.count(lists.size());
        for (const TensorList& list : lists) writeList(out, list, tensors);
    }
}
Candidates readCandidates(ByteReader& in, TensorReader& tensors) {
    Candidates candidates;
    in.each([&] {
        std::vector<TensorList>& lists = candidates[std::string(in.text())];
        in.each([&] { lists.push_back(tensors.take(in)); });
    });
    return candidates;
}

bool sameSizes(const TensorList& a, const TensorList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Tensor& x, const Tensor& y) { return x.sizes() == y.sizes(); });
}

/// What a run leaves behind beside its outputs.
struct Watched {
    Candidates candidates;
    Draws draws;
    std::vector<Tensor> inputs;

    void observeDraws(InterpretOptions& options) {
        options.exchange = [this](const Node& node, TensorList& values) {
            if (!node.is(Tag::Random)) return;
            if (const auto found = candidates.find(node.name()); found != candidates.end())
                for (const TensorList& list : found->second)
                    if (sameSizes(list, values)) {
                        for (size_t i = 0; i < values.size(); ++i) values[i] = list[i].to(values[i].dtype());
                        break;
                    }
            draws[node.name()] = values;
        };
    }
    void observeInputs(InterpretOptions& options, const std::vector<Tensor>& given) {
        options.observe = [this, &given](const Node& node, const TensorList& values) {
            if (!node.isPlaceholder()) return;
            // A graph that mutates works on copies, which hold the result when it is done.
            const Tensor& input = given[inputs.size()];
            const bool copied =
                !values.empty() && values[0].defined() && input.defined() && values[0].storage() != input.storage();
            inputs.push_back(copied ? values[0] : Tensor());
        };
    }
};

}  // namespace

Result<ReferenceRun> runReference(const Module& module, const std::vector<Tensor>& inputs,
                                  const ReferenceOptions& options, const Progress& progress) {
    CT_TRY(const Snapshot ready, readyToRun(module, inputs));
    const Module& known = ready ? *ready : module;
    CT_TRY(const Snapshot complete, withConstants(known, progress));
    const Module& graph = complete ? *complete : known;
    ByteWriter out;
    out.pod(std::max(1, options.repeat));
    out.pod(options.faultSide);
    std::vector<Tensor> tensors;
    writeModule(out, graph, tensors);
    writeList(out, inputs, tensors);
    out.pod(options.written || options.watched);
    out.pod(options.watched);
    if (options.watched) writeCandidates(out, options.candidates ? *options.candidates : Candidates(), tensors);
    CT_TRY_VOID(checkMemory("the run",
                            {{"inputs and weights", static_cast<double>(bytesOf(tensors))},
                             {"values", peakBytes(graph)},
                             {"results", outputBytes(graph)}},
                            ForProcess::NewChild));
    CT_TRY(Message reply, askWorker(WorkerTask::Reference, "the graph", out.bytes, tensors,
                                    {0, options.timeoutSeconds, options.memoryBytes}, progress));

    ByteReader in(reply.text);
    TensorReader reader{reply.tensors};
    ReferenceRun run;
    in.each([&] { run.milliseconds.push_back(in.pod<double>()); });
    run.outputs = reader.take(in);
    run.inputs = reader.take(in);
    in.each([&] {
        const std::string name(in.text());
        run.draws[name] = reader.take(in);
    });
    return run;
}

Result<Message> answerReference(const Message& request, StatusPage& board) {
    ByteReader in(request.text);
    const int repeat = in.pod<int>();
    const FaultSideScope side(in.pod<FaultSide>());
    TensorReader reader{request.tensors};
    const std::shared_ptr<Module> module = readModule(in, request.tensors, reader.next);
    const std::vector<Tensor> inputs = reader.take(in);
    Watched watched;
    InterpretOptions options;
    if (in.pod<bool>()) watched.observeInputs(options, inputs);
    if (in.pod<bool>()) {
        watched.candidates = readCandidates(in, reader);
        watched.observeDraws(options);
    }
    if (in.failed()) return invalidInput("the graph that was sent is damaged");

    const double nodes = static_cast<double>(std::max<size_t>(1, module->graph().size())) * repeat;
    int64_t begun = 0;
    options.begin = [&](const Node& node) {
        board.at(node.name());
        board.done(static_cast<double>(begun++) / nodes);
    };
    ByteWriter out;
    std::vector<Tensor> outputs;
    out.count(static_cast<size_t>(repeat));
    for (int i = 0; i < repeat; ++i) {
        watched.inputs.clear();
        const auto start = std::chrono::steady_clock::now();
        CT_TRY(outputs, interpret(*module, inputs, options));
        out.pod(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    Message reply;
    writeList(out, outputs, reply.tensors);
    writeList(out, watched.inputs, reply.tensors);
    out.count(watched.draws.size());
    for (const auto& [name, values] : watched.draws) {
        out.text(name);
        writeList(out, values, reply.tensors);
    }
    reply.text = std::move(out.bytes);
    return reply;
}

}  // namespace cutaway
