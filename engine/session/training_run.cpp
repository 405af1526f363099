#include "engine/session/training_run.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/autograd/functionalize.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/partition/join_graphs.h"
#include "engine/passes/whole_program.h"
#include "engine/schedule/fusion.h"
#include "engine/session/compare_outputs.h"
#include "engine/session/differentiated_graph.h"
#include "engine/session/halves.h"
#include "engine/session/output_report.h"
#include "engine/session/run_inputs.h"
#include "engine/session/run_notes.h"
#include "engine/session/tied_names.h"
#include "engine/session/ties.h"
#include "engine/session/view_gradient.h"
#include "engine/session/written_values.h"

namespace cutaway {
namespace {

using NamedTensor = std::pair<std::string, Tensor>;

/// The loss of the forward's results, and its derivative by each of them; undefined where there is none.
struct Loss {
    double value = 0;
    std::string from;
    std::vector<Tensor> gradients;  // one per output of the forward
};

double meanOfSquares(const Tensor& tensor) {
    double sum = 0;
    const int64_t count = tensor.numel();
    for (int64_t i = 0; i < count; ++i) {
        const double value = toDouble(tensor.item(i));
        sum += value * value;
    }
    return count ? sum / static_cast<double>(count) : 0;
}
/// 2 y / n, row-major.
Tensor gradientOfMeanOfSquares(const Tensor& tensor) {
    Tensor gradient = Tensor::zeros(DType::F64, tensor.sizes());
    const int64_t count = tensor.numel();
    for (int64_t i = 0; i < count; ++i)
        gradient.as<double>()[i] = 2 * toDouble(tensor.item(i)) / static_cast<double>(count);
    return gradient.to(tensor.dtype());
}

Result<Loss> lossOf(const Module& forward, const std::vector<Tensor>& outputs) {
    Loss loss;
    loss.gradients.resize(outputs.size());
    std::vector<size_t> floating;
    for (const size_t position : userOutputs(forward)) {
        const Tensor& output = outputs[position];
        if (!output.defined()) continue;
        if (isComplex(output.dtype()))
            return unsupported("a result is complex, so there is no loss that is a number", {},
                               {"return torch.view_as_real of it"});
        if (isFloating(output.dtype())) floating.push_back(position);
    }
    if (floating.size() == 1 && outputs[floating[0]].rank() == 0) {
        loss.value = toDouble(outputs[floating[0]].item(0));
        loss.from = "the returned number";
        loss.gradients[floating[0]] = Tensor::full(outputs[floating[0]].dtype(), {}, Scalar(1.0));
        return loss;
    }
    loss.from = "the mean of squares of each floating result, summed";
    for (const size_t position : floating) {
        loss.value += meanOfSquares(outputs[position]);
        loss.gradients[position] = gradientOfMeanOfSquares(outputs[position]);
    }
    return loss;
}

/// Which output of the forward each tangent belongs to: as differentiation noted it, else the next one of its type.
Result<std::vector<size_t>> tangentOutputs(const Module& forward, const Module& backward) {
    const std::vector<Argument> outputs = forward.graph().outputs();
    const std::vector<Node*> placeholders = backward.graph().placeholders();
    std::vector<size_t> found;
    size_t next = 0;
    for (size_t i = 0; i < placeholders.size(); ++i) {
        if (backward.inputs[i].kind != InputSpec::Kind::Tangent) continue;
        const TensorType* type = placeholders[i]->type().tensor();
        if (const std::string& noted = backward.inputs[i].target;
            !noted.empty() && noted.find_first_not_of("0123456789") == std::string::npos && noted.size() < 9)
            next = static_cast<size_t>(std::stoul(noted));
        while (next < outputs.size() && type) {
            const TensorType* output = outputs[next].node() ? outputs[next].node()->type().tensor() : nullptr;
            if (output && output->dtype == type->dtype && output->sizes == type->sizes) break;
            ++next;
        }
        if (next >= outputs.size() || !type)
            return invalidInput("no result of the forward has the type of '" + placeholders[i]->name() + "'",
                                placeholders[i]->name());
        found.push_back(next++);
    }
    return found;
}

/// `a` may be undefined.
Tensor sumOf(const Tensor& a, const Tensor& b) {
    if (!a.defined()) return b;
    Tensor sum = Tensor::empty(DType::F64, a.sizes());
    for (int64_t i = 0; i < a.numel(); ++i) sum.as<double>()[i] = toDouble(a.item(i)) + toDouble(b.item(i));
    return sum.to(a.dtype());
}

/// Both halves of one program, in one process, one after the other.
RunCost sumOf(const RunCost& forward, const RunCost& backward) {
    RunCost both = backward;
    both.peakBytes = std::max(forward.peakBytes, backward.peakBytes);
    both.programPeakBytes = std::max(forward.programPeakBytes, backward.programPeakBytes);
    both.arenaBytes = std::max(forward.arenaBytes, backward.arenaBytes);
    both.loadMilliseconds += forward.loadMilliseconds;
    both.startMilliseconds += forward.startMilliseconds;
    return both;
}

class TrainingRun {
  public:
    TrainingRun(const Session::State& state, Session::State::Run& run, const RunOptions& options,
                const Progress& progress)
        : m_state(state),
          m_run(run),
          m_options(options),
          m_progress(progress),
          m_forward(run.trace.resultOf("forward")),
          m_backward(run.trace.resultOf("backward")) {}

