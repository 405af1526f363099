#include "engine/passes/post_grad/bucket_collectives.h"

#include <algorithm>
#include <set>

#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

enum class Kind { ReduceScatter, AllReduce, AllGather };
struct CollectiveFamily {
    Kind kind;
    std::string_view pass, op;
};
constexpr CollectiveFamily kReduceScatters{Kind::ReduceScatter, "bucket_reduce_scatters",
                                           "_c10d_functional.reduce_scatter_tensor.default"};
constexpr CollectiveFamily kAllReduces{Kind::AllReduce, "bucket_all_reduce", "_c10d_functional.all_reduce.default"};
constexpr CollectiveFamily kAllGathers{Kind::AllGather, "bucket_all_gathers",
                                       "_c10d_functional.all_gather_into_tensor.default"};

Node& operandOf(const Node& collective) { return *collective.arg(0).node(); }

/// Whether the collective can be joined to another at all.
bool isPlain(const Node& node, const CollectiveFamily& family, const Refusing& refuse) {
    if (!node.isCall(family.op)) return false;
    if (node.users().size() != 1)
        return refuse("it has ", Counted{node.users().size(), "reader"}, ", not one wait alone");
    if (node.arg(0).node() == nullptr) return refuse("what it sends is not a tensor");
    const TensorType *in = operandOf(node).type().tensor(), *out = node.type().tensor();
    if (in == nullptr || out == nullptr) return refuse("the type of what it sends or gets is not known");
    if (!allInts(in->sizes) || !allInts(out->sizes))
        return refuse("the sizes of ", operandOf(node), ", ", *in, ", are not known numbers");
    return in->rank() > 0 || family.kind == Kind::AllReduce || refuse(operandOf(node), " is a single number, ", *in);
}
/// Whether both are the same operation on tensors of the same dtype and device. `refuse` speaks of `b`.
bool isAlike(const Node& a, const Node& b, const Refusing& refuse) {
    for (size_t i = 1; i < a.args().size(); ++i)
        if (!equal(a.arg(i), b.arg(i)))
            return refuse(a, ", which is waited for before it, has '",
                          a.op().schema() ? a.op().schema()->params[i].name : "argument", "' ", a.arg(i), ", it has ",
                          b.arg(i));
    const TensorType &first = operandOf(a).tensor(), &second = operandOf(b).tensor();
    return (first.dtype == second.dtype && first.device == second.device) ||
           refuse(a, ", which is waited for before it, sends ", first, ", it sends ", second,
                  ": dtype or device differ");
}
double bytesOf(const TensorType& type) {
    return static_cast<double>(numel(type.sizes).value()) * static_cast<double>(byteSize(type.dtype));
}

void addDescendants(const Node& node, std::set<NodeId>& known) {
    std::vector<const Node*> pending = {&node};
    while (!pending.empty()) {
        const Node* next = pending.back();
        pending.pop_back();
        for (const Node* user : next->users())
            if (known.insert(user->id()).second) pending.push_back(user);
    }
}

/// Divides the collectives of one family of a graph into buckets, which are joined.
class Buckets {
  public:
    Buckets(const Graph& graph, const CollectiveFamily& family, Rewriter& rewriter)
        : m_graph(graph), m_family(family), m_rewriter(rewriter) {
        const OptionalPass* settings = rewriter.request().enabled(std::string(family.pass));
        m_capacity = (settings ? settings->number("bucket_cap_mb", 2000) : 2000) * kMegabyte;
    }

    std::vector<std::vector<Node*>> find() {
        for (const std::vector<Node*>& run : runs()) divide(run);
        refuseRest();
        return std::move(m_buckets);
    }

  private:
    static constexpr double kMegabyte = 1024 * 1024;
    Refusing refusalAt(const Node& node) const { return {m_rewriter, m_family.pass, node}; }

