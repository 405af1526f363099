#include "engine/passes/post_grad/inplace.h"

#include <algorithm>

#include "engine/ops/alias.h"

namespace cutaway {
namespace {

std::string namedInplace(const Node& node) { return "`" + node.name() + "`"; }

bool isInput(const Node& node) { return node.isPlaceholder() || node.kind() == NodeKind::GetAttr; }

/// Two places of the tensor are one place in memory.
bool overlapsItself(const TensorType& type) {
    for (size_t i = 0; i < type.sizes.size(); ++i)
        if (type.strides[i] == SymInt(0) && !(type.sizes[i] == SymInt(1))) return true;
    return false;
}

/// Reads the shape only.
bool readsNoData(const Node& user) {
    if (user.is(Tag::View))
        return std::all_of(user.users().begin(), user.users().end(),
                           [](const Node* each) { return readsNoData(*each); });
    return user.is(Tag::Symbolic);
}

/// First byte and the one behind the last.
struct Span {
    int64_t begin = 0, end = 0;
};
/// Nothing where it is not known, or where the end does not fit into 64 bits.
std::optional<Span> spanOf(const TensorType& type) {
    if (!type.offset.isInt() || !allInts(type.sizes) || !allInts(type.strides)) return std::nullopt;
    int64_t end = 0, begin = 0;
    const auto bytes = static_cast<int64_t>(byteSize(type.dtype));
    bool over = __builtin_add_overflow(type.offset.value(), 1, &end);
    for (size_t i = 0; i < type.sizes.size(); ++i) {
        int64_t reach = 0;
        over |= __builtin_mul_overflow(type.sizes[i].value() - 1, type.strides[i].value(), &reach) ||
                __builtin_add_overflow(end, reach, &end);
    }
    over |= __builtin_mul_overflow(type.offset.value(), bytes, &begin) || __builtin_mul_overflow(end, bytes, &end);
    return over ? std::nullopt : std::optional(Span{begin, end});
}
/// Blocks of columns of one matrix.
bool areOtherColumns(const TensorType& a, const TensorType& b) {
    if (a.rank() != 2 || b.rank() != 2 || a.dtype != b.dtype) return false;
    if (!(a.strides == b.strides) || !(a.strides[1] == SymInt(1)) || a.strides[0].value() <= 0) return false;
    const int64_t pitch = a.strides[0].value();
    const bool ordered = a.offset.value() <= b.offset.value();
    const TensorType &first = ordered ? a : b, &second = ordered ? b : a;
    const int64_t shift = (second.offset.value() - first.offset.value()) % pitch;
    return shift >= first.sizes[1].value() && shift + second.sizes[1].value() <= pitch;
}

}  // namespace

bool InplaceWrites::mayOverlap(const TensorType& a, const TensorType& b) {
    const auto first = spanOf(a), second = spanOf(b);
    if (!first || !second) return true;
    if (numel(a.sizes) == SymInt(0) || numel(b.sizes) == SymInt(0)) return false;
    if (first->end <= second->begin || second->end <= first->begin) return false;
    return !areOtherColumns(a, b);
}

Node& InplaceWrites::written(Node& node) {
    Node* found = &node;
    const auto givesBack = [](const Node& each) {
        return each.isCall() && each.op().mutates() && each.op().functional() &&
               !each.op().functional()->is(Tag::View) && !each.args().empty() && each.arg(0).node();
    };
    while (givesBack(*found)) found = found->arg(0).node();
    return *found;
}

Node* InplaceWrites::copyInto(const Node& input) const {
    Node* found = nullptr;
    for (Node* user : input.users())
        if (user->isCall("aten.copy_.default") && user->arg(0).node() == &input &&
            (found == nullptr || m_graph.isBefore(*user, *found)))
            found = user;
    return found;
}

std::string InplaceWrites::unlessLastReader(const Node& write, const Node& target, const Node* back) const {
    const TensorType& place = target.tensor();
    for (const Node* alias : sharersOf(storageRoot(target))) {
        if (alias->type().tensor() && !mayOverlap(place, alias->tensor())) continue;
        for (const Node* user : alias->users()) {
            if (user == &write || m_graph.isBefore(*user, write)) continue;
            if (back && (user == back || m_graph.isBefore(*back, *user))) continue;  // reads what was copied back
            const bool overwrites = alias == &target && user->isCall("aten.copy_.default") &&
                                    user->arg(0).node() == alias && user->arg(1).node() != alias;
            if (overwrites || readsNoData(*user)) continue;
            const std::string value =
                namedInplace(*alias) +
                (alias == &target ? "" : ", which shares memory with " + namedInplace(target) + ",");
            return user->isOutput() ? "the old value of " + value + " is returned"
                                    : namedInplace(*user) + " reads " + value + " later";
        }
    }
    return "";
}

const Node* InplaceWrites::readerBehind(const Node& result, const Node& copy) const {
    for (const Node* sharer : sharersOf(result))
        for (const Node* user : sharer->users())
            if (m_graph.isBefore(copy, *user)) return user;
    return nullptr;
}

std::string InplaceWrites::unlessWritable(const Node& write, Node& target, const Node* result,
                                          const std::vector<const Node*>& others) const {
    if (!target.type().tensor()) return namedInplace(target) + " is not a tensor";
    if (overlapsItself(target.tensor()))
        return "places of " + namedInplace(target) + ", " + target.tensor().text() + ", are one place in memory";
    const Node& input = written(target);
    const Node& owner = storageRoot(input);
    const Node* back = nullptr;
    if (isInput(owner)) {
        if (&owner != &input) return namedInplace(target) + " is a view of the input " + namedInplace(owner);
        back = copyInto(input);
        if (back == nullptr)
            return namedInplace(input) +
                   " is an input, and the caller does not expect it to change: no aten.copy_ writes to it";
        if (!m_graph.isBefore(write, *back))
            return namedInplace(*back) + ", the copy into the input " + namedInplace(input) + ", stands before it";
        const bool own = result && back->arg(1).node() == result;
        const Node* reader = m_parity || own || result == nullptr ? nullptr : readerBehind(*result, *back);
        if (reader)
            return namedInplace(*reader) + " reads the new value after " + namedInplace(*back) +
                   " has given the input " + namedInplace(input) + " another one";
    }
    for (const Node* other : others)
        if (&storageRoot(*other) == &owner && (!other->type().tensor() || mayOverlap(other->tensor(), target.tensor())))
            return "it reads " + namedInplace(*other) + ", whose memory it would write, at the same time";
    return unlessLastReader(write, target, back);
}

}  // namespace cutaway
