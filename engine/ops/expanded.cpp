#include "engine/ops/expanded.h"

#include "engine/ops/refused_argument.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

/// The expansion of one call in a graph of its own, whose placeholders stand for the call's operands.
struct Expansion {
    Graph graph;
    std::vector<std::pair<const Node*, const Node*>> operands;  // placeholder, operand
    std::vector<Node*> results;
    bool tuple = false;
};

/// What the call's row makes of it; arguments that it cannot read are an error of the builder's.
Values decomposed(Decomposition& call, GraphBuilder& builder) {
    try {
        return call.op().def()->decompose(call);
    } catch (const RefusedArgument& refusal) {
        builder.fail(refusal.error());
        return Value(builder, nullptr);
    }
}

Result<std::unique_ptr<Expansion>> expandCall(const CallView& c, const ValueType& type) {
    auto expansion = std::make_unique<Expansion>();
    std::vector<Argument> args;
    for (size_t i = 0; i < c.count(); ++i)
        args.push_back(c.arg(i).mapNodes([&](Node* operand) -> Node* {
            for (const auto& [placeholder, original] : expansion->operands)
                if (original == operand) return const_cast<Node*>(placeholder);
            Node& placeholder = expansion->graph.placeholder("operand", operand->type());
            expansion->operands.emplace_back(&placeholder, operand);
            return &placeholder;
        }));
    Node& call = expansion->graph.call(c.op(), std::move(args), type);
    GraphBuilder builder(expansion->graph, &call);
    Decomposition decomposition(call, builder);
    const Values values = decomposed(decomposition, builder);
    if (builder.error()) {
        Error error = *builder.error();
        if (!error.message.starts_with(c.op().name() + ": ")) error.message = c.op().name() + ": " + error.message;
        return error;
    }
    CT_CHECK(values.handled(), "an op that is defined by its expansion always expands");
    for (const Value& value : values.values()) expansion->results.push_back(value.node());
    expansion->tuple = values.isTuple();
    return expansion;
}

bool holdsTensor(const Argument& argument) {
    bool holds = false;
    argument.forEachNode([&](const Node* node) { holds |= node->type().tensor() != nullptr; });
    return holds;
}

/// Values of the scratch graph's nodes by id, the operands' from outside.
class ScratchValues : public ValueSource {
  public:
    ScratchValues(const Graph& graph, const ValueSource& outer) : m_values(graph.idLimit()), m_outer(&outer) {}
    RandomState& random() const override { return m_outer->random(); }
    const TensorList& valueOf(const Node& node) const override { return m_values[index(node.id())]; }
    void set(const Node& node, TensorList value) { m_values[index(node.id())] = std::move(value); }

  private:
    std::vector<TensorList> m_values;
    const ValueSource* m_outer;
};

}  // namespace

Values refuse(Decomposition& d, std::string what) {
    d.builder().fail(d.fail(std::move(what)));
    return Value(d.builder(), nullptr);
}
Value iota(GraphBuilder& builder, const SymInt& length, Device device, const SymInt& start, const SymInt& step,
           DType dtype) {
    return builder.call("prims.iota.default", {Argument(length)},
                        {{"start", Argument(start)},
                         {"step", Argument(step)},
                         {"dtype", dtype},
                         {"device", device},
                         {"requires_grad", false}});
}
std::vector<Value> itemsOf(const Value& tuple) {
    std::vector<Value> items;
    if (!tuple) return items;
    for (size_t i = 0; i < tuple.node()->type().tuple()->size(); ++i) items.push_back(tuple[static_cast<int64_t>(i)]);
    return items;
}
Value cat(GraphBuilder& builder, const std::vector<Value>& tensors, int64_t dim) {
    return builder.call("aten.cat.default", {Argument(std::vector<Argument>(tensors.begin(), tensors.end())), dim});
}

