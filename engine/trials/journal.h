#pragma once
// What a search has found out, on disk before the next question: a search that was killed goes on where it was, and
// asks nothing twice.
#include <fstream>
#include <optional>
#include <string>
#include <unordered_map>

#include "cutaway/result.h"

namespace cutaway {

class Journal {
  public:
    /// `search` tells searches apart: the graph, the request, the check. Errors: the file belongs to another search;
    /// it cannot be written.
    static Result<Journal> open(const std::string& path, const std::string& search, bool restart);
    /// Whether the graph of this key failed in the wanted way; none: not known.
    std::optional<bool> find(const std::string& key) const;
    /// Errors: the disk is full.
    Result<void> add(const std::string& key, bool failed);
    size_t size() const { return m_known.size(); }

  private:
    std::unordered_map<std::string, bool> m_known;  // lookups only
    std::string m_path;
    std::ofstream m_out;
};

}  // namespace cutaway
