#include "engine/interpret/higher_order.h"

#include "engine/support/check.h"

namespace cutaway {
namespace {

/// The operands of one call, in the order of the text: graphs, lists of values, single values.
class Operands {
  public:
    Operands(const Module& module, const Node& call, const ValueSource& values, const RunGraph& run)
        : m_module(module), m_call(call), m_values(values), m_run(run) {}

    const Node& call() const { return m_call; }
    Error fail(const std::string& what) const { return invalidInput(m_call.op().name() + ": " + what, m_call.name()); }

    Result<const Module*> graph(size_t position) const {
        return named(position < m_call.args().size() ? m_call.arg(position) : Argument(), position);
    }
    /// One of a list of graphs.
    Result<const Module*> graphOf(size_t position, int64_t number) const {
        const auto* graphs = position < m_call.args().size() ? m_call.arg(position).list() : nullptr;
        if (graphs == nullptr) return fail("operand " + std::to_string(position) + " is not a list of graphs");
        if (number < 0 || number >= static_cast<int64_t>(graphs->size()))
            return fail("there are " + std::to_string(graphs->size()) + " graphs, and not one of number " +
                        std::to_string(number));
        return named((*graphs)[static_cast<size_t>(number)], position);
    }
    /// All tensors of an operand, lists flattened; nothing for a position that the call does not have.
    Result<TensorList> tensors(size_t position) const {
        TensorList out;
        if (position < m_call.args().size()) CT_TRY_VOID(flatten(m_call.arg(position), out));
        return out;
    }
    /// The same for this operand and all after it.
    Result<TensorList> tensorsFrom(size_t position) const {
        TensorList out;
        for (size_t i = position; i < m_call.args().size(); ++i) CT_TRY_VOID(flatten(m_call.arg(i), out));
        return out;
    }
    Result<TensorList> run(const Module& body, const TensorList& inputs) const { return m_run(body, inputs); }

  private:
    Result<const Module*> named(const Argument& argument, size_t position) const {
        const auto* reference = argument.get<SubgraphRef>();
        if (reference == nullptr) return fail("operand " + std::to_string(position) + " is not a graph");
        const Module* body = m_module.subgraph(reference->name);
        if (body == nullptr) return fail("graph '" + reference->name + "' is not in the file");
        return body;
    }
    Result<void> flatten(const Argument& argument, TensorList& out) const {
        if (const Node* node = argument.node()) {
            const TensorList& values = m_values.valueOf(*node);
            out.insert(out.end(), values.begin(), values.end());
        } else if (const auto* items = argument.list()) {
            for (const Argument& item : *items) CT_TRY_VOID(flatten(item, out));
        } else if (const auto* dict = argument.get<std::shared_ptr<const ArgumentDict>>()) {
            for (const auto& [key, item] : (*dict)->items) CT_TRY_VOID(flatten(item, out));
        } else if (argument.isNone()) out.emplace_back();
        else if (const auto* flag = argument.get<bool>()) out.push_back(Tensor::scalar(DType::Bool, *flag));
        else if (auto integer = argument.asInt()) out.push_back(Tensor::scalar(DType::I64, *integer));
        else if (auto real = argument.asReal()) out.push_back(Tensor::scalar(DType::F64, *real));
        else return fail("an operand is neither a tensor nor a number");
        return {};
    }

    const Module& m_module;
    const Node& m_call;
    const ValueSource& m_values;
    const RunGraph& m_run;
};

Result<bool> isTrue(const Operands& operands, const TensorList& values) {
    if (values.size() != 1 || !values[0].defined() || values[0].numel() != 1)
        return operands.fail("the predicate is not a single value");
    return toDouble(values[0].item()) != 0;
}

/// Item `position` along the first dim, as a view.
Result<TensorList> slices(const Operands& operands, const TensorList& tensors, int64_t position) {
    TensorList out;
    for (const Tensor& tensor : tensors) {
        if (!tensor.defined() || tensor.rank() == 0)
            return operands.fail("a tensor without dims has no items to go through");
        Dims sizes(tensor.sizes().begin() + 1, tensor.sizes().end()),
            strides(tensor.strides().begin() + 1, tensor.strides().end());
        out.push_back(tensor.view(std::move(sizes), std::move(strides), tensor.offset() + position * tensor.stride(0)));
    }
    return out;
}
Result<int64_t> itemCount(const Operands& operands, const TensorList& tensors) {
    if (tensors.empty()) return operands.fail("there is nothing to go through");
    for (const Tensor& tensor : tensors)
        if (!tensor.defined() || tensor.rank() == 0 || tensor.size(0) != tensors[0].size(0))
            return operands.fail("the tensors to go through differ in their first size");
    return tensors[0].size(0);
}

/// Results of single items stacked along a new first dim. Without any item the shapes come from the call's type.
class Stack {
  public:
    Stack(const Operands& operands, int64_t count, size_t firstResult)
        : m_operands(operands), m_count(count), m_first(firstResult) {}

