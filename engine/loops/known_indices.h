#pragma once
// Indices that follow from the position of one loop alone: where a roll or a reflected border takes an element from is
// known before the kernel is compiled.
#include <optional>
#include <vector>

#include "engine/loops/kernel.h"

namespace cutaway {

/// base + slope * (position - from), or of each `times` positions one step, from there on to the next piece.
struct StraightPiece {
    int64_t from = 0, base = 0, slope = 0, times = 1;
    Expr along(int axis) const;
};

/// The index at the positions from .. to - 1 of the axis as straight pieces; nothing if it reads something else, if it
/// is out of range somewhere, or for more than `most` pieces.
std::optional<std::vector<StraightPiece>> straightPieces(const Expr& index, int axis, int64_t from, int64_t to,
                                                         size_t most);

/// The index where each of them serves a power of two of positions, as in enlarged images; nothing if it does not.
std::optional<StraightPiece> stairs(const Expr& index, int axis, int64_t from, int64_t to);

/// The largest parts of the value that are indices of the axis alone and more than a multiple of it plus a number.
std::vector<Expr> indicesOf(const Expr& value, int axis);

}  // namespace cutaway