    Result<RunReport> execute() {
        CT_TRY_VOID(checkSizes(*m_forward, m_options.backend));
        CT_TRY(m_judge, RowJudge::of(m_options, m_progress));
        CT_TRY(RunInputs inputs,
               chooseInputs(*m_state.input, m_state.sampleInputs, m_options.inputsFile, m_state.noSamples));
        takeTangents(inputs.user);
        Snapshot fixed;
        if (!m_options.valuesFile.empty()) {
            CT_TRY(fixed, withValues(*m_forward, m_options.valuesFile, inputs.user));
        }
        const Module& forward = fixed ? *fixed : *m_forward;
        CT_TRY(const std::vector<Tensor> bound, bindInputs(forward, inputs.user));
        CT_TRY_VOID(checkWrittenInputs(forward, bound));
        SymbolValues sizes;
        if (!freeSymbols(forward).empty()) {
            CT_TRY(sizes, solveSymbols(forward, bound));
        }
        m_progress.say(-1, "forward");
        CpuProgram::Hold hold;
        if (m_options.backend != Backend::Reference && !fixed) {
            CT_TRY(hold, holdHalves(m_run, bound, m_progress));
        }
        CT_TRY(Execution ahead, runHalf("forward", fixed, forward, bound, {}));
        CT_TRY(const Loss loss,
               m_tangents.empty() ? lossOf(forward, ahead.outputs) : lossOfTangents(forward, ahead.outputs));
        keepInputs(forward, bound, ahead.outputs);
        CT_TRY(const std::vector<Tensor> handed, backwardInputs(forward, ahead.outputs, loss));
        m_progress.say(-1, "backward");
        CT_TRY(Execution back, runHalf("backward", nullptr, *m_backward, handed, sizes));
        if (m_tangents.empty()) CT_TRY_VOID(addOutside(forward, bound, sizes, loss, back.outputs));
        if (m_options.valuesFile.empty()) {
            m_run.kernelMicroseconds = ahead.microseconds;
            m_run.kernelMicroseconds.insert(m_run.kernelMicroseconds.end(), back.microseconds.begin(),
                                            back.microseconds.end());
            m_run.refusedKernels = ahead.refused;
            for (const auto& [kernel, sentence] : back.refused)
                m_run.refusedKernels[ahead.microseconds.size() + kernel] = sentence;
        }

        RunReport report;
        report.inputsFrom = inputs.from;
        if (const size_t made = tensorsWithoutData(forward).size())
            report.inputsFrom += "; " + std::to_string(made) + " tensors without data made up from their names, seed 0";
        reportTimes(ahead, &back, report);
        if (ahead.cost && back.cost) report.cost = sumOf(*ahead.cost, *back.cost);
        for (const Execution* half : {&ahead, &back})
            for (const auto& [kernel, sentence] : half->refused) report.refused.push_back(sentence);
        CT_TRY_VOID(describe(forward, bound, ahead, back, loss, report));
        report.notes = notesOf(forward, report, m_options.backend != Backend::Reference,
                               fusionOptions(m_run.trace.request).roundsHalves, ahead.tf32 || back.tf32);
        // What the forward has saved lies beside the backward's values.
        if (report.cost && report.training)
            report.cost->arenaBytes =
                std::max(report.cost->arenaBytes, back.cost->arenaBytes + report.training->savedBytes);
        return report;
    }

