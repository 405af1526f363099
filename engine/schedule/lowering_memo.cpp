#include "engine/schedule/lowering_memo.h"

#include <algorithm>

#include "engine/ir/fingerprint.h"
#include "engine/support/fault_points.h"

namespace cutaway {

LoweringName& LoweringName::add(const SymDims& sizes) {
    m_hasher.add(static_cast<uint64_t>(sizes.size()));
    for (const SymInt& size : sizes) addTo(m_hasher, size);
    return *this;
}

size_t LoweringName::slotOf(const ValueKey& key) const {
    const size_t mask = m_slots.size() - 1;
    size_t at = ((index(key.node->id()) + 31 * key.result) * 0x9E3779B97F4A7C15ull >> 40) & mask;
    while (m_slots[at] != 0 && !(m_values[m_slots[at] - 1] == key)) at = (at + 1) & mask;
    return at;
}

bool LoweringName::meet(const ValueKey& key) {
    const auto known = numberOf(key);
    m_hasher.add(static_cast<uint64_t>(known.value_or(m_values.size())));
    if (known) return false;
    m_values.push_back(key);
    m_slots[slotOf(key)] = static_cast<uint32_t>(m_values.size());
    if (2 * m_values.size() > m_slots.size()) {
        m_slots.assign(2 * m_slots.size(), 0);
        for (size_t i = 0; i < m_values.size(); ++i) m_slots[slotOf(m_values[i])] = static_cast<uint32_t>(i + 1);
    }
    addTo(m_hasher, key.node->type());
    m_hasher.add(static_cast<uint64_t>(key.result));
    return true;
}

std::optional<size_t> LoweringName::numberOf(const ValueKey& key) const {
    const uint32_t number = m_slots[slotOf(key)];
    return number == 0 ? std::nullopt : std::optional<size_t>(number - 1);
}

void LoweringName::addLoaded(const ValueKey& root) {
    meet(root);
    m_loaded.insert(*numberOf(root));
}

void LoweringName::addValue(const ValueKey& key) {
    if (!meet(key)) return;
    const Node& node = *key.node;
    if (tensorOf(key) == nullptr) return;
    const ValueKey root = node.is(Tag::View) ? rootOf(node) : key;
    const bool computed = m_inlines(root);
    m_hasher.add(computed);
    if (computed) addResult(node, key.result);
    else if (root == key) m_loaded.insert(*numberOf(key));
    else addLoaded(root);
}

void LoweringName::addOperand(const Node& operand) {
    const ValueKey key = resolve(operand);
    if (key.node != &operand) addTo(m_hasher, operand.type());
    if (const TupleType* items = key.node->type().tuple(); items != nullptr && key.node == &operand) {
        for (size_t item = 0; item < items->size(); ++item) addValue({key.node, item});
        return;
    }
    addValue(key);
}

void LoweringName::addResult(const Node& call, size_t result) {
    call.forEachInput([&](const Node* operand) { addOperand(*operand); });
    const Hash128 hash128 = m_memo->callAlone(call);
    m_hasher.add(hash128.high).add(hash128.low).add(static_cast<uint64_t>(result));
}

Hash128 LoweringName::ordered() const {
    std::vector<std::pair<std::string, size_t>> loads;
    for (const size_t number : m_loaded) loads.emplace_back(valueName(m_values[number]), number);
    // As expressions compare names.
    std::sort(loads.begin(), loads.end(), [](const auto& a, const auto& b) {
        return a.first.size() != b.first.size() ? a.first.size() < b.first.size() : a.first < b.first;
    });
    Hasher hasher = m_hasher;
    for (const auto& [name, number] : loads) hasher.add(static_cast<uint64_t>(number));
    return hasher.finish();
}

Hash128 LoweringMemo::callAlone(const Node& call) {
    const Hash128 content = contentFingerprint(call);
    if (const auto found = find(m_calls, content)) return *found;
    const Hash128 alone = contentFingerprint(call, [](const Node&) { return Hash128{}; });
    insert(m_calls, content, alone);
    return alone;
}

RuleFacts probe(const Node& node, const TargetInfo& target, LoweringMemo& memo) {
    if (faultsAsked()) return probe(node, target);
    // Without a rule there is nothing to try.
    if (node.op().def() == nullptr || !node.op().def()->lower) return probe(node, target);
    LoweringName name(memo, [](const ValueKey&) { return false; });
    for (const size_t result : readResults(node)) name.addResult(node, result);
    const Hash128 hash128 = name.finish();
    if (const std::optional<RuleFacts> facts = memo.rule(hash128)) return *facts;
    RuleFacts facts = probe(node, target);
    if (facts.lowers) memo.keep(hash128, facts);  // sentences about the others name nodes
    return facts;
}

}  // namespace cutaway
