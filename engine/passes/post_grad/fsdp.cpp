#include "engine/passes/post_grad/fsdp.h"

#include <algorithm>

#include "engine/ops/alias.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kRemove = "remove_fsdp2_unsharded_param_graph_input_usage";
constexpr std::string_view kCopy = "fsdp.copy_.default", kResize = "inductor.resize_storage_bytes_.default";

/// An input that is a buffer, and the calls that give it memory, fill it, and take the memory back, in order.
struct Buffer {
    Node* input = nullptr;
    std::vector<Node*> enlarged, emptied, filled;
};

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
class BufferCheck {
  public:
    /// `fill`: the call that is told why not.
    BufferCheck(const Graph& graph, const Buffer& buffer, Rewriter& rewriter, const Node& fill)
        : m_graph(graph), m_buffer(buffer), m_parity(rewriter.request().parity), m_no(rewriter, kRemove, fill) {}
    bool passes() const {
        return isReturned() &&
               std::all_of(m_buffer.filled.begin(), m_buffer.filled.end(),
                           [&](const Node* fill) { return isExact(*fill); }) &&
               isUntouched();
    }

  private:
    /// Whether the memory is taken back as often as it is given. PyTorch also takes buffers whose memory stays,
    /// although these remain filled.
    bool isReturned() const {
        const auto &enlarged = m_buffer.enlarged, &emptied = m_buffer.emptied;
        if (enlarged.empty() && emptied.empty())
            return m_parity || m_no.about(m_buffer.input, *m_buffer.input, " stays filled for other graphs");
        if (enlarged.size() != emptied.size())
            return m_no.about(m_buffer.input, "the memory of ", *m_buffer.input,
                              " is not given as often as taken back: ", enlarged.size(), " and ", emptied.size());
        for (size_t i = 0; i < enlarged.size(); ++i)
            if (!m_graph.isBefore(*enlarged[i], *emptied[i]))
                return m_no.about(emptied[i], *emptied[i], " takes the memory back before ", *enlarged[i], " gives it");
        return true;
    }
    bool isExact(const Node& fill) const {
        const Node* source = fill.arg(1).node();
        if (source == nullptr || source->type().tensor() == nullptr)
            return m_no.about(&fill, fill, " copies no tensor");
        return sameType(source->type(), m_buffer.input->type()) ||
               m_no.about(source, *source, " is ", source->tensor(), " and the buffer ", m_buffer.input->tensor());
    }
    /// Nothing else writes to the buffer or to what fills it, and no view shows the buffer before and after it is
    /// filled.
    bool isUntouched() const {
        std::vector<const Node*> roots = {m_buffer.input};
        for (const Node* fill : m_buffer.filled) roots.push_back(&storageRoot(*fill->arg(1).node()));
        for (const Node* root : roots)
            for (const Node* sharer : sharersOf(*root))
                for (const Node* user : sharer->users()) {
                    if (writesTo(*user, *root) && !isFill(user))
                        return m_no.about(user, NodeWithKind{user}, " writes to the memory of ", *root);
                    if (root == m_buffer.input && sharer != root && isFilledBetween(*sharer, *user))
                        return m_no.about(sharer, *user, " reads ", *sharer,
                                          ", which is a view from before the buffer is filled");
                }
        return true;
    }
    bool isFill(const Node* node) const {
        return std::find(m_buffer.filled.begin(), m_buffer.filled.end(), node) != m_buffer.filled.end();
    }
    bool isFilledBetween(const Node& view, const Node& reader) const {
        return std::any_of(m_buffer.filled.begin(), m_buffer.filled.end(), [&](const Node* fill) {
            return m_graph.isBefore(view, *fill) && m_graph.isBefore(*fill, reader);
        });
    }

    const Graph& m_graph;
    const Buffer& m_buffer;
    bool m_parity;
    Refusing m_no;
};

bool mayPass(const Graph& graph, const Buffer& buffer, Rewriter& rewriter) {
    size_t passing = 0;
    for (const Node* fill : buffer.filled) passing += BufferCheck(graph, buffer, rewriter, *fill).passes() ? 1 : 0;
    return passing == buffer.filled.size();
}

std::vector<Buffer> buffersOf(const Graph& graph, Rewriter& rewriter) {
    std::vector<Buffer> buffers;
    for (Node& node : graph.nodes()) {
        if (!node.isCall(kCopy) && !node.isCall(kResize)) continue;
        Node* input = node.arg(0).node();
        if (input == nullptr || !input->isPlaceholder() || !input->type().tensor()) {
            if (node.isCall(kCopy))
                Refusing(rewriter, kRemove, node)("what is written to is ", NodeWithKind{input}, ", not an input");
            continue;
        }
        const auto found =
            std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& each) { return each.input == input; });
        Buffer& buffer = found == buffers.end() ? buffers.emplace_back(Buffer{input, {}, {}, {}}) : *found;
        if (node.isCall(kCopy)) buffer.filled.push_back(&node);
        else (node.arg(1).asInt() == 0 ? buffer.emptied : buffer.enlarged).push_back(&node);
    }
    std::erase_if(buffers, [&](const Buffer& each) { return each.filled.empty() || !mayPass(graph, each, rewriter); });
    return buffers;
}

void readWhatFills(Graph& graph, const Buffer& buffer) {
    for (size_t i = buffer.filled.size(); i-- > 0;) {  // last first: each takes the readers behind it
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

constexpr Rule kFsdpRules[] = {
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
        if (!node->isCall("operator.getitem")) continue;
        const Refusing no(rewriter, "unread_item", *node);
        const Node* tuple = node->arg(0).node();
        if (tuple == nullptr || !tuple->isCall("fsdp.all_gather_copy_in.default")) {
            no("it is not of fsdp.all_gather_copy_in, but of ", NodeWithKind{tuple});
            continue;
        }
        if (node->hasUsers()) {
            no(OtherReader{*node, nullptr});
            continue;
        }
        if (rewriter.begin("unread_item", *node, "nobody reads the buffer") != Go::Yes) return changed;
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
    for (const Buffer& buffer : buffersOf(module.graph(), rewriter)) {
        if (rewriter.begin(kRemove, *buffer.filled[0], "the buffer holds nothing before and after this graph") !=
            Go::Yes)
            return changed;
        readWhatFills(module.graph(), buffer);
        changed = true;
    }
    return changed;
}

std::span<const Rule> fsdpGatherRules() { return kFsdpRules; }

Result<bool> reinplaceFsdpGathers(Module& module, Rewriter& rewriter) {
    CT_TRY(const bool dropped, dropUnreadBuffers(module, rewriter));
    CT_TRY(const bool changed, rewriter.applyRules(module, fsdpGatherRules()));
    return dropped || changed;
}

}  // namespace cutaway
