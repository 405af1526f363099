#pragma once
// The fixed part of generated C++: vector types, loads and stores of every element type, and mathematical functions, so
// that generated files include nothing but, for functions of the C library, what tells its version. Only what a file
// uses is printed.
#include <set>
#include <string>
#include <string_view>

namespace cutaway {

/// Number of elements in every vector of generated code, whatever their type.
constexpr int kLanes = 16;

/// Vector types and their memory: first in every file.
std::string_view cppTypes();
/// Declarations for the given helper names ("exp", "ld_f16", ...) and all that they need, in a fixed order.
std::string cppPrelude(const std::set<std::string>& helpers);
/// True if kernels can call a function of this name on this element type ("f32", "f64") in C++.
bool hasCppFunction(const std::string& name);

/// The helper that such a function needs; empty for none.
std::string_view cppFunctionNeeds(const std::string& name);
/// The functions of these names, in a fixed order.
std::string cppFunctions(const std::set<std::string>& names);

}  // namespace cutaway
