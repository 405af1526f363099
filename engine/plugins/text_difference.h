#pragma once
// A function's text beside the one it was made from: which nodes it keeps, and the others as a small module.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ir/module.h"
#include "engine/plugins/text_functions.h"

namespace cutaway {

/// Where one operand of a node comes from, in the newer graph: a node that is kept, or one of `TextDifference::made`.
struct TextValue {
    Node* kept = nullptr;  // of the older graph
    Node* made = nullptr;  // of the small module
    Node* any() const { return kept ? kept : made; }
    bool operator==(const TextValue&) const = default;
};

/// The operand number `leaf` of a kept node, counted over all its arguments, reads another value.
struct TextRewire {
    Node* user;
    size_t leaf;
    Node* before;
    TextValue after;
};

struct TextDifference {
    std::unique_ptr<Module> parsed;               // holds what is made; null where nothing differs
    std::vector<Node*> removed;                   // in the order of the older graph
    std::vector<Node*> made;                      // in the order of the newer text
    std::vector<std::pair<Node*, Node*>> edited;  // kept under name and operator, other literals or type: older, parsed
    std::vector<TextRewire> rewired;
    std::unordered_map<const Node*, Node*> next;        // of what is made, the kept node that it stands before
    std::vector<Node*> order;                           // the kept calls as they now stand, where that is another order
    std::unordered_map<const Node*, TextValue> values;  // of the parsed module's nodes

    bool empty() const { return removed.empty() && made.empty() && edited.empty() && rewired.empty() && order.empty(); }
    TextValue valueOf(Node* parsedNode) const { return values.at(parsedNode); }
};

/// `lines`: of `before`, the nodes printed there, by the line's text. `comments` and `others`: what the small module
/// needs beside the function. Errors: see rewriteByText.
Result<TextDifference> differenceOf(Graph& graph, const std::unordered_map<std::string_view, Node*>& lines,
                                    const TextFunction& before, const TextFunction& after, const FunctionTexts& all);

}  // namespace cutaway
