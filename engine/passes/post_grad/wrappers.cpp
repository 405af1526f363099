#include "engine/passes/post_grad/wrappers.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ir/live_nodes.h"
#include "engine/ops/alias.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/post_grad/inplace.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

using Keywords = NamedArguments;

bool isCallOf(const Node& node, std::string_view name) {
    return node.isCall() && (node.op().name() == name || node.op().name() == std::string(name) + ".default");
}
const Argument* find(const Keywords& keywords, std::string_view key) {
    const auto found =
        std::find_if(keywords.begin(), keywords.end(), [&](const auto& each) { return each.first == key; });
    return found == keywords.end() ? nullptr : &found->second;
}

/// A copy in the layout of the original, which readers rely on (the operator may have been given strides).
Node* laidOutCopy(GraphBuilder& builder, Node& value) {
    const TensorType& type = value.tensor();
    const Value copy = builder.call("aten.clone.default", {builder.value(value)});
    if (!copy || copy.type().strides == type.strides || numel(type.sizes) == SymInt(0)) return copy.node();
    // clone gave other strides: copies all memory from the first to the last element, and views the copy likewise.
    builder.graph().erase(*copy.node());
    SymInt length = 1;
    for (size_t i = 0; i < type.sizes.size(); ++i) length = length + (type.sizes[i] - SymInt(1)) * type.strides[i];
    const Value memory = builder.call("aten.as_strided.default", {builder.value(value), Argument(SymDims{length}),
                                                                  Argument(SymDims{SymInt(1)}), Argument(type.offset)});
    const Value own = builder.call("aten.clone.default", {memory});
    return builder.call("aten.as_strided.default", {own, Argument(type.sizes), Argument(type.strides), 0}).node();
}

/// An operator inside a wrapper: what it is called with, and what it writes to.
struct Wrapped {
    /// The part of a base that the operator is given, or none; keywords of the wrapper that begin with `prefix` say it.
    struct Part {
        std::optional<size_t> base;
        std::string prefix;
    };
    struct Written {
        std::string name;  // of the parameter
        bool list = false;
        std::vector<Part> parts;
    };
    /// A result of the wrapper, behind the operator's own: a base, or a list of bases that are all copied or none is.
    struct Slot {
        std::vector<size_t> bases;
        bool list = false;
    };
    const Op* op = nullptr;
    Keywords keywords;
    std::vector<Node*> bases;
    std::vector<Written> written;
    std::vector<Slot> slots;
    size_t results = 1;  // of the operator; one even if it gives nothing back
};

/// The parameters that an operator without a row writes to, where the types of all results say it: it gives back
/// nothing, and there is one choice of operands, in their order, with the types of the other results.
std::optional<std::vector<std::string>> writtenByTypes(const Node& node) {
    const TupleType* types = node.type().tuple();
    if (types == nullptr || types->size() < 2 || !(*types)[0].isNone()) return std::nullopt;
    std::vector<const std::pair<std::string, Argument>*> operands;
    for (const auto& keyword : node.kwargs())
        if (keyword.second.node() && keyword.second.node()->type().tensor()) operands.push_back(&keyword);
    // In how many ways the results from `result` on can be matched with operands from `operand` on; 2 means two or
    // more.
    const size_t results = types->size() - 1;
    const auto fits = [&](size_t operand, size_t result) {
        return sameType(operands[operand]->second.node()->type(), (*types)[result + 1]);
    };
    std::vector<std::vector<int>> ways(operands.size() + 1, std::vector<int>(results + 1, 0));
    for (auto& row : ways) row[results] = 1;
    for (size_t operand = operands.size(); operand-- > 0;)
        for (size_t result = results; result-- > 0;)
            ways[operand][result] =
                std::min(2, ways[operand + 1][result] + (fits(operand, result) ? ways[operand + 1][result + 1] : 0));
    if (ways[0][0] != 1) return std::nullopt;
    std::vector<std::string> names;
    for (size_t operand = 0, result = 0; result < results; ++operand)
        if (fits(operand, result) && ways[operand + 1][result + 1] > 0) {
            names.push_back(operands[operand]->first);
            ++result;
        }
    return names;
}

