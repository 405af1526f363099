#include "engine/interpret/constants.h"

#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <unordered_set>

#include "cutaway/guarded.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/recipe_graph.h"
#include "engine/support/check.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// Computed values, the last used first.
class ConstantCache {
  public:
    void keep(const Recipe* recipe, const Tensor& value) {
        const std::lock_guard lock(m_mutex);
        drop(recipe);
        m_values.emplace_front(recipe, value);
        m_bytes += bytesOf(value);
        trim();
    }
    void use(const Recipe* recipe) {
        const std::lock_guard lock(m_mutex);
        for (auto it = m_values.begin(); it != m_values.end(); ++it)
            if (it->first == recipe) return m_values.splice(m_values.begin(), m_values, it);
    }
    void forget(const Recipe* recipe) {
        const std::lock_guard lock(m_mutex);
        drop(recipe);
    }
    int64_t limit(int64_t bytes) {
        const std::lock_guard lock(m_mutex);
        const int64_t before = std::exchange(m_limit, bytes);
        trim();
        return before;
    }

  private:
    static int64_t bytesOf(const Tensor& value) { return static_cast<int64_t>(value.storage()->size()); }
    void drop(const Recipe* recipe) {
        for (auto it = m_values.begin(); it != m_values.end(); ++it)
            if (it->first == recipe) {
                m_bytes -= bytesOf(it->second);
                m_values.erase(it);
                return;
            }
    }
    void trim() {
        while (m_bytes > m_limit && !m_values.empty()) {
            m_bytes -= bytesOf(m_values.back().second);
            m_values.pop_back();
        }
    }

    std::mutex m_mutex;
    std::list<std::pair<const Recipe*, Tensor>> m_values;
    int64_t m_bytes = 0, m_limit = int64_t{2} << 30;
};
ConstantCache& kept() {
    static ConstantCache all;
    return all;
}

/// The call whose value the recipe's last views show; null where no call computes that value as a tensor.
const Node* lastComputed(const Module& recipe) {
    const Node* node = recipe.graph().outputs().at(0).node();
    while (node->isCall() && node->is(Tag::View) && node->arg(0).node()) node = node->arg(0).node();
    return node->isCall() && !node->is(Tag::View) && node->type().tensor() ? node : nullptr;
}

/// Equal for recipes of the same value: their nodes have the ids of the run, but for the output node, which is new.
Hash128 identityOf(const Module& recipe) {
    Hasher hasher;
    for (const Node& node : recipe.graph().nodes()) {
        if (node.isOutput()) continue;
        const Hash128 content = contentFingerprint(node);
        hasher.add(content.high).add(content.low).add(static_cast<uint64_t>(index(node.id())));
    }
    for (const auto& [name, tensor] : recipe.tensors)
        hasher.add(std::string_view(name))
            .add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(tensor.storage().get())));
    return hasher.finish();
}

class FoldedConstant;
/// Values that several recipes end in views of, so that each is computed and held once.
class ComputedOnce {
  public:
    std::shared_ptr<const FoldedConstant> of(std::shared_ptr<const Module> graph);

  private:
    std::mutex m_mutex;
    std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const FoldedConstant>> m_known;
};
ComputedOnce& computedOnce() {
    static ComputedOnce all;
    return all;
}

class FoldedConstant final : public Recipe, public std::enable_shared_from_this<FoldedConstant> {
  public:
    explicit FoldedConstant(std::shared_ptr<const Module> graph) : m_graph(std::move(graph)) {
        for (const Node& node : m_graph->graph().nodes())
            if (node.isCall() && !node.is(Tag::View)) m_isView = false;
        const Node* computed = lastComputed(*m_graph);
        if (computed == nullptr || computed == m_graph->graph().outputs().at(0).node()) return;
        m_computed = computedOnce().of(recipeGraph(*m_graph, *computed));
        m_viewed = computed->id();
    }
    ~FoldedConstant() override { kept().forget(this); }

