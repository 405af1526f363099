#include "engine/session/ties.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/runtime/reference.h"

namespace cutaway {
namespace {

/// A call one of whose results names elements of its first operand along a dim.
struct IndexCall {
    std::string_view op;
    int64_t result;  // of the tuple; -1: the call's only result
    bool several;    // names several elements of a line, each once
};
constexpr IndexCall kIndexCalls[] = {
    {"aten.sort.default", 1, true},     {"aten.sort.stable", 1, true},    {"aten.argsort.default", -1, true},
    {"aten.argsort.stable", -1, true},  {"aten.topk.default", 1, true},   {"aten.kthvalue.default", 1, false},
    {"aten.median.dim", 1, false},      {"aten.nanmedian.dim", 1, false}, {"aten.mode.default", 1, false},
    {"aten.max.dim", 1, false},         {"aten.min.dim", 1, false},       {"aten.argmax.default", -1, false},
    {"aten.argmin.default", -1, false},
};

/// Moves elements and changes none, so that it can be asked where each came from.
bool moves(const Node& node) {
    static const std::set<std::string_view> copies = {
        "aten.clone.default",        "aten.contiguous.default",
        "aten._to_copy.default",     "aten.to.dtype",
        "aten.flip.default",         "prims.rev.default",
        "aten.index_select.default", "prims.convert_element_type.default"};
    if (!node.isCall() || node.args().empty() || !node.arg(0).node()) return false;
    const TensorType *from = node.arg(0).node()->type().tensor(), *to = node.type().tensor();
    if (!from || !to || !isIntegral(from->dtype, false) || !isIntegral(to->dtype, false)) return false;
    return copies.contains(node.op().name()) || (node.is(Tag::View) && from->dtype == to->dtype);
}

struct IndexSource {
    const Node* index = nullptr;  // the value that holds the indices
    const Node* call = nullptr;   // what computes it
    bool several = false;
};
IndexSource sourceOf(const Node* node) {
    while (node && moves(*node)) node = node->arg(0).node();
    if (!node || !node->isCall()) return {};
    const bool item = node->isCall("operator.getitem") && node->arg(0).node();
    const Node* call = item ? node->arg(0).node() : node;
    const int64_t result = item ? node->arg(1).asInt().value_or(0) : -1;
    for (const IndexCall& one : kIndexCalls) {
        if (!call->isCall(one.op) || one.result != result || !call->arg(0).node()) continue;
        const bool stable = call->op().schema()->find("stable") >= 0 && call->arg("stable").asInt() == 1;
        return stable ? IndexSource{} : IndexSource{node, call, one.several};
    }
    return {};
}

/// The graph with these results and nothing that they do not need.
Module returning(const Module& module, const std::vector<NodeId>& results) {
    Module out(module);
    Graph& graph = out.graph();
    std::vector<Argument> values;
    for (const NodeId id : results) values.emplace_back(graph.find(id));
    graph.erase(*graph.outputNode());
    graph.output(std::move(values));
    out.outputs.assign(results.size(), OutputSpec{});
    out.plan = nullptr;
    std::vector<Node*> nodes = graph.nodeList();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
        if (!(*node)->isPlaceholder() && !(*node)->isOutput() && !(*node)->hasUsers()) graph.erase(**node);
    return out;
}

Tensor counted(const Tensor& like) {
    Tensor out = Tensor::empty(like.dtype(), like.sizes());
    for (int64_t i = 0; i < out.numel(); ++i) {
        const auto value = static_cast<double>(i);
        storeElements(out.dtype(), static_cast<std::byte*>(out.data()) + i * byteSize(out.dtype()), 1, 1, &value);
    }
    return out;
}

/// Keys of a call, the sizes of its indices, and of each element of the result the index that it is.
struct Lines {
    Tensor keys, places;
    int64_t length = 1, taken = 1, inner = 1;  // keys in a line, indices in a line, lines side by side