/// auto_functionalized(op, keywords): what the operator's schema says is written.
Result<Wrapped> firstVersion(const Node& node, const Op& op) {
    Wrapped out{&op, node.kwargs(), {}, {}, {}, 1};
    std::vector<std::string> names;
    if (op.schema()) {
        for (const Param& param : op.schema()->params)
            if (param.mutated) names.push_back(param.name);
        out.results = std::max<size_t>(1, op.schema()->returns.size());
    } else if (auto found = writtenByTypes(node)) {
        names = std::move(*found);
    } else {
        return unsupported(
            op.name() + " has no schema here, and its wrapper does not say which operands it writes to", node.name(),
            {"write the call as higher_order.auto_functionalized_v2(" + op.name() +
             ", ..., _NAME_base_index = 0, _all_bases = [NAME]), which names them, or export the model again, which does"});
    }
    for (const std::string& name : names) {
        const Argument* given = find(out.keywords, name);
        Wrapped::Written written{name, given && given->list(), {}};
        Wrapped::Slot slot{{}, written.list};
        const auto add = [&](const Argument& value) {
            written.parts.push_back({value.node() ? std::optional(out.bases.size()) : std::nullopt, ""});
            if (value.node()) {
                slot.bases.push_back(out.bases.size());
                out.bases.push_back(value.node());
            }
        };
        if (written.list)
            for (const Argument& item : *given->list()) add(item);
        else add(given ? *given : Argument());
        out.written.push_back(std::move(written));
        out.slots.push_back(std::move(slot));
    }
    return out;
}

/// How many results of the operator stand before the bases: as many as the schema or the types say, else as few as fit
/// what is read.
size_t resultsOf(const Node& node, const Op& op, const std::vector<Node*>& bases) {
    if (op.schema()) return std::max<size_t>(1, op.schema()->returns.size());
    if (const TupleType* types = node.type().tuple(); types && types->size() > bases.size())
        return types->size() - bases.size();
    const auto fits = [&](size_t results) {
        return std::all_of(node.users().begin(), node.users().end(), [&](const Node* reader) {
            const auto position = reader->isCall("operator.getitem") ? reader->arg(1).asInt() : std::nullopt;
            if (!position || *position < static_cast<int64_t>(results)) return true;
            const size_t base = static_cast<size_t>(*position) - results;
            return base < bases.size() && (!reader->type().tensor() || sameType(reader->type(), bases[base]->type()));
        });
    };
    size_t results = 1;
    while (!fits(results)) ++results;
    return results;
}

