#pragma once
// Texts of the prelude (cpp_prelude.h): functions of whole vectors that take more than a few steps.
#include <string_view>

namespace cutaway {

/// wideLog and polynomialFrom, of registers of f64.
std::string_view cppWideLog();
std::string_view cppLgamma();
std::string_view cppErfinv();
std::string_view cppFmod();
std::string_view cppNextafter();

}  // namespace cutaway
