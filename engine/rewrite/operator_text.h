#pragma once
// Definitions of operators as text, in files of rules.
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/schema.h"

namespace cutaway {

/// What the operator computes where the condition holds; an empty one always does.
struct OperatorCase {
    std::string when;
    std::vector<std::string> statements;
    std::vector<int> lines;  // of the statements, in the file
    int line = 0;            // of the word "computes"
};
struct OperatorText {
    Schema schema;           // named "NAMESPACE.NAME.OVERLOAD"
    std::string schemaText;  // as written
    std::string why;
    std::vector<OperatorCase> cases;
    int line = 0;

    /// As it is read back.
    std::string text() const;
};

/// The definitions among a file's rules:
///
///     operator mylib::scale_add(Tensor x, Tensor y, Tensor? bias=None) -> Tensor
///       why it is what mylib's kernel computes
///       computes when bias is None
///         twice = x * 2
///         sum = twice + y
///         return sum
///
/// Errors have the line in `where`: a schema that does not parse, or has no namespace; an operator that writes to what
/// it is given, which a definition cannot say; no statements, or statements that do not end with a return; one name
/// twice.
Result<std::vector<OperatorText>> readOperators(std::string_view rules);

}  // namespace cutaway