/// auto_functionalized_v2(op, keywords, _NAME_base_index=, _all_bases=): the keywords say it. Of a list: _NAME_length=,
/// _NAME_0_base_index=.
Result<Wrapped> secondVersion(const Node& node, const Op& op) {
    const auto fail = [&](const std::string& what) {
        return invalidInput(node.op().name() + ": " + what, node.name());
    };
    Wrapped out{&op, {}, {}, {}, {}, 1};
    const Argument* bases = find(node.kwargs(), "_all_bases");
    if (bases == nullptr || bases->list() == nullptr) return fail("no list _all_bases");
    for (const Argument& base : *bases->list()) {
        if (base.node() == nullptr) return fail("an item of _all_bases is not a tensor");
        out.slots.push_back({{out.bases.size()}, false});
        out.bases.push_back(base.node());
    }
    const auto partAt = [&](const std::string& prefix) -> Result<Wrapped::Part> {
        const Argument* given = find(node.kwargs(), "_" + prefix + "_base_index");
        if (given == nullptr || given->isNone()) return Wrapped::Part{std::nullopt, prefix};
        const auto index = given->asInt();
        if (!index || *index < 0 || *index >= static_cast<int64_t>(out.bases.size()))
            return fail("_" + prefix + "_base_index names no base");
        return Wrapped::Part{static_cast<size_t>(*index), prefix};
    };
    constexpr std::string_view kIndex = "_base_index", kLength = "_length";
    const auto nameIn = [](const std::string& key, std::string_view end) {
        return key.substr(1, key.size() - 1 - end.size());
    };
    for (const auto& [key, value] : node.kwargs()) {
        if (!key.starts_with("_") || !key.ends_with(kLength)) continue;
        const std::string name = nameIn(key, kLength);
        Wrapped::Written written{name, !value.isNone(), {}};
        const int64_t length = value.asInt().value_or(0);
        if (length < 0 || length > static_cast<int64_t>(node.kwargs().size()))
            return fail(key + " is not a length of a list");
        for (int64_t i = 0; i < length; ++i) {
            CT_TRY(Wrapped::Part part, partAt(name + "_" + std::to_string(i)));
            written.parts.push_back(std::move(part));
        }
        if (value.isNone()) written.parts.push_back({});
        out.written.push_back(std::move(written));
    }
    const auto describes = [](const std::string& key, const std::string& name) {
        return key.starts_with("_" + name + "_");
    };
    const size_t lists = out.written.size();
    for (const auto& [key, value] : node.kwargs()) {
        if (!key.starts_with("_") || !key.ends_with(kIndex)) continue;
        const std::string name = nameIn(key, kIndex);
        const auto isItem = [&](const Wrapped::Written& list) {
            return std::any_of(list.parts.begin(), list.parts.end(),
                               [&](const Wrapped::Part& part) { return part.prefix == name; });
        };
        if (std::any_of(out.written.begin(), out.written.begin() + static_cast<std::ptrdiff_t>(lists), isItem))
            continue;
        CT_TRY(Wrapped::Part part, partAt(name));
        out.written.push_back({name, false, {std::move(part)}});
    }
    for (const auto& [key, value] : node.kwargs())
        if (key != "_all_bases" &&
            std::none_of(out.written.begin(), out.written.end(),
                         [&, &key = key](const auto& each) { return describes(key, each.name); }))
            out.keywords.emplace_back(key, value);
    out.results = resultsOf(node, op, out.bases);
    return out;
}
bool isWrapper(const Node& node) {
    return isCallOf(node, "higher_order.auto_functionalized") || isCallOf(node, "higher_order.auto_functionalized_v2");
}
Result<Wrapped> wrappedAt(const Node& node) {
    const auto* reference = node.args().size() == 1 ? node.arg(0).get<OpRef>() : nullptr;
    if (reference == nullptr || reference->op == nullptr || find(node.kwargs(), "_op_schema"))
        return unsupported(node.op().name() + " around what is not an operator", node.name(),
                           {"compile the model without the higher-order operator inside, or decompose it before"});
    return isCallOf(node, "higher_order.auto_functionalized") ? firstVersion(node, *reference->op)
                                                              : secondVersion(node, *reference->op);
}

