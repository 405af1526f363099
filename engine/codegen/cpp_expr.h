#pragma once
// Types and literals of generated C++.
#include <string>

#include "engine/expr/expr.h"

namespace cutaway {

/// "float": of an element in memory, or of a value in a register (f16 and bf16 compute as float, Bool as bool).
std::string cppMemoryType(DType dtype);
std::string cppValueType(DType dtype);
/// "V_f32"; Bool is the mask type V_b.
std::string cppVectorType(DType dtype);
/// "f32": suffix of helpers by what is in memory ("b8", "bf16") or in a register.
std::string cppMemorySuffix(DType dtype);
std::string cppValueSuffix(DType dtype);
std::string cppLiteral(const Expr& constant);

}  // namespace cutaway
