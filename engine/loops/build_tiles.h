#pragma once
// What a plan's tiles do: what lies in memory along the rows of the tile and is wanted along its columns is turned.
#include "engine/loops/loop_nest.h"

namespace cutaway {

/// One of the two loops of a tile: its block of `elements`, of which `block` is the number.
struct TileSide {
    TileSide(const Loop& loop, const Expr& block, int64_t elements);
    int axis;
    int64_t count;
    Expr first, last, extent;  // last: behind the last; extent: between the two
};
struct Tile {
    TileSide rows, columns;
    int lane;  // an axis that nothing else uses
};

/// The statements that store all of the kernel's stores for one tile; scratch memory is added to the nest.
Body bodyOfTile(const Kernel& kernel, const LoopPlan& plan, LoopNest& nest, const Tile& tile);

}  // namespace cutaway