  private:
    /// A file's joint graph takes the gradients of its results as inputs; the backward has them under the same names.
    void takeTangents(std::vector<Tensor>& given) {
        const std::vector<Node*> placeholders = m_state.input->graph().placeholders();
        std::vector<Tensor> others;
        for (size_t i = 0, next = 0; i < placeholders.size(); ++i) {
            const InputSpec spec = i < m_state.input->inputs.size() ? m_state.input->inputs[i] : InputSpec{};
            if (spec.kind != InputSpec::Kind::Tangent) m_primals.push_back(placeholders[i]->name());
            if (!spec.isGiven() || next == given.size()) continue;
            if (spec.kind == InputSpec::Kind::Tangent) m_tangents.emplace(placeholders[i]->name(), given[next++]);
            else others.push_back(given[next++]);
        }
        if (!m_tangents.empty()) given = std::move(others);
    }
    /// The number whose gradients by the results are the given tangents.
    Result<Loss> lossOfTangents(const Module& forward, const std::vector<Tensor>& outputs) const {
        Loss loss;
        loss.from = "the results times their tangents, summed";
        loss.gradients.resize(outputs.size());
        CT_TRY(const std::vector<size_t> positions, tangentOutputs(forward, *m_backward));
        const std::vector<Node*> placeholders = m_backward->graph().placeholders();
        for (size_t i = 0, next = 0; i < placeholders.size(); ++i) {
            if (m_backward->inputs[i].kind != InputSpec::Kind::Tangent) continue;
            const size_t position = positions[next++];
            const auto tangent = m_tangents.find(placeholders[i]->name());
            if (tangent == m_tangents.end() || !outputs[position].defined()) continue;
            loss.gradients[position] = tangent->second;
            for (int64_t k = 0; !isComplex(tangent->second.dtype()) && k < tangent->second.numel(); ++k)
                loss.value += toDouble(outputs[position].item(k)) * toDouble(tangent->second.item(k));
        }
        return loss;
    }

    Result<Execution> runHalf(const std::string& graphName, const Snapshot& given, const Module& module,
                              const std::vector<Tensor>& inputs, const SymbolValues& known) {
        if (m_options.backend == Backend::Reference)
            return runInterpreted(module, inputs, m_options.repeat, m_progress, known);
        RunOptions half = m_options;
        half.budgetSeconds /= 2;
        return runCompiled(m_run, graphName, given, inputs, half, m_progress, known);
    }

    /// The gradient of a returned input, or of a view of it, goes to it directly, outside of both graphs (A8.5).
    Result<void> addOutside(const Module& forward, const std::vector<Tensor>& bound, const SymbolValues& sizes,
                            const Loss& loss, std::vector<Tensor>& gradients) const {
        const DifferentiatedGraph before = differentiatedGraph(m_run.trace);
        const std::vector<Argument> results = before.graph->graph().outputs();
        const std::vector<Node*> placeholders = before.graph->graph().placeholders();
        for (const size_t position : userOutputs(forward)) {
            const OutputMemory* memory = before.memoryOf(position);
            if (memory == nullptr || memory->input == nullptr || memory->alias == OutputAlias::NonAlias) continue;
            const Node& result = *results[position - before.leading].node();
            // An input's new value has a tangent of its own (tangentOf).
            if (!before.flow[index(result.id())] || isFinalCopy(result) || !loss.gradients[position].defined())
                continue;
            const auto found = std::find(placeholders.begin(), placeholders.end(), memory->input);
            const size_t primal = static_cast<size_t>(found - placeholders.begin());
            if (primal >= gradients.size()) continue;
            CT_TRY(const Tensor gradient,
                   gradientThroughViews(*before.graph, *memory, bound[primal], loss.gradients[position], sizes));
            gradients[primal] = sumOf(gradients[primal], gradient);
        }
        return {};
    }

    /// A returned input that was written to is its new value, so that output's gradient is the new value's gradient.
    /// Returns the positions of such outputs, by the input's name.
    static std::vector<size_t> newValuesOf(const Module& forward, const std::string& input) {
        std::vector<size_t> found;
        for (size_t i = 0; i < forward.outputs.size(); ++i) {
            const OutputSpec& spec = forward.outputs[i];
            if (spec.kind == OutputSpec::Kind::UserOutput && !input.empty() && spec.target == input) found.push_back(i);
        }
        return found;
    }
    static Tensor tangentOf(const Module& forward, const Tensor& output, size_t position, const Loss& loss) {
        Tensor gradient = loss.gradients[position];
        const OutputSpec spec = position < forward.outputs.size() ? forward.outputs[position] : OutputSpec{};
        if (isNewValueOfInput(spec))
            for (const size_t returned : newValuesOf(forward, spec.target))
                if (loss.gradients[returned].defined()) gradient = sumOf(gradient, loss.gradients[returned]);
        // Outputs that are not part of the loss have a gradient of 0.
        return gradient.defined() ? gradient : Tensor::zeros(output.dtype(), output.sizes());
    }

