#pragma once
// Products and sums for estimates, where a saturated number is good enough: the largest number instead of one that
// wraps.
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace cutaway {

inline int64_t saturatedProduct(std::initializer_list<int64_t> factors) {
    int64_t result = 1;
    for (const int64_t factor : factors)
        if (__builtin_mul_overflow(result, factor, &result)) return std::numeric_limits<int64_t>::max();
    return result;
}
inline void addSaturated(int64_t& sum, std::initializer_list<int64_t> factors) {
    if (__builtin_add_overflow(sum, saturatedProduct(factors), &sum)) sum = std::numeric_limits<int64_t>::max();
}

}  // namespace cutaway
