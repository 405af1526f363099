#include "engine/autograd/joint_graph.h"

#include <algorithm>

#include "cutaway/words.h"
#include "engine/autograd/backward.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/gradient_flow.h"
#include "engine/autograd/metadata.h"
#include "engine/ir/live_nodes.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

/// The forward's returned values with what each of them is.
struct ForwardOutputs {
    std::vector<Argument> values;
    std::vector<OutputSpec> specs;
    std::vector<OutputMemory> memory;
};

ForwardOutputs forwardOutputs(const Module& module, const std::vector<bool>& flow) {
    ForwardOutputs outputs{module.graph().outputs(), module.outputs, outputMemory(module, flow)};
    outputs.specs.resize(outputs.values.size());
    return outputs;
}

/// Copies into inputs that require a gradient become leading outputs; the caller writes them back.
void returnMutatedInputs(Module& module, const std::vector<bool>& flow, ForwardOutputs& outputs) {
    Graph& graph = module.graph();
    const std::vector<Node*> inputs = graph.placeholders();
    size_t leading = 0;
    for (Node* node : LiveNodes(graph)) {
        if (!node->isCall("aten.copy_.default") || !isFinalCopy(*node) || !flow[index(node->arg(0).node()->id())])
            continue;
        Node* target = node->arg(0).node();
        const size_t position = static_cast<size_t>(std::find(inputs.begin(), inputs.end(), target) - inputs.begin());
        const bool parameter =
            position < module.inputs.size() && module.inputs[position].kind == InputSpec::Kind::Parameter;
        OutputSpec spec;
        spec.kind = parameter ? OutputSpec::Kind::ParameterMutation : OutputSpec::Kind::InputMutation;
        spec.target = parameter ? module.inputs[position].target : target->name();
        // Who returns the input returns its new value, whose gradient is the new value's.
        for (size_t i = leading; i < outputs.values.size(); ++i)
            if (outputs.values[i].node() == node) {
                outputs.values[i] = node->arg(1);
                outputs.specs[i].target = spec.target;
            }
        const auto at = static_cast<std::ptrdiff_t>(leading);
        outputs.values.insert(outputs.values.begin() + at, node->arg(1));
        outputs.specs.insert(outputs.specs.begin() + at, std::move(spec));
        outputs.memory.insert(outputs.memory.begin() + at, OutputMemory{});
        ++leading;
    }
}

/// Whether elements of one channel lie next to each other, by PyTorch's test, which also takes padded and expanded
/// strides for that. Dims in the order from the innermost.
bool liesChannelsLast(const TensorType& type, const std::vector<size_t>& order) {
    if (!knownLessEqual(SymInt(1), type.strides[1])) return false;
    SymInt least = 0;
    for (const size_t dim : order) {
        if (!knownLessEqual(SymInt(1), type.sizes[dim]) || !knownLessEqual(least, type.strides[dim])) return false;
        if (dim == 0 && least == type.strides[1]) return false;
        least = type.strides[dim] * type.sizes[dim];
    }
    return true;
}

/// Whether sizes and strides are numbers and no two elements share memory.
bool hasOwnPlaces(const TensorType& type) {
    if (!allInts(type.sizes) || !allInts(type.strides)) return false;
    const Dims sizes = toInts(type.sizes), strides = toInts(type.strides);
    std::vector<size_t> order;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
        if (sizes[dim] > 1) order.push_back(dim);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t span = 1;  // of the dims so far
    for (const size_t dim : order) {
        if (strides[dim] < span) return false;
        span = strides[dim] * (sizes[dim] - 1) + span;
    }
    return true;
}

/// Tangents are dense: row-major, or channels last where the output is (A4.4). `asOutput`: with the output's strides,
/// if these are numbers and give each element a place.
TensorType tangentType(const TensorType& output, bool asOutput) {
    if (asOutput && hasOwnPlaces(output)) return output;
    TensorType type = TensorType::contiguous(output.dtype, output.sizes, output.device);
    if (output.rank() != 4 && output.rank() != 5) return type;
    const std::vector<size_t> order =
        output.rank() == 4 ? std::vector<size_t>{1, 3, 2, 0} : std::vector<size_t>{1, 4, 3, 2, 0};
    if (!liesChannelsLast(output, order)) return type;
    SymInt stride = 1;
    for (const size_t dim : order) {
        type.strides[dim] = stride;
        stride = stride * output.sizes[dim];
    }
    return type;
}

