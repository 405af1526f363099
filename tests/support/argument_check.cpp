#include "tests/support/argument_check.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"

namespace cutaway::testing {
namespace {

/// Results of sizes between these take long and test nothing new; larger ones fit no memory and must be refused.
constexpr int64_t kMostElements = int64_t{1} << 19, kUnreachable = int64_t{1} << 38;

/// What `body` returns; an exception other than lack of memory is a problem.
template <class Body>
auto caught(const char* stage, std::vector<std::string>& problems, Body&& body) -> decltype(body()) {
    try {
        auto result = body();
        if (!result && result.error().code == ErrorCode::Internal)
            problems.push_back(std::string(stage) + ": " + result.error().message);
        return result;
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::Limit, "out of memory", {}, {}};
    } catch (const std::exception& error) {
        problems.push_back(std::string(stage) + ": exception: " + error.what());
        return Error{ErrorCode::Internal, error.what(), {}, {}};
    }
}

bool complete(const std::vector<Tensor>& inputs) {
    return std::all_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.defined(); });
}

/// Whether a run is worth its time, by the sizes that the types promise.
bool affordable(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) {
        double elements = 1;
        for (const SymInt& size : tensor->sizes) elements *= size.isInt() ? static_cast<double>(size.value()) : 8;
        return elements <= static_cast<double>(kMostElements) || elements >= static_cast<double>(kUnreachable);
    }
    if (const TupleType* tuple = type.tuple()) return std::all_of(tuple->begin(), tuple->end(), affordable);
    return true;
}
bool affordable(const Module& module) {
    for (const Node& node : module.graph().nodes())
        if (!affordable(node.type())) return false;
    return true;
}

/// A tensor that does not lie within its storage, or is not what its type says.
std::string wrongTensor(const Tensor& tensor, const TensorType& type) {
    int64_t last = tensor.offset();
    // Without elements no stride is used, however long it is.
    for (size_t d = 0; tensor.numel() > 0 && d < tensor.sizes().size(); ++d)
        last += (tensor.sizes()[d] - 1) * tensor.strides()[d];
    if (tensor.numel() > 0 &&
        (tensor.offset() < 0 ||
         static_cast<uint64_t>(last + 1) * static_cast<uint64_t>(byteSize(tensor.dtype())) > tensor.storage()->size()))
        return "the result reaches outside its memory";
    if (!allInts(type.sizes)) return {};
    const TensorType actual{tensor.dtype(), {}, toSymDims(tensor.sizes()), toSymDims(tensor.strides())};
    if (tensor.dtype() != type.dtype || tensor.sizes() != toInts(type.sizes) ||
        (tensor.numel() > 0 && tensor.strides() != toInts(type.strides)))
        return "the result is " + actual.fullText() + ", its type says " + type.fullText();
    return {};
}

/// Whether results are drawn at random or uninitialised, so that two runs may differ.
bool hasOwnNumbers(const Op& op) {
    const Op& row = op.functional() ? *op.functional() : op;
    const bool drops = row.name().find("dropout") != std::string::npos ||
                       (row.schema() != nullptr && row.schema()->find("dropout_p") >= 0);
    return row.is(Tag::Random) || row.name().find("empty") != std::string::npos || drops;
}

/// Whether PyTorch's compiler takes 0 times what is not finite for 0, or the reverse: samples outside of a plane are an
/// element of it times 0 (which the kernel does not read), and oneDNN does not multiply weights by the zeros around an
/// image.
bool multipliesByZero(const Op& op, const std::vector<Tensor>& inputs) {
    const auto is = [&](std::string_view part) { return op.name().find(part) != std::string::npos; };
    if (!is("grid_sampler") && !is("convolution")) return false;
    for (const Tensor& input : inputs)
        for (int64_t i = 0; input.defined() && i < input.numel(); ++i)
            if (!std::isfinite(toDouble(input.item(i)))) return true;
    return false;
}

