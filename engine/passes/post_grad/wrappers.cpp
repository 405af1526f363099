#include "engine/passes/post_grad/wrappers.h"

#include <algorithm>
#include <map>

#include "engine/ir/live_nodes.h"
#include "engine/ops/op_registry.h"
#include "engine/rewrite/storage_roots.h"

namespace cutaway {
namespace {

using Keywords = NamedArguments;

bool isCallOf(const Node& node, std::string_view name) {
    return node.isCall() && (node.op().name() == name || node.op().name() == std::string(name) + ".default");
}
const Argument* find(const Keywords& keywords, std::string_view key) {
    const auto found = std::find_if(keywords.begin(), keywords.end(), [&](const auto& each) { return each.first == key; });
    return found == keywords.end() ? nullptr : &found->second;
}

int timesRead(const Node& value, const Node& reader) {
    int times = 0;
    const auto count = [&](const Node* input) { times += input == &value; };
    for (const Argument& arg : reader.args()) arg.forEachNode(count);
    for (const auto& [key, arg] : reader.kwargs()) arg.forEachNode(count);
    return times;
}
/// A value that the wrapper alone reads, once, may be written to as it is.
bool isOwn(const Graph& graph, const Node& value, const Node& wrapper) {
    if (!value.isCall() || value.users().size() != 1 || value.users()[0] != &wrapper || timesRead(value, wrapper) != 1) return false;
    const StorageRoots storages(graph);
    for (const Node& other : graph.nodes())
        if (&other != &value && storages.rootOf(other) == storages.rootOf(value)) return false;
    return storages.rootOf(value) == value.id();
}
Node* writable(GraphBuilder& builder, Node& value, const Node& wrapper) {
    if (isOwn(builder.graph(), value, wrapper)) return &value;
    return builder.call("aten.clone.default", {builder.value(value)}).node();
}

/// An operator inside a wrapper: what it is called with, and what it writes to.
struct Wrapped {
    const Op* op = nullptr;
    Keywords keywords;
    std::vector<Node*> bases;                                   // what is copied, in the order in which the wrapper returns it
    std::vector<std::pair<std::string, Argument>> written;      // parameter, and the position of its base or none
};

/// auto_functionalized(op, keywords): the bases are the operands that the schema says are written.
std::optional<Wrapped> firstVersion(const Node& node, const Op& op) {
    if (op.schema() == nullptr) return std::nullopt;
    Wrapped out{&op, node.kwargs(), {}, {}};
    for (const Param& param : op.schema()->params) {
        const Argument* given = param.mutated ? find(out.keywords, param.name) : nullptr;
        if (given == nullptr || given->node() == nullptr) continue;
        out.written.emplace_back(param.name, static_cast<int64_t>(out.bases.size()));
        out.bases.push_back(given->node());
    }
    return out;
}
/// auto_functionalized_v2(op, keywords, _NAME_base_index=, _all_bases=): the keywords say it.
std::optional<Wrapped> secondVersion(const Node& node, const Op& op) {
    Wrapped out{&op, {}, {}, {}};
    const Argument* bases = find(node.kwargs(), "_all_bases");
    if (bases == nullptr || bases->list() == nullptr) return std::nullopt;
    for (const Argument& base : *bases->list()) {
        if (base.node() == nullptr) return std::nullopt;
        out.bases.push_back(base.node());
    }
    constexpr std::string_view kIndex = "_base_index";
    for (const auto& [key, value] : node.kwargs()) {
        if (key.ends_with("_length")) return std::nullopt;   // a list of tensors is written
        if (key.starts_with("_") && key.ends_with(kIndex)) {
            const auto index = value.asInt();
            if (!value.isNone() && (!index || *index < 0 || *index >= static_cast<int64_t>(out.bases.size()))) return std::nullopt;
            out.written.emplace_back(key.substr(1, key.size() - 1 - kIndex.size()), value);
        }
    }
    for (const auto& [key, value] : node.kwargs()) {
        const auto describes = [&](const auto& each) { return key.starts_with("_" + each.first + "_"); };
        if (key != "_all_bases" && std::none_of(out.written.begin(), out.written.end(), describes)) out.keywords.emplace_back(key, value);
    }
    return out;
}
std::optional<Wrapped> wrappedAt(const Node& node) {
    const bool first = isCallOf(node, "higher_order.auto_functionalized"), second = isCallOf(node, "higher_order.auto_functionalized_v2");
    if ((!first && !second) || node.args().size() != 1) return std::nullopt;
    const auto* reference = node.arg(0).get<OpRef>();
    if (reference == nullptr || reference->op == nullptr) return std::nullopt;
    return first ? firstVersion(node, *reference->op) : secondVersion(node, *reference->op);
}

/// The part of the base that the operator is given.
Argument regenerated(GraphBuilder& builder, const Keywords& keywords, const std::string& name, Node& base) {
    const Value whole = builder.value(base);
    const auto of = [&](const char* what) { return find(keywords, "_" + name + what); };
    if (of("_storage_offset") && of("_size") && of("_stride"))
        return builder.call("aten.as_strided.default", {whole, *of("_size"), *of("_stride"), *of("_storage_offset")});
    if (of("_slice_dim") && of("_slice_start") && of("_slice_end"))
        return builder.call("aten.slice.Tensor", {whole, *of("_slice_dim"), *of("_slice_start"), *of("_slice_end")});
    if (of("_alias")) return builder.call("aten.alias.default", {whole});
    return Argument(&base);
}

/// The call of the operator itself. Operators without a row keep their arguments as they were written.
Result<Node*> callOf(Graph& graph, const Wrapped& wrapped, Keywords keywords, ValueType type, Node& before) {
    if (wrapped.op->isOpaque()) return &graph.call(*wrapped.op, {}, std::move(type), &before, {}, std::move(keywords));
    CT_TRY(std::vector<Argument> args, bindArguments(*wrapped.op, {}, std::move(keywords)));
    CT_TRY(ValueType inferred, inferCall(*wrapped.op, args));
    return &graph.call(*wrapped.op, std::move(args), std::move(inferred), &before);
}

Result<void> unwrap(Graph& graph, Rewriter& rewriter, Node& node, const Wrapped& wrapped) {
    GraphBuilder builder = rewriter.builder(graph, &node, node);
    std::vector<Node*> bases;
    for (Node* base : wrapped.bases) bases.push_back(writable(builder, *base, node));
    Keywords keywords = wrapped.keywords;
    for (const auto& [name, index] : wrapped.written) {
        std::erase_if(keywords, [&name = name](const auto& each) { return each.first == name; });
        keywords.emplace_back(name, index.isNone() ? Argument() : regenerated(builder, node.kwargs(), name, *bases[static_cast<size_t>(*index.asInt())]));
    }
    if (builder.error()) return *builder.error();
    const TupleType* types = node.type().tuple();
    const size_t results = types && types->size() > bases.size() ? types->size() - bases.size() : 1;
    ValueType type = OpaqueType{};
    if (types && results == 1 && types->size() > bases.size()) type = (*types)[0];
    else if (types && results > 1) type = TupleType(types->begin(), types->begin() + static_cast<std::ptrdiff_t>(results));
    CT_TRY(Node* call, callOf(graph, wrapped, std::move(keywords), std::move(type), node));
    call->graph().setProvenance(*call, builder.sharedProvenance());
    std::vector<Node*> values;
    for (size_t i = 0; i < results; ++i) values.push_back(results == 1 ? call : builder.value(*call)[static_cast<int64_t>(i)].node());
    values.insert(values.end(), bases.begin(), bases.end());
    return rewriter.replaceTuple(node, values);
}

bool readsItems(const Node& node) {
    return std::all_of(node.users().begin(), node.users().end(), [](const Node* user) { return user->isCall("operator.getitem"); });
}

Result<bool> unwrapAll(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, unwrapAll(*body, rewriter));
        changed |= inner;
    }
    for (Node* node : LiveNodes(module.graph())) {
        const auto wrapped = node->isCall() && readsItems(*node) ? wrappedAt(*node) : std::nullopt;
        if (!wrapped) continue;
        if (!rewriter.begin("decompose_auto_functionalized", *node, "lowering knows the operator, not its wrapper")) return changed;
        CT_TRY_VOID(unwrap(module.graph(), rewriter, *node, *wrapped));
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- PST-20

/// The operands of a kernel by name, and the names of those that it writes to.
struct KernelOperands {
    const ArgumentDict* operands = nullptr;
    std::vector<std::string> written;
};
std::optional<KernelOperands> kernelAt(const Node& node) {
    if (!isCallOf(node, "higher_order.triton_kernel_wrapper_functional")) return std::nullopt;
    const Argument *operands = find(node.kwargs(), "kwargs"), *written = find(node.kwargs(), "tensors_to_clone");
    const auto* dict = operands ? operands->get<std::shared_ptr<const ArgumentDict>>() : nullptr;
    if (dict == nullptr || written == nullptr || written->list() == nullptr) return std::nullopt;
    KernelOperands out{dict->get(), {}};
    for (const Argument& name : *written->list()) {
        const auto* text = name.get<std::string>();
        const Argument* operand = text ? find((*dict)->items, *text) : nullptr;
        if (operand == nullptr || operand->node() == nullptr) return std::nullopt;
        out.written.push_back(*text);
    }
    for (const Node* user : node.users()) {
        const auto* key = user->isCall("operator.getitem") ? user->arg(1).get<std::string>() : nullptr;
        if (key == nullptr || std::find(out.written.begin(), out.written.end(), *key) == out.written.end()) return std::nullopt;
    }
    return out;
}

Result<bool> unwrapKernels(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, unwrapKernels(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    for (Node* node : LiveNodes(graph)) {
        const auto kernel = node->isCall() ? kernelAt(*node) : std::nullopt;
        if (!kernel) continue;
        if (!rewriter.begin("decompose_triton_kernel_wrapper", *node, "lowering knows the kernel, not its wrapper")) return changed;
        GraphBuilder builder = rewriter.builder(graph, node, *node);
        ArgumentDict operands = *kernel->operands;
        std::map<std::string, Node*> values;
        for (auto& [key, operand] : operands.items)
            if (std::find(kernel->written.begin(), kernel->written.end(), key) != kernel->written.end())
                operand = Argument(values[key] = writable(builder, *operand.node(), *node));
        if (builder.error()) return *builder.error();
        Keywords keywords;
        for (const auto& [key, value] : node->kwargs())
            if (key != "tensors_to_clone") keywords.emplace_back(key, key == "kwargs" ? Argument(std::make_shared<const ArgumentDict>(operands)) : value);
        Node& made = graph.call(findOrMakeOpaque("higher_order.triton_kernel_wrapper_mutation"), node->args(), OpaqueType{}, node, {}, std::move(keywords));
        made.graph().setProvenance(made, builder.sharedProvenance());
        const std::vector<Node*> readers = node->users();
        for (Node* reader : readers) rewriter.replace(*reader, *values.at(*reader->arg(1).get<std::string>()));
        graph.erase(*node);
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> decomposeAutoFunctionalized(Module& module, Rewriter& rewriter) { return unwrapAll(module, rewriter); }
Result<bool> decomposeTritonWrapper(Module& module, Rewriter& rewriter) { return unwrapKernels(module, rewriter); }

}  // namespace cutaway
