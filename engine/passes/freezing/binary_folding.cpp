#include "engine/passes/freezing/binary_folding.h"

#include <map>

#include "engine/ir/live_nodes.h"
#include "engine/ir/readers.h"
#include "engine/ir/recipe_graph.h"
#include "engine/passes/freezing/constant_fold.h"
#include "engine/passes/freezing/options.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kFoldBinary = "binary_folding", kRestore = "restore_precision";
constexpr std::string_view kConvertElements = "prims.convert_element_type.default";
constexpr std::string_view kPass = "binary_folding";

enum class Operation : uint8_t { Add, Sub, Mul, Div };
std::optional<Operation> operationOf(const Node& node) {
    if (node.isCall("aten.add.Tensor")) return Operation::Add;
    if (node.isCall("aten.sub.Tensor")) return Operation::Sub;
    if (node.isCall("aten.mul.Tensor")) return Operation::Mul;
    if (node.isCall("aten.div.Tensor")) return Operation::Div;
    return std::nullopt;
}
bool isFoldedInto(const Node& node) { return node.isCall("aten.convolution.default"); }
bool isPlainProduct(const Node& node) { return node.isCall("aten.mm.default") || node.isCall("aten.addmm.default"); }
bool isConstantOperand(const Node& node) { return node.kind() == NodeKind::GetAttr && node.type().tensor(); }
/// A conversion that an earlier fold has put behind a layer of halves, or behind its weight.
bool isOwnConversion(const Node& node) { return node.isCall(kConvertElements) && node.provenance().createdBy == kPass; }

/// What a fold needs to know: y = operation(layer, other), perhaps with a reshape or a widening in between.
struct Fold {
    Operation operation;
    Node *layer = nullptr, *reshape = nullptr, *widening = nullptr;
    Node *weight = nullptr, *bias = nullptr;  // bias: null for none
    Argument other;                           // a number, or a constant
    double alpha = 1;
    bool mixed = false;      // the layer computes in halves, what follows in f32
    int64_t channels = 0;    // of the layer's result
    size_t channelAxis = 0;  // in the weight
    bool linear = false;
};

class BinaryFolding {
  public:
    BinaryFolding(Module& module, Rewriter& rewriter)
        : m_module(module),
          m_graph(module.graph()),
          m_rewriter(rewriter),
          m_options(freezingOptions(rewriter.request())),
          m_names(module) {}

    Result<bool> run() {
        std::vector<NodeId> calls;
        for (const Node& node : m_graph.nodes()) calls.push_back(node.id());
        for (auto id = calls.rbegin(); id != calls.rend(); ++id) {
            Node* node = m_graph.find(*id);
            if (node == nullptr || !node->isCall()) continue;
            if (isFoldedInto(*node) || isPlainProduct(*node)) explainLayer(*node);
            const auto operation = operationOf(*node);
            if (!operation) continue;
            const auto found = find(*node, *operation, Refusing(m_rewriter, kFoldBinary, *node));
            if (!found) continue;
            const Go go = m_rewriter.begin(kFoldBinary, *node, why(*found));
            if (go == Go::Stop) break;
            if (go == Go::Yes) CT_TRY_VOID(fold(*node, *found));
        }
        return m_rewriter.changed();
    }

  private:
    // ---------------------------------------------------------------- conditions

    /// Whoever asks about a layer is told why what follows it is not folded.
    void explainLayer(const Node& layer) {
        const Refusing no(m_rewriter, kFoldBinary, layer);
        if (!no.watched()) return;
        if (layer.users().size() != 1) return void(no("it has ", Counted{layer.users().size(), "reader"}));
        const Node* reader = onlyUser(layer);
        if (reader->isCall("aten.reshape.default") && isPlainProduct(layer) && onlyUser(*reader))
            reader = onlyUser(*reader);
        const auto operation = operationOf(*reader);
        if (!operation) return void(no.about(reader, reader, " adds no constant and multiplies by none"));
        if (find(*reader, *operation, no)) no.about(reader, reader, " is folded into it");
    }

