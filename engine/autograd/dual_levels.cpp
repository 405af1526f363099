#include "engine/autograd/dual_levels.h"

#include <algorithm>

#include "engine/ops/build.h"

namespace cutaway {
namespace {

constexpr std::string_view kEnter = "torch._C._enter_dual_level", kExit = "torch._C._exit_dual_level",
                           kNest = "torch._C._functorch._jvp_increment_nesting",
                           kUnnest = "torch._C._functorch._jvp_decrement_nesting";

Error refusedLevel(std::string what, const Node& where) { return invalidInput(std::move(what), where.name()); }

/// The argument with None in place of the node.
Argument withNone(const Argument& argument, const Node& node) {
    if (argument.node() == &node) return {};
    const auto* list = argument.get<ArgumentList>();
    if (list == nullptr) return argument;
    ArgumentList out{{}, list->tuple};
    for (const Argument& item : list->items) out.items.push_back(withNone(item, node));
    return Argument(std::move(out));
}

/// The levels that are open while the graph is walked.
struct Open {
    bool level = false;
    int nested = 0;  // of torch.func.jvp, which all share the one level
    int depth() const { return level ? std::max(nested, 1) : 0; }

    Result<void> follow(const Node& node) {
        if (node.isCall(kNest)) ++nested;
        if (node.isCall(kUnnest)) nested = std::max(0, nested - 1);
        if (node.isCall(kEnter)) {
            if (level) return refusedLevel("Nested forward mode AD is not supported at the moment", node);
            level = true;
        }
        if (!node.isCall(kExit)) return {};
        const int64_t given = node.arg(0).asInt().value_or(-1);
        if (!level && given < 0) return refusedLevel("Dual level must be a positive number.", node);
        if (!level || given > 0)
            return refusedLevel(
                "Trying to exit a forward AD level that was not the last one that was created. This is not "
                "supported.",
                node);
        level = false;
        return {};
    }

    Result<void> check(const Node& node) const {
        const int64_t given = node.arg(2).asInt().value_or(-1);
        if (!level && given <= 0)
            return refusedLevel(
                "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                "enter_dual_level() first.",
                node);
        if (given > 0) return refusedLevel("Invalid level given to _make_dual", node);
        return {};
    }
};

}  // namespace

bool isMakeDual(const Node& node) { return node.isCall("aten._make_dual.default"); }
bool isUnpackDual(const Node& node) { return node.isCall("aten._unpack_dual.default"); }
bool isDualLevel(const Node& node) {
    return node.isCall(kEnter) || node.isCall(kExit) || node.isCall(kNest) || node.isCall(kUnnest);
}

Result<DualLevels> DualLevels::of(const Graph& graph) {
    DualLevels levels;
    Open open;
    int64_t regions = 0;
    for (const Node& node : graph.nodes()) {
        if (!isDualCall(node)) continue;
        const int before = open.depth();
        CT_TRY_VOID(open.follow(node));
        const int now = open.depth();
        levels.m_deepest = std::max(levels.m_deepest, now);
        for (int depth = before + 1; depth <= now; ++depth) levels.m_regions[{node.id(), depth}] = ++regions;
        for (int depth = now + 1; depth <= before; ++depth) levels.m_regions[{node.id(), depth}] = 0;
        if (isMakeDual(node)) CT_TRY_VOID(open.check(node));
        levels.m_depths[node.id()] = now;
    }
    return levels;
}

int DualLevels::depthOf(const Node& call) const {
    const auto found = m_depths.find(call.id());
    return found == m_depths.end() ? 0 : found->second;
}

int64_t DualLevels::regionOf(const Node& node, int depth) const {
    const auto found = m_regions.find({node.id(), depth});
    return found == m_regions.end() ? kSameRegion : found->second;
}

Result<void> replaceUnpacked(Graph& graph, Node& unpacked, Node& primal, Node* tangent) {
    const std::vector<Node*> items = unpacked.users();
    for (Node* item : items) {
        const auto position = item->isCall("operator.getitem") ? item->arg(1).asInt() : std::nullopt;
        if (!position)
            return unsupported("the pair that unpack_dual gives is used as a whole", item->name(),
                               {"take its items apart: [0] is the primal, [1] the tangent"});
        if (Node* value = *position == 0 || *position == -2 ? &primal : tangent) {
            graph.replaceUses(*item, *value);
            graph.erase(*item);
            continue;
        }
        const std::vector<Node*> readers = item->users();
        for (Node* reader : readers) {
            if (!reader->isOutput())
                return refusedLevel("the tangent that '" + reader->name() + "' reads is None: '" +
                                        unpacked.arg(0).node()->name() + "' carries none here",
                                    unpacked);
            std::vector<Argument> args;
            for (const Argument& arg : reader->args()) args.push_back(withNone(arg, *item));
            graph.setArgs(*reader, std::move(args));
        }
        graph.erase(*item);
    }
    graph.erase(unpacked);
    return {};
}

}  // namespace cutaway
