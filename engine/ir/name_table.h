#pragma once
// Names to ids without a copy of the names: the graph's nodes hold them. So copying a graph copies one block of numbers
// instead of a string per node.
#include <cstdint>
#include <string_view>
#include <vector>

#include "cutaway/types.h"

namespace cutaway {

/// Open addressing with linear probing. The owner says what a stored id is called.
class NameTable {
  public:
    /// The id stored under this name, or NodeId::None. `nameOf(id)` gives a stored id's name.
    template <class NameOf>
    NodeId find(std::string_view name, NameOf&& nameOf) const {
        if (m_entries.empty()) return NodeId::None;
        const uint32_t hash = hashOf(name);
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Entry& entry = m_entries[at];
            if (entry.id == NodeId::None) return NodeId::None;
            if (entry.hash == hash && nameOf(entry.id) == name) return entry.id;
        }
    }
    /// The name must not be there yet.
    void insert(std::string_view name, NodeId id);
    /// The id must be stored under this name.
    void erase(std::string_view name, NodeId id);

  private:
    struct Entry {
        uint32_t hash = 0;
        NodeId id = NodeId::None;
    };
    static uint32_t hashOf(std::string_view name);
    size_t mask() const { return m_entries.size() - 1; }
    void place(Entry entry);

    std::vector<Entry> m_entries;  // a power of two, at most two thirds full
    size_t m_count = 0;
};

}  // namespace cutaway
