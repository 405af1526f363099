#include "engine/passes/post_grad/overlap_units.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "engine/ir/graph.h"

namespace cutaway {
namespace {

/// Calls that stay calls after decomposition and have no lowering of PyTorch's own.
constexpr std::string_view kFallbacks[] = {
    "aten._adaptive_avg_pool2d_backward",
    "aten._adaptive_avg_pool3d",
    "aten._adaptive_avg_pool3d_backward",
    "aten._addmm_activation",
    "aten._cdist_backward",
    "aten._cdist_forward",
    "aten._conj",
    "aten._conj_physical",
    "aten._embedding_bag",
    "aten._embedding_bag_backward",
    "aten._embedding_bag_dense_backward",
    "aten._embedding_bag_forward_only",
    "aten._embedding_bag_per_sample_weights_backward",
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "aten._foreach_exp",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    "aten._trilinear",
    "aten._unique",
    "aten._unique2",
    "aten._upsample_nearest_exact1d_backward",
    "aten._upsample_nearest_exact2d_backward",
    "aten._upsample_nearest_exact3d_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d",
    "aten.adaptive_max_pool3d_backward",
    "aten.addbmm",
    "aten.bincount",
    "aten.complex",
    "aten.cummax",
    "aten.cummin",
    "aten.cumprod",
    "aten.cumsum",
    "aten.digamma",
    "aten.fake_quantize_per_channel_affine_cachemask",
    "aten.fake_quantize_per_tensor_affine_cachemask",
    "aten.grid_sampler_2d_backward",
    "aten.hardshrink_backward",
    "aten.kthvalue",
    "aten.logcumsumexp",
    "aten.masked_scatter_backward",
    "aten.masked_select",
    "aten.max_pool3d_with_indices_backward",
    "aten.median",
    "aten.nonzero",
    "aten.nonzero_static",
    "aten.polar",
    "aten.polygamma",
    "aten.rand",
    "aten.randint",
    "aten.randn",
    "aten.randperm",
    "aten.replication_pad1d_backward",
    "aten.replication_pad2d_backward",
    "aten.replication_pad3d_backward",
    "aten.softshrink_backward",
    "aten.sort",
    "aten.topk",
    "aten.unique_consecutive",
    "aten.unique_dim",
    "aten.upsample_bicubic2d",
    "aten.upsample_bicubic2d_backward",
    "aten.upsample_bilinear2d",
    "aten.upsample_bilinear2d_backward",
    "aten.upsample_linear1d_backward",
    "aten.upsample_nearest1d_backward",
    "aten.upsample_nearest3d_backward",
    "aten.upsample_trilinear3d_backward",
    "aten.view_as_complex",
    "aten.view_as_real",
    "quantized_decomposed.choose_qparams_per_token",
    "quantized_decomposed.choose_qparams_per_token_asymmetric",
    "quantized_decomposed.choose_qparams_symmetric",
    "quantized_decomposed.convert_element_type",
    "quantized_decomposed.dequantize_per_channel_group",
    "quantized_decomposed.dequantize_per_token",
    "quantized_decomposed.fake_quant_per_channel",
    "quantized_decomposed.quantize_per_channel_group",
    "quantized_decomposed.quantize_per_token",
};

/// Runs of calls that are fused: neighbours that read each other, in the graph's order.
class Runs {
  public:
    explicit Runs(const Graph& graph) {
        std::vector<Node*> span;
        for (Node& node : graph.nodes()) {
            if (isFusedByLowering(node)) {
                span.push_back(&node);
                continue;
            }
            split(span);
            span.clear();
        }
        split(span);
    }
    /// The run whose last result this node is; null for all others.
    const std::vector<Node*>* endingWith(const Node& node) const {
        const auto found = m_byEnd.find(node.id());
        return found == m_byEnd.end() ? nullptr : &found->second;
    }
    bool contains(const Node& node) const { return m_members.contains(node.id()); }
    static bool isResult(const Node& node, const std::set<NodeId>& members) {
        return std::any_of(node.users().begin(), node.users().end(),
                           [&](const Node* user) { return !members.contains(user->id()); });
    }