    const Module& graph() const override { return *m_graph; }
    bool isView() const override { return m_isView; }
    const void* memory() const override { return m_computed ? m_computed.get() : this; }
    Result<Tensor> value() const override {
        const std::lock_guard lock(m_mutex);
        if (const std::shared_ptr<Storage> storage = m_storage.lock()) {
            kept().use(this);
            return Tensor(storage, m_value.dtype, m_value.sizes, m_value.strides, m_value.offset, m_value.device);
        }
        CT_TRY(const Tensor made, compute());
        m_storage = made.storage();
        m_value = {made.dtype(), made.sizes(), made.strides(), made.offset(), made.device()};
        if (!m_isView && !m_computed) kept().keep(this, made);
        return made;
    }
    Result<Tensor> deferred() const override {
        if (m_isView) return value();
        if (m_computed) {
            CT_TRY(Tensor whole, m_computed->deferred());
            return viewOf(std::move(whole));
        }
        const Node& result = *m_graph->graph().outputs().at(0).node();
        const TensorType& type = result.tensor();
        if (!allInts(type.sizes) || !allInts(type.strides)) return value();
        const Dims sizes = toInts(type.sizes), strides = toInts(type.strides);
        if (extent(sizes, strides) != numel(sizes)) return value();  // elements overlap or leave gaps: computed now
        const std::lock_guard lock(m_mutex);
        std::shared_ptr<Storage> storage = m_deferred.lock();
        if (!storage) {
            storage = Storage::deferred(
                static_cast<size_t>(numel(sizes)) * static_cast<size_t>(byteSize(type.dtype)),
                [own = shared_from_this(), sizes, strides, dtype = type.dtype](std::span<std::byte> into) {
                    return own->computeInto(into, dtype, sizes, strides);
                });
            m_deferred = storage;
        }
        return Tensor(std::move(storage), type.dtype, sizes, strides, 0, type.device);
    }

  private:
    static constexpr const char* kComputed = "computed";

    /// The recipe with a tensor of that name in place of the computed value. Made when it is needed: there are
    /// thousands of recipes, and few whose value somebody asks for.
    std::shared_ptr<Module> views() const {
        auto views = std::make_shared<Module>(*m_graph);
        Node* old = views->graph().find(m_viewed);
        Node& given = views->graph().getAttr(kComputed, old->type(), old);
        views->graph().replaceUses(*old, given);
        std::vector<Node*> nodes = views->graph().nodeList();
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
            if (!(*node)->isOutput() && !(*node)->hasUsers()) views->graph().erase(**node);
        views->tensors.clear();
        return views;
    }

    /// The view that this is of the computed value.
    Result<Tensor> viewOf(Tensor computed) const {
        const std::shared_ptr<Module> module = views();
        module->tensors[kComputed] = std::move(computed);
        CT_TRY(std::vector<Tensor> values, interpret(*module, {}));
        return std::move(values.at(0));
    }

    Result<Tensor> compute() const {
        std::shared_ptr<const Module> module = m_graph;
        if (m_computed) {
            CT_TRY(Tensor whole, m_computed->value());
            return viewOf(std::move(whole));
        }
        if (!m_isView) {
            auto copy = std::make_shared<Module>(*m_graph);
            for (auto& [name, tensor] : copy->tensors) {
                if (!tensor.defined()) continue;
                CT_TRY(auto storage, Storage::forOneUse(tensor.storage()));
                tensor = Tensor(std::move(storage), tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset(),
                                tensor.device());
            }
            module = std::move(copy);
        }
        CT_TRY(std::vector<Tensor> values, interpret(*module, {}));
        return std::move(values.at(0));
    }

    /// Writes the value in this layout into `into`; keeps nothing. A value that somebody holds is not computed again.
    Result<void> computeInto(std::span<std::byte> into, DType dtype, const Dims& sizes, const Dims& strides) const {
        std::optional<Tensor> tensor;
        {
            const std::lock_guard lock(m_mutex);
            if (const std::shared_ptr<Storage> storage = m_storage.lock())
                tensor.emplace(storage, m_value.dtype, m_value.sizes, m_value.strides, m_value.offset, m_value.device);
        }
        if (!tensor) {
            auto made = guarded([&] { return compute(); });
            if (!made) {
                Error error = made.error();
                error.message = "the constant '" + m_graph->graph().outputs().at(0).node()->name() +
                                "' cannot be computed: " + error.message;
                return error;
            }
            tensor = std::move(*made);
        }
        CT_CHECK(tensor->dtype() == dtype && tensor->sizes() == sizes, "a recipe computes what its type says");
        if (tensor->strides() == strides) {
            std::memcpy(into.data(), tensor->data(), into.size());
            return {};
        }
        Tensor target(Storage::view(into.data(), into.size(), nullptr), dtype, sizes, strides);
        copyInto(target, *tensor);
        return {};
    }

    std::shared_ptr<const Module> m_graph;
    bool m_isView = true;
    std::shared_ptr<const FoldedConstant> m_computed;  // what this is a view of
    NodeId m_viewed{};                                 // the node that computes that value
    mutable std::mutex m_mutex;
    mutable std::weak_ptr<Storage> m_storage;   // of the value, while somebody has it
    mutable std::weak_ptr<Storage> m_deferred;  // the same, of bytes that are computed when they are needed
    struct Layout {
        DType dtype = DType::F32;
        Dims sizes, strides;
        int64_t offset = 0;
        Device device;
    };
    mutable Layout m_value;
};

std::shared_ptr<const FoldedConstant> ComputedOnce::of(std::shared_ptr<const Module> graph) {
    const Hash128 hash = identityOf(*graph);
    const std::lock_guard lock(m_mutex);
    std::weak_ptr<const FoldedConstant>& known = m_known[{hash.high, hash.low}];
    if (auto held = known.lock()) return held;
    auto made = std::make_shared<const FoldedConstant>(std::move(graph));
    known = made;
    std::erase_if(m_known, [](const auto& one) { return one.second.expired(); });
    return made;
}