Node* firstAfterPlaceholders(const Graph& graph) {
    Node* node = graph.first();
    while (node && node->isPlaceholder()) node = node->next();
    return node;
}

/// Where the backward goes: before the output and the copies into inputs in front of it.
Node& backwardPosition(const Graph& graph) {
    Node* position = graph.outputNode();
    while (position->previous() && isFinalCopy(*position->previous())) position = position->previous();
    return *position;
}

/// Outputs that refer to inputs by name follow.
void namePrimals(Graph& graph, const std::vector<Node*>& primals, ForwardOutputs& outputs) {
    for (size_t i = 0; i < primals.size(); ++i) {
        const std::string old = primals[i]->name();
        graph.renameParameter(*primals[i], "primals_" + std::to_string(i + 1));
        if (primals[i]->provenance().sourceName.empty()) {
            Provenance provenance = primals[i]->provenance();
            provenance.sourceName = old;
            graph.setProvenance(*primals[i], std::move(provenance));
        }
        for (OutputSpec& spec : outputs.specs)
            if ((spec.kind == OutputSpec::Kind::InputMutation || spec.kind == OutputSpec::Kind::UserOutput) &&
                spec.target == old)
                spec.target = primals[i]->name();
    }
}

void setOutputs(Module& module, const ForwardOutputs& outputs) {
    module.graph().setArg(*module.graph().outputNode(), 0, ArgumentList{outputs.values, true});
    module.outputs = outputs.specs;
}

void eraseReturnedCopies(Graph& graph, const std::vector<bool>& flow) {
    for (Node* node : LiveNodes(graph))
        if (isFinalCopy(*node) && flow[index(node->arg(0).node()->id())] && !node->hasUsers()) graph.erase(*node);
}

void refuseOutputs(const Module& body, Rewriter& rewriter) {
    if (const Node* output = body.graph().outputNode())
        rewriter.refuse(rewriter.pass(), *output, "gradients come in at the output of the main graph");
    for (const auto& [name, inner] : body.subgraphs) refuseOutputs(*inner, rewriter);
}

}  // namespace

Result<bool> differentiate(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    if (graph.outputNode() == nullptr) return invalidInput("the graph has no output");
    const std::vector<Node*> primals = graph.placeholders();
    for (const InputSpec& spec : module.inputs)
        if (spec.kind == InputSpec::Kind::Tangent)
            return rewriter.refuse(rewriter.pass(), *graph.outputNode(),
                                   "the graph has tangents: it is a joint graph already");
    for (const std::string& name : rewriter.request().gradients) CT_TRY_VOID(requireGradient(module, name));
    const std::vector<bool> flow = gradientFlow(module);
    ForwardOutputs outputs = forwardOutputs(module, flow);
    returnMutatedInputs(module, flow, outputs);
    std::vector<size_t> differentiated;
    for (size_t i = 0; i < outputs.values.size(); ++i)
        if (getsTangent(outputs.values[i], outputs.specs[i], outputs.memory[i], flow)) differentiated.push_back(i);
    for (const auto& [name, body] : module.subgraphs) refuseOutputs(*body, rewriter);
    if (differentiated.empty() && !rewriter.request().gradients.empty())
        return invalidInput("no returned value depends on '" + rewriter.request().gradients.front() +
                            "', so there is no gradient by it");
    if (differentiated.empty())
        return rewriter.refuse(rewriter.pass(), *graph.outputNode(),
                               "no returned value depends on an input that requires a gradient");
    if (rewriter.begin("joint graph", *graph.outputNode(), "gradients of the outputs come in as tangents") != Go::Yes)
        return false;

    module.inputs.resize(primals.size());
    namePrimals(graph, primals, outputs);
    setOutputs(module, outputs);
    eraseReturnedCopies(graph, flow);

    Node* const afterInputs = firstAfterPlaceholders(graph);
    Backward backward(graph, backwardPosition(graph), flow, rewriter, &module);
    GraphBuilder tangentBuilder(graph);
    const bool asOutputs = has(rewriter.request().pytorch, ReleaseChange::TangentsAsOutputs);
    for (size_t i = 0; i < differentiated.size(); ++i) {
        Node& output = *outputs.values[differentiated[i]].node();
        Node& tangent = graph.placeholder("tangents_" + std::to_string(i + 1), tangentType(output.tensor(), asOutputs),
                                          afterInputs);
        InputSpec spec;
        spec.kind = InputSpec::Kind::Tangent;
        spec.target = std::to_string(differentiated[i]);
        module.inputs.push_back(spec);
        backward.accumulate(output, tangentBuilder.value(tangent), output);
    }
    CT_TRY_VOID(backward.run());
    outputs.values = graph.outputs();  // a loop that keeps its steps returns its results in another way
    for (size_t i = 0; i < primals.size(); ++i) {
        Node* gradient = flow[index(primals[i]->id())] ? backward.gradientOf(*primals[i]) : nullptr;
        outputs.values.push_back(gradient ? Argument(gradient) : Argument());
        const std::string& target = module.inputs[i].target;
        outputs.specs.push_back(OutputSpec{OutputSpec::Kind::Gradient, target.empty() ? primals[i]->name() : target});
    }
    setOutputs(module, outputs);
    return true;
}