  private:
    void split(const std::vector<Node*>& span) {
        std::map<NodeId, size_t> root;  // of a member: the place of its part's first member
        std::vector<size_t> parent(span.size());
        const auto find = [&](size_t at) {
            while (parent[at] != at) at = parent[at] = parent[parent[at]];
            return at;
        };
        for (size_t i = 0; i < span.size(); ++i) {
            parent[i] = i;
            root.emplace(span[i]->id(), i);
            for (const Node* input : span[i]->inputs())
                if (const auto found = root.find(input->id()); found != root.end()) {
                    const size_t a = find(i), b = find(found->second);
                    parent[std::max(a, b)] = std::min(a, b);
                }
        }
        std::map<size_t, std::vector<Node*>> parts;
        for (size_t i = 0; i < span.size(); ++i) parts[find(i)].push_back(span[i]);
        for (const auto& [first, part] : parts) add(part);
    }
    void add(const std::vector<Node*>& part) {
        if (std::count_if(part.begin(), part.end(), [](const Node* node) { return !node->is(Tag::View); }) < 2) return;
        std::set<NodeId> members;
        for (const Node* node : part) members.insert(node->id());
        const auto last =
            std::find_if(part.rbegin(), part.rend(), [&](const Node* node) { return isResult(*node, members); });
        if (last == part.rend()) return;  // nobody reads what it computes
        m_byEnd.emplace((*last)->id(), part);
        m_members.insert(members.begin(), members.end());
    }

