#include "engine/passes/post_grad/ddp_fusion.h"

#include <algorithm>

#include "engine/ir/readers.h"
#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kSum = "_c10d_functional.all_reduce.default",
                           kSums = "_c10d_functional.all_reduce_coalesced.default";
constexpr std::string_view kDivide = "aten.div.Tensor";
constexpr double kMegabyte = 1024 * 1024;

/// The reader of a node that has one.

// ---------------------------------------------------------------- joining

/// A gradient: divided, summed over the group, waited for.
struct Gradient {
    Node *divided, *sum, *wait;
};

std::optional<Gradient> gradientOf(Node& sum, const Refusing& no) {
    const auto refused = [&](const Node* because, const auto&... pieces) {
        no.about(because, pieces...);
        return std::nullopt;
    };
    Node *divided = sum.arg(0).node(), *wait = onlyUser(sum);
    if (divided == nullptr || !divided->isCall(kDivide))
        return refused(divided, "what is summed is ", NodeWithKind{divided}, ", not divided by the number of members");
    if (wait == nullptr || !wait->isCall(kWait))
        return refused(&sum, "something else than one wait reads the sum: ", OtherReader{sum, nullptr});
    if (divided->arg(0).node() == nullptr || divided->arg(1).node() != nullptr)
        return refused(divided, *divided, " divides by ", NodeWithKind{divided->arg(1).node()}, ", not by a number");
    if (!allInts(divided->tensor().sizes))
        return refused(divided, "not all sizes of ", divided->tensor(), " are known numbers");
    const Node* reader = onlyUser(*wait);
    if (reader == nullptr) return refused(wait, *wait, " has ", wait->users().size(), " readers");
    if (!reader->isOutput() && !reader->isCall("aten.copy_.default"))
        return refused(reader, *wait, " is read in this graph, by ", NodeWithKind{reader});
    return Gradient{divided, &sum, wait};
}
/// Whether both have the same divisor, dtype and group.
bool isAlikeGradient(const Gradient& a, const Gradient& b) {
    for (size_t i = 1; i < a.sum->args().size(); ++i)
        if (!equal(a.sum->arg(i), b.sum->arg(i))) return false;
    const TensorType &first = a.divided->arg(0).node()->tensor(), &second = b.divided->arg(0).node()->tensor();
    return equal(a.divided->arg(1), b.divided->arg(1)) && first.dtype == second.dtype && first.device == second.device;
}

/// In the order in which they are sent; only buckets of several.
std::vector<std::vector<Gradient>> bucketsOf(const Graph& graph, double capacity, Rewriter& rewriter) {
    std::vector<std::vector<Gradient>> buckets;
    std::vector<Gradient> bucket;
    double limit = kMegabyte, bytes = 0;  // the first gradients should not wait for many others
    const auto close = [&](const char* before) {
        if (bucket.size() > 1) buckets.push_back(bucket);
        else if (!bucket.empty())
            Refusing(rewriter, rewriter.pass(), *bucket[0].sum)("it is alone in its bucket: ", before);
        bucket.clear();
        bytes = 0;
        limit = capacity;
    };
    for (Node& node : graph.nodes()) {
        if (!node.isCall(kSum)) continue;
        const auto gradient = gradientOf(node, Refusing(rewriter, rewriter.pass(), node));
        if (!gradient) continue;
        if (!bucket.empty() && !isAlikeGradient(bucket[0], *gradient))
            close("the next gradient has another group, reduction, divisor or dtype");
        bucket.push_back(*gradient);
        const TensorType& type = node.tensor();
        bytes += static_cast<double>(numel(type.sizes).value()) * static_cast<double>(byteSize(type.dtype));
        if (bytes >= limit) close("it fills one");
    }
    close("no other gradient follows");
    return buckets;
}

Node& dividend(const Gradient& gradient) { return *gradient.divided->arg(0).node(); }
std::vector<Argument> withFirst(const Node& node, Argument first) {
    std::vector<Argument> args = node.args();
    args[0] = std::move(first);
    return args;
}

