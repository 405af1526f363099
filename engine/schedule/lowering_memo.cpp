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

bool LoweringName::meet(const ValueKey& key) {
    const auto [slot, fresh] = m_numbers.emplace(key, m_values.size());
    m_hasher.add(static_cast<uint64_t>(slot->second));
    if (!fresh) return false;
    m_values.push_back(key);
    addTo(m_hasher, key.node->type());
    m_hasher.add(static_cast<uint64_t>(key.result));
    return true;
}

std::optional<size_t> LoweringName::numberOf(const ValueKey& key) const {
    const auto found = m_numbers.find(key);
    return found == m_numbers.end() ? std::nullopt : std::optional<size_t>(found->second);
}

void LoweringName::addLoaded(const ValueKey& root) {
    meet(root);
    m_loaded.insert(m_numbers.at(root));
}

void LoweringName::addValue(const ValueKey& key) {
    if (!meet(key)) return;
    const Node& node = *key.node;
    if (tensorOf(key) == nullptr) return;
    const ValueKey root = node.is(Tag::View) ? rootOf(node) : key;
    const bool computed = m_inlines(root);
    m_hasher.add(computed);
    if (computed) addResult(node, key.result);
    else if (root == key) m_loaded.insert(m_numbers.at(key));
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
    const Hash128 own = contentFingerprint(call, [&](const Node& operand) {
        addOperand(operand);
        return Hash128{};
    });
    m_hasher.add(own.high).add(own.low).add(static_cast<uint64_t>(result));
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

RuleFacts probe(const Node& node, const TargetInfo& target, LoweringMemo& memo) {
    if (faultsAsked()) return probe(node, target);
    // Without a rule there is nothing to try.
    if (node.op().def() == nullptr || !node.op().def()->lower) return probe(node, target);
    LoweringName name([](const ValueKey&) { return false; });
    for (const size_t result : readResults(node)) name.addResult(node, result);
    const Hash128 known = name.finish();
    if (const std::optional<RuleFacts> facts = memo.rule(known)) return *facts;
    RuleFacts facts = probe(node, target);
    if (facts.lowers) memo.keep(known, facts);  // sentences about the others name nodes
    return facts;
}

}  // namespace cutaway
