#include "engine/plugins/graph_calls.h"

#include <algorithm>

#include "cutaway/words.h"
#include "engine/interpret/higher_order.h"
#include "engine/ir/stacked.h"

namespace cutaway {
namespace {

using Types = TupleType;

std::string textOf(const Types& types) {
    std::string out;
    for (const ValueType& type : types) out += (out.empty() ? "" : ", ") + type.text();
    return "(" + out + ")";
}

class NewGraphCall {
  public:
    NewGraphCall(const std::vector<Argument>& args, const std::string& where, const GraphNamed& graphNamed)
        : m_args(args), m_where(where), m_graphNamed(graphNamed) {}

    Result<Types> results(std::string_view op, std::string_view kind) const {
        if (kind == "cond") return cond();
        if (kind == "while_loop") return whileLoop();
        if (kind == "map") return mapItems();
        if (kind == "scan") return scan();
        if (kind == "associative_scan") return associativeScan();
        if (kind == "run") return runOnce();
        return wrong("it adds a call of '" + visibleText(op) +
                     "', and only cond, while_loop, map, scan, associative_scan "
                     "and calls of one graph can be added");
    }

  private:
    Error wrong(std::string what) const { return invalidInput(std::move(what), m_where); }

    Result<void> addTypes(const Argument& value, Types& types) const {
        if (const auto* items = value.list()) {
            for (const Argument& item : *items) CT_TRY_VOID(addTypes(item, types));
        } else if (const Node* node = value.node()) {
            if (const TupleType* several = node->type().tuple())
                types.insert(types.end(), several->begin(), several->end());
            else types.push_back(node->type());
        } else if (value.asInt()) {
            types.emplace_back(SymType{DType::I64, Expr::integer(*value.asInt())});
        } else {
            return wrong("what a graph takes and returns are tensors and whole numbers, and one is something else");
        }
        return {};
    }
    /// Of the operand at a place, or of all from there on.
    Result<Types> given(size_t place, bool andBehind = false) const {
        Types types;
        for (size_t i = place; i < m_args.size() && (i == place || andBehind); ++i)
            CT_TRY_VOID(addTypes(m_args[i], types));
        return types;
    }
    /// What the graph at a place returns when it is given values of these types.
    Result<Types> resultsOf(size_t place, const Types& values) const {
        const auto* named = place < m_args.size() ? m_args[place].get<SubgraphRef>() : nullptr;
        const Module* const graph = named ? m_graphNamed(named->name) : nullptr;
        if (graph == nullptr) return wrong("operand " + std::to_string(place) + " is not one of the graphs");
        Types taken, returned;
        for (const Node* input : graph->graph().placeholders()) taken.push_back(input->type());
        if (!std::equal(taken.begin(), taken.end(), values.begin(), values.end(), sameType))
            return wrong("the graph '" + named->name + "' takes " + textOf(taken) + " and is given " + textOf(values));
        for (const Argument& output : graph->graph().outputs()) CT_TRY_VOID(addTypes(output, returned));
        return returned;
    }
    Result<void> checkSame(const Types& returned, const Types& wanted, const std::string& whose) const {
        if (std::equal(returned.begin(), returned.end(), wanted.begin(), wanted.end(), sameType)) return {};
        return wrong(whose + " returns " + textOf(returned) + " in place of " + textOf(wanted));
    }
    /// Of values that are taken apart along their first dim; `count`: how many parts there are.
    Result<Types> itemsOf(const Types& all, SymInt& count) const {
        Types items;
        for (const ValueType& each : all) {
            const TensorType* const tensor = each.tensor();
            if (tensor == nullptr || tensor->sizes.empty() || (!items.empty() && tensor->sizes[0] != count))
                return wrong("what is gone through is not tensors of one first size: " + textOf(all));
            count = tensor->sizes[0];
            items.emplace_back(TensorType::contiguous(
                tensor->dtype, SymDims(tensor->sizes.begin() + 1, tensor->sizes.end()), tensor->device));
        }
        if (items.empty()) return wrong("there is nothing to go through");
        return items;
    }
    Result<void> stack(Types& results, size_t from, const SymInt& count) const {
        for (size_t i = from; i < results.size(); ++i) {
            const TensorType* const tensor = results[i].tensor();
            if (tensor == nullptr) return wrong("what is collected is not tensors: " + textOf(results));
            results[i] = stacked(*tensor, count);
        }
        return {};
    }
    Result<void> checkTruth(const Types& types, const std::string& whose) const {
        const auto isOne = [](const SymInt& size) { return size.isInt() && size.value() == 1; };
        const TensorType* const tensor = types.size() == 1 ? types[0].tensor() : nullptr;
        const SymType* const number = types.size() == 1 ? types[0].sym() : nullptr;
        if (number != nullptr || (tensor && std::all_of(tensor->sizes.begin(), tensor->sizes.end(), isOne))) return {};
        return wrong(whose + " is not one truth: " + textOf(types));
    }

