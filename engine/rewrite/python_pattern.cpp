#include "engine/rewrite/python_pattern.h"

#include <algorithm>

#include "engine/ops/torch/torch_calls.h"

namespace cutaway {
namespace {

using Keywords = std::vector<std::pair<std::string, Argument>>;

const Argument* find(const Keywords& keywords, const std::string& name) {
    const auto found =
        std::find_if(keywords.begin(), keywords.end(), [&](const auto& each) { return each.first == name; });
    return found == keywords.end() ? nullptr : &found->second;
}
bool names(const PatternCall::Form& form, const std::string& keyword) {
    return std::any_of(form.keywords.begin(), form.keywords.end(),
                       [&](const auto& each) { return each.first == keyword; });
}

/// The keywords with every omitted parameter as one, in the order of the signature; nothing where none is known.
std::optional<Keywords> normalized(const Node& node) {
    const auto bound = bindTorchCall(node.op(), node.args(), node.kwargs());
    if (!bound) return std::nullopt;
    Keywords out;
    for (size_t i = node.args().size(); i < bound->signature->params.size(); ++i)
        out.emplace_back(bound->signature->params[i].name, bound->args[i]);
    return out;
}

std::string counted(size_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? " argument" : " arguments");
}

}  // namespace

WrittenCall pairWritten(const PatternCall::Form& form, const Node& node, bool parity) {
    WrittenCall out;
    const size_t positional = form.positional.size();
    if (form.rest ? node.args().size() < positional : node.args().size() != positional) {
        out.mismatch = "needs " + counted(positional, "positional") + (form.rest ? " or more" : "") + ", but `" +
                       node.name() + "` has " + std::to_string(node.args().size());
        return out;
    }
    Keywords keywords = node.kwargs();
    if (parity && keywords.size() < form.keywords.size()) {
        auto filled = normalized(node);
        if (!filled || filled->size() < form.keywords.size()) {
            out.mismatch = "needs " + counted(form.keywords.size(), "keyword") + ", but `" + node.name() + "` has " +
                           std::to_string(keywords.size());
            return out;
        }
        keywords = std::move(*filled);
    }
    if (parity || form.rest) std::erase_if(keywords, [&](const auto& each) { return !names(form, each.first); });
    out.patterns = form.positional;
    out.values.assign(node.args().begin(), node.args().begin() + static_cast<std::ptrdiff_t>(positional));
    for (size_t i = 0; i < form.keywords.size(); ++i) {
        const std::string& name = form.keywords[i].first;
        const Argument* value = find(keywords, name);
        if (value == nullptr)
            out.mismatch = "needs the keyword `" + name + "`, which `" + node.name() + "` does not have";
        else if (parity && keywords[i].first != name)
            out.mismatch =
                "needs the keyword `" + name + "` where `" + node.name() + "` has `" + keywords[i].first + "`";
        if (!out.mismatch.empty()) return out;
        out.patterns.push_back(form.keywords[i].second);
        out.values.push_back(*value);
    }
    if (keywords.size() > form.keywords.size()) {
        const auto other =
            std::find_if(keywords.begin(), keywords.end(), [&](const auto& each) { return !names(form, each.first); });
        out.mismatch = "does not name the keyword `" + other->first + "`, which `" + node.name() + "` has";
    }
    return out;
}

}  // namespace cutaway
