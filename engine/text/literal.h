#pragma once
// Python's spelling of literals: what repr() writes, byte for byte.
#include <complex>
#include <string>
#include <string_view>

namespace cutaway::fxtext {

/// Shortest digits that read back to the same number: 1e-05, 0.5, 1.0, inf.
std::string realText(double value);
/// (1+2j), 2j
std::string complexText(std::complex<double> value);
/// 'text'; double quotes when it holds single ones only. Bytes of UTF-8 stay as they are.
std::string quoted(std::string_view text);
/// A Python identifier, of any script.
bool isIdentifier(std::string_view text);

}  // namespace cutaway::fxtext