Result<ValueType> inferExpanded(const InferContext& c) {
    // Rules read their operands without asking. Numbers stand for tensors where binding lets them; a list in a tensor's
    // place, or a tensor in a number's, is refused here.
    const auto& params = c.op().schema()->params;
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].kind == ParamKind::Tensor && !params[i].list && !c.arg(i).isNone() && !c.operand(i))
            return c.fail("argument '" + params[i].name + "' is not a tensor");
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].kind == ParamKind::Int && holdsTensor(c.arg(i)))
            return c.fail("argument '" + params[i].name + "' is not " +
                          (params[i].list ? "a list of integers" : "an integer"));
    CT_TRY(const auto expansion, expandCall(c, {}));
    if (!expansion->tuple) return expansion->results[0] ? expansion->results[0]->type() : ValueType();
    TupleType types;
    for (const Node* result : expansion->results) types.push_back(result ? result->type() : ValueType());
    return ValueType(std::move(types));
}

EvalResult evalLeftToPass(const EvalContext& c) {
    const bool examples = c.op().name().starts_with("torch._C._functorch.");
    const std::string pass = examples ? "vmap" : "forward_ad";
    return unsupported(c.op().name() + (examples ? ": what runs for all examples is what the pass vmap writes"
                                                 : ": the tangent is what the pass forward_ad computes"),
                       {}, {"run the graph after that pass: `run` does, `text --step " + pass + "` shows it"});
}
bool isLeftToPass(const Op& op) {
    return op.name().starts_with("torch._C._functorch.") || op.name().starts_with("torch._functorch.predispatch.") ||
           op.baseName() == "_unpack_dual";
}

EvalResult evalExpanded(const EvalContext& c) {
    auto made = expandCall(c, c.resultValueType());
    if (!made) return std::move(made).error();
    const Expansion& expansion = **made;
    ScratchValues values(expansion.graph, c.values());
    for (const auto& [placeholder, operand] : expansion.operands)
        values.set(*placeholder, c.values().valueOf(*operand));
    for (const Node& node : expansion.graph.nodes()) {
        if (!node.isCall()) continue;
        if (!node.next()) break;  // the call itself stands last
        EvalResult result = evaluateCall(node.op(), node.args(), node.type(), values);
        if (!result.ok()) return result;
        values.set(node, std::move(result.tensors()));
    }
    TensorList results;
    if (c.op().schema()->returns.empty()) return results;  // what it does is what it writes
    for (size_t i = 0; i < expansion.results.size(); ++i) {
        if (expansion.results[i] == nullptr) {
            const TupleType* types = c.resultValueType().tuple();
            const bool emptyList = types && i < types->size() && (*types)[i].tuple();
            if (!emptyList) results.emplace_back();
            continue;
        }
        const TensorList& given = values.valueOf(*expansion.results[i]);
        if (expansion.results[i]->type().tuple()) {  // of a list among the results, the items stand here
            results.insert(results.end(), given.begin(), given.end());
            continue;
        }
        Tensor result = given[0];
        const TensorType& promised = expansion.results[i]->tensor();
        if (!result.defined() || result.sizes() != toInts(promised.sizes))
            return c.fail("its expansion does not give the shape of its rule: " + promised.text());
        // A shape rule may read some operands only; that another one does not fit shows in the expansion's result.
        const TensorType& ruled = c.resultType(i);
        if (result.dtype() != ruled.dtype || result.numel() != numel(toInts(ruled.sizes)))
            return c.fail("the arguments do not fit each other: the result would be " + promised.text() + ", not " +
                          ruled.text());
        // What a file recorded may be wrong: PyTorch's tracing gives an LSTM's states a dim that its kernel does not.
        if (result.sizes() != toInts(c.resultType(i).sizes)) {
            results.push_back(std::move(result));
            continue;
        }
        // A row with a shape rule of its own may lay its result out otherwise than the expansion does.
        if (result.strides() != toInts(c.resultType(i).strides)) {
            Tensor laidOut = c.result(i);
            copyInto(laidOut, result);
            result = laidOut;
        }
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace cutaway