/// The part of the base that the operator is given.
Argument regenerated(GraphBuilder& builder, const Keywords& keywords, const std::string& name, Node& base) {
    const Value whole = builder.value(base);
    const auto of = [&](const char* what) { return name.empty() ? nullptr : find(keywords, "_" + name + what); };
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

Node* itemOf(const Node& tuple, size_t position) {
    for (Node* reader : tuple.users())
        if (reader->isCall("operator.getitem") && reader->arg(1).asInt() == static_cast<int64_t>(position))
            return reader;
    return nullptr;
}
/// For each base the tensor that the operator writes to: the base itself if its old value is not needed, else a copy.
/// Of two bases that share memory only one may be written to.
std::vector<Node*> writableBases(GraphBuilder& builder, const Node& node, const Wrapped& wrapped, bool parity) {
    const InplaceWrites writes(builder.graph(), parity);
    std::vector<const Node*> others;
    for (const auto& [key, value] : wrapped.keywords)
        if (std::none_of(wrapped.written.begin(), wrapped.written.end(),
                         [&, &key = key](const auto& each) { return each.name == key; }))
            value.forEachNode([&](const Node* other) { others.push_back(other); });
    if (parity) others.clear();  // PyTorch does not look at what else the operator reads
    std::vector<Node*> out = wrapped.bases;
    std::set<NodeId> taken;
    for (size_t i = 0; i < wrapped.slots.size(); ++i) {
        const Wrapped::Slot& slot = wrapped.slots[i];
        const Node* item = itemOf(node, wrapped.results + i);
        std::set<NodeId> memory;
        bool free = true;
        for (size_t position = 0; position < slot.bases.size() && free; ++position) {
            Node& base = *wrapped.bases[slot.bases[position]];
            const Node* result = slot.list && item ? itemOf(*item, position) : item;
            const NodeId root = storageRoot(InplaceWrites::written(base)).id();
            free = memory.insert(root).second && !taken.contains(root) &&
                   writes.unlessWritable(node, base, result, others).empty();
        }
        if (free) taken.insert(memory.begin(), memory.end());
        else
            for (const size_t base : slot.bases) out[base] = laidOutCopy(builder, *wrapped.bases[base]);
    }
    return out;
}

/// An input is not copied into itself.
void dropCopiesOf(Graph& graph, Node& value) {
    for (Node* user : std::vector<Node*>(value.users()))
        if (user->isCall("aten.copy_.default") && user->arg(0).node() == &value && user->arg(1).node() == &value) {
            graph.replaceUses(*user, value);
            graph.erase(*user);
        }
}

Result<void> unwrap(Graph& graph, Rewriter& rewriter, Node& node, const Wrapped& wrapped) {
    GraphBuilder builder = rewriter.builder(graph, &node, node);
    const std::vector<Node*> bases = writableBases(builder, node, wrapped, rewriter.request().parity);
    if (builder.error()) return *builder.error();
    Keywords keywords = wrapped.keywords;
    for (const Wrapped::Written& written : wrapped.written) {
        std::erase_if(keywords, [&](const auto& each) { return each.first == written.name; });
        std::vector<Argument> parts;
        for (const Wrapped::Part& part : written.parts)
            parts.push_back(part.base ? regenerated(builder, node.kwargs(), part.prefix, *bases[*part.base])
                                      : Argument());
        keywords.emplace_back(written.name, written.list ? Argument(std::move(parts)) : parts[0]);
    }
    if (builder.error()) return *builder.error();
    const TupleType* types = node.type().tuple();
    const size_t results = wrapped.results;
    ValueType type = OpaqueType{};
    const Node* only = itemOf(node, 0);
    if (types && results == 1 && types->size() >= results) type = (*types)[0];
    else if (types && types->size() >= results)
        type = TupleType(types->begin(), types->begin() + static_cast<std::ptrdiff_t>(results));
    else if (results == 1 && only) type = only->type();
    CT_TRY(Node * call, callOf(graph, wrapped, std::move(keywords), std::move(type), node));
    call->graph().setProvenance(*call, builder.sharedProvenance());
    for (size_t i = 0; i < wrapped.slots.size(); ++i) {
        Node* list = wrapped.slots[i].list ? itemOf(node, results + i) : nullptr;
        if (list == nullptr) continue;
        std::vector<Node*> items;
        for (const size_t base : wrapped.slots[i].bases) items.push_back(bases[base]);
        CT_TRY_VOID(rewriter.replaceTuple(*list, items));
    }
    std::vector<Node*> values;
    for (size_t i = 0; i < results; ++i) {
        const bool read = itemOf(node, i) != nullptr;
        values.push_back(results == 1 ? call : read ? builder.value(*call)[static_cast<int64_t>(i)].node() : nullptr);
    }
    for (const Wrapped::Slot& slot : wrapped.slots)
        values.push_back(slot.list || slot.bases.empty() ? nullptr : bases[slot.bases[0]]);
    CT_TRY_VOID(rewriter.replaceTuple(node, values));
    for (Node* base : bases) dropCopiesOf(graph, *base);
    return {};
}

bool readsItems(const Node& node) {
    return std::all_of(node.users().begin(), node.users().end(),
                       [](const Node* user) { return user->isCall("operator.getitem"); });
}

Result<bool> unwrapAll(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, unwrapAll(*body, rewriter));
        changed |= inner;
    }
    for (Node* node : LiveNodes(module.graph())) {
        if (!node->isCall() || !isWrapper(*node)) continue;
        if (!readsItems(*node))
            return unsupported(node->op().name() + ": the results are used as a whole", node->name(),
                               {"read them one by one"});
        CT_TRY(const Wrapped wrapped, wrappedAt(*node));
        if (rewriter.begin("decompose_auto_functionalized", *node, "later passes know the operator, not its wrapper") !=
            Go::Yes)
            return changed;
        CT_TRY_VOID(unwrap(module.graph(), rewriter, *node, wrapped));
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- PST-20

/// The operands of a kernel by name, and the names of those that it writes to.
struct KernelOperands {
    const ArgumentDict* operands = nullptr;
    std::vector<std::string> written;

    bool writes(const std::string& name) const {
        return std::find(written.begin(), written.end(), name) != written.end();
    }
    /// The operands that are only read.
    std::vector<const Node*> read() const {
        std::vector<const Node*> out;
        for (const auto& [key, operand] : operands->items)
            if (!writes(key)) operand.forEachNode([&](const Node* node) { out.push_back(node); });
        return out;
    }
};
/// Who reads the new value of an operand.
const Node* readerOf(const Node& kernel, const std::string& name) {
    for (const Node* reader : kernel.users())
        if (const auto* key = reader->isCall("operator.getitem") ? reader->arg(1).get<std::string>() : nullptr;
            key && *key == name)
            return reader;
    return nullptr;
}
std::optional<KernelOperands> kernelAt(const Node& node, const Refusing& refuse) {
    if (!isCallOf(node, "higher_order.triton_kernel_wrapper_functional")) return std::nullopt;
    const Argument *operands = find(node.kwargs(), "kwargs"), *written = find(node.kwargs(), "tensors_to_clone");
    const auto* dict = operands ? operands->get<std::shared_ptr<const ArgumentDict>>() : nullptr;
    if (dict == nullptr || written == nullptr || written->list() == nullptr) {
        refuse("it does not say what the kernel is given (kwargs) and what it writes to (tensors_to_clone)");
        return std::nullopt;
    }
    KernelOperands out{dict->get(), {}};
    const auto isReadable = [&] {
        for (const Argument& name : *written->list()) {
            const auto* text = name.get<std::string>();
            const Argument* operand = text ? find((*dict)->items, *text) : nullptr;
            if (operand == nullptr || operand->node() == nullptr)
                return refuse("tensors_to_clone names ", name, ", which is not a tensor that the kernel is given");
            out.written.push_back(*text);
        }
        for (const Node* user : node.users()) {
            const auto* key = user->isCall("operator.getitem") ? user->arg(1).get<std::string>() : nullptr;
            if (key == nullptr) return refuse(NodeWithKind{user}, " reads its results as a whole");
            if (!out.writes(*key)) return refuse(user, " reads '", *key, "', which the kernel does not write to");
        }
        return true;
    };
    return isReadable() ? std::optional(std::move(out)) : std::nullopt;
}

Result<bool> unwrapKernels(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, unwrapKernels(*body, rewriter));
        changed |= inner;
    }
    constexpr std::string_view kRule = "decompose_triton_kernel_wrapper";
    Graph& graph = module.graph();
    for (Node* node : LiveNodes(graph)) {
        const auto kernel = kernelAt(*node, Refusing(rewriter, kRule, *node));
        if (!kernel) continue;
        if (rewriter.begin(kRule, *node, "later passes know the kernel, not its wrapper") != Go::Yes) return changed;
        GraphBuilder builder = rewriter.builder(graph, node, *node);
        ArgumentDict operands = *kernel->operands;
        std::map<std::string, Node*> values;
        const InplaceWrites writes(graph, rewriter.request().parity);
        std::set<NodeId> taken;
        const std::vector<const Node*> others = rewriter.request().parity ? std::vector<const Node*>() : kernel->read();
        for (auto& [key, operand] : operands.items) {
            if (!kernel->writes(key)) continue;
            Node& given = *operand.node();
            const NodeId memory = storageRoot(InplaceWrites::written(given)).id();
            const bool free =
                !taken.contains(memory) && writes.unlessWritable(*node, given, readerOf(*node, key), others).empty();
            if (free) taken.insert(memory);
            operand = Argument(values[key] = free ? &given : laidOutCopy(builder, given));
        }
        if (builder.error()) return *builder.error();
        Keywords keywords;
        for (const auto& [key, value] : node->kwargs())
            if (key != "tensors_to_clone")
                keywords.emplace_back(
                    key, key == "kwargs" ? Argument(std::make_shared<const ArgumentDict>(operands)) : value);
        Node& made = graph.call(findOrMakeOpaque("higher_order.triton_kernel_wrapper_mutation"), node->args(),
                                OpaqueType{}, node, {}, std::move(keywords));
        made.graph().setProvenance(made, builder.sharedProvenance());
        const std::vector<Node*> readers = node->users();
        for (Node* reader : readers) rewriter.replace(*reader, *values.at(*reader->arg(1).get<std::string>()));
        graph.erase(*node);
        for (const auto& [key, value] : values) dropCopiesOf(graph, *value);
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> decomposeAutoFunctionalized(Module& module, Rewriter& rewriter) { return unwrapAll(module, rewriter); }
Result<bool> decomposeTritonWrapper(Module& module, Rewriter& rewriter) { return unwrapKernels(module, rewriter); }

}  // namespace cutaway