    /// Runs of collectives that are alike and waited for one after the other; divide() makes buckets of them.
    std::vector<std::vector<Node*>> runs() const {
        std::vector<std::vector<Node*>> runs;
        bool open = false;  // whether the last run goes on
        for (const Node& node : m_graph.nodes()) {
            Node* waited = node.isCall(kWait) ? node.arg(0).node() : nullptr;
            if (waited == nullptr || !waited->isCall(m_family.op)) continue;
            const Refusing refuse = refusalAt(*waited);
            const bool plain = isPlain(*waited, m_family, refuse);
            if (plain && open && isAlike(*runs.back()[0], *waited, refuse)) runs.back().push_back(waited);
            else if (plain) runs.push_back({waited});
            open = plain;
        }
        return runs;
    }
    void divide(const std::vector<Node*>& run) {
        std::vector<Node*> bucket;
        std::set<NodeId> descendants;
        double bytes = 0;
        const auto close = [&] {
            if (bucket.size() > 1) m_buckets.push_back(bucket);
            bucket.clear();
            descendants.clear();
            bytes = 0;
        };
        for (Node* node : run) {
            if (descendants.contains(node->id())) {
                refusalAt (*node)("it needs what ", bucket[0], " or another of its bucket gives");
                continue;
            }
            const double size = std::max(bytesOf(operandOf(*node).tensor()), bytesOf(node->tensor()));
            if (bytes + size > m_capacity) {
                if (!bucket.empty()) refuseSize(*node, *bucket.back(), bytes + size);
                if (bucket.size() == 1) refuseSize(*bucket[0], *node, bytes + size);
                close();
            }
            bytes += size;
            bucket.push_back(node);
            addDescendants(*node, descendants);
        }
        close();
    }
    void refuseSize(const Node& node, const Node& other, double bytes) const {
        if (!m_rewriter.watches(node)) return;
        refusalAt(node)("with ", other, " the bucket would have ", bytes / kMegabyte, " MB, more than bucket_cap_mb, ",
                        m_capacity / kMegabyte);
    }
    /// Collectives that are in another's bucket, and collectives in no bucket that were not refused yet.
    void refuseRest() const {
        for (const std::vector<Node*>& bucket : m_buckets)
            for (const Node* node : bucket)
                if (node != bucket[0]) refusalAt (*node)("it goes into the bucket that ", bucket[0], " begins");
        for (const Node& node : m_graph.nodes())
            if (node.isCall(m_family.op) && m_rewriter.watches(node)) refuseAlone(node);
    }
    void refuseAlone(const Node& node) const {
        bool waited = false;
        for (const Node& wait : m_graph.nodes()) {
            const Node* other = wait.isCall(kWait) ? wait.arg(0).node() : nullptr;
            if (other == nullptr || !other->isCall(m_family.op)) continue;
            if (waited && other != &node)
                return void(refusalAt(node)(
                    other, ", which is waited for next, does not do the same with a tensor of the same dtype"));
            waited |= other == &node;
        }
        if (waited) refusalAt(node)("no other ", m_family.op, " is waited for beside it");
        else refusalAt(node)("no ", kWait, " reads it");
    }

    const Graph& m_graph;
    const CollectiveFamily& m_family;
    Rewriter& m_rewriter;
    double m_capacity = 0;
    std::vector<std::vector<Node*>> m_buckets;
};

Value reshaped(const Value& x, std::vector<SymInt> sizes) {
    return x.builder().call("aten.reshape.default", {x, Argument(SymDims(sizes.begin(), sizes.end()))});
}

/// The same bytes as elements of another dtype, of a tensor of one dim.
Value readAs(const Value& x, DType dtype) {
    return x.dtype() == dtype ? x : x.builder().call("aten.view.dtype", {x, Argument(dtype)});
}
/// Bytes are joined as elements of the smallest dtype.
DType smallestDType(const std::vector<Node*>& bucket) {
    DType smallest = bucket[0]->tensor().dtype;
    for (const Node* node : bucket)
        if (byteSize(node->tensor().dtype) < byteSize(smallest)) smallest = node->tensor().dtype;
    return smallest;
}

/// One collective on all operands, and from it the results of the collectives of a bucket.
class BucketJoining {
  public:
    BucketJoining(GraphBuilder& builder, const std::vector<Node*>& bucket, Kind kind)
        : m_builder(builder), m_bucket(bucket), m_kind(kind), m_dtype(smallestDType(bucket)) {
        m_group = kind == Kind::AllReduce ? 1 : bucket[0]->arg("group_size").asInt().value_or(1);
    }
    std::vector<Value> results() {
        const Value whole = joinOperands();
        std::vector<Argument> args = m_bucket[0]->args();
        args[0] = whole;
        start = m_builder.callBound(m_bucket[0]->op(), std::move(args));
        wait = m_builder.call(kWait, {start});
        const bool gathers = m_kind == Kind::AllGather;
        const Value result = gathers ? reshaped(wait, {SymInt(m_group), m_columns}) : wait;
        const Value pieces =
            m_builder.call("aten.split_with_sizes.default", {result, Argument(m_sections), gathers ? 1 : 0});
        std::vector<Value> out;
        for (size_t i = 0; i < m_bucket.size() && !m_builder.error(); ++i) {
            const TensorType& type = m_bucket[i]->tensor();
            Value piece = pieces[static_cast<int64_t>(i)];
            if (type.dtype != m_dtype) piece = readAs(reshaped(piece, {SymInt(-1)}), type.dtype);
            out.push_back(reshaped(piece, {type.sizes.begin(), type.sizes.end()}));
        }
        return out;
    }
    Value start, wait;

