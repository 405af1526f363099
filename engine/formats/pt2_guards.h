#pragma once
// Guards of a .pt2 program: what PyTorch asks of the inputs' sizes before it runs the program, as Python text.
#include "engine/formats/json.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Puts each guard as an assertion in front of the graph's calls, so that every run checks it. Left out are those that
/// the symbols' ranges (`module.symbols`) say already; one that cannot be read becomes a remark.
void readPt2Guards(const Json& root, Module& module);

}  // namespace cutaway
