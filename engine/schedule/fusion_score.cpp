#include "engine/schedule/fusion_score.h"

#include <set>

#include "cutaway/words.h"

namespace cutaway {
namespace {

using Role = NodeFacts::Role;

/// Values of other nodes that this one reads, through views and what is made again wherever it is read.
void addReads(const Grouping& grouping, const Node& node, std::set<ValueKey>& reads) {
    for (const Node* input : node.inputs()) {
        const ValueKey root = rootOf(*input);
        const Role role = grouping.of(*root.node).role;
        if (role == Role::Free) addReads(grouping, *root.node, reads);
        else if (role != Role::Symbol) reads.insert(root);
    }
}
std::set<ValueKey> readsOf(const Grouping& grouping, const FusionGroup& group) {
    std::set<ValueKey> reads;
    for (const Node* member : group.members) addReads(grouping, *member, reads);
    return reads;
}

}  // namespace

SymInt bytesOf(const ValueKey& key) {
    const TensorType* type = tensorOf(key);
    return type == nullptr ? SymInt(0) : numel(type->sizes) * SymInt(byteSize(type->dtype));
}

std::string trafficText(const SymInt& bytes) {
    const auto known = bytes.asInt();
    return (known ? bytesText(*known) : bytes.text() + " bytes") + " of memory traffic";
}

SymInt bytesSaved(const Grouping& grouping, const FusionGroup& a, const FusionGroup& b) {
    const int one = grouping.of(*a.members[0]).group, other = grouping.of(*b.members[0]).group;
    const std::set<ValueKey> first = readsOf(grouping, a), second = readsOf(grouping, b);
    const auto outside = [&](const Node& reader) {
        const int group = grouping.of(reader).group;
        return group != one && group != other;
    };
    std::set<ValueKey> all = first;
    all.insert(second.begin(), second.end());
    SymInt saved = 0;
    for (const ValueKey& key : all) {
        const int from = grouping.of(*key.node).group;
        const bool byFirst = first.contains(key), bySecond = second.contains(key);
        const bool handedOver = (from == one && bySecond) || (from == other && byFirst);
        if (handedOver || (byFirst && bySecond)) saved = saved + bytesOf(key);
        if (handedOver && !anyReader(grouping, *key.node, outside)) saved = saved + bytesOf(key);
    }
    return saved;
}

}  // namespace cutaway
