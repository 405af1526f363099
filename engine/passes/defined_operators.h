#pragma once
// Operators that users define (rewrite/operator_text.h): read, made operators of, and put into graphs that call them.
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/request.h"
#include "engine/ir/module.h"
#include "engine/passes/pass.h"

namespace cutaway {

/// The operators that the definitions of a file make. They see each other, those of the tables, and those that names
/// mean already. Errors name the file, the operator and the line: what operator_text.h refuses; statements that do not
/// parse; calls of what is not an operator; conditions that ask for no parameter; a definition that leads back to
/// itself. An operator of Cutaway's tables is refused, or with `known` left out and named there.
Result<std::vector<const Op*>> operatorsOf(std::string_view rules, const std::string& file,
                                           std::vector<std::string>* known = nullptr);

/// Makes the definitions among the request's rules what names mean from now on.
Result<void> defineOperators(const CompileRequest& request);

/// The graph with its calls of operators bound to what the request, then files define: opaque ones become calls of
/// the defined operator, whose types count. The same snapshot where nothing changes. Errors: a call that does not fit
/// the schema; a definition that gives another type than the file says.
Result<Snapshot> withDefinedOperators(const Snapshot& input, const CompileRequest& request);

/// Adds to the request what files define of operators that the graph calls, so that it says all that a run depends on.
void addDefinitionsOf(const Module& module, CompileRequest& request);

/// The operator's definition with those that it leads to; empty for operators of the tables.
std::string definitionsText(const Op& op);

}  // namespace cutaway