    std::optional<Fold> find(const Node& y, Operation operation, const Refusing& no) const {
        Fold found{operation};
        if (!findLayer(y, found, no) || !findOther(y, found, no)) return std::nullopt;
        if (!weightIsConstant(found, no) || !dtypesFit(y, found, no)) return std::nullopt;
        if (!(found.linear ? fitsProduct(found, no) : fitsConvolution(found, no))) return std::nullopt;
        return found;
    }

    bool findLayer(const Node& y, Fold& found, const Refusing& no) const {
        Node* first = y.arg(0).node();
        if (first == nullptr) return no("its first operand is a number");
        Node* layer = first;
        const auto isLayer = [](const Node* node) { return node && (isFoldedInto(*node) || isPlainProduct(*node)); };
        if (layer->isCall("aten.reshape.default") && layer->arg(0).node() && isPlainProduct(*layer->arg(0).node())) {
            found.reshape = layer;
            layer = layer->arg(0).node();
        } else if (isOwnConversion(*layer) && isLayer(layer->arg(0).node())) {
            found.widening = layer;
            layer = layer->arg(0).node();
        }
        if (!y.type().tensor() || !layer->type().tensor()) return no("its type is not known");
        found.layer = layer;
        found.linear = isPlainProduct(*layer);
        if (!isLayer(layer))
            return no("its first operand, ", NodeWithKind{first}, ", is neither a convolution nor a matrix product");
        if (found.linear && !m_options.linearBinaryFolding)
            return no.about(layer,
                            "folding into matrix products is off (--enable freeze=enable_linear_binary_folding:1)");
        for (const Node* node : {first, layer})
            if (node->users().size() != 1) return no.about(node, OtherReader{*node, &y});
        found.weight = layer->arg(isFoldedInto(*layer) ? "weight" : "mat2").node();
        found.bias = isFoldedInto(*layer)                  ? layer->arg("bias").node()
                     : layer->isCall("aten.addmm.default") ? layer->arg("self").node()
                                                           : nullptr;
        return true;
    }

    bool findOther(const Node& y, Fold& found, const Refusing& no) const {
        found.other = y.arg(1);
        const Node* other = found.other.node();
        if (other == nullptr && found.other.get<double>() == nullptr)
            return no("its second operand, ", found.other, ", is not a number with a point");
        if (other && (!isConstantOperand(*other) || !isFloating(other->tensor().dtype)))
            return no("its second operand, ", NodeWithKind{other}, ", is not a constant of floating numbers");
        if (found.operation == Operation::Add || found.operation == Operation::Sub)
            found.alpha = y.arg("alpha").asReal().value_or(1);
        if (m_rewriter.request().parity) found.alpha = 1;  // PyTorch does not look at it (trap 1)
        return true;
    }

    static bool weightIsConstant(const Fold& found, const Refusing& no) {
        const Node* weight = found.weight;
        if (weight == nullptr || !isConstantOperand(*weight))
            return no("the weight, ", NodeWithKind{weight}, ", is not a constant (yet: a new weight is folded first)");
        if (weight->users().size() != 1) return no.about(weight, OtherReader{*weight, found.layer});
        if (!isFloating(weight->tensor().dtype))
            return no("the weight, ", weight->tensor(), ", has no floating numbers");
        if (!allInts(weight->tensor().sizes)) return no("the weight has sizes that are known only at run time");
        return true;
    }