    Result<void> add(std::span<const Tensor> items, int64_t position) {
        if (m_out.empty() && position >= 0)
            for (const Tensor& item : items) {
                Dims sizes = item.sizes();
                sizes.insert(sizes.begin(), m_count);
                m_out.push_back(Tensor::empty(item.dtype(), std::move(sizes)));
            }
        if (m_out.size() != items.size())
            return m_operands.fail("the graph gives a different number of results from item to item");
        for (size_t i = 0; i < items.size(); ++i) {
            Tensor& whole = m_out[i];
            if (Dims(whole.sizes().begin() + 1, whole.sizes().end()) != items[i].sizes())
                return m_operands.fail("the graph's results change their shape from item to item");
            Tensor part = whole.view(items[i].sizes(), Dims(whole.strides().begin() + 1, whole.strides().end()),
                                     position * whole.stride(0));
            copyInto(part, items[i]);
        }
        return {};
    }
    Result<TensorList> take() {
        if (m_count > 0) return std::move(m_out);
        const TupleType* types = m_operands.call().type().tuple();
        if (types == nullptr) return m_operands.fail("there is no item, and the shapes of the results are not known");
        for (size_t i = m_first; i < types->size(); ++i) {
            const TensorType* type = (*types)[i].tensor();
            if (type == nullptr || !allInts(type->sizes))
                return m_operands.fail("there is no item, and the shapes of the results are not known");
            m_out.push_back(Tensor::zeros(type->dtype, toInts(type->sizes)));
        }
        return std::move(m_out);
    }

