#pragma once
// What is known of the entries of a cache beside the entries themselves: size, uses, when it was made and last used.
// Rows of a ValueStore, so several programs may count at once, and an index that is damaged is begun anew: entries that
// it does not know are entries all the same.
#include <memory>
#include <string>
#include <vector>

#include "engine/cache/value_store.h"

namespace cutaway {

struct IndexedEntry {
    std::string name;  // of the entry, within its kind
    int64_t bytes = 0, hits = 0;
    int64_t made = 0, used = 0;  // seconds since 1970; last use: when it was made, if nobody has read it since
    std::string about;           // a line for people
};

class EntryIndex {
  public:
    /// `kind`: "operator". Never null.
    EntryIndex(std::shared_ptr<ValueStore> store, std::string kind)
        : m_store(std::move(store)), m_kind(std::move(kind)) {}

    /// An entry that was made now, in place of an earlier one of the name.
    Result<void> add(const std::string& name, int64_t bytes, const std::string& about);
    /// One more hit, now. An entry that the index lost begins with it.
    Result<void> hit(const std::string& name, int64_t bytes, const std::string& about);
    Result<void> forget(const std::string& name);
    /// By name.
    Result<std::vector<IndexedEntry>> all() const;
    /// What was wrong with the index, as a sentence.
    std::string remark() const { return m_store->remark(); }

  private:
    std::shared_ptr<ValueStore> m_store;
    std::string m_kind;
};

}  // namespace cutaway
