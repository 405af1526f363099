#pragma once
// Indices that follow from the position of one loop alone: where a roll or a reflected border takes an element from is
// known before the kernel is compiled.
#include <optional>
#include <vector>

#include "engine/loops/kernel.h"

namespace cutaway {

/// base + slope * (position - from) / times, rounded down, from there on to the next piece. `times` is a power of two:
/// so many positions take one element, as in enlarged images.
struct IndexPiece {
    int64_t from = 0, base = 0, slope = 0, times = 1;
    Expr along(int axis) const;
};

/// The index at the positions from .. to - 1 of the axis in pieces; nothing if it reads something else, if it is out of
/// range somewhere, or for more than `most` pieces.
std::optional<std::vector<IndexPiece>> indexPieces(const Expr& index, int axis, int64_t from, int64_t to, size_t most);

/// The largest parts of the value that are indices of the axis alone and more than a multiple of it plus a number.
std::vector<Expr> indicesOf(const Expr& value, int axis);

}  // namespace cutaway
