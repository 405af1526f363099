#include "engine/passes/post_grad/bucket_collectives.h"

#include <algorithm>
#include <set>

#include "engine/rewrite/graph_order.h"

namespace cutaway {
namespace {

constexpr std::string_view kWait = "_c10d_functional.wait_tensor.default";

enum class Kind { ReduceScatter, AllReduce, AllGather };
struct Family {
    Kind kind;
    std::string_view pass, op;
};
constexpr Family kReduceScatters{Kind::ReduceScatter, "bucket_reduce_scatters", "_c10d_functional.reduce_scatter_tensor.default"};
constexpr Family kAllReduces{Kind::AllReduce, "bucket_all_reduce", "_c10d_functional.all_reduce.default"};
constexpr Family kAllGathers{Kind::AllGather, "bucket_all_gathers", "_c10d_functional.all_gather_into_tensor.default"};

Node& operandOf(const Node& collective) { return *collective.arg(0).node(); }

/// Whether the collective can be joined to another at all.
bool isPlain(const Node& node, const Family& family) {
    if (!node.isCall(family.op) || node.users().size() != 1 || node.arg(0).node() == nullptr) return false;
    const TensorType *in = operandOf(node).type().tensor(), *out = node.type().tensor();
    return in && out && allInts(in->sizes) && allInts(out->sizes) && (in->rank() > 0 || family.kind == Kind::AllReduce);
}
/// Whether both do the same with tensors of the same dtype and device.
bool isAlike(const Node& a, const Node& b) {
    for (size_t i = 1; i < a.args().size(); ++i)
        if (!equal(a.arg(i), b.arg(i))) return false;
    const TensorType &first = operandOf(a).tensor(), &second = operandOf(b).tensor();
    return first.dtype == second.dtype && first.device == second.device;
}
double bytesOf(const TensorType& type) { return static_cast<double>(numel(type.sizes).value()) * static_cast<double>(byteSize(type.dtype)); }

void addDescendants(const Node& node, std::set<NodeId>& known) {
    std::vector<const Node*> pending = {&node};
    while (!pending.empty()) {
        const Node* next = pending.back();
        pending.pop_back();
        for (const Node* user : next->users())
            if (known.insert(user->id()).second) pending.push_back(user);
    }
}

/// Runs of alike collectives, in the order in which they are waited for.
std::vector<std::vector<Node*>> runsOf(const Graph& graph, const Family& family) {
    std::vector<std::vector<Node*>> runs;
    bool open = false;   // whether the last run goes on
    for (const Node& node : graph.nodes()) {
        Node* waited = node.isCall(kWait) ? node.arg(0).node() : nullptr;
        if (waited == nullptr || !waited->isCall(family.op)) continue;
        const bool plain = isPlain(*waited, family);
        if (plain && open && isAlike(*runs.back()[0], *waited)) runs.back().push_back(waited);
        else if (plain) runs.push_back({waited});
        open = plain;
    }
    return runs;
}
std::vector<std::vector<Node*>> bucketsOf(const Graph& graph, const Family& family, double capacity) {
    std::vector<std::vector<Node*>> buckets;
    for (const std::vector<Node*>& run : runsOf(graph, family)) {
        std::vector<Node*> bucket;
        std::set<NodeId> descendants;
        double bytes = 0;
        const auto close = [&] {
            if (bucket.size() > 1) buckets.push_back(bucket);
            bucket.clear(), descendants.clear(), bytes = 0;
        };
        for (Node* node : run) {
            if (descendants.contains(node->id())) continue;
            const double size = std::max(bytesOf(operandOf(*node).tensor()), bytesOf(node->tensor()));
            if (bytes + size > capacity) close();
            bytes += size;
            bucket.push_back(node);
            addDescendants(*node, descendants);
        }
        close();
    }
    return buckets;
}

Value reshaped(const Value& x, std::vector<SymInt> sizes) { return x.builder().call("aten.reshape.default", {x, Argument(SymDims(sizes.begin(), sizes.end()))}); }

/// The results of the collectives of a bucket, from one on all operands.
std::vector<Value> joined(GraphBuilder& builder, const std::vector<Node*>& bucket, const Family& family) {
    const Node& first = *bucket[0];
    const bool grouped = family.kind != Kind::AllReduce;
    const auto group = grouped ? first.arg("group_size").asInt().value_or(1) : 1;
    std::vector<Argument> parts, sections;
    SymInt columns = 0;
    for (const Node* node : bucket) {
        const Value x = builder.value(operandOf(*node));
        const SymInt count = numel(x.sizes());
        // Of a scatter every member's share is a row, so that the joined rows are its shares of all.
        const bool rows = family.kind == Kind::ReduceScatter;
        const SymInt section = rows ? floorDiv(count, SymInt(group)) : count;
        parts.emplace_back(rows ? reshaped(x, {SymInt(group), section}) : reshaped(x, {count}));
        sections.emplace_back(section);
        columns = columns + section;
    }
    Value whole = builder.call("aten.cat.default", {Argument(std::move(parts)), family.kind == Kind::ReduceScatter ? 1 : 0});
    if (family.kind == Kind::ReduceScatter) whole = reshaped(whole, {columns * SymInt(group)});
    std::vector<Argument> args = first.args();
    args[0] = whole;
    Value result = builder.call(kWait, {builder.callBound(first.op(), std::move(args))});
    if (family.kind == Kind::AllGather) result = reshaped(result, {SymInt(group), columns});
    const Value pieces = builder.call("aten.split_with_sizes.default", {result, Argument(std::move(sections)), family.kind == Kind::AllGather ? 1 : 0});
    std::vector<Value> out;
    for (size_t i = 0; i < bucket.size() && !builder.error(); ++i) {
        const SymDims& sizes = bucket[i]->tensor().sizes;
        out.push_back(reshaped(pieces[static_cast<int64_t>(i)], {sizes.begin(), sizes.end()}));
    }
    return out;
}

Result<void> merge(Graph& graph, Rewriter& rewriter, const std::vector<Node*>& bucket, const Family& family) {
    Node* last = bucket[0];
    for (Node* node : bucket)
        if (graph.isBefore(*last, *node)) last = node;
    GraphBuilder builder = rewriter.builder(graph, last->next(), *bucket[0]);
    const std::vector<Value> results = joined(builder, bucket, family);
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < bucket.size(); ++i) {
        Node* wait = bucket[i]->users()[0];
        rewriter.replace(*wait, *results[i].node());
        graph.erase(*bucket[i]);
    }
    sortTopologically(graph);   // who has read an early result may stand before the bucket
    return {};
}

Result<bool> bucketAll(Module& module, Rewriter& rewriter, const Family& family) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, bucketAll(*body, rewriter, family));
        changed |= inner;
    }
    const OptionalPass* settings = rewriter.options().enabled(std::string(family.pass));
    const double capacity = (settings ? settings->number("bucket_cap_mb", 2000) : 2000) * 1024 * 1024;
    for (const std::vector<Node*>& bucket : bucketsOf(module.graph(), family, capacity)) {
        if (!rewriter.begin(family.pass, *bucket[0], "one large message takes less time than several small ones")) return changed;
        CT_TRY_VOID(merge(module.graph(), rewriter, bucket, family));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> bucketReduceScatters(Module& module, Rewriter& rewriter) { return bucketAll(module, rewriter, kReduceScatters); }
Result<bool> bucketAllReduces(Module& module, Rewriter& rewriter) { return bucketAll(module, rewriter, kAllReduces); }
Result<bool> bucketAllGathers(Module& module, Rewriter& rewriter) { return bucketAll(module, rewriter, kAllGathers); }

}  // namespace cutaway