    bool dtypesFit(const Node& y, Fold& found, const Refusing& no) const {
        const DType weight = found.weight->tensor().dtype;
        const Node* other = found.other.node();
        const DType wide = other ? promote(other->tensor().dtype, weight) : weight;
        if (found.widening == nullptr && y.tensor().dtype == weight && wide == weight) return true;
        if (!isHalf(weight)) return no("the result would be ", y.tensor(), ", not of the weight's dtype");
        if (other && other->tensor().dtype != DType::F32 && !isHalf(other->tensor().dtype))
            return no("the constant, ", other->tensor(), ", is wider than f32");
        // PyTorch marks what is widened before the first fold, and only that.
        const bool late = found.widening == nullptr && found.layer->provenance().createdBy == kPass;
        if (m_rewriter.request().parity && late)
            return no.about(found.layer, "it is widened only after a fold that was not: PyTorch has not marked it");
        // A constant without dims widens nothing, and PyTorch marks what is widened.
        if (m_rewriter.request().parity && found.widening == nullptr && y.tensor().dtype != DType::F32)
            return no("the result is ", y.tensor(), ": PyTorch marks only what is computed in f32");
        found.mixed = true;
        return endsInConversion(*found.layer, no);
    }
    /// Widened results may be folded if all that follows is narrowed again in the end: then one rounding is lost.
    bool endsInConversion(const Node& layer, const Refusing& no) const {
        const Node* at = onlyUser(layer);
        while (at && (operationOf(*at) || isOwnConversion(*at))) at = onlyUser(*at);
        if (at == nullptr || !at->isCall(kConvertElements))
            return no("what is computed from it in f32 is not converted back at the end");
        const auto* target = at->arg(1).get<DType>();
        if (m_rewriter.request().parity || (target && *target == layer.tensor().dtype)) return true;
        return no.about(at, at, " converts to another dtype than the convolution has");
    }

    bool fitsConvolution(Fold& found, const Refusing& no) const {
        const TensorType& weight = found.weight->tensor();
        const bool transposed = found.layer->arg("transposed").asInt().value_or(0) != 0;
        const bool parity = m_rewriter.request().parity;
        const int64_t groups = found.layer->arg("groups").asInt().value_or(1);
        found.channelAxis = transposed && !parity ? 1 : 0;  // PyTorch scales the axis of the inputs (trap 3)
        found.channels = weight.sizes[found.channelAxis].value() * (transposed && !parity ? groups : 1);
        const bool scales = found.operation == Operation::Mul || found.operation == Operation::Div;
        if (transposed && !parity && scales && groups > 1)
            return no("a transposed convolution with ", Counted{static_cast<size_t>(groups), "group"},
                      " has no axis of the weight with one item a channel");
        const Node* other = found.other.node();
        if (other == nullptr) return true;
        return broadcastsOverChannels(other->tensor(), weight.sizes.size(), found.channels) ||
               no("the constant, ", other->tensor(), ", is not one number for each of the ", found.channels,
                  " channels, or for all of them");
    }
    bool broadcastsOverChannels(const TensorType& other, size_t rank, int64_t channels) const {
        const size_t own = other.sizes.size();
        if (own > rank) return false;
        // PyTorch takes dim 1 of a constant of fewer dims for the channels, wherever it comes to lie (trap 2).
        const bool fromLeft = m_rewriter.request().parity && own + 1 < rank;
        const size_t first = fromLeft ? 0 : rank - own;
        bool ones = true, fits = true;
        for (size_t i = 0; i < own; ++i) {
            const auto size = other.sizes[i].asInt();
            if (!size) return false;
            ones = ones && *size == 1;
            fits = fits && (*size == 1 || (first + i == 1 && *size == channels));
        }
        return ones || fits;
    }

