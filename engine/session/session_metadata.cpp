// What the graphs of a training run say about inputs, results and saved values (spec: autograd A.4, A.9).
#include <algorithm>
#include <map>

#include "cutaway/training_metadata.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/ops/alias.h"
#include "engine/passes/whole_program.h"
#include "engine/session/differentiated_graph.h"
#include "engine/session/session_state.h"

namespace cutaway {
namespace {

std::string nameInFile(const Node& input) {
    const std::string& source = input.provenance().sourceName;
    return source.empty() ? input.name() : source;
}

std::vector<int> dynamicDims(const Node& value) {
    std::vector<int> dims;
    const TensorType* type = value.type().tensor();
    for (int64_t dim = 0; type && dim < type->rank(); ++dim)
        if (!type->sizes[static_cast<size_t>(dim)].isInt()) dims.push_back(static_cast<int>(dim));
    return dims;
}

class Describing {
  public:
    Describing(const CompileTrace& trace, const Step& split)
        : m_joint(*split.before),
          m_forward(*split.made[0].second),
          m_backward(*split.made[1].second),
          m_inputs(m_joint.graph().placeholders()),
          m_before(differentiatedGraph(trace)) {}

    TrainingMetadata describe() {
        findTangents();
        for (size_t i = 0; i < m_inputs.size(); ++i) addInput(i);
        addOutputs();
        addSaved();
        return std::move(m_out);
    }

  private:
    void findTangents() {
        for (size_t i = 0; i < m_inputs.size(); ++i) {
            if (m_joint.inputs[i].kind != InputSpec::Kind::Tangent) continue;
            m_tangentOf[m_joint.inputs[i].target] = static_cast<int>(m_out.tracedTangents.size());
            m_out.tracedTangents.push_back(m_inputs[i]->type().text());
        }
    }

    void addInput(size_t at) {
        const Node& node = *m_inputs[at];
        const InputSpec& spec = m_joint.inputs[at];
        if (spec.kind == InputSpec::Kind::Tangent) return;
        TrainingMetadata::Input input;
        input.name = spec.target.empty() ? nameInFile(node) : spec.target;
        input.isStatic = spec.kind == InputSpec::Kind::Parameter || spec.kind == InputSpec::Kind::Buffer;
        input.requiresGrad = isDifferentiable(node);
        const bool returned = std::any_of(m_joint.outputs.begin(), m_joint.outputs.end(), [&](const OutputSpec& out) {
            return isNewValueOfInput(out) && (out.target == node.name() || out.target == spec.target);
        });
        input.mutatesData = returned || isWrittenAtEnd(node);
        if (input.mutatesData) input.mutationType = returned ? "MUTATED_OUT_GRAPH" : "MUTATED_IN_GRAPH";
        m_out.mutatedRuntimeInputs += returned;
        const std::vector<Argument> values = m_joint.graph().outputs();
        for (size_t i = 0; i < m_joint.outputs.size() && i < values.size(); ++i)
            if (m_joint.outputs[i].kind == OutputSpec::Kind::Gradient && values[i].node())
                input.hasGradient |= m_joint.outputs[i].target == (spec.target.empty() ? node.name() : spec.target);
        m_out.inputs.push_back(std::move(input));
    }

    void addOutputs() {
        const std::vector<Argument> values = m_joint.graph().outputs();
        const std::vector<Argument> results = m_before.graph->graph().outputs();
        for (size_t i = 0; i < values.size() && i < m_joint.outputs.size(); ++i) {
            const OutputSpec& spec = m_joint.outputs[i];
            if (spec.kind == OutputSpec::Kind::Gradient) break;
            ++m_out.forwardReturns;
            const Node* node = values[i].node();
            if (isNewValueOfInput(spec) || node == nullptr) continue;
            TrainingMetadata::Output output;
            output.name = node->name();
            output.type = node->type().text();
            const OutputMemory* const own = m_before.memoryOf(i);
            if (own == nullptr) continue;
            output.outputType = nameOf(own->alias);
            for (size_t input = 0; own->input && input < m_inputs.size(); ++input)
                if (m_inputs[input]->id() == own->input->id()) output.baseIdx = static_cast<int>(input);
            for (const Node* view : own->views) output.viewChain.push_back(view->op().name());
            output.dynamicDims = dynamicDims(*node);
            output.requiresGrad = m_before.flow[index(results[i - m_before.leading].node()->id())];
            if (const auto tangent = m_tangentOf.find(std::to_string(i)); tangent != m_tangentOf.end())
                output.tangent = tangent->second;
            m_out.outputs.push_back(std::move(output));
        }
    }

    /// Adds saved values. Those whose memory no input, result or gradient shares are donated buffers (A9.1).
    void addSaved() {
        const StorageRoots ahead(m_forward.graph()), back(m_backward.graph());
        std::vector<NodeId> shared;  // by results of the program
        const std::vector<Argument> results = m_forward.graph().outputs();
        for (size_t i = 0; i < results.size() && i < m_forward.outputs.size(); ++i)
            if (m_forward.outputs[i].kind != OutputSpec::Kind::Saved && results[i].node())
                shared.push_back(ahead.rootOf(*results[i].node()));
        const std::vector<Node*> taken = m_backward.graph().placeholders();
        int place = 0;
        for (size_t i = 0; i < taken.size(); ++i) {
            if (m_backward.inputs[i].kind != InputSpec::Kind::Saved) continue;
            const int at = place++;
            if (taken[i]->type().tensor() == nullptr) {
                ++m_out.savedSymints;
                continue;
            }
            ++m_out.savedTensors;
            if (std::vector<int> dims = dynamicDims(*taken[i]); !dims.empty())
                m_out.dynamicSaved.emplace_back(at, std::move(dims));
            const Node* made = m_forward.graph().findByName(taken[i]->name());
            const bool held = made == nullptr || ahead.isInput(*made) || back.isOutput(*taken[i]) ||
                              std::find(shared.begin(), shared.end(), ahead.rootOf(*made)) != shared.end();
            if (!held) m_out.donated.push_back(at);
        }
    }

    const Module &m_joint, &m_forward, &m_backward;
    const std::vector<Node*> m_inputs;
    const DifferentiatedGraph m_before;
    std::map<std::string, int> m_tangentOf;  // by the number of the output
    TrainingMetadata m_out;
};

}  // namespace

Result<TrainingMetadata> trainingMetadata(Session& session, RunId id) {
    return guarded([&]() -> Result<TrainingMetadata> {
        CT_TRY(const Session::State::Run* run, session.state().run(id));
        const Step* split = splitStepOf(run->trace);
        if (split == nullptr || split->made.size() != 2)
            return Error{ErrorCode::NotFound,
                         "only a run for training is split into forward and backward",
                         {},
                         {"compile with --mode training"}};
        return Describing(run->trace, *split).describe();
    });
}

}  // namespace cutaway
