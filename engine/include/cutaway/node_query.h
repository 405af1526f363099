#pragma once
// Finds nodes: plain words (each must be in the name, op, type or module), or conditions joined by '&':
//   op=mm & numel>1e6 & change=added & module=encoder.0
// Fields: name op type module change (= and != by part, no case) and numel bytes users inputs (= != < <= > >=).
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "cutaway/snapshot.h"

namespace cutaway {

class NodeQuery {
  public:
    /// Errors name the field or comparison that is not known, and list those that are.
    static Result<NodeQuery> parse(std::string_view text);
    bool matches(const UnionGraph::Node& node) const;
    bool isEmpty() const { return m_conditions.empty(); }

  private:
    struct Condition {
        std::string field;  // "any" for plain words
        std::string comparison, value;
        double number = 0;
    };
    static bool holds(const Condition& condition, const UnionGraph::Node& node);
    std::vector<Condition> m_conditions;
};

/// Elements of all results by a printed type, "f32[8, 64]" -> 512; -1 if a size is symbolic.
double elementsOf(std::string_view type);

}  // namespace cutaway