    bool fitsProduct(Fold& found, const Refusing& no) const {
        found.channels = found.weight->tensor().sizes[1].value();
        found.channelAxis = 1;
        if (found.bias && !isConstantOperand(*found.bias))
            return no("the bias, ", NodeWithKind{found.bias}, ", is not a constant");
        if (!m_rewriter.request().parity && found.layer->isCall("aten.addmm.default"))  // trap 7
            for (const std::string_view param : {"beta", "alpha"})
                if (found.layer->arg(param).asReal() != 1.0)
                    return no("the product is scaled: ", param, " is ", found.layer->arg(param));
        if (found.reshape && !m_rewriter.request().parity &&
            found.reshape->tensor().sizes.back() != SymInt(found.channels))
            return no.about(found.reshape, found.reshape, " changes the last dim");  // trap 5
        const Node* other = found.other.node();
        if (other == nullptr) return true;
        const SymDims& sizes = other->tensor().sizes;
        bool fits = !sizes.empty() && sizes.size() <= (found.reshape ? 3u : 2u);
        for (size_t i = 0; fits && i < sizes.size(); ++i)
            fits = sizes[i] == SymInt(1) || (i + 1 == sizes.size() && sizes[i] == SymInt(found.channels));
        return fits || no("the constant, ", other->tensor(), ", is not one number for each of the ", found.channels,
                          " columns, or for all of them");
    }

    static std::string_view why(const Fold& found) {
        if (found.operation == Operation::Add || found.operation == Operation::Sub)
            return "the constant becomes part of the bias";
        return "the constant becomes part of the weight, and of the bias";
    }

    // ---------------------------------------------------------------- the edit

    Result<void> fold(Node& y, const Fold& found) {
        GraphBuilder builder = m_rewriter.builder(m_graph, &y, *found.layer);
        const bool shifts = found.operation == Operation::Add || found.operation == Operation::Sub;
        const DType narrow = found.weight->tensor().dtype;
        Value weight = builder.value(*found.weight);
        Value bias = found.bias ? builder.value(*found.bias) : Value();
        const Value constant = builder.value(found.other.node() ? *found.other.node() : numberAsTensor(found, builder));
        const auto other = [&](const SymDims& shape) { return inShape(constant, found.alpha, shape); };
        if (shifts) {
            const Value old = bias ? unrounded(builder, *found.bias) : Value();
            const Value added = other({found.channels});
            bias = old ? apply(found.operation, old, added) : found.operation == Operation::Add ? added : -added;
            bias = convert(bias, narrow);
        } else {
            SymDims shape(found.weight->tensor().sizes.size(), SymInt(1));
            shape[found.channelAxis] = found.channels;
            const Value old = unrounded(builder, *found.weight);
            weight = convert(apply(found.operation, old, other(shape)), narrow);
            if (bias) {
                const Value oldBias = unrounded(builder, *found.bias);
                bias = convert(apply(found.operation, oldBias, other({found.channels})), narrow);
            }
        }
        Value layer = layerWith(builder, found, weight, bias);
        if (found.reshape && layer) layer = builder.call("aten.reshape.default", {layer, found.reshape->arg(1)});
        if (found.mixed && layer) layer = convert(layer, y.tensor().dtype);
        if (builder.error()) return *builder.error();
        m_rewriter.replace(y, *layer.node());
        // What is left of the old layer; weight and bias are read by the new one, or by what made its own.
        for (Node* dead : {found.widening, found.reshape, found.layer})
            if (dead && !dead->hasUsers()) {
                m_rewriter.eraseDead(*dead);
                break;
            }
        return {};
    }

    static Value apply(Operation operation, const Value& a, const Value& b) {
        switch (operation) {
            case Operation::Add: return a + b;
            case Operation::Sub: return a - b;
            case Operation::Mul: return a * b;
            case Operation::Div: break;
        }
        return a / b;
    }

