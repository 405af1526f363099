#pragma once
// Formulas: FX statements over named parameters, and what they become when they are traced on given types, as a model's
// own code is: composites expanded, derivatives taken, decomposed, cleaned of what does nothing (spec: pattern-matcher
// T-1, T-2). Used for rules (traced_rules.h).
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"

namespace cutaway {

/// What a parameter is when the formula is traced: a tensor, or a number that is written into the text.
struct FormulaInput {
    std::string name;
    ValueType type;
    std::string constant;   // not empty: the number
    bool number = false;    // declared as "number" or "scalar": never a tensor
    bool gradient = false;  // declared as "... grad": the joint graph has its gradient
    bool scalar = false;    // declared as "scalar": any number, in inference, too
};

/// Reads "name type; ...", as in "query f32[2, 4, 8, 16] grad; scale f32[]; dropout_p number". The first is a tensor.
/// Errors: types that do not parse.
Result<std::vector<FormulaInput>> readFormulaInputs(std::string_view parameters);

enum class TraceKind : uint8_t {
    Forward,  // the values
    Joint,    // the values, and the gradients of the inputs that are declared so, from tangents_1.. of the values
};

/// The formula as a graph, its calls as written, with constants written in as traceFormula does. Errors: statements
/// that do not parse; "LINE:COLUMN" in `where` counts the statements from 2 on.
Result<std::unique_ptr<Module>> parseFormula(std::string_view formula, const std::vector<FormulaInput>& inputs,
                                             TraceKind kind);

/// The graph of the formula, its placeholders named as the inputs are (and tangents_1..). Written in as constants are
/// the numbers, and: `size(x, d, ...)`, the number of elements along these dims of x together; `sqrt_size(x, d)`, its
/// square root; `dtype_of(x)`; `device_of(x)`; `lowest(x)`, the least number of x's dtype; `inverse(s)`, one over a
/// number; `square(s)`, its square. Errors: statements that do not parse or do not fit the types; an operator without a
/// row or without a derivative.
Result<std::unique_ptr<Module>> traceFormula(std::string_view formula, const std::vector<FormulaInput>& inputs,
                                             TraceKind kind);

}  // namespace cutaway
