#ifndef CUTAWAY_PROCESSOR_NEEDS_H
#define CUTAWAY_PROCESSOR_NEEDS_H
// What a processor has, by the names that an exported program's kernels say they need (templates/kernels_need.cpp.in).
#include <string>

namespace ct {

/// The names of a list that ends in null which this processor lacks, "avx2, fma"; empty if it has all. Whatever is not
/// known is lacking.
std::string lackingOf(const char* const* needs);
/// All that this processor has, in the same words.
std::string processorHas();

}  // namespace ct
#endif