    /// The constant in the shape that the weight or the bias needs.
    static Value inShape(Value value, double factor, const SymDims& shape) {
        GraphBuilder& builder = value.builder();
        if (factor != 1) value = value * OperandValue(factor);
        if (numel(value.sizes()) == SymInt(1))
            return expand(builder.call("aten.reshape.default", {value, Argument(SymDims{1})}), shape);
        return value.sizes() == shape ? value : builder.call("aten.reshape.default", {value, Argument(shape)});
    }
    /// A number becomes a constant without dims, of the weight's dtype. PyTorch has one name for all of them, so of two
    /// folds in one round both read the later number (trap 4), each in its own dtype.
    Node& numberAsTensor(const Fold& found, GraphBuilder& builder) {
        const DType dtype = found.mixed ? DType::F32 : found.weight->tensor().dtype;
        const double number = *found.other.get<double>();
        std::string name;
        if (m_rewriter.request().parity) {
            const auto [known, first] = m_numbers.try_emplace(dtype, "other_tensor");
            if (first && m_numbers.size() > 1) known->second = m_names.next();
            for (const auto& [each, constant] : m_numbers) m_module.tensors[constant] = Tensor::scalar(each, number);
            name = known->second;
        } else {
            name = m_names.next();
            m_module.tensors[name] = Tensor::scalar(dtype, number);
        }
        return m_graph.getAttr(name, ValueType(TensorType::contiguous(dtype, {}, found.weight->tensor().device)),
                               builder.before());
    }

    /// The weight or bias in f32, before an earlier fold rounded it, so that a chain of folds rounds once; as it is if
    /// it is not a half.
    Value unrounded(GraphBuilder& builder, Node& constant) {
        if (!isHalf(constant.tensor().dtype)) return builder.value(constant);
        const Node* rounding = recipeResult(m_module, constant);
        const Node* wide = rounding && isOwnConversion(*rounding) ? rounding->arg(0).node() : nullptr;
        if (wide == nullptr || !wide->type().tensor() || wide->tensor().dtype != DType::F32)
            return convert(builder.value(constant), DType::F32);
        const Module& recipe = m_module.recipes.at(constant.target())->graph();
        return builder.value(makeConstant(m_module, m_names.next(), recipeGraph(recipe, *wide), *builder.before()));
    }

    Value layerWith(GraphBuilder& builder, const Fold& found, const Value& weight, const Value& bias) const {
        std::vector<Argument> args = found.layer->args();
        if (isFoldedInto(*found.layer)) {
            args[1] = weight;
            args[2] = bias ? Argument(bias) : Argument();
            return builder.callBound(found.layer->op(), std::move(args));
        }
        if (found.layer->isCall("aten.addmm.default")) {
            // PyTorch makes a plain product of a scaled one (trap 7).
            if (m_rewriter.request().parity) return builder.call("aten.addmm.default", {bias, args[1], weight});
            args[0] = bias;
            args[2] = weight;
            return builder.callBound(found.layer->op(), std::move(args));
        }
        if (bias) return builder.call("aten.addmm.default", {bias, args[0], weight});
        return builder.call("aten.mm.default", {args[0], weight});
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    FreezingOptions m_options;
    ConstantNames m_names;
    std::map<DType, std::string> m_numbers;  // of this round, with parity
};

}  // namespace

Result<bool> foldBinary(Module& module, Rewriter& rewriter) { return BinaryFolding(module, rewriter).run(); }

Result<bool> restorePrecision(Module& module, Rewriter& rewriter) {
    for (Node* node : LiveNodes(module.graph())) {
        if (!node->isCall(kConvertElements)) continue;
        const Refusing no(rewriter, kRestore, *node);
        Node* widened = node->arg(0).node();
        if (widened == nullptr || !isOwnConversion(*widened) || !node->type().tensor()) {
            no("nothing that it reads was widened by binary_folding");
            continue;
        }
        Node* layer = widened->arg(0).node();
        if (layer->tensor().dtype != node->tensor().dtype) {
            no(layer, " has another dtype");
            continue;
        }
        const Go go = rewriter.begin(kRestore, *node, "widening and rounding a value gives the value");
        if (go == Go::Stop) break;
        if (go == Go::Skip) continue;
        rewriter.replace(*node, *layer);
        if (!widened->hasUsers()) rewriter.eraseDead(*widened);
    }
    return rewriter.changed();
}

}  // namespace cutaway