namespace {

bool isNamed(const Node& input, const std::string& name) {
    return input.name() == name || input.target() == name || input.provenance().sourceName == name;
}

/// Marks an input as one whose gradient is wanted; false where it is not a floating tensor.
bool want(Graph& graph, Node& placeholder) {
    ValueType type = placeholder.type();
    TensorType* tensor = type.tensor();
    if (tensor == nullptr || !isFloating(tensor->dtype)) return false;
    tensor->requiresGrad = true;
    graph.setType(placeholder, std::move(type));
    return true;
}

}  // namespace

Result<void> checkInputNames(const Module& module, std::span<const std::string> names) {
    const std::vector<Node*> inputs = module.graph().placeholders();
    for (const std::string& name : names) {
        if (std::ranges::any_of(inputs, [&](const Node* input) { return isNamed(*input, name); })) continue;
        std::vector<std::string_view> known;
        std::string all = "there are:";
        for (const Node* input : inputs) {
            known.push_back(input->name());
            all += " " + input->name();
        }
        Error error{ErrorCode::NotFound, "no input named '" + visibleText(name) + "'", {}, {}};
        if (std::string near = suggestion(name, known); !near.empty()) error.notes.push_back(std::move(near));
        error.notes.push_back(std::move(all));
        return error;
    }
    return {};
}

Result<void> requireGradient(Module& module, const std::string& name) {
    Graph& graph = module.graph();
    for (Node* input : graph.placeholders())
        if (isNamed(*input, name)) {
            if (want(graph, *input)) return {};
            return invalidInput("input '" + name + "' is not a floating tensor, so it has no gradient", name);
        }
    return checkInputNames(module, {&name, 1});
}

Result<void> requireGradients(Module& module, const JointOptions& options) {
    for (const std::string& name : options.inputs) CT_TRY_VOID(requireGradient(module, name));
    if (options.allInputs)
        for (Node* input : module.graph().placeholders()) want(module.graph(), *input);
    return {};
}

Result<std::unique_ptr<Module>> makeJointGraph(const Module& forward, const JointOptions& options) {
    auto joint = std::make_unique<Module>(forward);
    CT_TRY_VOID(requireGradients(*joint, options));
    CompileRequest compile;
    compile.pytorch = options.release;
    Rewriter rewriter("differentiate", compile);
    rewriter.setBodyPaths(*joint);
    CT_TRY(const bool changed, differentiate(*joint, rewriter));
    if (!changed)
        return Error{ErrorCode::InvalidInput,
                     "no returned value depends on an input that requires a gradient",
                     {},
                     {"name the inputs to differentiate, or mark parameters as such"}};
    return joint;
}

}  // namespace cutaway
