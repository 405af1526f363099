#include "engine/rewrite/dead_code.h"

#include <map>

#include "engine/ir/unbacked_sizes.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

/// By the node that finds a size in data, those that have the size in an argument and are still there.
class SizeReaders {
  public:
    explicit SizeReaders(const Graph& graph) {
        for (const auto& [finder, reader] : foundSizes(graph)) {
            m_readers[finder].push_back(reader);
            m_finders[reader].push_back(finder);
        }
    }
    const Node* readerOf(const Node& finder) const {
        const auto found = m_readers.find(&finder);
        return found == m_readers.end() || found->second.empty() ? nullptr : found->second.front();
    }
    void erase(const Node& reader) {
        const auto found = m_finders.find(&reader);
        if (found == m_finders.end()) return;
        for (const Node* finder : found->second) std::erase(m_readers[finder], &reader);
    }

  private:
    std::map<const Node*, std::vector<const Node*>> m_readers, m_finders;  // lookups only
};

bool isDead(const Node& node, const SizeReaders& sizes, const Refusing& no) {
    if (node.isOutput()) return no("the graph ends with it");
    if (node.hasUsers()) {
        const Node& reader = *node.users()[0];
        return reader.isOutput() ? no("the graph returns it") : no.about(&reader, reader, " reads it");
    }
    if (const Node* reader = sizes.readerOf(node); reader && node.isCall())
        return no.about(reader, *reader, " has a size that it finds");
    if (node.isPlaceholder()) return no("nobody reads it, but the graph is called with it");
    if (isPure(node)) return true;
    return no("nobody reads it, but ", KindOf{node},
              node.op().mutates() ? " writes to its operand" : " does more than make a value");
}

}  // namespace

Result<bool> eliminateDeadCode(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, eliminateDeadCode(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    SizeReaders sizes(graph);
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (isDead(*node, sizes, {rewriter, "dead node", *node})) {
            if (rewriter.begin("dead node", *node, "nobody reads it") != Go::Yes) return changed;
            sizes.erase(*node);
            graph.erase(*node);
            changed = true;
        }
        node = previous;
    }
    return changed;
}

}  // namespace cutaway
