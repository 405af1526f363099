#include "engine/ir/name_table.h"

#include "engine/support/check.h"
#include "engine/support/hash.h"

namespace cutaway {

uint32_t NameTable::hashOf(std::string_view name) { return static_cast<uint32_t>(Hasher().add(name).finish().low); }

void NameTable::place(Entry entry) {
    size_t at = entry.hash & mask();
    while (m_entries[at].id != NodeId::None) at = (at + 1) & mask();
    m_entries[at] = entry;
}

void NameTable::insert(std::string_view name, NodeId id) {
    if ((m_count + 1) * 3 > m_entries.size() * 2) {
        std::vector<Entry> old(m_entries.empty() ? 16 : m_entries.size() * 2);
        old.swap(m_entries);
        for (const Entry& entry : old)
            if (entry.id != NodeId::None) place(entry);
    }
    place({hashOf(name), id});
    ++m_count;
}

void NameTable::erase(std::string_view name, NodeId id) {
    size_t hole = hashOf(name) & mask();
    while (m_entries[hole].id != id) {
        CT_CHECK(m_entries[hole].id != NodeId::None, "only stored names are erased");
        hole = (hole + 1) & mask();
    }
    // Entries behind the hole move up unless that would put them before the place their hash wants.
    for (size_t at = (hole + 1) & mask(); m_entries[at].id != NodeId::None; at = (at + 1) & mask()) {
        const size_t wanted = m_entries[at].hash & mask();
        if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
        m_entries[hole] = m_entries[at];
        hole = at;
    }
    m_entries[hole] = Entry();
    --m_count;
}

}  // namespace cutaway
