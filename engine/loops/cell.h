#pragma once
// One element in an interpreter of kernels or nests, and what an operation makes of elements. Every operation rounds to
// its dtype; functions are the C library's.
#include <span>

#include "engine/expr/expr.h"

namespace cutaway {

/// Floats in `real` (f32 as the double of that value), integers and bools in `whole` (u64 by its bits).
struct Cell {
    double real = 0;
    int64_t whole = 0;
};

/// Why a run of a kernel fails: numbers as compiled kernels report them.
enum class KernelFault : uint8_t { None, IndexOutOfRange, DivisionByZero };

Cell literalCell(const Expr& literal);
/// The value of any operation but loads, leaves and reductions; `in` are its operands' values.
Cell applyOperation(const ExprNode& operation, std::span<const Cell> in, KernelFault& fault);
/// Element `index` of a buffer of this dtype; f16 and bf16 as the float that they are.
Cell readElement(const void* buffer, DType dtype, int64_t index);
void writeElement(void* buffer, DType dtype, int64_t index, const Cell& value);
/// Not of f16, bf16 and Bool.
void addToElement(void* buffer, DType dtype, int64_t index, const Cell& value);

}  // namespace cutaway