    int64_t lineOf(int64_t place) const { return place / (taken * inner) * inner + place % inner; }
    int64_t keyAt(int64_t line, int64_t index) const {
        return line / inner * length * inner + index * inner + line % inner;
    }
};

Result<Lines> linesOf(const Module& module, const std::vector<Tensor>& inputs, const Node& result,
                      const IndexSource& source, const Progress& progress) {
    CT_TRY(
        const ReferenceRun first,
        runReference(returning(module, {source.call->arg(0).node()->id(), source.index->id()}), inputs, {}, progress));
    Lines lines;
    lines.keys = first.outputs[0].contiguous();
    const Tensor& indices = first.outputs[1];
    if (source.index == &result) {
        lines.places = counted(indices);
    } else {
        Module moved(module);
        Node& index = *moved.graph().find(source.index->id());
        const auto placeholders = moved.graph().placeholders();
        Node& places = moved.graph().placeholder(
            "places", index.type(), placeholders.empty() ? moved.graph().first() : placeholders.back()->next());
        moved.graph().replaceUses(index, places);
        moved.inputs.resize(placeholders.size() + 1);
        std::vector<Tensor> given = inputs;
        given.push_back(counted(indices));
        CT_TRY(const ReferenceRun second, runReference(returning(moved, {result.id()}), given, {}, progress));
        lines.places = second.outputs[0].contiguous();
    }
    const Argument dim = source.call->op().schema()->find("dim") >= 0 ? source.call->arg("dim") : Argument();
    const Dims& sizes = lines.keys.sizes();
    if (dim.isNone() || sizes.empty()) {
        lines.length = lines.keys.numel();
    } else {
        const int64_t given = dim.asInt().value_or(0), rank = static_cast<int64_t>(sizes.size());
        const auto at = static_cast<size_t>(given < 0 ? given + rank : given);
        lines.length = sizes.at(at);
        for (size_t i = at + 1; i < sizes.size(); ++i) lines.inner *= sizes[i];
    }
    const int64_t count = lines.length > 0 ? lines.keys.numel() / lines.length : 0;
    lines.taken = count > 0 ? indices.numel() / count : 1;
    return lines;
}

bool equalKeys(const Tensor& keys, int64_t a, int64_t b) {
    if (isIntegral(keys.dtype(), true)) return toInt(keys.item(a)) == toInt(keys.item(b));
    const double x = toDouble(keys.item(a)), y = toDouble(keys.item(b));
    return x == y || (std::isnan(x) && std::isnan(y));
}

/// The elements that differ if each is a tie, else -1.
int64_t tiesIn(const Lines& lines, const Tensor& actual, const Tensor& expected, bool several) {
    const Tensor ours = actual.contiguous(), theirs = expected.contiguous();
    std::set<std::pair<int64_t, int64_t>> places, named;  // line, and where in it
    int64_t ties = 0;
    for (int64_t i = 0; i < ours.numel(); ++i) {
        const int64_t place = toInt(lines.places.item(i)), line = lines.lineOf(place);
        const int64_t a = toInt(ours.item(i)), b = toInt(theirs.item(i));
        if (a < 0 || a >= lines.length || b < 0 || b >= lines.length) return -1;
        if (several) {
            places.emplace(line, place);
            named.emplace(line, a);
        }
        if (a == b) continue;
        if (!equalKeys(lines.keys, lines.keyAt(line, a), lines.keyAt(line, b))) return -1;
        ++ties;
    }
    return places.size() == named.size() ? ties : -1;
}

}  // namespace

void sayTies(const Module& module, const std::vector<Tensor>& inputs, size_t position, const Tensor& actual,
             const Tensor& expected, const Progress& progress, OutputReport& report) {
    if (!report.compared || report.within || !actual.defined() || actual.dtype() != expected.dtype() ||
        actual.sizes() != expected.sizes() || !isIntegral(actual.dtype(), false))
        return;
    const Node* result = module.graph().outputs()[position].node();
    const IndexSource source = sourceOf(result);
    if (source.index == nullptr || !source.call->arg(0).node()->type().tensor()) return;
    const auto lines = linesOf(module, inputs, *result, source, progress);
    if (!lines || isComplex(lines->keys.dtype()) || lines->places.numel() != actual.numel()) return;
    const int64_t ties = tiesIn(*lines, actual, expected, source.several);
    if (ties < 0) return;
    report.within = true;
    report.problem.clear();
    report.remark = std::to_string(ties) + " of " + std::to_string(actual.numel()) +
                    " indices differ, all of them ties: they name equal keys, whose order PyTorch leaves open";
}

}  // namespace cutaway