  private:
    Value joinOperands() {
        std::vector<Argument> parts;
        for (const Node* node : m_bucket) {
            const Value x = m_builder.value(operandOf(*node));
            const SymInt count = numel(x.sizes());
            // The operand of a reduce_scatter becomes one row per member of the group, so that concatenating along
            // dim 1 keeps each member's shares of all operands together.
            const bool rows = m_kind == Kind::ReduceScatter;
            SymInt section = rows ? floorDiv(count, SymInt(m_group)) : count;
            Value part = rows ? reshaped(x, {SymInt(m_group), section}) : reshaped(x, {count});
            if (x.dtype() != m_dtype) {
                part = readAs(part, m_dtype);
                section = section * SymInt(byteSize(x.dtype()) / byteSize(m_dtype));
            }
            parts.emplace_back(part);
            m_sections.emplace_back(section);
            m_columns = m_columns + section;
        }
        const Value whole =
            m_builder.call("aten.cat.default", {Argument(std::move(parts)), m_kind == Kind::ReduceScatter ? 1 : 0});
        return m_kind == Kind::ReduceScatter ? reshaped(whole, {m_columns * SymInt(m_group)}) : whole;
    }

    GraphBuilder& m_builder;
    const std::vector<Node*>& m_bucket;
    Kind m_kind;
    DType m_dtype;
    int64_t m_group = 1;
    std::vector<Argument> m_sections;
    SymInt m_columns = 0;
};

const CollectiveFamily* familyOf(const Node& node) {
    for (const CollectiveFamily* family : {&kReduceScatters, &kAllReduces, &kAllGathers})
        if (node.isCall(family->op)) return family;
    return nullptr;
}

Result<bool> bucketAll(Module& module, Rewriter& rewriter, const CollectiveFamily& family) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, bucketAll(*body, rewriter, family));
        changed |= inner;
    }
    for (const std::vector<Node*>& bucket : Buckets(module.graph(), family, rewriter).find()) {
        if (rewriter.begin(family.pass, *bucket[0], "one large message takes less time than several small ones") !=
            Go::Yes)
            return changed;
        CT_TRY_VOID(joinCollectives(module.graph(), rewriter, bucket));
        changed = true;
    }
    return changed;
}

}  // namespace

bool isJoinable(const Node& collective) {
    const CollectiveFamily* family = familyOf(collective);
    return family && isPlain(collective, *family, {}) && collective.users()[0]->isCall(kWait);
}

Result<JoinedCollectives> joinCollectives(Graph& graph, Rewriter& rewriter, const std::vector<Node*>& bucket) {
    GraphBuilder builder = rewriter.builder(graph, bucket.back()->next(), *bucket[0]);
    const uint32_t first = graph.idLimit();
    BucketJoining joining(builder, bucket, familyOf(*bucket[0])->kind);
    const std::vector<Value> results = joining.results();
    if (builder.error()) return *builder.error();
    JoinedCollectives joined;
    for (uint32_t id = first; id < graph.idLimit(); ++id)
        if (Node* node = graph.find(NodeId{id})) joined.made.push_back(node);
    joined.start = joining.start.node();
    joined.wait = joining.wait.node();
    for (size_t i = 0; i < bucket.size(); ++i) {
        Node* wait = bucket[i]->users()[0];
        rewriter.replace(*wait, *results[i].node());
        graph.erase(*bucket[i]);
    }
    sortTopologically(graph);  // an operand may stand behind the bucket, the reader of an early result before it
    return joined;
}

Result<bool> bucketReduceScatters(Module& module, Rewriter& rewriter) {
    return bucketAll(module, rewriter, kReduceScatters);
}
Result<bool> bucketAllReduces(Module& module, Rewriter& rewriter) { return bucketAll(module, rewriter, kAllReduces); }
Result<bool> bucketAllGathers(Module& module, Rewriter& rewriter) { return bucketAll(module, rewriter, kAllGathers); }

}  // namespace cutaway
