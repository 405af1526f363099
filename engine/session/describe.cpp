#include "engine/session/describe.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "engine/autograd/expand.h"
#include "engine/interpret/higher_order.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/diff.h"
#include "engine/ops/executorch.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed_int4.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/execution_modes.h"
#include "engine/rewrite/rewrite_watch.h"
#include "engine/text/print.h"

namespace cutaway {

std::string typeText(const ValueType& type) {
    if (const TupleType* tuple = type.tuple()) {
        std::string out = "(";
        for (size_t i = 0; i < tuple->size(); ++i) out += (i ? ", " : "") + typeText((*tuple)[i]);
        return out + ")";
    }
    return type.text();
}

namespace {

int64_t bytesOf(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) {
        const SymInt count = numel(tensor->sizes);
        return count.isInt() ? count.value() * byteSize(tensor->dtype) : 0;
    }
    int64_t total = 0;
    if (const TupleType* tuple = type.tuple())
        for (const ValueType& item : *tuple) total += bytesOf(item);
    return total;
}

}  // namespace

namespace {

NodeRole roleOf(const Module& module, const Node& node, size_t position) {
    switch (node.kind()) {
        case NodeKind::Output: return NodeRole::Output;
        case NodeKind::Call: return NodeRole::Call;
        case NodeKind::GetAttr: return NodeRole::Constant;
        case NodeKind::Placeholder: break;
    }
    if (position >= module.inputs.size()) return NodeRole::Input;
    switch (module.inputs[position].kind) {
        case InputSpec::Kind::Parameter: return NodeRole::Parameter;
        case InputSpec::Kind::Buffer: return NodeRole::Buffer;
        case InputSpec::Kind::Constant:
        case InputSpec::Kind::ConstantInput: return NodeRole::Constant;
        default: return NodeRole::Input;
    }
}

/// What files and programs call the tensor of an input or a constant; empty if it is not a tensor of the program's.
std::string tensorOf(const Module& module, const Node& node, size_t position) {
    if (node.kind() == NodeKind::GetAttr) return node.target();
    if (!node.isPlaceholder() || position >= module.inputs.size() || module.inputs[position].isGiven()) return {};
    return module.inputs[position].target;
}

}  // namespace

OpClass classOf(const Op& op) {
    constexpr std::pair<Tag, OpClass> kClasses[] = {{Tag::Heavy, OpClass::Product},
                                                    {Tag::Reduction, OpClass::Reduction},
                                                    {Tag::View, OpClass::View},
                                                    {Tag::Pointwise, OpClass::Pointwise}};
    for (const auto& [tag, opClass] : kClasses)
        if (op.is(tag)) return opClass;
    return OpClass::Other;
}

NodeInfo describeAt(const Module& module, const Node& node, size_t position) {
    NodeInfo info;
    info.id = nodeKey(0, node.id());
    info.role = roleOf(module, node, position);
    info.tensor = tensorOf(module, node, position);
    info.name = node.name();
    if (node.isCall()) {
        info.op = node.op().name();
        info.opClass = classOf(node.op());
    }
    info.type = typeText(node.type());
    if (node.provenance().modulePath) info.module = *node.provenance().modulePath;
    info.bytes = bytesOf(node.type());
    if (const TensorType* tensor = node.type().tensor()) {
        const SymInt count = numel(tensor->sizes);
        info.scalarLike = count.isInt() && count.value() <= 1;
    }
    info.backward = node.provenance().backward;
    for (const Node* input : node.inputs()) info.inputs.push_back(nodeKey(0, input->id()));
    for (const Node* user : node.users()) info.users.push_back(nodeKey(0, user->id()));
    return info;
}

void putInto(uint32_t graph, NodeInfo& info) {
    info.id = nodeKey(graph, nodeOf(info.id));
    for (std::vector<NodeKey>* list : {&info.inputs, &info.users})
        for (NodeKey& key : *list) key = nodeKey(graph, nodeOf(key));
}

NodeInfo describeNode(const Module& module, const Node& node) {
    size_t position = 0;
    for (const Node* other = node.previous(); other; other = other->previous()) position += other->isPlaceholder();
    return describeAt(module, node, position);
}

