#pragma once
#include "engine/ir/node.h"

namespace cutaway {

/// The one node that reads this one; null if there are none or several.
inline Node* onlyUser(const Node& node) { return node.users().size() == 1 ? node.users()[0] : nullptr; }

}  // namespace cutaway