  private:
    const Operands& m_operands;
    int64_t m_count;
    size_t m_first;
    TensorList m_out;
};

TensorList joined(TensorList a, const TensorList& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// cond(pred, true_graph, false_graph, operands)
Result<TensorList> cond(const Operands& operands) {
    CT_TRY(const TensorList predicate, operands.tensors(0));
    CT_TRY(const bool yes, isTrue(operands, predicate));
    CT_TRY(const Module* body, operands.graph(yes ? 1 : 2));
    CT_TRY(const TensorList inputs, operands.tensorsFrom(3));
    return operands.run(*body, inputs);
}

/// The steps of a while_loop, each of which is told; what the last one gives.
template <class Tell>
Result<TensorList> goThrough(const Operands& operands, Tell&& tell) {
    CT_TRY(const Module* condition, operands.graph(0));
    CT_TRY(const Module* body, operands.graph(1));
    CT_TRY(TensorList carried, operands.tensors(2));
    CT_TRY(const TensorList additional, operands.tensors(3));
    while (true) {
        const TensorList inputs = joined(carried, additional);
        CT_TRY(const TensorList predicate, operands.run(*condition, inputs));
        CT_TRY(const bool again, isTrue(operands, predicate));
        if (!again) return carried;
        CT_TRY(TensorList next, operands.run(*body, inputs));
        if (next.size() != carried.size())
            return operands.fail("the body gives " + std::to_string(next.size()) + " values for " +
                                 std::to_string(carried.size()) + " carried ones");
        carried = std::move(next);
        tell(carried);
    }
}

/// while_loop(cond_graph, body_graph, carried, additional)
Result<TensorList> whileLoop(const Operands& operands) {
    return goThrough(operands, [](const TensorList&) {});
}

/// while_loop_stack_output(cond_graph, body_graph, carried, additional): what each step gives, stacked; where there is
/// no step, what is carried in.
Result<TensorList> whileLoopStacked(const Operands& operands) {
    CT_TRY(const TensorList given, operands.tensors(2));
    std::vector<TensorList> steps;
    CT_TRY_VOID(goThrough(operands, [&](const TensorList& made) { steps.push_back(made); }));
    if (steps.empty()) steps.push_back(given);
    const auto count = static_cast<int64_t>(steps.size());
    Stack stack(operands, count, 0);
    for (int64_t i = 0; i < count; ++i) CT_TRY_VOID(stack.add(steps[static_cast<size_t>(i)], i));
    return stack.take();
}

/// map_impl(graph, xs, additional): the graph on every item.
Result<TensorList> mapItems(const Operands& operands) {
    CT_TRY(const Module* body, operands.graph(0));
    CT_TRY(const TensorList items, operands.tensors(1));
    CT_TRY(const TensorList additional, operands.tensorsFrom(2));
    CT_TRY(const int64_t count, itemCount(operands, items));
    Stack stack(operands, count, 0);
    for (int64_t i = 0; i < count; ++i) {
        CT_TRY(TensorList item, slices(operands, items, i));
        CT_TRY(const TensorList results, operands.run(*body, joined(std::move(item), additional)));
        CT_TRY_VOID(stack.add(results, i));
    }
    return stack.take();
}

/// scan(graph, init, xs, additional): the graph takes (carry, item, additional) and gives (carry, result).
Result<TensorList> scan(const Operands& operands) {
    CT_TRY(const Module* body, operands.graph(0));
    CT_TRY(TensorList carry, operands.tensors(1));
    CT_TRY(const TensorList items, operands.tensors(2));
    CT_TRY(const TensorList additional, operands.tensorsFrom(3));
    CT_TRY(const int64_t count, itemCount(operands, items));
    const size_t carried = carry.size();
    Stack stack(operands, count, carried);
    for (int64_t i = 0; i < count; ++i) {
        CT_TRY(const TensorList item, slices(operands, items, i));
        CT_TRY(TensorList results, operands.run(*body, joined(joined(std::move(carry), item), additional)));
        if (results.size() < carried) return operands.fail("the graph gives fewer values than it carries");
        CT_TRY_VOID(stack.add(std::span(results).subspan(carried), i));
        results.resize(carried);
        carry = std::move(results);
    }
    CT_TRY(const TensorList stacked, stack.take());
    return joined(std::move(carry), stacked);
}

/// associative_scan(graph, xs, additional): running combination, from the first item to the last: the order of
/// combining is free.
Result<TensorList> associativeScan(const Operands& operands) {
    CT_TRY(const Module* body, operands.graph(0));
    CT_TRY(const TensorList items, operands.tensors(1));
    CT_TRY(const TensorList additional, operands.tensorsFrom(2));
    CT_TRY(const int64_t count, itemCount(operands, items));
    Stack stack(operands, count, 0);
    TensorList sum;
    for (int64_t i = 0; i < count; ++i) {
        CT_TRY(TensorList item, slices(operands, items, i));
        if (i == 0) sum = std::move(item);
        else {
            CT_TRY(sum, operands.run(*body, joined(joined(std::move(sum), item), additional)));
        }
        CT_TRY_VOID(stack.add(sum, i));
    }
    return stack.take();
}

/// switch(index, [graphs], (operands)): the index names one of them.
Result<TensorList> switchGraphs(const Operands& operands) {
    CT_TRY(const TensorList index, operands.tensors(0));
    if (index.size() != 1 || !index[0].defined() || index[0].numel() != 1)
        return operands.fail("the index is not a single value");
    CT_TRY(const Module* body, operands.graphOf(1, toInt(index[0].item())));
    CT_TRY(const TensorList inputs, operands.tensorsFrom(2));
    return operands.run(*body, inputs);
}

/// invoke_subgraph(graph, identifier, operands…)
Result<TensorList> invokeSubgraph(const Operands& operands) {
    CT_TRY(const Module* body, operands.graph(0));
    const bool identified = operands.call().args().size() > 1 &&
                            (operands.call().arg(1).get<std::string>() || operands.call().arg(1).isNone());
    CT_TRY(const TensorList inputs, operands.tensorsFrom(identified ? 2 : 1));
    return operands.run(*body, inputs);
}

/// Wrappers that set a mode (gradients, autocast, checkpointing) around a graph: what follows the graph are its
/// operands.
Result<TensorList> wrapped(const Operands& operands) {
    for (size_t i = 0; i < operands.call().args().size(); ++i) {
        if (!operands.call().arg(i).get<SubgraphRef>()) continue;
        CT_TRY(const Module* body, operands.graph(i));
        CT_TRY(const TensorList inputs, operands.tensorsFrom(i + 1));
        return operands.run(*body, inputs);
    }
    return operands.fail("it names no graph");
}

struct HigherOrder {
    std::string_view name;
    Result<TensorList> (*evaluate)(const Operands&);
    std::string_view kind = "run";
};
constexpr HigherOrder kHigherOrder[] = {{"cond", cond, "cond"},
                                        {"while_loop", whileLoop, "while_loop"},
                                        {"while_loop_stack_output", whileLoopStacked, "while_loop_stack_output"},
                                        {"map_impl", mapItems, "map"},
                                        {"map", mapItems, "map"},
                                        {"scan", scan, "scan"},
                                        {"associative_scan", associativeScan, "associative_scan"},
                                        {"switch", switchGraphs},
                                        {"invoke_subgraph", invokeSubgraph},
                                        {"wrap_with_set_grad_enabled", wrapped},
                                        {"wrap_with_autocast", wrapped},
                                        {"tag_activation_checkpoint", wrapped},
                                        {"wrap_activation_checkpoint", wrapped},
                                        {"wrap", wrapped},
                                        {"hints_wrapper", wrapped},
                                        {"run_const_graph", wrapped},
                                        {"strict_mode", wrapped},
                                        {"invoke_quant_packed", wrapped},
                                        {"invoke_quant", wrapped},
                                        {"b2b_gemm", wrapped}};

const HigherOrder* find(std::string_view name) {
    constexpr std::string_view kFolder = "higher_order.";
    if (!name.starts_with(kFolder)) return nullptr;
    name.remove_prefix(kFolder.size());
    if (name.ends_with(".default")) name.remove_suffix(8);
    for (const HigherOrder& row : kHigherOrder)
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace

bool isHigherOrder(std::string_view opName) { return find(opName) != nullptr; }

std::string_view graphKindOf(std::string_view opName) {
    const HigherOrder* const row = find(opName);
    return row ? row->kind : std::string_view();
}

Result<TensorList> evaluateHigherOrder(const Module& module, const Node& call, const ValueSource& values,
                                       const RunGraph& run) {
    const HigherOrder* row = find(call.op().name());
    CT_CHECK(row != nullptr, "the caller has asked isHigherOrder");
    return row->evaluate(Operands(module, call, values, run));
}

}  // namespace cutaway
