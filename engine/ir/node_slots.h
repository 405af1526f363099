#pragma once
// Where a graph keeps its nodes by id. Ids are never reused and are unique across the graphs of a run, so a small graph
// (what a folded constant is computed from) has few of very many ids: only what is there takes memory.
#include <array>
#include <memory>
#include <vector>

#include "engine/ir/node.h"

namespace cutaway {

class NodeSlots {
  public:
    /// The node with this id, or null.
    Node* find(NodeId id) const {
        const uint32_t at = index(id);
        if (at >= m_limit) return nullptr;
        const Page* page = m_pages[at / kPage].get();
        return page ? (*page)[at % kPage].get() : nullptr;
    }
    /// One past the largest id that was put or reserved.
    uint32_t limit() const { return m_limit; }
    /// Makes ids up to this one known without nodes; a smaller limit changes nothing.
    void reserve(uint32_t limit) {
        if (limit <= m_limit) return;
        m_limit = limit;
        m_pages.resize((static_cast<size_t>(limit) + kPage - 1) / kPage);
    }
    /// Keeps the node under its id, which must be free.
    Node& put(std::unique_ptr<Node> node) {
        const uint32_t at = index(node->id());
        reserve(at + 1);
        std::unique_ptr<Page>& page = m_pages[at / kPage];
        if (!page) page = std::make_unique<Page>();
        return *((*page)[at % kPage] = std::move(node));
    }
    /// Destroys the node. The id must be one of a node that is there.
    void drop(NodeId id) { (*m_pages[index(id) / kPage])[index(id) % kPage].reset(); }

  private:
    static constexpr uint32_t kPage = 32;
    using Page = std::array<std::unique_ptr<Node>, kPage>;

    std::vector<std::unique_ptr<Page>> m_pages;  // null: no node has been there
    uint32_t m_limit = 0;
};

}  // namespace cutaway