Tolerance toleranceOf(const Tensor& expected) {
    double largest = 0;
    for (int64_t i = 0; i < expected.numel(); ++i)
        if (const double value = std::fabs(toDouble(expected.item(i))); std::isfinite(value))
            largest = std::max(largest, value);
    const double relative = byteSize(expected.dtype()) == 1 ? 0.5 : isHalf(expected.dtype()) ? 4e-2 : 2e-3;
    return isFloating(expected.dtype()) || isComplex(expected.dtype())
               ? Tolerance{relative, relative * std::max(1.0, largest)}
               : Tolerance{};
}
std::string difference(const Op& op, const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    if (actual.size() < expected.size()) return "fewer results";
    for (size_t i = 0; i < expected.size(); ++i) {
        if (actual[i].defined() != expected[i].defined()) return "result " + std::to_string(i) + " is None on one side";
        if (!expected[i].defined()) continue;
        if (op.baseName() == "linspace" && isIntegral(expected[i].dtype())) continue;  // PyTorch's expands to float32
        if (expected[i].numel() > kMostElements) continue;  // few in memory: an expanded view
        const Comparison result = compare(actual[i], expected[i], toleranceOf(expected[i]));
        if (!result.sameType)
            return "result " + std::to_string(i) + " is " +
                   TensorType::contiguous(actual[i].dtype(), toSymDims(actual[i].sizes())).text() + " instead of " +
                   TensorType::contiguous(expected[i].dtype(), toSymDims(expected[i].sizes())).text();
        if (!result.within)
            return "result " + std::to_string(i) + ": numbers differ in " + std::to_string(result.mismatches) +
                   " elements, the worst by " + std::to_string(result.maxAbsoluteError);
    }
    return {};
}

/// The call as a text that has not been looked at, its result annotated with a type if one is given.
std::string textOf(const CallText& call, const SampleCall& sample, const std::string& annotation) {
    std::string parameters, arguments;
    for (size_t i = 0; i < sample.placeholders.size(); ++i)
        parameters +=
            (i ? ", " : "") + sample.placeholders[i]->name() + ": \"" + sample.placeholders[i]->tensor().text() + "\"";
    for (const Argument& argument : sample.positional)
        arguments += (arguments.empty() ? "" : ", ") + printArgument(argument);
    for (const auto& [key, argument] : sample.keywords)
        arguments += (arguments.empty() ? "" : ", ") + key + "=" + printArgument(argument);
    return "def forward(" + parameters + "):\n    y" + annotation + " = " + call.op->name() + "(" + arguments +
           ")\n    return (y,)\n";
}

class CallCheck {
  public:
    CallCheck(const CallText& call, const StageWatch& stage) : m_call(call), m_stage(stage) {}

    CallReport run() {
        m_stage("parse");
        auto parsed = caught("parse", m_report.problems, [&] { return parseSample(m_call.arguments); });
        if (!parsed) {
            m_report.refusal = parsed.error().message;
            return std::move(m_report);
        }
        readers(**parsed);
        m_stage("types");
        auto built = caught("types", m_report.problems, [&] { return buildSample(*m_call.op, m_call.arguments); });
        if (!built) {
            m_report.refusal = built.error().message;
            m_stage("annotated");
            read(textOf(m_call, **parsed, ": \"f32[2, 3]\""), "annotated", (*parsed)->inputs);
            return std::move(m_report);
        }
        m_report.sample = std::move(*built);
        if (m_report.sample->call->type().isOpaque()) {
            m_report.refusal =
                "its type is not known";  // one of Python's operators, with operands that no tensor takes
            return std::move(m_report);
        }
        typed();
        return std::move(m_report);
    }