    Result<std::vector<Tensor>> backwardInputs(const Module& forward, const std::vector<Tensor>& outputs,
                                               const Loss& loss) const {
        CT_TRY(const std::vector<size_t> saved, savedOutputs(forward, *m_backward));
        CT_TRY(const std::vector<size_t> tangents, tangentOutputs(forward, *m_backward));
        const std::vector<Node*> placeholders = m_backward->graph().placeholders();
        std::vector<Tensor> given;
        size_t nextSaved = 0, nextTangent = 0;
        for (size_t i = 0; i < placeholders.size(); ++i) {
            if (m_backward->inputs[i].kind == InputSpec::Kind::Saved) {
                given.push_back(laidOut(outputs[saved[nextSaved++]], *placeholders[i]));
            } else if (m_backward->inputs[i].kind == InputSpec::Kind::Tangent) {
                const size_t output = tangents[nextTangent++];
                const auto found = m_tangents.find(placeholders[i]->name());
                given.push_back(laidOut(
                    found != m_tangents.end() ? found->second : tangentOf(forward, outputs[output], output, loss),
                    *placeholders[i]));
            }
        }
        return bindInputs(*m_backward, given);
    }

    Result<void> describe(const Module& forward, const std::vector<Tensor>& bound, const Execution& ahead,
                          const Execution& back, const Loss& loss, RunReport& report) const {
        std::vector<NamedTensor> outputs, gradients;
        const double tolerance = std::max(toleranceOf(ahead), toleranceOf(back));
        const std::vector<Argument> returned = forward.graph().outputs();
        const std::vector<size_t> positions = userOutputs(forward);
        for (const size_t position : positions) {
            const Node* node = returned[position].node();
            outputs.emplace_back(node ? node->name() : "output_" + std::to_string(position), ahead.outputs[position]);
        }
        for (size_t i = 0; i < back.outputs.size() && i < m_backward->outputs.size(); ++i)
            if (back.outputs[i].defined()) gradients.emplace_back(gradientName(i), back.outputs[i]);
        std::set<std::string> names = {"loss"};
        for (const std::vector<NamedTensor>* list : {&outputs, &gradients})
            for (const NamedTensor& one : *list) names.insert(one.first);
        const std::vector<WrittenValue> written = writtenValues(forward, names);

        std::optional<RunInputs> expected;
        std::map<std::string, Tensor> wanted;
        if (!m_options.expectFile.empty()) {
            CT_TRY(expected, readExpected(*m_state.input, forward, m_options.expectFile,
                                          namesOf(written, *m_state.input), wanted));
            report.expectedFrom = expected->from;
        }
        if (!m_options.expectGradientsFile.empty()) {
            CT_TRY(const SafeTensors file, readSafeTensors(m_options.expectGradientsFile));
            wanted.insert(file.tensors.begin(), file.tensors.end());
            report.expectedFrom += (report.expectedFrom.empty() ? "" : "; ") + m_options.expectGradientsFile;
        }
        report.compared = expected || !m_options.expectGradientsFile.empty();

        TrainingReport training;
        training.loss = loss.value;
        training.lossFrom = loss.from;
        training.forwardMilliseconds = ahead.median;
        training.backwardMilliseconds = back.median;
        measureSaved(forward, ahead.outputs, training);
        const auto expectedOf = [&](const std::string& name) -> std::optional<Tensor> {
            const auto found = findTied(wanted, *m_state.input, name);
            if (found == wanted.end()) return std::nullopt;
            Tensor tensor = found->second;
            wanted.erase(found);
            return tensor;
        };
        for (size_t i = 0; i < outputs.size(); ++i) {
            std::optional<Tensor> own =
                expected && expected->user[i].defined() ? std::optional(expected->user[i]) : std::nullopt;
            const std::optional<Tensor> other = expectedOf(outputs[i].first);
            if (!own) own = other;
            report.outputs.push_back(reportOf(outputs[i].first, returned[positions[i]], outputs[i].second,
                                              own ? &*own : nullptr, tolerance));
            if (!own) continue;
            sayTies(forward, bound, positions[i], outputs[i].second, *own, m_progress, report.outputs.back());
            CT_TRY_VOID(m_judge.judge(outputs[i].second, *own, report.outputs.back()));
        }
        for (const auto& [name, tensor] : gradients) {
            const std::optional<Tensor> own = expectedOf(name);
            CT_TRY_VOID(addRow(name, tensor, own, tolerance, training.gradients));
            while (const std::optional<Tensor> again = own ? expectedOf(name) : std::nullopt)  // under another name
                CT_TRY_VOID(addRow(name, tensor, again, tolerance, training.gradients));
        }
        std::vector<NamedTensor> left;
        for (const WrittenValue& value : written) {
            const std::optional<Tensor> own = expectedOf(value.name);
            left.emplace_back(value.name, valueOf(value, ahead));
            CT_TRY_VOID(addRow(value.name, left.back().second, own, tolerance, report.written));
        }
        const Tensor lossTensor = Tensor::full(lossType(forward, ahead.outputs), {}, Scalar(loss.value));
        if (const std::optional<Tensor> own = expectedOf("loss")) {
            const Tensor same = Tensor::full(own->dtype(), own->sizes(), Scalar(loss.value));
            CT_TRY_VOID(addRow("loss", same, own, tolerance, report.outputs));
        }
        gradients.insert(gradients.end(), left.begin(), left.end());
        if (!wanted.empty()) return strangers(wanted, gradients);
        for (const std::vector<OutputReport>* list : {&report.outputs, &training.gradients, &report.written})
            for (const OutputReport& row : *list) report.matches &= !row.compared || row.within;
        report.training = std::move(training);
        if (m_options.gradientsFile.empty()) return {};
        SafeTensors file;
        file.tensors.emplace_back("loss", lossTensor);
        std::set<std::string> kept = {"loss"};  // a value may be returned twice
        for (const std::vector<NamedTensor>* list : {&outputs, &gradients})
            for (const NamedTensor& one : *list)
                if (one.second.defined() && kept.insert(one.first).second) file.tensors.push_back(one);
        return writeSafeTensors(m_options.gradientsFile, file);
    }