NodeDetails describeDetails(const Module& module, const Node& node) {
    NodeDetails details;
    details.node = describeNode(module, node);
    if (node.isCall()) {
        const Schema* schema = node.op().schema();
        if (node.op().def()) details.schema = std::string(node.op().def()->schema);
        for (size_t i = 0; i < node.args().size(); ++i)
            details.arguments.emplace_back(schema ? schema->params[i].name : std::to_string(i),
                                           printArgument(node.arg(i)));
        for (const auto& [key, value] : node.kwargs()) details.arguments.emplace_back(key, printArgument(value));
    } else if (!node.target().empty() && node.target() != node.name()) {
        details.arguments.emplace_back("target", node.target());
    }
    if (const TensorType* type = node.type().tensor()) {
        auto list = [](const SymDims& dims) {
            std::string out = "[";
            for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + dims[i].text();
            return out + "]";
        };
        details.tensor = {{"shape", list(type->sizes)},
                          {"dtype", "torch." + std::string(info(type->dtype).torchName)},
                          {"strides", list(type->strides) + (type->assumed ? " (assumed)" : "")},
                          {"device", type->device.text()},
                          {"bytes", std::to_string(details.node.bytes)}};
    }
    std::string guards;
    for (const SizeGuard& guard : sizeGuards(module, node))
        guards += (guards.empty() ? "" : ", ") + text(guard.condition);
    if (!guards.empty()) details.tensor.emplace_back("guards", guards);
    const Provenance& provenance = node.provenance();
    if (provenance.moduleType) details.moduleType = *provenance.moduleType;
    if (provenance.stackTrace) {
        // 'File "path", line N, in f' followed by its code line.
        std::string frame;
        size_t at = 0;
        const std::string& trace = *provenance.stackTrace;
        while (at < trace.size()) {
            const size_t end = std::min(trace.find('\n', at), trace.size());
            std::string line = trace.substr(at, end - at);
            line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
            if (line.starts_with("File ") || frame.empty()) {
                if (!frame.empty()) details.frames.push_back(frame);
                frame = line;
            } else {
                frame += ": " + line;
            }
            at = end + 1;
        }
        if (!frame.empty()) details.frames.push_back(frame);
    }
    details.line = node.isCall() || node.kind() == NodeKind::GetAttr
                       ? node.name() + ": \"" + details.node.type + "\" = " + printExpression(node)
                       : node.name();
    return details;
}

namespace {

/// Why calls of an operator cannot be run, or on which backend only; empty if they can.
std::string problemOf(const Node& node) {
    const Op& op = node.op().functional() ? *node.op().functional() : node.op();
    const std::string& name = op.name();
    if (node.type().sym() && node.type().sym()->expr) return {};  // its value is in its type
    if (isHigherOrder(name) || isModeSwitch(node) || effectOf(node)) return {};
    if (op.isOpaque() && op.style() != Op::Style::Module && !torchSignatures(op).empty()) return {};  // lowered to ATen
    if (op.style() == Op::Style::Module) return "a module that the graph does not describe: shown, not run";
    if (op.style() == Op::Style::Method) return "a Python method, from before tracing to ATen: shown, not run";
    if (name.starts_with("unsupported."))
        return "has an argument of a kind that this version does not know: shown, not run";
    if (std::any_of(node.args().begin(), node.args().end(),
                    [](const Argument& arg) { return arg.node() && isDelegate(*arg.node()); }))
        return "a part that executorch gave to a backend, whose graph is elsewhere: shown, not run";
    if (isNamelessLowering(op))
        return "a lowering that PyTorch's compiler registered; its operator is not in the text: shown, not run";
    if (op.isOpaque()) {
        const std::string library = name.substr(0, name.find('.'));
        // What computes a value that nothing reads is dropped before it is run: promote_types is left by tracing.
        if (!node.hasUsers() && !op.baseName().ends_with('_') && (library == "aten" || library == "prims")) return {};
        for (std::string_view known : {"aten", "prims", "operator", "torch", "math", "builtins", "higher_order",
                                       "inductor", "_c10d_functional", "quantized_decomposed", "mkldnn", "onednn"})
            if (library == known) return "not in Cutaway's operator tables: shown, not run";
        return name.find('.') == std::string::npos
                   ? "not in Cutaway's operator tables: shown, not run"
                   : "custom operator of '" + library +
                         "': shown, not run, until a file of rules says what it computes";
    }
    if (!op.def()->eval && !op.def()->decompose) return "no kernel and no expansion: shown, not run";
    return {};
}

std::string symbolText(const std::string& name, const SymbolInfo& info) {
    std::string out = name;
    if (info.lower || info.upper)
        out += " in [" + (info.lower ? std::to_string(*info.lower) : "-oo") + ", " +
               (info.upper ? std::to_string(*info.upper) : "oo") + "]";
    if (info.hint) out += ", for example " + std::to_string(*info.hint);
    return out;
}

void summarizeAll(const std::string& name, const Module& module, std::vector<GraphSummary>& out) {
    out.push_back(summarize(name, module));
    for (const auto& [key, body] : module.subgraphs) summarizeAll(name == "main" ? key : name + "." + key, *body, out);
}

}  // namespace

GraphSummary summarize(const std::string& name, const Module& module) {
    GraphSummary summary;
    summary.name = name;
    std::map<std::string, OpSummary> ops;
    for (const Node& node : module.graph().nodes()) {
        ++summary.nodes;
        if (node.isPlaceholder()) ++summary.inputs;
        if (!node.isCall()) continue;
        OpSummary& op = ops[node.op().name()];
        op.op = node.op().name();
        ++op.count;
        if (op.problem.empty()) op.problem = problemOf(node);
    }
    summary.outputs = static_cast<int>(module.graph().outputs().size());
    for (auto& [key, op] : ops) summary.ops.push_back(std::move(op));
    std::stable_sort(summary.ops.begin(), summary.ops.end(),
                     [](const OpSummary& a, const OpSummary& b) { return a.count > b.count; });
    return summary;
}