/// The sums, from one on all gradients in a row.
std::vector<Value> joinedByConcat(GraphBuilder& builder, const std::vector<Gradient>& bucket) {
    std::vector<Argument> parts, sections;
    for (const Gradient& gradient : bucket) {
        const SymInt count = numel(gradient.divided->tensor().sizes);
        parts.emplace_back(
            builder.call("aten.reshape.default", {Argument(&dividend(gradient)), Argument(SymDims{count})}));
        sections.emplace_back(count);
    }
    const Value whole = builder.call("aten.cat.default", {Argument(std::move(parts))});
    const Value divided = builder.callBound(bucket[0].divided->op(), withFirst(*bucket[0].divided, whole));
    const Value sum = builder.call(kWait, {builder.callBound(bucket[0].sum->op(), withFirst(*bucket[0].sum, divided))});
    const Value pieces = builder.call("aten.split_with_sizes.default", {sum, Argument(std::move(sections))});
    std::vector<Value> out;
    for (size_t i = 0; i < bucket.size() && !builder.error(); ++i)
        out.push_back(builder.call("aten.reshape.default",
                                   {pieces[static_cast<int64_t>(i)], Argument(bucket[i].divided->tensor().sizes)}));
    return out;
}
/// The sums, from one call on the list of all gradients.
std::vector<Value> joinedByList(GraphBuilder& builder, const std::vector<Gradient>& bucket) {
    std::vector<Argument> dividends, inputs;
    for (const Gradient& gradient : bucket) dividends.emplace_back(&dividend(gradient));
    const Value divided =
        builder.call("aten._foreach_div.Scalar", {Argument(std::move(dividends)), bucket[0].divided->arg(1)});
    for (size_t i = 0; i < bucket.size() && !builder.error(); ++i)
        inputs.emplace_back(divided[static_cast<int64_t>(i)]);
    const Value sums = builder.callBound(requireOp(kSums), withFirst(*bucket[0].sum, Argument(std::move(inputs))));
    std::vector<Value> out;
    for (size_t i = 0; i < bucket.size() && !builder.error(); ++i) out.push_back(sums[static_cast<int64_t>(i)]);
    for (Value& each : out) each = builder.call(kWait, {each});
    return out;
}

using Join = std::vector<Value> (*)(GraphBuilder& builder, const std::vector<Gradient>& bucket);

Result<void> merge(Graph& graph, Rewriter& rewriter, const std::vector<Gradient>& bucket, Join join) {
    const Node* last = bucket[0].divided;
    for (const Gradient& gradient : bucket)
        if (graph.isBefore(*last, *gradient.divided)) last = gradient.divided;
    GraphBuilder builder = rewriter.builder(graph, last->next(), *bucket[0].sum);
    const std::vector<Value> sums = join(builder, bucket);
    if (builder.error()) return *builder.error();
    std::vector<NodeId> divided;
    for (size_t i = 0; i < bucket.size(); ++i) {
        divided.push_back(bucket[i].divided->id());
        rewriter.replace(*bucket[i].wait, *sums[i].node());
        graph.erase(*bucket[i].sum);
    }
    for (const NodeId id : divided)  // one that is summed twice goes once
        if (Node* node = graph.find(id); node && !node->hasUsers()) rewriter.eraseDead(*node);
    sortTopologically(graph);  // a gradient may have been copied into its place before the last one was there
    return {};
}

Result<bool> fuseGradients(Module& module, Rewriter& rewriter, Join join) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, fuseGradients(*body, rewriter, join));
        changed |= inner;
    }
    const OptionalPass* settings = rewriter.request().enabled(std::string(rewriter.pass()));
    const double capacity = (settings ? settings->number("bucket_size_mb", 25) : 25) * kMegabyte;
    for (const std::vector<Gradient>& bucket : bucketsOf(module.graph(), capacity, rewriter)) {
        if (rewriter.begin(rewriter.pass(), *bucket[0].sum,
                           "one large message takes less time than several small ones") != Go::Yes)
            return changed;
        CT_TRY_VOID(merge(module.graph(), rewriter, bucket, join));
        changed = true;
    }
    return changed;
}

// ---------------------------------------------------------------- waiting later

/// The waits for a sum, what only takes their values apart, and the readers of all that.
struct Waits {
    std::vector<Node*> nodes;  // waits first, each before what reads it
    Node* firstReader = nullptr;
};

