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
/// Whether a node for which `inside` does not hold reads this one, through views and what is made again.
template <class F>
bool readOutside(const Grouping& grouping, const Node& node, const F& inside) {
    for (const Node* user : node.users()) {
        const Role role = grouping.of(*user).role;
        if (role == Role::Alias || role == Role::Free ? readOutside(grouping, *user, inside)
                                                      : role != Role::Dead && !inside(*user))
            return true;
    }
    return false;
}
int groupOf(const Grouping& grouping, const Node& node) {
    const NodeFacts& facts = grouping.of(node);
    return facts.role == Role::Lowered ? facts.group : -1;
}

}  // namespace

SymInt bytesOf(const ValueKey& key) {
    const TensorType* type = tensorOf(key);
    return type == nullptr ? SymInt(0) : numel(type->sizes) * SymInt(byteSize(type->dtype));
}

std::string FusionScore::text() const {
    const auto known = saved.asInt();
    return (known ? bytesText(*known) : saved.text() + " bytes") + " of memory traffic";
}

FusionScore fusionScore(const Grouping& grouping, const FusionGroup& a, const FusionGroup& b) {
    const int one = groupOf(grouping, *a.members[0]), other = groupOf(grouping, *b.members[0]);
    const std::set<ValueKey> first = readsOf(grouping, a), second = readsOf(grouping, b);
    const auto inside = [&](const Node& reader) {
        const int group = groupOf(grouping, reader);
        return group >= 0 && (group == one || group == other);
    };
    FusionScore score;
    std::set<ValueKey> all = first;
    all.insert(second.begin(), second.end());
    for (const ValueKey& key : all) {
        const int from = groupOf(grouping, *key.node);
        const bool byFirst = first.contains(key), bySecond = second.contains(key);
        const bool handedOver = (from == one && from >= 0 && bySecond) || (from == other && from >= 0 && byFirst);
        if (!handedOver && !(byFirst && bySecond)) continue;
        const SymInt bytes = bytesOf(key);
        score.saved = score.saved + bytes;
        if (handedOver && !readOutside(grouping, *key.node, inside)) score.saved = score.saved + bytes;
    }
    return score;
}

}  // namespace cutaway
