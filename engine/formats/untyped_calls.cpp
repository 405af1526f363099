#include "engine/formats/untyped_calls.h"

#include "engine/ir/infer.h"
#include "engine/ir/stacked.h"
#include "engine/ops/torch/torch_calls.h"

namespace cutaway {
namespace {

using Types = std::vector<ValueType>;

bool isUnknown(const Node& node) { return node.type().isOpaque() || node.type().isNone(); }

ValueType typeOf(const Argument& value) {
    if (value.node()) return value.node()->type();
    if (value.asInt()) return SymType{DType::I64, Expr::integer(*value.asInt())};
    return OpaqueType{};
}
Types typesOf(const Argument& values) {
    Types types;
    if (const auto* list = values.list())
        for (const Argument& value : *list) types.push_back(typeOf(value));
    else types.push_back(typeOf(values));
    return types;
}
Types joined(Types first, const Types& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}
/// What a graph is given of values that are taken apart along their first dim, and the number of parts.
Types itemsOf(const Types& all, SymInt& count) {
    Types items;
    for (const ValueType& each : all) {
        const TensorType* tensor = each.tensor();
        if (tensor == nullptr || tensor->rank() == 0) {
            items.push_back(each);
            continue;
        }
        TensorType item = *tensor;
        count = item.sizes[0];
        item.sizes.erase(item.sizes.begin());
        item.strides.erase(item.strides.begin());
        items.emplace_back(std::move(item));
    }
    return items;
}
ValueType stackedType(const ValueType& item, const SymInt& count) {
    return item.tensor() ? ValueType(stacked(*item.tensor(), count)) : item;
}
ValueType scalarOf(DType dtype, const ValueType& like) {
    return TensorType::contiguous(dtype, {}, like.tensor() ? like.tensor()->device : Device{});
}

class Typing {
  public:
    explicit Typing(Module& module) : m_module(module), m_graph(module.graph()) {}

    void run() {
        for (Node* node : m_graph.nodeList()) {
            if (!node->isCall()) continue;
            if (isUnknown(*node)) typeCall(*node);
            else if (namesGraph(*node)) typeGraphs(*node);
        }
    }
    Types results() const {
        std::vector<Argument> outputs = m_graph.outputs();
        return outputs.size() == 1 ? typesOf(outputs[0]) : typesOf(Argument(outputs));
    }

  private:
    static bool namesGraph(const Node& node) {
        bool names = false;
        const auto look = [&](auto&& self, const Argument& arg) -> void {
            names |= arg.get<SubgraphRef>() != nullptr;
            if (const auto* list = arg.list())
                for (const Argument& item : *list) self(self, item);
        };
        for (const Argument& arg : node.args()) look(look, arg);
        return names;
    }
    void typeCall(Node& node) {
        if (namesGraph(node)) {
            Types results = typeGraphs(node);
            if (!results.empty()) m_graph.setType(node, ValueType(TupleType(results.begin(), results.end())));
            return;
        }
        const Op& op = node.op();
        auto made = op.isOpaque() ? inferTorchCall(op, {node.args().begin(), node.args().end()}, node.kwargs())
                                  : inferCall(op, node.args());
        if (made && !made->isOpaque() && !made->isNone()) m_graph.setType(node, std::move(*made));
    }

    Module* graphOf(const Argument& named) {
        const auto* reference = named.get<SubgraphRef>();
        for (auto& [name, body] : m_module.subgraphs)
            if (reference && name == reference->name) return body.get();
        return nullptr;
    }
    /// What the graph returns when it is given values of these types.
    Types resultsOf(const Argument& named, const Types& given) {
        Module* body = graphOf(named);
        if (body == nullptr) return {};
        size_t position = 0;
        for (Node* input : body->graph().placeholders())
            if (position < given.size() && isUnknown(*input)) body->graph().setType(*input, given[position++]);
            else ++position;
        Typing typing(*body);
        typing.run();
        return typing.results();
    }
    /// Types the graphs of a call; what the call returns, empty where that is not known.
    Types typeGraphs(Node& call) {
        std::string_view name = call.op().name();
        if (name.ends_with(".default")) name.remove_suffix(8);
        if (!name.starts_with("higher_order.")) return {};
        name.remove_prefix(13);
        const auto args = call.args();
        const auto list = [&](size_t position) { return position < args.size() ? typesOf(args[position]) : Types(); };
        SymInt count = 0;
        if (name == "cond" && args.size() >= 4) {
            resultsOf(args[2], list(3));
            return resultsOf(args[1], list(3));
        }
        if (name == "while_loop" && args.size() >= 3) {
            const Types all = joined(list(2), list(3));
            resultsOf(args[0], all);
            resultsOf(args[1], all);
            return list(2);
        }
        if (name == "map_impl" && args.size() >= 2) {
            Types results = resultsOf(args[0], joined(itemsOf(list(1), count), list(2)));
            for (ValueType& result : results) result = stackedType(result, count);
            return results;
        }
        if (name == "scan" && args.size() >= 3) {
            const size_t carried = list(1).size();
            Types results = resultsOf(args[0], joined(joined(list(1), itemsOf(list(2), count)), list(3)));
            for (size_t i = carried; i < results.size(); ++i) results[i] = stackedType(results[i], count);
            return results;
        }
        if (name == "flex_attention") return typeFlexAttention(args);
        return typeWrapped(args);
    }
    /// (query, key, value, score, blocks with the mask, ...): the score, four places, what is captured.
    Types typeFlexAttention(std::span<const Argument> args) {
        const ValueType query = args.size() > 8 ? typeOf(args[0]) : ValueType();
        const ValueType value = args.size() > 8 ? typeOf(args[2]) : ValueType();
        const auto* blocks = args.size() > 8 ? args[4].list() : nullptr;
        if (!query.tensor() || query.tensor()->rank() != 4 || !value.tensor() || value.tensor()->rank() != 4 ||
            !blocks || blocks->empty())
            return {};
        const DType working = query.tensor()->dtype == DType::F64 ? DType::F64 : DType::F32;
        const Types places(4, scalarOf(DType::I32, query));
        resultsOf(args[3], joined(joined({scalarOf(working, query)}, places), typesOf(args[7])));
        resultsOf(blocks->back(), joined(places, typesOf(args[8])));
        TensorType result = *query.tensor();
        const Device device = result.device;
        const SymDims rows(result.sizes.begin(), result.sizes.end() - 1);
        SymDims sizes = rows;
        sizes.push_back(value.tensor()->sizes.back());
        const ValueType sums = TensorType::contiguous(working, rows, device);
        return {TensorType::contiguous(result.dtype, sizes, device), sums, sums};
    }
    /// Wrappers give their graph what stands behind it, a name of the graph aside.
    Types typeWrapped(std::span<const Argument> args) {
        size_t at = 0;
        while (at < args.size() && !args[at].get<SubgraphRef>()) ++at;
        if (at == args.size()) return {};
        Types given;
        for (size_t i = at + 1; i < args.size(); ++i)
            if (!args[i].get<std::string>() && !(i == at + 1 && args[i].isNone()))
                given = joined(given, typesOf(args[i]));
        return resultsOf(args[at], given);
    }

    Module& m_module;
    Graph& m_graph;
};

}  // namespace

void typeUntypedCalls(Module& module) { Typing(module).run(); }

}  // namespace cutaway
