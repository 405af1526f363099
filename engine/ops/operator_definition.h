#pragma once
// Operators that no table has, defined while the program runs by what they compute. Types, values and derivatives
// follow from the expansion, as those of any shorthand row do (ops/expanded.h).
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/ops/expanded.h"

namespace cutaway {

class Module;

struct OperatorDefinition {
    Schema schema;
    std::string text;  // all that decides what it computes: equal texts are one operator
    std::function<Values(Decomposition&)> expand;
};

/// The operator that is defined so. Lives as long as the program, under an address of its own for each text, so that
/// graphs keep what they were made with.
const Op& defineOperator(OperatorDefinition definition);
/// Null for operators of the tables and opaque ones.
const OperatorDefinition* definitionOf(const Op& op);

/// Where the definitions come from that a name means, the first one that has the name: the request that is worked on,
/// or files that come with the program and its user's.
enum class DefinedBy : uint8_t { Request, Files };
/// From now on findOp knows these by their names, in place of those of the same origin; rows of the tables come first.
void setDefinedOperators(DefinedBy by, std::span<const Op* const> ops);
/// Those of one origin, by name.
std::vector<const Op*> definedOperators(DefinedBy by);
/// Whether some call is of a defined operator; and such calls written as what they compute, for other processes, which
/// have only the tables. A call with one result keeps its id and name.
bool callsDefined(const Module& module);
Result<void> writeOutDefined(Module& module);
/// Whether a row of the tables has the name, which no definition can change.
bool isInTables(std::string_view fullName);

}  // namespace cutaway