  private:
    /// What the text reader makes of it, whether or not its types fit; it must run or be refused.
    void readers(const SampleCall& sample) {
        m_stage("text");
        read(textOf(m_call, sample, ""), "text", sample.inputs);
    }
    void read(const std::string& text, const char* stage, const std::vector<Tensor>& inputs) {
        auto& problems = m_report.problems;
        auto module = caught(stage, problems, [&] { return parseText(text); });
        if (!module) return;
        const std::string printed = printText(**module).text;
        auto again = caught(stage, problems, [&] { return parseText(printed); });
        if (!again)
            problems.push_back(std::string(stage) + ": what was printed does not parse: " + again.error().message);
        else if (printText(**again).text != printed)
            problems.push_back(std::string(stage) + ": what was printed reads back as something else");
        PrintOptions runnable;
        runnable.runnable = true;
        printText(**module, runnable);
        if (complete(inputs) && affordable(**module))
            (void)caught(stage, problems, [&] { return interpret(**module, inputs); });
    }

    void typed() {
        auto& problems = m_report.problems;
        m_stage("module");
        auto module = std::make_shared<Module>();
        const auto built = caught("module", problems, [&]() -> Result<void> {
            CT_TRY(const std::vector<Node*> values, appendSample(*m_report.sample, *module));
            finish(*module, values);
            return {};
        });
        if (!built) {
            problems.push_back("module: " + built.error().message);
            return;
        }
        const std::vector<Tensor>& inputs = m_report.sample->inputs;
        const bool runs = complete(inputs) && affordable(*module);
        if (!runs) {
            m_report.outcome = CallReport::Outcome::Large;
        } else {
            m_stage("interpret");
            auto results = caught("interpret", problems, [&] { return interpret(*module, inputs); });
            m_report.outcome = results ? CallReport::Outcome::Ran : CallReport::Outcome::RefusedWhenRun;
            if (!results) m_report.refusal = results.error().message;
            else checkResults(*module, m_report.results = std::move(*results));
        }
        passes(module, Mode::Inference, "inference");
        passes(module, Mode::Training, "training");
    }
    static void finish(Module& module, const std::vector<Node*>& values) {
        std::vector<Argument> results;
        for (Node* result : values) results.push_back(result ? Argument(result) : Argument());
        module.graph().output(ArgumentList{std::move(results), true});
        module.outputs.resize(module.graph().outputs().size());
    }
    void checkResults(const Module& module, const std::vector<Tensor>& results) {
        const std::vector<Argument> outputs = module.graph().outputs();
        for (size_t i = 0; i < results.size(); ++i) {
            const TensorType* type = outputs[i].node() ? outputs[i].node()->type().tensor() : nullptr;
            if (type == nullptr || !results[i].defined()) continue;
            if (const std::string wrong = wrongTensor(results[i], *type); !wrong.empty())
                m_report.problems.push_back("interpret: " + wrong);
        }
    }

    void passes(const std::shared_ptr<const Module>& module, Mode mode, const char* stage) {
        auto& problems = m_report.problems;
        m_stage(stage);
        CompileRequest options;
        options.mode = mode;
        auto trace = caught(stage, problems, [&] { return runPipeline(module, options); });
        if (!trace) return;
        const bool ran = m_report.outcome == CallReport::Outcome::Ran;
        if (trace->failed()) {
            const StepInfo& step = trace->steps.back().info;
            const bool bug = step.error.find("bug in Cutaway") != std::string::npos;
            // Refused whatever the values are; the interpreter refuses only those that differ.
            const bool refused = step.error.find("are one place in memory; clone it first") != std::string::npos;
            if (bug || (ran && !refused && mode == Mode::Inference))
                problems.push_back(std::string(stage) + ": step " + step.name + " failed: " + step.error);
            return;
        }
        auto whole = wholeAt(*trace, static_cast<int>(trace->steps.size()) - 1, trace->result(), true);
        if (!whole) return problems.push_back(std::string(stage) + ": halves do not fit: " + whole.error().message);
        const Snapshot result = *whole;
        printText(*result);
        if (ran && affordable(*result)) runPassed(*result, mode, stage);
        if (mode == Mode::Training) return;
        m_stage("schedule");
        const auto preview = caught("schedule", problems, [&] { return previewCpu(result); });
        m_report.scheduled = preview.has_value() && ran;
        if (!preview && ran) problems.push_back("schedule: " + preview.error().message);
    }
    /// The graph after the passes computes what the call does; gradients need only run.
    void runPassed(const Module& module, Mode mode, const char* stage) {
        std::vector<Tensor> inputs = m_report.sample->inputs;
        const std::vector<Node*> placeholders = module.graph().placeholders();
        for (size_t i = inputs.size(); i < placeholders.size(); ++i) {
            const TensorType* type = placeholders[i]->type().tensor();
            inputs.push_back(type ? Tensor::full(type->dtype, toInts(type->sizes), 1.0) : Tensor());
        }
        const auto results = caught(stage, m_report.problems, [&] { return interpret(module, inputs); });
        if (!results) {
            if (results.error().code != ErrorCode::Limit)
                m_report.problems.push_back(std::string(stage) +
                                            ": refused after the passes: " + results.error().message);
            return;
        }
        if (mode == Mode::Training || hasOwnNumbers(*m_call.op) ||
            multipliesByZero(*m_call.op, m_report.sample->inputs))
            return;
        std::string wrong;
        try {
            wrong = difference(*m_call.op, *results, m_report.results);
        } catch (const InternalError&) {
        }  // values of a dtype without arithmetic are not compared
        if (!wrong.empty()) m_report.problems.push_back(std::string(stage) + ": " + wrong);
    }

