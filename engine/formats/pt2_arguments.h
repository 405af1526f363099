#pragma once
// The Argument union of .pt2 JSON (spec: input-formats §3.4) as arguments of the graph.
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/json.h"
#include "engine/formats/pt2_types.h"
#include "engine/ir/argument.h"

namespace cutaway {

/// The values defined so far, by their names in the file.
using Pt2Values = std::unordered_map<std::string, Node*>;

class Pt2Arguments {
  public:
    /// Adds the graph of an as_graph operand to the module and gives back its name there.
    using AddSubgraph = std::function<Result<std::string>(const Json& graphArgument, const std::string& where)>;

    /// Borrows all three.
    Pt2Arguments(const Pt2Values& values, Pt2Types& types, AddSubgraph addSubgraph)
        : m_values(values), m_types(types), m_addSubgraph(std::move(addSubgraph)) {}

    /// Errors: a name that is not defined yet, a value that is not of the variant's kind. A variant that this schema
    /// does not have becomes its name as text, and is kept for takeUnknown.
    Result<Argument> read(const Json& argument, const std::string& where);
    /// Variants met since the last call that this schema does not have, each once (PT2-2).
    std::vector<std::string> takeUnknown() { return std::exchange(m_unknown, {}); }

  private:
    Result<Argument> named(std::string_view name, const std::string& where) const;
    Result<Argument> value(const Json& argument, const std::string& where) const;  // {"name": …}
    Result<Argument> symbolic(const Json& argument, DType dtype, const std::string& where);
    Result<Argument> dict(const Json& members, const std::string& where);

    const Pt2Values& m_values;
    Pt2Types& m_types;
    AddSubgraph m_addSubgraph;
    std::vector<std::string> m_unknown;
};

}  // namespace cutaway