    std::map<NodeId, std::vector<Node*>> m_byEnd;
    std::set<NodeId> m_members;
};

/// In the order in which PyTorch puts a run into a graph of its own: first calls without operands in the run, then
/// those that need these.
std::vector<Node*> sorted(const std::vector<Node*>& run, const std::set<NodeId>& members) {
    std::map<NodeId, size_t> missing;
    std::deque<Node*> ready;
    for (Node* node : run) {
        const std::vector<Node*> inputs = node->inputs();
        const auto count = std::count_if(inputs.begin(), inputs.end(),
                                         [&](const Node* input) { return members.contains(input->id()); });
        missing[node->id()] = static_cast<size_t>(count);
        if (count == 0) ready.push_back(node);
    }
    std::vector<Node*> out;
    while (!ready.empty()) {
        Node* node = ready.front();
        ready.pop_front();
        out.push_back(node);
        std::vector<Node*> users = node->users();
        std::sort(users.begin(), users.end(),
                  [&](const Node* a, const Node* b) { return node->graph().isBefore(*a, *b); });
        for (Node* user : users)
            if (const auto waits = missing.find(user->id()); waits != missing.end() && --waits->second == 0)
                ready.push_back(user);
    }
    return out;
}

void addOnce(std::vector<size_t>& list, size_t value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}
size_t tensorsIn(const ValueType& type) {
    if (const TupleType* items = type.tuple()) {
        size_t count = 0;
        for (const ValueType& item : *items) count += tensorsIn(item);
        return count;
    }
    return type.tensor() ? 1 : 0;
}

}  // namespace

bool isFusedByLowering(const Node& node) {
    if (!node.isCall() || node.op().isOpaque() || OverlapCosts::isProduct(node)) return false;
    const Op& op = node.op().functional() ? *node.op().functional() : node.op();
    const std::string_view name = op.name();
    if (name.starts_with("_c10d_functional.") || name.starts_with("operator.") || name.starts_with("higher_order.") ||
        op.is(Tag::Symbolic))
        return false;
    if (std::find(std::begin(kFallbacks), std::end(kFallbacks), op.packet()) != std::end(kFallbacks)) return false;
    constexpr size_t kMostJoined = 8;  // PyTorch's max_pointwise_cat_inputs
    return name != "aten.cat.default" || (node.arg(0).list() && node.arg(0).list()->size() <= kMostJoined);
}

OverlapUnits::OverlapUnits(const Graph& graph, const OverlapCosts& costs, bool fuse)
    : m_costs(&costs), m_values(graph.idLimit()) {
    const std::optional<Runs> runs = fuse ? std::optional<Runs>(graph) : std::nullopt;
    for (Node& node : graph.nodes()) {
        setStorages(node);
        if (!runs || !runs->contains(node)) addNode(node);
        else if (const auto* run = runs->endingWith(node)) addRun(*run);
    }
    close();
}

std::optional<size_t> OverlapUnits::unitOf(const Node& node) const {
    const size_t unit = m_values[index(node.id())].unit;
    return m_units[unit].nodes.size() == 1 && m_units[unit].nodes[0] == &node ? std::optional(unit) : std::nullopt;
}

size_t OverlapUnits::addUnit(OverlapUnit unit, const std::vector<Node*>& reads) {
    for (const Node* read : reads) {
        const Value& value = m_values[index(read->id())];
        addOnce(unit.inputs, value.unit);
        for (const size_t storage : value.storages) addOnce(unit.read, storage);
    }
    m_units.push_back(std::move(unit));
    return m_units.size() - 1;
}

void OverlapUnits::addNode(Node& node) {
    OverlapUnit unit;
    unit.nodes = {&node};
    unit.product = OverlapCosts::isProduct(node);
    const std::vector<Node*> inputs = node.inputs();
    if (unit.product) {
        unit.ms = m_costs->productMs(node);
    } else if (node.isCall()) {
        double bytes = m_costs->movedBytes(node.type());
        for (const Node* input : inputs) bytes += m_costs->movedBytes(input->type());
        unit.ms = node.is(Tag::View) ? 0 : m_costs->memoryMs(bytes);
    }
    const size_t at = addUnit(std::move(unit), inputs);
    m_values[index(node.id())].unit = at;
    make(at, {&node});
}

void OverlapUnits::addRun(const std::vector<Node*>& run) {
    std::set<NodeId> members;
    for (const Node* node : run) members.insert(node->id());
    OverlapUnit unit;
    unit.nodes = sorted(run, members);
    std::vector<Node*> reads;
    std::vector<const Node*> results;
    double bytes = 0, written = 0;
    for (Node* node : unit.nodes) {
        for (Node* input : node->inputs())
            if (!members.contains(input->id()) && std::find(reads.begin(), reads.end(), input) == reads.end())
                reads.push_back(input);
        if (Runs::isResult(*node, members)) results.push_back(node);
    }
    for (const Node* read : reads) bytes += m_costs->movedBytes(read->type());
    for (const Node* result : results) written += m_costs->movedBytes(result->type());
    unit.ms = m_costs->memoryMs(bytes + written);
    const std::vector<Node*> nodes = unit.nodes;
    const size_t at = addUnit(std::move(unit), reads);
    for (const Node* node : nodes) m_values[index(node->id())].unit = at;
    make(at, results);
    if (results.size() < 2) return;
    // In PyTorch a run returns a tuple, and the getitem of each result counts as a reader of all results.
    for (const Node* result : results) {
        OverlapUnit item;
        item.inputs = {at};
        item.ms = m_costs->memoryMs(written + m_costs->movedBytes(result->type()));
        for (const Node* each : results)
            for (const size_t storage : m_values[index(each->id())].storages) addOnce(item.read, storage);
        m_units.push_back(std::move(item));
        m_values[index(result->id())].unit = m_units.size() - 1;
    }
}

// ---------------------------------------------------------------- memory

void OverlapUnits::setStorages(const Node& node) {
    Value& value = m_values[index(node.id())];
    const auto own = [&](const TensorType& type) {
        OverlapStorage storage;
        storage.bytes = type.device.type == DeviceType::Cpu ? 0 : m_costs->storageBytes(type);
        storage.freed = !node.name().starts_with("primals");
        storage.given = !node.isCall();
        m_storages.push_back(std::move(storage));
        m_seen.push_back(false);
        return m_storages.size() - 1;
    };
    const auto ownAll = [&](auto&& self, const ValueType& type) -> void {
        if (const TensorType* tensor = type.tensor()) value.storages.push_back(own(*tensor));
        if (const TupleType* items = type.tuple())
            for (const ValueType& item : *items) self(self, item);
    };
    const Node* source = node.isCall() && !node.args().empty() ? node.arg(0).node() : nullptr;
    const std::vector<size_t>* shared = source ? &m_values[index(source->id())].storages : nullptr;
    if (node.isOutput()) return;
    if (shared && node.isCall("operator.getitem") && source->type().tuple()) {
        // A tuple's storages are those of its items in order; an item that is a tuple itself has several.
        const TupleType& items = *source->type().tuple();
        const auto position = node.arg(1).asInt();
        size_t at = 0;
        for (int64_t i = 0; position && i < *position && i < static_cast<int64_t>(items.size()); ++i)
            at += tensorsIn(items[static_cast<size_t>(i)]);
        for (size_t i = 0; i < tensorsIn(node.type()) && at + i < shared->size(); ++i)
            value.storages.push_back((*shared)[at + i]);
    } else if (shared && !shared->empty() && (node.is(Tag::View) || node.op().mutates())) {
        value.storages.assign(std::max<size_t>(1, tensorsIn(node.type())), (*shared)[0]);
    } else {
        ownAll(ownAll, node.type());
    }
}

void OverlapUnits::make(size_t unit, const std::vector<const Node*>& results) {
    for (const Node* result : results)
        for (const size_t storage : m_values[index(result->id())].storages) {
            if (m_seen[storage]) continue;
            m_seen[storage] = true;
            m_units[unit].made.push_back(storage);
        }
}

void OverlapUnits::close() {
    m_words = (m_units.size() + 63) / 64;
    m_needs.assign(m_words * m_units.size(), 0);
    for (size_t unit = 0; unit < m_units.size(); ++unit) {
        for (const size_t input : m_units[unit].inputs) {
            m_units[input].users.push_back(unit);
            for (size_t word = 0; word < m_words; ++word)
                m_needs[unit * m_words + word] |= m_needs[input * m_words + word];
            m_needs[unit * m_words + input / 64] |= uint64_t{1} << (input % 64);
        }
        for (const size_t storage : m_units[unit].read) m_storages[storage].readers.push_back(unit);
    }
}

}  // namespace cutaway