    const CallText& m_call;
    const StageWatch& m_stage;
    CallReport m_report;
};

}  // namespace

CallReport checkCall(const CallText& call, const StageWatch& stage) { return CallCheck(call, stage).run(); }

std::vector<std::string> checkCompiled(const std::vector<std::pair<CallText, CallReport>>& calls,
                                       const std::string& compiler) {
    std::vector<std::string> problems;
    auto module = std::make_shared<Module>();
    std::vector<Tensor> inputs;
    std::vector<Argument> outputs;
    std::vector<std::pair<size_t, size_t>> begins;  // of calls: the call, its first output
    for (size_t i = 0; i < calls.size(); ++i) {
        const auto& [call, report] = calls[i];
        if (!report.scheduled) continue;
        const auto values = appendSample(*report.sample, *module);
        if (!values) continue;
        begins.emplace_back(i, outputs.size());
        inputs.insert(inputs.end(), report.sample->inputs.begin(), report.sample->inputs.end());
        for (Node* value : *values) outputs.push_back(value ? Argument(value) : Argument());
    }
    if (begins.empty()) return problems;
    module->graph().output(ArgumentList{std::move(outputs), true});
    module->outputs.resize(module->graph().outputs().size());
    const auto run = caught("compiled", problems, [&]() -> Result<CpuRun> {
        CT_TRY(const CompileTrace trace, runPipeline(module, {}));
        if (trace.failed())
            return invalidInput("step " + trace.steps.back().info.name + " failed: " + trace.steps.back().info.error);
        CT_TRY(const CpuProgram program, buildCpu(trace.result(), {.compiler = compiler, .timeoutSeconds = 600}));
        CpuRunOptions options;
        options.threads = 1;
        options.repeat = 0;
        return runCpu(program, inputs, options);
    });
    const std::string alone = begins.size() == 1 ? calls[begins[0].first].first.text() + ": " : std::string();
    if (!run) {
        problems.push_back("compiled: " + alone + run.error().text());
        return problems;
    }
    for (const auto& [kernel, sentence] : run->refused) problems.push_back("compiled: " + alone + sentence);
    for (const auto& [which, begin] : begins) {
        const auto& [call, report] = calls[which];
        if (hasOwnNumbers(*call.op) || multipliesByZero(*call.op, report.sample->inputs)) continue;
        const std::vector<Tensor> own(
            run->outputs.begin() + static_cast<std::ptrdiff_t>(begin),
            run->outputs.begin() + static_cast<std::ptrdiff_t>(begin + report.results.size()));
        if (const std::string wrong = difference(*call.op, own, report.results); !wrong.empty())
            problems.push_back("compiled: " + call.text() + ": " + wrong);
    }
    return problems;
}

}  // namespace cutaway::testing
