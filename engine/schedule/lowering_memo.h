#pragma once
// Networks repeat their layers, and passes, builds and windows ask the same of one graph. So a lowering rule is tried
// once for all calls that are alike, and a kernel is drafted once for all groups that are.
#include <memory>
#include <mutex>
#include <unordered_map>

#include "engine/schedule/lowering.h"
#include "engine/support/hash.h"

namespace cutaway {

/// A kernel, and which values its buffers are, by their numbers in LoweringName::values.
struct CachedKernel {
    std::shared_ptr<const Kernel> kernel;  // null: it is known by LoweringName::ordered
    std::vector<size_t> bindings;
};

/// What is known by name, for one target. Several threads may ask at once.
class LoweringMemo {
  public:
    /// Of probe(), where the rule lowers the call.
    std::optional<RuleFacts> rule(const Hash128& name) const { return find(m_rules, name); }
    std::optional<CachedKernel> kernel(const Hash128& name) const { return find(m_kernels, name); }
    /// Of a call alone: operator, literals and type, whatever its operands are.
    Hash128 callAlone(const Node& call);
    void keep(const Hash128& name, const RuleFacts& facts) { insert(m_rules, name, facts); }
    void keep(const Hash128& name, const CachedKernel& kernel) { insert(m_kernels, name, kernel); }

    struct Key {
        size_t operator()(const Hash128& name) const { return name.low; }
    };

  private:
    template <class T>
    using Table = std::unordered_map<Hash128, T, Key>;  // lookups only, never iterated
    template <class T>
    std::optional<T> find(const Table<T>& table, const Hash128& name) const {
        const std::lock_guard lock(m_mutex);
        const auto found = table.find(name);
        return found == table.end() ? std::nullopt : std::optional<T>(found->second);
    }
    template <class T>
    void insert(Table<T>& table, const Hash128& name, const T& known) {
        const std::lock_guard lock(m_mutex);
        table.emplace(name, known);
    }

    mutable std::mutex m_mutex;
    Table<RuleFacts> m_rules;
    Table<CachedKernel> m_kernels;
    Table<Hash128> m_calls;  // by contentFingerprint
};

/// Names what lowering rules make of some values: the calls that compute them with their literals and types, what is
/// loaded, and how all of it hangs together. Values of one name have the same expressions, but for the names of loads.
class LoweringName {
  public:
    /// `inlines`: as Lowering has it.
    LoweringName(LoweringMemo& memo, Lowering::Inlines inlines) : m_memo(&memo), m_inlines(std::move(inlines)) {}

    /// Something else that counts.
    template <class T>
    LoweringName& add(const T& fact) {
        m_hasher.add(fact);
        return *this;
    }
    LoweringName& add(const SymDims& sizes);
    /// A value that is computed if `inlines` holds for its root, else loaded.
    void addValue(const ValueKey& key);
    /// A result of a call that is computed in any case.
    void addResult(const Node& call, size_t result);

    Hash128 finish() const { return m_hasher.finish(); }
    /// The same and the order in which integer expressions sort what is loaded: by the names of values.
    Hash128 ordered() const;
    /// All that was met, in an order that is the same for equal names.
    const std::vector<ValueKey>& values() const { return m_values; }
    std::optional<size_t> numberOf(const ValueKey& key) const;

  private:
    /// Where the value's number is, or would be.
    size_t slotOf(const ValueKey& key) const;
    /// True if the value has not been met before.
    bool meet(const ValueKey& key);
    void addLoaded(const ValueKey& root);
    void addOperand(const Node& operand);

    LoweringMemo* m_memo;
    Lowering::Inlines m_inlines;
    Hasher m_hasher;
    std::vector<ValueKey> m_values;
    std::vector<uint32_t> m_slots = std::vector<uint32_t>(32);  // numbers from 1 on, by hash of value; 0: free
    std::set<size_t> m_loaded;
};

/// probe(), once for calls that are alike.
RuleFacts probe(const Node& node, const TargetInfo& target, LoweringMemo& memo);

}  // namespace cutaway
