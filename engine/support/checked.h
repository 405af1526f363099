#pragma once
// Arithmetic on sizes, strides and offsets: what does not fit into 64 bits is a SizeError (support/check.h), never a
// number that has wrapped around. And the place where such an error becomes a value.
#include <cstdint>
#include <string>

#include "cutaway/result.h"
#include "engine/support/check.h"

namespace cutaway {

[[noreturn]] void failArithmetic(int64_t a, char operation, int64_t b);

inline int64_t checkedAdd(int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_add_overflow(a, b, &result)) failArithmetic(a, '+', b);
    return result;
}
inline int64_t checkedSub(int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_sub_overflow(a, b, &result)) failArithmetic(a, '-', b);
    return result;
}
inline int64_t checkedMul(int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_mul_overflow(a, b, &result)) failArithmetic(a, '*', b);
    return result;
}

/// What `body` returns (a Result, or whatever else an Error converts to), or the Error that a SizeError out of it
/// stands for. `who` begins the message: the operator, for instance.
template <class Body>
auto withCheckedSizes(const std::string& who, const std::string& where, Body&& body) -> decltype(body()) {
    try {
        return body();
    } catch (const SizeError& error) {
        return invalidInput(who.empty() ? error.what() : who + ": " + error.what(), where);
    } catch (const std::length_error&) {  // a standard container was asked for more than there can be
        return invalidInput((who.empty() ? who : who + ": ") + "more elements than memory can hold", where);
    }
}

}  // namespace cutaway