    Result<void> addRow(const std::string& name, const Tensor& actual, const std::optional<Tensor>& expected,
                        double tolerance, std::vector<OutputReport>& rows) const {
        rows.push_back(reportOf(name, actual, expected ? &*expected : nullptr, tolerance));
        return expected ? m_judge.judge(actual, *expected, rows.back()) : Result<void>();
    }

    /// A sum of results is as precise as they are.
    static DType lossType(const Module& forward, const std::vector<Tensor>& outputs) {
        for (const size_t position : userOutputs(forward))
            if (outputs[position].defined() && outputs[position].dtype() == DType::F64) return DType::F64;
        return DType::F32;
    }

    Error strangers(const std::map<std::string, Tensor>& unknown, const std::vector<NamedTensor>& values) const {
        std::string known = "there are: loss";
        for (const NamedTensor& one : values) known += ", " + one.first;
        return Error{ErrorCode::InvalidInput,
                     "the file has '" + unknown.begin()->first +
                         "', which is neither a result, a gradient nor a new value of this run",
                     m_options.expectGradientsFile,
                     {known}};
    }

    /// The first name of the parameter, or the input's in the file.
    std::string gradientName(size_t output) const {
        const std::string& target = m_backward->outputs[output].target;
        if (target.empty() && !m_tangents.empty() && output < m_primals.size()) return m_primals[output];
        const Node* input = m_forward->graph().findByName(target);
        if (input == nullptr || !input->isPlaceholder())
            return target.empty() ? "gradient_" + std::to_string(output) : tiedNames(*m_state.input, target).front();
        return input->provenance().sourceName.empty() ? target : input->provenance().sourceName;
    }

    static void measureSaved(const Module& forward, const std::vector<Tensor>& outputs, TrainingReport& training) {
        std::set<const Storage*> counted;
        const std::vector<Argument> returned = forward.graph().outputs();
        for (size_t i = 0; i < outputs.size() && i < forward.outputs.size(); ++i) {
            if (forward.outputs[i].kind != OutputSpec::Kind::Saved || !outputs[i].defined()) continue;
            const bool first = counted.insert(outputs[i].storage().get()).second;
            const auto bytes = static_cast<int64_t>(outputs[i].storage()->size());
            if (first) training.heldBytes += bytes;
            if (returned[i].node() && returned[i].node()->isPlaceholder()) continue;
            training.savedBytes += first ? bytes : 0;
            training.estimatedSavedBytes += static_cast<int64_t>(outputs[i].bytes());
        }
    }

    const Session::State& m_state;
    Session::State::Run& m_run;
    const RunOptions& m_options;
    const Progress& m_progress;
    const Snapshot m_forward, m_backward;
    std::vector<std::string> m_primals;        // of the file's graph
    std::map<std::string, Tensor> m_tangents;  // of a file that holds a joint graph, by name
    RowJudge m_judge;
};

}  // namespace

Result<RunReport> runTraining(const Session::State& state, Session::State::Run& run, const RunOptions& options,
                              const Progress& progress) {
    return TrainingRun(state, run, options, progress).execute();
}

}  // namespace cutaway