/// Shorthand operators are guarded by what they stand for, as far as they can be expanded.
static std::vector<std::string> guardTexts(const Module& module) {
    std::vector<std::string> texts;
    if (freeSymbols(module).empty()) return texts;
    static const CompileRequest kRequest;
    const RewriteWatch unheard([](std::string_view, const RewriteInfo&) {});
    Module expanded(module);
    Rewriter rewriter("guards", kRequest);
    const bool ready = expandComposites(expanded, rewriter).has_value();
    for (const SizeGuard& guard : sizeGuards(ready ? expanded : module)) texts.push_back(guard.text());
    return texts;
}

ModelInfo describeModel(const std::string& path, const Module& module) {
    ModelInfo info;
    info.path = path;
    info.name = module.name;
    info.format = module.origin.format;
    info.torch = module.origin.torch;
    info.remarks = module.origin.remarks;
    summarizeAll("main", module, info.graphs);
    for (const auto& [name, symbol] : module.symbols) info.symbols.push_back(symbolText(name, symbol));
    info.guards = guardTexts(module);
    std::set<const Storage*> counted;
    const auto placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const InputSpec spec = i < module.inputs.size() ? module.inputs[i] : InputSpec{};
        const TensorType* type = placeholders[i]->type().tensor();
        const int64_t elements = type && allInts(type->sizes) ? numel(type->sizes).value() : 0;
        switch (spec.kind) {
            case InputSpec::Kind::Parameter:
                ++info.parameters;
                info.parameterElements += elements;
                break;
            case InputSpec::Kind::Buffer: ++info.buffers; break;
            case InputSpec::Kind::Constant: ++info.constants; break;
            default: info.inputs.push_back(placeholders[i]->name() + ": " + typeText(placeholders[i]->type())); break;
        }
    }
    for (const auto& [name, tensor] : module.tensors)
        if (tensor.defined() && counted.insert(tensor.storage().get()).second)
            info.bytes += static_cast<int64_t>(tensor.storage()->size());
    for (const Argument& value : module.graph().outputs())
        info.outputs.push_back(value.node() ? value.node()->name() + ": " + typeText(value.node()->type())
                                            : printArgument(value));
    return info;
}

/// What a run does about weights that the file names but does not hold.
static std::string missingData(const std::vector<std::string>& names) {
    constexpr size_t kNamed = 5;
    std::string list;
    for (size_t i = 0; i < std::min(names.size(), kNamed); ++i) list += (i ? ", " : "") + names[i];
    if (names.size() > kNamed) list += " and " + std::to_string(names.size() - kNamed) + " more";
    return std::string("the file has no data for ") + (names.size() == 1 ? "the tensor " : "the tensors ") + list +
           "; runs use random numbers for them, seed 0";
}

/// Which processor 4-bit weights are taken to be packed for, which no file says; empty if there are none.
static std::string packedWeights(const ModelInfo& info) {
    for (const GraphSummary& graph : info.graphs)
        for (const OpSummary& op : graph.ops)
            if (op.op == "aten._weight_int4pack_mm_for_cpu.default")
                return op.op +
                       ": the file does not say on which processor its weights were packed; they are read as ATEN_CPU_CAPABILITY=" +
                       name(int4Packing()) + " packs them (set this variable to avx512, avx2 or default for another)";
    return {};
}

ModelInfo describeFile(const OpenedFile& file) {
    ModelInfo info;
    if (!file.graphs.empty()) {
        info = describeModel(file.path, *file.graphs.front().module);
        if (file.graphs.size() > 1) info.graphs.clear();
        for (size_t i = 0; file.graphs.size() > 1 && i < file.graphs.size(); ++i)
            summarizeAll(file.graphs[i].name, *file.graphs[i].module, info.graphs);
        if (const auto missing = tensorsWithoutData(*file.graphs.front().module); !missing.empty())
            info.remarks.push_back(missingData(missing));
        if (std::string packed = packedWeights(info); !packed.empty()) info.remarks.push_back(std::move(packed));
    }
    info.path = file.path;
    info.format = file.description;
    std::set<const Storage*> counted;
    for (const auto& [name, tensor] : file.tensors) {
        TensorType type = TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes()));
        type.strides = toSymDims(tensor.strides());
        info.tensors.push_back(name + ": " + type.text());
        if (tensor.defined() && counted.insert(tensor.storage().get()).second)
            info.bytes += static_cast<int64_t>(tensor.storage()->size());
    }
    info.contents = file.contents;
    info.remarks.insert(info.remarks.end(), file.remarks.begin(), file.remarks.end());
    return info;
}

}  // namespace cutaway
