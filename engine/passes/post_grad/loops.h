#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Running scans (`decompose_scan_to_while_loop`, PST-22) and maps (`decompose_map_to_while_loop`) become while_loops:
/// a counter on the CPU, results allocated beforehand, and a body that runs the graph on the item that the counter
/// names and copies its results into their places. The graph is not functional afterwards. Leaves alone: loops over a
/// symbolic number of items, or with operands that are plain numbers; the interpreter runs them as they are.
Result<bool> scanToWhileLoop(Module& module, Rewriter& rewriter);
Result<bool> mapToWhileLoop(Module& module, Rewriter& rewriter);

}  // namespace cutaway
