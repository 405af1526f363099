#pragma once
// Runs of indices into a table, whose rows embedding bags sum.
#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

inline void checkIndex(int64_t index, int64_t rows) {
    if (index < 0 || index >= rows)
        throw Failure("index " + std::to_string(index) + " is out of range for a table of " + std::to_string(rows) +
                      " rows");
}
/// Where bags start and end among the indices.
class Bags {
  public:
    Bags(const Strided& offsets, int64_t bags, int64_t indices)
        : m_offsets(offsets), m_stride(offsets.strides[0]), m_bags(bags), m_indices(indices) {
        if (offsets.sizes[0] < bags)
            throw Failure(std::to_string(offsets.sizes[0]) + " offsets for " + std::to_string(bags) + " bags");
        if (bags > 0 && m_offsets[0] != 0) throw Failure("the first offset must be 0");
        for (int64_t bag = 0; bag < bags; ++bag)
            if (start(bag) > end(bag) || end(bag) > indices)
                throw Failure("offset " + std::to_string(end(bag)) + " follows " + std::to_string(start(bag)) +
                              " with " + std::to_string(indices) + " indices");
    }
    int64_t start(int64_t bag) const { return m_offsets[bag * m_stride]; }
    int64_t end(int64_t bag) const { return bag + 1 < m_bags ? start(bag + 1) : m_indices; }

  private:
    Indices m_offsets;
    int64_t m_stride, m_bags, m_indices;
};

}  // namespace cutaway::portable
