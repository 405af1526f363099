#include "engine/passes/post_grad/fsdp.h"

#include <algorithm>

#include "engine/rewrite/storage_roots.h"

namespace cutaway {
namespace {

constexpr std::string_view kCopy = "fsdp.copy_.default", kResize = "inductor.resize_storage_bytes_.default";

/// An input that is a buffer, and the calls that give it memory, fill it, and take the memory back, in order.
struct Buffer {
    Node* input = nullptr;
    std::vector<Node*> enlarged, emptied, filled;
};

/// Every time its memory is given it is taken back. PyTorch takes a buffer whose memory stays for one of these, though it is left filled.
bool isReturned(const Graph& graph, const Buffer& buffer, bool parity) {
    if (buffer.enlarged.empty() && !parity) return false;
    if (buffer.enlarged.size() != buffer.emptied.size()) return false;
    for (size_t i = 0; i < buffer.enlarged.size(); ++i)
        if (!graph.isBefore(*buffer.enlarged[i], *buffer.emptied[i])) return false;
    return true;
}

/// Whether the call writes to this memory.
bool writesTo(const Node& call, const Node& root) {
    if (!call.isCall() || !call.op().mutates() || call.op().schema() == nullptr) return false;
    const auto& params = call.op().schema()->params;
    for (size_t i = 0; i < params.size() && i < call.args().size(); ++i) {
        bool writes = false;
        if (params[i].mutated) call.arg(i).forEachNode([&](Node* node) { writes |= &storageRoot(*node) == &root; });
        if (writes) return true;
    }
    return false;
}

/// Whether readers of the buffer may read what fills it.
bool isPlain(const Graph& graph, const Buffer& buffer) {
    const auto isFill = [&](const Node* node) { return std::find(buffer.filled.begin(), buffer.filled.end(), node) != buffer.filled.end(); };
    std::vector<const Node*> roots = {buffer.input};
    for (const Node* fill : buffer.filled) {
        const Node* source = fill->arg(1).node();
        if (source == nullptr || !sameType(source->type(), buffer.input->type())) return false;
        roots.push_back(&storageRoot(*source));
    }
    for (const Node* root : roots)
        for (const Node* sharer : sharersOf(*root))
            for (const Node* user : sharer->users()) {
                if (writesTo(*user, *root) && !isFill(user)) return false;
                const bool stale = root == buffer.input && sharer != root && std::any_of(buffer.filled.begin(), buffer.filled.end(), [&](const Node* fill) {
                    return graph.isBefore(*sharer, *fill) && graph.isBefore(*fill, *user);
                });
                if (stale) return false;
            }
    return true;
}

std::vector<Buffer> buffersOf(const Graph& graph, bool parity) {
    std::vector<Buffer> buffers;
    for (Node& node : graph.nodes()) {
        if (!node.isCall(kCopy) && !node.isCall(kResize)) continue;
        Node* input = node.arg(0).node();
        if (input == nullptr || !input->isPlaceholder()) continue;
        const auto known = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& each) { return each.input == input; });
        Buffer& buffer = known == buffers.end() ? buffers.emplace_back(Buffer{input, {}, {}, {}}) : *known;
        if (node.isCall(kCopy)) buffer.filled.push_back(&node);
        else (node.arg(1).asInt() == 0 ? buffer.emptied : buffer.enlarged).push_back(&node);
    }
    std::erase_if(buffers, [&](const Buffer& each) { return each.filled.empty() || !isReturned(graph, each, parity) || !isPlain(graph, each); });
    return buffers;
}

void readWhatFills(Graph& graph, const Buffer& buffer) {
    for (size_t i = buffer.filled.size(); i-- > 0;) {   // last first: each takes the readers behind it
        Node& source = *buffer.filled[i]->arg(1).node();
        const auto keeps = [&](const Node& user) {
            const bool administers = user.isCall(kResize) || (user.isCall(kCopy) && user.arg(0).node() == buffer.input);
            return user.isOutput() || administers || !graph.isBefore(*buffer.filled[i], user);
        };
        graph.replaceUses(*buffer.input, source, keeps);
    }
    for (const auto* calls : {&buffer.filled, &buffer.enlarged, &buffer.emptied})
        for (Node* call : *calls) graph.erase(*call);
}

constexpr Rule kRules[] = {
    {.name = "reinplace_fsdp_all_gather",
     .find = "c = fsdp.all_gather_copy_in.default(inputs, buffer, $sizes, $count, $rank); g = c[0]; "
             "y = _c10d_functional.all_gather_into_tensor.default(g, $members, $group); return y",
     .replace = "c = fsdp.all_gather_copy_in.default(inputs, buffer, $sizes, $count, $rank); g = c[0]; h = c[1]; "
                "y = _c10d_functional.all_gather_into_tensor_out.default(g, $members, $group, out=h); return y",
     .why = "the share lies in the buffer already"},
};

Result<bool> dropUnreadBuffers(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, dropUnreadBuffers(*body, rewriter));
        changed |= inner;
    }
    for (Node* node : module.graph().nodeList()) {
        if (!node->isCall("operator.getitem") || node->hasUsers() || !node->arg(0).node()->isCall("fsdp.all_gather_copy_in.default")) continue;
        if (!rewriter.begin("unread_item", *node, "nobody reads the buffer")) return changed;
        module.graph().erase(*node);
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> removeUnshardedParameters(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, removeUnshardedParameters(*body, rewriter));
        changed |= inner;
    }
    for (const Buffer& buffer : buffersOf(module.graph(), rewriter.options().parity)) {
        if (!rewriter.begin("remove_fsdp2_unsharded_param_graph_input_usage", *buffer.input, "the buffer holds nothing before and after this graph")) return changed;
        readWhatFills(module.graph(), buffer);
        changed = true;
    }
    return changed;
}

std::span<const Rule> fsdpGatherRules() { return kRules; }

Result<bool> reinplaceFsdpGathers(Module& module, Rewriter& rewriter) {
    CT_TRY(const bool dropped, dropUnreadBuffers(module, rewriter));
    CT_TRY(const bool changed, rewriter.applyRules(module, fsdpGatherRules()));
    return dropped || changed;
}

}  // namespace cutaway
