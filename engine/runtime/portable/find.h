#pragma once
// What functions are made of whose results' sizes follow from their data: they ask the run for memory once they know.
#include <vector>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

/// Memory for a result, row by row.
inline char* take(const Run& run, const std::vector<int64_t>& sizes, int32_t result = 0) {
    CtResults* const results = run.parallel->results;
    if (results == nullptr) throw Failure("nobody lends memory for a result whose size follows from data");
    return static_cast<char*>(results->take(results, result, static_cast<int32_t>(sizes.size()), sizes.data()));
}

/// Whether an index says where it holds, not which.
inline bool isMask(const Strided& index) { return index.dtype == CT_BOOL || index.dtype == CT_U8; }
/// Any bit but the sign of a zero.
inline bool isTrue(const Strided& tensor, int64_t offset) {
    const char* const element = tensor.at(offset);
    const int64_t bytes = bytesOf(tensor.dtype);
    const bool complex = isComplex(tensor.dtype), real = isFloating(tensor.dtype);
    const int64_t sign = complex ? bytes / 2 : bytes;
    for (int64_t i = 0; i < bytes; ++i) {
        const int mask = (complex || real) && (i + 1) % sign == 0 ? 0x7F : 0xFF;
        if ((element[i] & mask) != 0) return true;
    }
    return false;
}
/// visit(index, number) for each element, row by row.
template <class Visit>
void forEach(const Strided& tensor, Visit&& visit) {
    int64_t index[CT_MAX_RANK] = {};
    const int64_t count = tensor.elements();
    for (int64_t number = 0; number < count; ++number) {
        visit(index, number);
        for (int32_t d = tensor.rank; d-- > 0 && ++index[d] == tensor.sizes[d];) index[d] = 0;
    }
}
inline int64_t offsetAt(const Strided& tensor, const int64_t* index) {
    int64_t offset = 0;
    for (int32_t d = 0; d < tensor.rank; ++d) offset += index[d] * tensor.strides[d];
    return offset;
}

/// index.Tensor, with masks among the indices.
void findIndexed(const Run& run);

}  // namespace cutaway::portable
