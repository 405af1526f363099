#pragma once
// The fixed part of generated C++: vector types, loads and stores of every element type, and mathematical functions, so
// that generated files include nothing but, for functions of the C library, what tells its version. Only what a file
// uses is printed.
#include <set>
#include <string>
#include <string_view>

namespace cutaway {

/// Whether generated code has vectors of so many elements, whatever their type. Mathematical functions are there
/// for 16.
constexpr bool hasVectorsOf(int lanes) { return lanes == 16 || lanes == 32 || lanes == 64; }

/// What vectors of any number of lanes have in common: first in every file.
std::string_view cppVectors();
/// Vectors of W lanes, a macro, and their memory.
std::string_view cppLanes();
/// Those, and declarations for the given helper names ("exp", "ld_f16", ...) and all that they need, in a fixed order.
std::string cppPrelude(int lanes, const std::set<std::string>& helpers);
/// True if kernels can call a function of this name on this element type ("f32", "f64") in C++.
bool hasCppFunction(const std::string& name);

/// The helper that such a function needs; empty for none.
std::string_view cppFunctionNeeds(const std::string& name);
/// The functions of these names, in a fixed order.
std::string cppFunctions(const std::set<std::string>& names);

}  // namespace cutaway
