#pragma once
// Which of a text's differences are one rewrite.
#include <utility>
#include <vector>

#include "engine/plugins/text_difference.h"

namespace cutaway {

/// What depends on each other and is made at once.
struct RewriteGroup {
    std::vector<Node*> removed, made;
    std::vector<std::pair<Node*, Node*>> edited;
    std::vector<TextRewire> rewired;
    bool reorders = false;
};
/// In the order of the graph.
std::vector<RewriteGroup> groupsOf(const TextDifference& difference);

}  // namespace cutaway
