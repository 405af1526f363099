#pragma once
// The second round of the joint stage (JNT-1): subgraphs that the joint passes themselves have made (of chunks, of a
// user's pass) get the joint passes, too, after the graph that calls them. Subgraphs that were there before need no
// second round, since every pass also works on those.
#include <deque>
#include <memory>
#include <string>

#include "engine/passes/pass.h"

namespace cutaway {

/// The passes of one such round. Steps point into it, so it lives as long as they do.
class BodyRound {
  public:
    /// `passes` on the subgraphs that `after` calls and `before` does not have; null if there are none.
    static std::shared_ptr<const BodyRound> make(const Module& before, const Module& after,
                                                 const std::vector<const Pass*>& passes);

    std::vector<const Pass*> passes() const;
    /// "body", "outer.body": a dot between a graph and the subgraph inside it.
    const std::string& names() const { return m_names; }

  private:
    struct Entry {
        std::string summary;
        std::function<Result<bool>(Module&, Rewriter&)> run;
        Pass pass;
    };
    std::string m_names;
    std::deque<Entry> m_entries;
};

}  // namespace cutaway