bool takesApart(const Node& node) {
    constexpr std::string_view kOps[] = {"aten.split.Tensor", "aten.split_with_sizes.default", "aten.reshape.default",
                                         "operator.getitem",  "aten.detach.default",           "aten.alias.default"};
    return node.isCall() && std::find(std::begin(kOps), std::end(kOps), node.op().name()) != std::end(kOps);
}

/// The waits for a collective's results; none if something else reads them.
std::vector<Node*> waitsFor(const Node& collective) {
    if (Node* wait = onlyUser(collective); wait && wait->isCall(kWait)) return {wait};
    if (collective.users().size() < 2) return {};
    std::vector<Node*> waits;
    for (const Node* item : collective.users()) {
        Node* wait = item->isCall("operator.getitem") ? onlyUser(*item) : nullptr;
        if (wait == nullptr || !wait->isCall(kWait)) return {};
        waits.push_back(wait);
    }
    return waits;
}

Waits waitsOf(const Node& collective) {
    Waits out{waitsFor(collective), nullptr};
    const Graph& graph = collective.graph();
    const auto read = [&](Node* reader) {
        if (out.firstReader == nullptr || graph.isBefore(*reader, *out.firstReader)) out.firstReader = reader;
    };
    for (size_t i = 0; i < out.nodes.size(); ++i) {
        const std::vector<Node*>& users = out.nodes[i]->users();
        const auto other =
            std::find_if(users.begin(), users.end(), [](const Node* user) { return !takesApart(*user); });
        for (auto user = users.begin(); user != other; ++user)
            if (std::find(out.nodes.begin(), out.nodes.end(), *user) == out.nodes.end()) out.nodes.push_back(*user);
        if (other != users.end()) std::for_each(users.begin(), users.end(), read);
    }
    return out;
}

/// The order in which `moved` stand before `position`.
std::vector<Node*> withMoved(const std::vector<Node*>& order, const Waits& moved) {
    std::vector<Node*> out;
    for (Node* node : order) {
        const bool goes =
            node != moved.firstReader && std::find(moved.nodes.begin(), moved.nodes.end(), node) != moved.nodes.end();
        if (node == moved.firstReader)
            for (Node* each : moved.nodes)
                if (each != node) out.push_back(each);
        if (!goes) out.push_back(node);
    }
    return out;
}

}  // namespace

Result<bool> fuseDdpByConcat(Module& module, Rewriter& rewriter) {
    return fuseGradients(module, rewriter, joinedByConcat);
}
Result<bool> fuseDdpByList(Module& module, Rewriter& rewriter) { return fuseGradients(module, rewriter, joinedByList); }

Result<bool> scheduleCommWait(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, scheduleCommWait(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const std::vector<Node*> before = graph.nodeList();
    std::vector<std::pair<Node*, Waits>> plan;
    std::vector<Node*> after = before;
    for (Node* node : before) {
        if (!node->isCall(kSum) && !node->isCall(kSums)) continue;
        Waits waits = waitsOf(*node);
        if (waits.firstReader == nullptr) {
            const Refusing no(rewriter, "schedule_comm_wait", *node);
            waits.nodes.empty() ? no("something else than waits reads the sum: ", OtherReader{*node, nullptr})
                                : no("nobody reads ", *waits.nodes[0]);
            continue;
        }
        Refusing(rewriter, "schedule_comm_wait", *node)
            .about(waits.firstReader, "it is waited for where it is read, before ",
                   *waits.firstReader);  // unless it moves
        after = withMoved(after, waits);
        plan.emplace_back(node, std::move(waits));
    }
    // Waits for the same reader are moved one after the other, and keep their order in the end.
    if (after == before) return changed;
    for (const auto& [collective, waits] : plan) {
        const std::vector<Node*> now = graph.nodeList();
        if (withMoved(now, waits) == now) continue;
        if (rewriter.begin("schedule_comm_wait", *collective, "what does not need the sum runs while it is sent") !=
            Go::Yes)
            return changed;
        for (Node* each : waits.nodes)
            if (each != waits.firstReader) graph.moveBefore(*each, *waits.firstReader);
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
