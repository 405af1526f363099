#include "engine/ir/data_dependent.h"
#include "engine/ir/infer.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/ops/found_types.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/text/function_builder.h"
#include "engine/text/packed_weights.h"

namespace cutaway::fxtext {

/// `name` finds a type that the caller knows. No annotation gives a type that isNone().
Annotation FunctionBuilder::annotationOf(SyntaxId id, std::string_view name) {
    Annotation none;
    const bool main = &m_function == m_state.tree.root.get();  // graphs inside have names of their own
    const auto found = m_state.options.types.find(std::string(name));
    if (main && found != m_state.options.types.end()) {
        none.type = found->second;
        none.hasStrides = none.hasDevice = true;
    }
    if (id == kNoSyntax) return none;
    const SyntaxNode& node = m_state.at(id);
    // Unquoted: f32[8, 16] in old files, torch.Tensor in traced ones, which says nothing.
    std::string text;
    if (node.kind == SyntaxKind::String) text = unquote(node.text);
    else if (node.kind == SyntaxKind::Subscript)
        text = m_state.tree.source.text.substr(node.begin, node.end - node.begin);
    else return none;
    auto parsed = parseAnnotation(text, m_state.symbols);
    if (!parsed) {
        if (node.kind != SyntaxKind::String) return none;  // typing.List[...] and the like
        m_state.fail(node.begin, parsed.error());
        return none;
    }
    if (parsed->type.isOpaque()) m_state.remark(node.begin, "the type \"" + text + "\" is not known");
    else if (!parsed->subclass.empty())
        m_state.remark(node.begin, "'" + std::string(name) + "' is a " + parsed->subclass + "; its core is used");
    return std::move(*parsed);
}

ValueType FunctionBuilder::callType(const Statement& statement, const Op& op, const std::vector<Argument>& args,
                                    const NamedArguments& keywords) {
    Annotation written = std::exchange(m_written, {});
    // What is not understood is still shown.
    const auto unknown = [&] { return written.type.isOpaque() ? std::move(written.type) : ValueType(OpaqueType{}); };
    const bool annotated = !written.type.isNone() && !written.type.isOpaque();
    if (op.isOpaque()) {
        if (!annotated) {
            ValueType type = torchType(statement, op, args, keywords);
            return type.isOpaque() ? unknown() : std::move(type);
        }
        if (TensorType* type = written.type.tensor()) type->assumed = m_function.classForm && !written.hasStrides;
        return std::move(written.type);
    }
    for (auto& [weight, type] : plainWeights(op, args, written.type))
        m_module->graph().setType(*weight, ValueType(std::move(type)));
    auto inferred = inferCall(op, args);
    if (inferred && inferred->isOpaque() && !annotated && op.name() == "operator.getitem")
        return torchType(statement, op, args, keywords);
    if (inferred) return annotated ? merged(statement, std::move(written), std::move(*inferred)) : std::move(*inferred);
    bool blind = false;
    auto look = [&](const Node* input) { blind |= input->type().isOpaque() || input->type().isNone(); };
    for (const Argument& arg : args) arg.forEachNode(look);
    for (const auto& [key, arg] : keywords) arg.forEachNode(look);
    // Several results are annotated where they are read, so that their call opens as an annotated one does.
    const bool tuple = op.schema()->returnsTuple();
    if (!annotated && !blind)
        if (auto found = typeOfFound(op, args, [&](DType dtype) { return newSymbol(dtype); })) return std::move(*found);
    if (!annotated && !blind && !tuple) {
        Error error = inferred.error();
        error.notes.emplace_back("a type annotation opens the graph all the same");
        m_state.fail(statement.begin, error);
        return {};
    }
    if (!blind && op.name() == "aten.view.default" && findStrides(args)) return std::move(written.type);
    const bool refused = inferred.error().code == ErrorCode::InvalidInput && !sizeDependsOnData(op, args);
    if (!blind)
        m_state.remark(statement.begin,
                       inferred.error().message + (refused ? "; the graph can be looked at, not run" : ""));
    return annotated ? std::move(written.type) : unknown();
}

/// A view that is refused, of an input that was permuted: where the text does not say how the input lies in memory
/// (TXT-6), it lies so that what the view reads is row-major, as saved results of attention do.
bool FunctionBuilder::findStrides(const std::vector<Argument>& viewArgs) {
    const Node* read = viewArgs.empty() ? nullptr : viewArgs[0].node();
    if (read == nullptr || read->type().tensor() == nullptr) return false;
    SymDims strides = contiguousStrides(read->type().tensor()->sizes);
    for (; read->isCall("aten.permute.default"); read = read->arg(0).node()) {
        const auto dims =
            InferContext(read->op(), read->args()).dims("dims", static_cast<int64_t>(strides.size()), false);
        if (!dims || dims->size() != strides.size() || read->arg(0).node() == nullptr) return false;
        SymDims before(strides.size());
        for (size_t i = 0; i < strides.size(); ++i) before[static_cast<size_t>((*dims)[i])] = strides[i];
        strides = std::move(before);
    }
    const TensorType* type = read->isPlaceholder() ? read->type().tensor() : nullptr;
    if (type == nullptr || !type->assumed || type->sizes.size() != strides.size()) return false;
    return m_state.again |= m_state.strides.emplace(std::string(read->name()), std::move(strides)).second;
}

Expr FunctionBuilder::newSymbol(DType dtype) {
    std::set<std::string>& known = m_state.symbols;
    for (const SyntaxNode& node : m_state.tree.nodes)
        if (!m_state.allSymbols && node.kind == SyntaxKind::String) (void)parseAnnotation(unquote(node.text), known);
    m_state.allSymbols = true;
    const std::string prefix = dtype == DType::F64 ? "zuf" : "u";
    int number = 0;
    while (known.contains(prefix + std::to_string(number))) ++number;
    return Expr::symbol(*known.insert(prefix + std::to_string(number)).first, dtype);
}

/// Type of a Python call that is not annotated. What cannot be resolved opens all the same.
ValueType FunctionBuilder::torchType(const Statement& statement, const Op& op, const std::vector<Argument>& args,
                                     const NamedArguments& keywords) {
    const bool python = op.style() == Op::Style::Method || op.name().starts_with("torch.") ||
                        op.name().starts_with("torch__inductor_") || op.name().starts_with("torch_Tensor_") ||
                        op.name().starts_with("operator.") || op.name().starts_with("builtins.") ||
                        op.name() == "operator.getitem";
    bool blind = !python || op.style() == Op::Style::Module;
    const auto look = [&](const Node* input) { blind |= input->type().isOpaque() || input->type().isNone(); };
    for (const Argument& arg : args) arg.forEachNode(look);
    for (const auto& [key, arg] : keywords) arg.forEachNode(look);
    if (blind) return OpaqueType{};
    auto inferred = inferTorchCall(op, args, keywords);
    if (inferred) return std::move(*inferred);
    m_state.remark(statement.begin, inferred.error().message);
    return OpaqueType{};
}

/// What is written decides; what is not written (strides, device) comes from the operator's rule when the rest agrees.
ValueType FunctionBuilder::merged(const Statement& statement, Annotation written, ValueType inferred) {
    if (inferred.isOpaque()) return std::move(written.type);
    const TensorType* mine = written.type.tensor();
    const TensorType* theirs = inferred.tensor();
    if (mine && theirs && mine->dtype == theirs->dtype && mine->sizes == theirs->sizes &&
        (!written.hasStrides || mine->strides == theirs->strides) &&
        (!written.hasDevice || mine->device == theirs->device))
        return inferred;
    if (sameType(written.type, inferred)) return inferred;
    // A size that follows from data has a symbol of its own (u1 rows of x[:u0]); where the view begins is not written.
    if (mine && theirs && mine->dtype == theirs->dtype &&
        std::equal(mine->sizes.begin(), mine->sizes.end(), theirs->sizes.begin(), theirs->sizes.end(), namesSize)) {
        TensorType type = *mine;
        type.offset = theirs->offset;
        if (!written.hasStrides) type.strides = theirs->strides;
        if (!written.hasDevice) type.device = theirs->device;
        return type;
    }
    const auto full = [](const ValueType& type) { return type.tensor() ? type.tensor()->fullText() : type.text(); };
    m_state.remark(statement.begin, "'" + std::string(statement.target) + "' is written as \"" + full(written.type) +
                                        "\", its operator gives \"" + full(inferred) + "\"; kept as written");
    if (TensorType* type = written.type.tensor()) type->assumed = !written.hasStrides;
    return std::move(written.type);
}

/// Results of operators without a shape rule are known from the items that are read.
void FunctionBuilder::refineTuples() {
    Graph& graph = m_module->graph();
    for (Node& node : graph.nodes()) {
        if (!node.isCall() || !node.type().isOpaque() || !node.hasUsers()) continue;
        TupleType items;
        bool allItems = true, anyKnown = false;
        for (const Node* user : node.users()) {
            const auto position =
                user->isCall("operator.getitem") && user->arg(0).node() == &node ? user->arg(1).asInt() : std::nullopt;
            allItems &= position && *position >= 0 && *position < 1024;
            if (!allItems) break;
            if (items.size() <= static_cast<size_t>(*position))
                items.resize(static_cast<size_t>(*position) + 1, ValueType(OpaqueType{}));
            items[static_cast<size_t>(*position)] = user->type();
            anyKnown |= !user->type().isOpaque();
        }
        if (allItems && anyKnown) graph.setType(node, ValueType(std::move(items)));
    }
}

}  // namespace cutaway::fxtext