/// The constants with recipes that the graph reads, each once, in its order.
std::vector<std::string> recipesRead(const Module& module) {
    std::vector<std::string> names;
    std::unordered_set<std::string> seen;
    for (const Node& node : module.graph().nodes())
        if (node.kind() == NodeKind::GetAttr && module.recipes.contains(node.target()) &&
            seen.insert(node.target()).second)
            names.push_back(node.target());
    return names;
}

}  // namespace

std::shared_ptr<const Recipe> makeRecipe(std::shared_ptr<const Module> graph) {
    return std::make_shared<FoldedConstant>(std::move(graph));
}

Result<Snapshot> withConstants(const Module& module, const Progress& progress) {
    const std::vector<std::string> names = recipesRead(module);
    if (names.empty()) return Snapshot();
    std::vector<std::optional<Result<Tensor>>> values(names.size());
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    runParts(std::min(threadCount(), static_cast<int>(names.size())), [&](int thread) {
        for (size_t at = next++; at < names.size() && !failed && !progress.cancelled(); at = next++) {
            if (thread == 0)
                progress.say(static_cast<double>(at) / static_cast<double>(names.size()),
                             "constant " + std::to_string(at + 1) + " of " + std::to_string(names.size()));
            values[at] = guarded([&] { return module.recipes.at(names[at])->value(); });
            if (!*values[at]) failed = true;
        }
    });
    if (progress.cancelled()) return Error{ErrorCode::Cancelled, "computing the constants was cancelled", {}, {}};
    for (size_t i = 0; i < names.size(); ++i)
        if (values[i] && !*values[i]) {
            Error error = values[i]->error();
            error.message = "the constant '" + names[i] + "' cannot be computed: " + error.message;
            return error;
        }
    auto copy = std::make_shared<Module>(module);
    for (size_t i = 0; i < names.size(); ++i) copy->tensors[names[i]] = **values[i];
    copy->recipes.clear();
    return Snapshot(std::move(copy));
}

Result<Snapshot> withDeferredConstants(const Module& module) {
    const std::vector<std::string> names = recipesRead(module);
    if (names.empty()) return Snapshot();
    auto copy = std::make_shared<Module>(module);
    for (const std::string& name : names) {
        CT_TRY(copy->tensors[name], module.recipes.at(name)->deferred());
    }
    copy->recipes.clear();
    return Snapshot(std::move(copy));
}

int64_t constantBytes(const Module& module) {
    std::unordered_set<const Storage*> storages;
    std::unordered_set<std::string> names;
    std::unordered_set<const void*> values;  // computed ones; membership only
    int64_t bytes = 0;
    const auto addStorage = [&](const Tensor& tensor) {
        if (tensor.defined() && storages.insert(tensor.storage().get()).second)
            bytes += static_cast<int64_t>(tensor.storage()->size());
    };
    const auto addNamed = [&](const std::string& name, const Node& node) {
        if (!names.insert(name).second) return;
        if (const auto held = module.tensors.find(name); held != module.tensors.end()) return addStorage(held->second);
        const auto made = module.recipes.find(name);
        if (made != module.recipes.end() && made->second->isView()) {
            for (const auto& [source, tensor] : made->second->graph().tensors) addStorage(tensor);
            return;
        }
        if (made != module.recipes.end() && !values.insert(made->second->memory()).second) return;
        if (const TensorType* type = node.type().tensor(); type && allInts(type->sizes))
            bytes += numel(toInts(type->sizes)) * byteSize(type->dtype);
    };
    size_t position = 0;
    for (const Node& node : module.graph().nodes()) {
        if (node.kind() == NodeKind::GetAttr) addNamed(node.target(), node);
        if (!node.isPlaceholder()) continue;
        const size_t at = position++;
        if (at < module.inputs.size() && !module.inputs[at].isGiven() && !module.inputs[at].target.empty())
            addNamed(module.inputs[at].target, node);
    }
    return bytes;
}

ConstantPlace constantPlace(const Module& module, const std::string& name) {
    const auto made = module.recipes.find(name);
    if (made != module.recipes.end() && !made->second->isView()) return {made->second->memory(), 0};
    // A recipe of views alone reads one tensor.
    const auto& tensors = made == module.recipes.end() ? module.tensors : made->second->graph().tensors;
    const auto held = made == module.recipes.end() ? tensors.find(name) : tensors.begin();
    if (held == tensors.end() || !held->second.defined()) return {};
    const Storage* storage = held->second.storage().get();
    return {storage, static_cast<int64_t>(storage->size())};
}

int64_t limitKeptConstants(int64_t bytes) { return kept().limit(bytes); }

}  // namespace cutaway