    Result<Types> cond() const {
        CT_TRY(const Types truth, given(0));
        CT_TRY_VOID(checkTruth(truth, "what cond asks"));
        CT_TRY(const Types values, given(3, true));
        CT_TRY(const Types yes, resultsOf(1, values));
        CT_TRY(const Types no, resultsOf(2, values));
        CT_TRY_VOID(checkSame(no, yes, "the second graph"));
        return yes;
    }
    Result<Types> whileLoop() const {
        CT_TRY(const Types carried, given(2));
        CT_TRY(const Types values, given(2, true));
        CT_TRY(const Types truth, resultsOf(0, values));
        CT_TRY_VOID(checkTruth(truth, "what the condition returns"));
        CT_TRY(const Types next, resultsOf(1, values));
        CT_TRY_VOID(checkSame(next, carried, "the body"));
        return carried;
    }
    Result<Types> mapItems() const {
        SymInt count = 0;
        CT_TRY(const Types whole, given(1));
        CT_TRY(Types values, itemsOf(whole, count));
        CT_TRY(const Types more, given(2, true));
        values.insert(values.end(), more.begin(), more.end());
        CT_TRY(Types results, resultsOf(0, values));
        CT_TRY_VOID(stack(results, 0, count));
        return results;
    }
    Result<Types> scan() const {
        SymInt count = 0;
        CT_TRY(const Types carried, given(1));
        CT_TRY(const Types whole, given(2));
        CT_TRY(const Types items, itemsOf(whole, count));
        CT_TRY(const Types more, given(3, true));
        Types values = carried;
        values.insert(values.end(), items.begin(), items.end());
        values.insert(values.end(), more.begin(), more.end());
        CT_TRY(Types results, resultsOf(0, values));
        const size_t kept = std::min(carried.size(), results.size());
        CT_TRY_VOID(checkSame(Types(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(kept)), carried,
                              "what the graph carries on"));
        CT_TRY_VOID(stack(results, kept, count));
        return results;
    }
    Result<Types> associativeScan() const {
        SymInt count = 0;
        CT_TRY(const Types whole, given(1));
        CT_TRY(const Types items, itemsOf(whole, count));
        CT_TRY(const Types more, given(2, true));
        Types values = items;
        values.insert(values.end(), items.begin(), items.end());
        values.insert(values.end(), more.begin(), more.end());
        CT_TRY(Types results, resultsOf(0, values));
        CT_TRY_VOID(checkSame(results, items, "the graph"));
        CT_TRY_VOID(stack(results, 0, count));
        return results;
    }
    /// One graph, of what follows it; invoke_subgraph has a name for it first.
    Result<Types> runOnce() const {
        size_t place = 0;
        while (place < m_args.size() && !m_args[place].get<SubgraphRef>()) ++place;
        const bool identified =
            place + 1 < m_args.size() && (m_args[place + 1].get<std::string>() || m_args[place + 1].isNone());
        CT_TRY(const Types values, given(place + (identified ? 2 : 1), true));
        return resultsOf(place, values);
    }

    const std::vector<Argument>& m_args;
    const std::string& m_where;
    const GraphNamed& m_graphNamed;
};

}  // namespace

Result<ValueType> typeOfGraphCall(std::string_view op, const std::vector<Argument>& args, const std::string& where,
                                  const GraphNamed& graphNamed) {
    CT_TRY(Types results, NewGraphCall(args, where, graphNamed).results(op, graphKindOf(op)));
    return ValueType(std::move(results));
}

}  // namespace cutaway
