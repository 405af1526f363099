#pragma once
// From symbolic sizes to numbers. Graphs keep their symbols until someone needs numbers: a run takes them from its
// inputs, a user may set them before compiling.
#include <map>
#include <string>
#include <vector>

#include "engine/ir/size_guards.h"

namespace cutaway {

using SymbolValues = std::map<std::string, int64_t>;

/// Every symbol that a type or an argument of the module or its subgraphs uses, sorted.
std::vector<std::string> freeSymbols(const Module& module);

/// The values that the placeholders' types take on for these tensors, one per placeholder (undefined ones are skipped).
/// Errors: two inputs that disagree about a symbol, by both names; a size that no value of the symbols gives.
Result<SymbolValues> solveSymbols(const Module& module, const std::vector<Tensor>& inputs);

/// The example values that the module knows of its symbols.
SymbolValues hintedSymbols(const Module& module);

/// The number that a size has for these values; nothing while it depends on other symbols. Throws SizeError where it
/// does not fit into 64 bits.
std::optional<int64_t> valueFor(const SymInt& size, const SymbolValues& values);

/// The same for estimates: a symbol without a value is taken for 64.
int64_t likelyValue(const SymInt& size, const SymbolValues& values);

/// Those guards that these values decide. Errors: the first that does not hold, by its node.
Result<void> checkGuards(const std::vector<SizeGuard>& guards, const SymbolValues& values);

/// Replaces the symbols everywhere: in types, arguments, subgraphs; integers that nodes computed become literals where
/// they are read. Symbols without a value stay. Errors: a value outside the range that the program was exported for, a
/// guard that does not hold, and a size that becomes negative or does not fit into 64 bits, by its node.
Result<void> specialize(Module& module, const SymbolValues& values);

}  // namespace cutaway
