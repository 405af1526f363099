#include "engine/rewrite/matcher_words.h"

#include <algorithm>

#include "engine/ir/node.h"
#include "engine/ir/op.h"

namespace cutaway {

std::string namesOf(const PatternCall& call) {
    std::string out;
    size_t others = 0;
    const Op* last = nullptr;
    for (const PatternCall::Form& form : call.forms) {
        if (form.op == last) continue;
        last = form.op;
        if (others++ < 3)
            out += (out.empty() ? "" : " or ") +
                   std::string(form.op->style() == Op::Style::Method ? "the method " : "") + form.op->name();
    }
    return others > 3 ? out + " or alike" : out;
}

std::string describe(const Argument& value) {
    const Node* node = value.node();
    if (node == nullptr) return constantText(value);
    std::string out = constantText(value);
    if (node->isCall())
        out += node->op().style() == Op::Style::Method ? " (the method " + node->op().name() + ")"
                                                       : " (" + node->op().name() + ")";
    else if (node->isPlaceholder()) out += " (an input)";
    return out;
}

const Node* inputOfUnknownType(const Node& node) {
    const Node* found = nullptr;
    for (const Argument& arg : node.args())
        arg.forEachNode([&](const Node* input) {
            if (input->type().isOpaque()) found = input;
        });
    return found;
}

std::string filledIn(std::string_view sentence, const Pattern& pattern, std::span<const Argument* const> bound) {
    const auto found = [&](int slot) { return slot >= 0 ? bound[static_cast<size_t>(slot)] : nullptr; };
    std::string out;
    while (!sentence.empty()) {
        const size_t open = sentence.find('{'), close = sentence.find('}', std::min(open, sentence.size()));
        if (open == std::string_view::npos || close == std::string_view::npos) return out + std::string(sentence);
        out += sentence.substr(0, open);
        std::string_view name = sentence.substr(open + 1, close - open - 1);
        const bool type = name.ends_with(":type");
        if (type) name.remove_suffix(std::string_view(":type").size());
        const int slot = pattern.slotOf(name);
        const Node* node = found(slot) ? found(slot)->node() : nullptr;
        if (type && node) out += node->type().text().empty() ? "no tensor" : node->type().text();
        else out += found(slot) ? constantText(*found(slot)) : std::string(name);
        sentence.remove_prefix(close + 1);
    }
    return out;
}

}  // namespace cutaway
