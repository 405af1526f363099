#pragma once
// Functions that are compiled once for each width of vectors that processors compute in, and chosen between where the
// program runs. No product is fused with a sum in them (-ffp-contract=off), so all of them give the same bits.
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#define CUTAWAY_HAS_VECTORS 1
#define CUTAWAY_FOR_AVX2 __attribute__((target("avx2,fma,f16c")))
#define CUTAWAY_FOR_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c")))
#else
#define CUTAWAY_HAS_VECTORS 0
#endif

namespace cutaway {

enum class Vectors { Plain, Avx2, Avx512 };

/// The widest that this processor has. The variable CUTAWAY_VECTORS, read once, keeps to narrower ones: plain or avx2.
inline Vectors widestVectors() {
#if CUTAWAY_HAS_VECTORS
    static const Vectors widest = [] {
        const char* given = std::getenv("CUTAWAY_VECTORS");
        const std::string_view most = given != nullptr ? given : "";
        // Every processor with AVX2 converts halves (F16C), too.
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (!avx2 || most == "plain") return Vectors::Plain;
        const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
        return avx512 && most != "avx2" ? Vectors::Avx512 : Vectors::Avx2;
    }();
    return widest;
#else
    return Vectors::Plain;
#endif
}
/// The one for this processor.
template <class T>
const T& forThisProcessor(const T& plain, const T& avx2, const T& avx512) {
    if (widestVectors() == Vectors::Avx512) return avx512;
    return widestVectors() == Vectors::Avx2 ? avx2 : plain;
}

}  // namespace cutaway
