#include "engine/rewrite/matcher.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {

const Argument& Match::operator[](std::string_view name) const {
    const int slot = m_pattern->slotOf(name);
    CT_CHECK(slot >= 0 && m_bound[static_cast<size_t>(slot)] != nullptr, "a rule asks only for names that its 'find' binds");
    return *m_bound[static_cast<size_t>(slot)];
}
bool Match::isTensor(std::string_view name) const {
    const Node* found = (*this)[name].node();
    return found != nullptr && found->type().tensor() != nullptr;
}
Node& Match::node(std::string_view name) const {
    Node* found = (*this)[name].node();
    CT_CHECK(found != nullptr, "a rule asks for nodes only where it has made sure of one");
    return *found;
}
const TensorType& Match::tensor(std::string_view name) const { return node(name).tensor(); }
Node& Match::root() const { return *m_bound[static_cast<size_t>(m_pattern->results[0])]->node(); }
std::vector<Node*> Match::nodes() const {
    std::vector<Node*> found;
    for (const PatternCall& call : m_pattern->calls) {
        Node* node = m_bound[static_cast<size_t>(call.slot)]->node();
        if (std::find(found.begin(), found.end(), node) == found.end()) found.push_back(node);
    }
    return found;
}

MutationRegions::MutationRegions(const Graph& graph) {
    for (const Node& node : graph.nodes()) m_mutates |= node.isCall() && node.op().mutates();
    if (!m_mutates) return;
    m_region.assign(graph.idLimit(), 0);
    uint32_t region = 0;
    for (const Node& node : graph.nodes()) {
        if (node.isCall() && node.op().mutates()) ++region;
        m_region[index(node.id())] = region;
    }
}
uint32_t MutationRegions::regionOf(const Node& node) const {
    if (!m_mutates) return 0;
    for (const Node* at = &node; at != nullptr; at = at->previous())
        if (index(at->id()) < m_region.size()) return m_region[index(at->id())];
    return 0;
}

/// Depth-first search with every choice undone on the way back. A Frame is a list of arguments still to be matched; the
/// frames form the rest of the work, so a choice made deep inside is tried again when something later fails.
class Matcher {
  public:
    Matcher(const CompiledRule& rule, const MutationRegions& regions, Match& match, MatchTrace* trace)
        : m_rule(rule), m_pattern(rule.pattern), m_regions(regions), m_match(match), m_trace(trace) {}

    bool run(Node& root) {
        const int slot = m_pattern.results[0];
        return matchCall(slot, own(&root), nullptr);
    }

  private:
    struct Frame {
        const PatternArg* patterns;
        const Argument* values;
        size_t count;
        bool swapped;            // operands 0 and 1 in the other order
        const Frame* rest;
        size_t at = 0;
    };

    const Argument* own(Argument value) { return &m_match.m_own.emplace_front(std::move(value)); }
    const Argument*& bound(int slot) { return m_match.m_bound[static_cast<size_t>(slot)]; }
    const std::string& nameOf(int slot) const { return m_pattern.names[static_cast<size_t>(slot)]; }

    /// Notes why this way failed; `sentence` is built only when somebody asks.
    template <class Sentence>
    bool fail(const Node* about, Sentence&& sentence) {
        if (m_trace && m_progress > m_trace->progress) {
            m_trace->progress = m_progress;
            m_trace->reason = sentence();
            m_trace->node = about ? about->id() : NodeId::None;
        }
        return false;
    }

    bool proceed(const Frame* frame) {
        if (frame == nullptr) return matchNextResult();
        if (frame->at == frame->count) return proceed(frame->rest);
        Frame next = *frame;
        const size_t at = next.at++;
        const size_t value = frame->swapped && at < 2 ? 1 - at : at;
        return matchArg(frame->patterns[at], frame->values[value], &next);
    }

    bool matchArg(const PatternArg& pattern, const Argument& value, const Frame* rest) {
        ++m_progress;
        bool ok = false;
        switch (pattern.kind) {
            case PatternArg::Kind::Any: ok = proceed(rest); break;
            case PatternArg::Kind::Constant:
                ok = sameConstant(pattern.constant, value) ? proceed(rest) : fail(nullptr, [&] {
                    return "needs the constant " + constantText(pattern.constant) + ", but finds " + constantText(value);
                });
                break;
            case PatternArg::Kind::Attribute: ok = matchAttribute(pattern.slot, value, rest); break;
            case PatternArg::Kind::Value: ok = bindValue(pattern.slot, &value, rest); break;
            case PatternArg::Kind::Call: ok = matchCall(pattern.slot, &value, rest); break;
            case PatternArg::Kind::List: ok = matchList(pattern, value, rest); break;
        }
        --m_progress;
        return ok;
    }

    bool matchAttribute(int slot, const Argument& value, const Frame* rest) {
        const Node* inside = nullptr;
        value.forEachNode([&](const Node* node) { inside = node; });
        if (inside) return fail(inside, [&] { return "needs `$" + nameOf(slot) + "` to be a constant, but finds `" + inside->name() + "`"; });
        return bindValue(slot, &value, rest);
    }

    bool bindValue(int slot, const Argument* value, const Frame* rest) {
        const Argument*& place = bound(slot);
        if (place)
            return sameConstant(*place, *value) ? proceed(rest) : fail(value->node(), [&] {
                return "needs `" + nameOf(slot) + "` to be the same value everywhere, but finds " + constantText(*place) + " and " + constantText(*value);
            });
        place = value;
        if (proceed(rest)) return true;
        bound(slot) = nullptr;
        return false;
    }

    bool matchList(const PatternArg& pattern, const Argument& value, const Frame* rest) {
        const auto* items = value.list();
        const size_t fixed = pattern.items.size();
        if (items == nullptr || items->size() < fixed || (pattern.starAt < 0 && items->size() != fixed))
            return fail(value.node(), [&] {
                return "needs a list of " + std::to_string(fixed) + (pattern.starAt < 0 ? "" : " or more") + " items, but finds " + constantText(value);
            });
        if (pattern.starAt < 0) {
            const Frame frame{pattern.items.data(), items->data(), fixed, false, rest};
            return proceed(&frame);
        }
        const auto before = static_cast<size_t>(pattern.starAt), after = fixed - before, middle = items->size() - fixed;
        const Frame tail{pattern.items.data() + before, items->data() + before + middle, after, false, rest};
        const Frame head{pattern.items.data(), items->data(), before, false, &tail};
        if (pattern.starSlot < 0) return proceed(&head);
        const auto begin = items->begin() + static_cast<std::ptrdiff_t>(before);
        const Argument* others = own(std::vector<Argument>(begin, begin + static_cast<std::ptrdiff_t>(middle)));
        return bindValue(pattern.starSlot, others, &head);
    }

    bool matchCall(int slot, const Argument* value, const Frame* rest) {
        Node* node = value->node();
        if (const Argument* already = bound(slot))
            return already->node() == node && node ? proceed(rest) : fail(node, [&] {
                return "needs `" + nameOf(slot) + "` to be the same value everywhere, but finds " + constantText(*already) + " and " + constantText(*value);
            });
        const PatternCall& call = m_pattern.calls[static_cast<size_t>(m_pattern.callOfSlot[static_cast<size_t>(slot)])];
        const auto isForm = [&](const PatternCall::Form& form) { return node && node->isCall() && form.op == &node->op(); };
        const auto form = std::find_if(call.forms.begin(), call.forms.end(), isForm);
        if (form == call.forms.end())
            return fail(node, [&] {
                return "needs `" + nameOf(slot) + "` to be " + call.forms[0].op->name() + (call.forms.size() > 1 ? " or alike" : "") + ", but finds " +
                       constantText(*value) + (node && node->isCall() ? " (" + node->op().name() + ")" : "");
            });
        if (const Node* unknown = inputOfUnknownType(*node))
            return fail(unknown, [&] { return "the type of `" + unknown->name() + "` is not known"; });
        // Readers are counted before anything else is tried, and looked at one by one at the end.
        if (!call.shared && !call.result && node->users().size() > call.readers) return failReaders(slot, *node);
        bound(slot) = value;
        const size_t count = form->args.size();
        const Frame plain{form->args.data(), node->args().data(), count, false, rest};
        if (proceed(&plain)) return true;
        if (form->commutes && mayCommute(*node)) {
            const Frame swapped{form->args.data(), node->args().data(), count, true, rest};
            if (proceed(&swapped)) return true;
        }
        bound(slot) = nullptr;
        return false;
    }

    static const Node* inputOfUnknownType(const Node& node) {
        const Node* found = nullptr;
        for (const Argument& arg : node.args())
            arg.forEachNode([&](const Node* input) {
                if (input->type().isOpaque()) found = input;
            });
        return found;
    }
    static bool mayCommute(const Node& node) {
        const int alpha = node.op().schema()->find("alpha");
        return alpha < 0 || node.arg(static_cast<size_t>(alpha)).asReal() == 1.0;
    }

    bool failReaders(int slot, const Node& node) {
        return fail(&node, [&]() -> std::string {
            for (const Node* user : node.users())
                if (!isMatched(*user))
                    return "needs `" + nameOf(slot) + "` (`" + node.name() + "`) to be read only here, but `" + user->name() + "` reads it too";
            return "needs `" + nameOf(slot) + "` (`" + node.name() + "`) to be read only here";
        });
    }
    bool isMatched(const Node& node) {
        return std::any_of(m_pattern.calls.begin(), m_pattern.calls.end(), [&](const PatternCall& call) {
            const Argument* value = bound(call.slot);
            return value && value->node() == &node;
        });
    }

    /// Everything found so far fits: look for the next result, or finish.
    bool matchNextResult() {
        for (const int slot : m_pattern.results) {
            if (bound(slot)) continue;
            std::vector<Node*> candidates;
            collectCandidates(slot, candidates);
            for (Node* candidate : candidates)
                if (matchCall(slot, own(candidate), nullptr)) return true;
            return fail(nullptr, [&] { return "finds no `" + nameOf(slot) + "` beside `" + m_match.root().name() + "`"; });
        }
        return finish();
    }
    /// Readers of values that the result's pattern shares with what is bound, outward from the operands (O-1).
    void collectCandidates(int slot, std::vector<Node*>& out) {
        const PatternCall& call = m_pattern.calls[static_cast<size_t>(m_pattern.callOfSlot[static_cast<size_t>(slot)])];
        std::vector<Node*> anchors;
        for (const PatternArg& arg : call.forms[0].args) collectAnchors(arg, anchors);
        for (const Node* anchor : anchors)
            for (Node* user : anchor->users()) {
                const bool fits = std::any_of(call.forms.begin(), call.forms.end(), [&](const PatternCall::Form& form) {
                    return user->isCall() && &user->op() == form.op;
                });
                if (fits && std::find(out.begin(), out.end(), user) == out.end()) out.push_back(user);
            }
    }
    void collectAnchors(const PatternArg& arg, std::vector<Node*>& out) {
        for (const PatternArg& item : arg.items) collectAnchors(item, out);
        if (arg.slot < 0) return;
        if (const Argument* value = bound(arg.slot)) {
            if (Node* node = value->node()) out.push_back(node);
        } else if (arg.kind == PatternArg::Kind::Call) {
            collectCandidates(arg.slot, out);
        }
    }

    bool finish() {
        ++m_progress;
        const bool ok = readersAreInside() && liesInOneRegion() && conditionHolds();
        --m_progress;
        return ok;
    }
    bool readersAreInside() {
        for (const PatternCall& call : m_pattern.calls) {
            if (call.shared || call.result) continue;
            const Node& node = *bound(call.slot)->node();
            for (const Node* user : node.users())
                if (!isMatched(*user)) return failReaders(call.slot, node);
        }
        return true;
    }
    bool liesInOneRegion() {
        const Node& root = m_match.root();
        const uint32_t region = m_regions.regionOf(root);
        for (const PatternCall& call : m_pattern.calls) {
            const Node& node = *bound(call.slot)->node();
            if (m_regions.regionOf(node) != region)
                return fail(&node, [&] { return "`" + node.name() + "` and `" + root.name() + "` lie on two sides of a mutation"; });
        }
        return true;
    }
    bool conditionHolds() {
        if (m_rule.rule->unless == nullptr) return true;
        ++m_progress;
        const std::string_view refusal = m_rule.rule->unless(m_match);
        m_match.m_refused |= !refusal.empty();
        const bool ok = refusal.empty() || fail(&m_match.root(), [&] { return filledIn(refusal) + (m_match.note().empty() ? "" : ": " + m_match.note()); });
        --m_progress;
        return ok;
    }
    /// "{x}" becomes what x stands for.
    std::string filledIn(std::string_view sentence) {
        std::string out;
        while (!sentence.empty()) {
            const size_t open = sentence.find('{'), close = sentence.find('}', std::min(open, sentence.size()));
            if (open == std::string_view::npos || close == std::string_view::npos) return out + std::string(sentence);
            out += sentence.substr(0, open);
            const std::string_view name = sentence.substr(open + 1, close - open - 1);
            const int slot = m_pattern.slotOf(name);
            out += slot >= 0 && bound(slot) ? constantText(*bound(slot)) : std::string(name);
            sentence.remove_prefix(close + 1);
        }
        return out;
    }

    const CompiledRule& m_rule;
    const Pattern& m_pattern;
    const MutationRegions& m_regions;
    Match& m_match;
    MatchTrace* m_trace;
    int m_progress = 0;
};

bool matchRule(const CompiledRule& rule, Node& root, const MutationRegions& regions, Match& match, MatchTrace* trace) {
    return Matcher(rule, regions, match, trace).run(root);
}

Explanation explainRule(const Rule& rule, Node& node, const CompileOptions& options) {
    Explanation out;
    const auto set = RuleSet::compile({&rule, 1});
    if (!set) {
        out.reason = "the rule is broken: " + set.error().text();
        return out;
    }
    if (hasUnsupportedType(node)) {
        out.reason = "rules leave `" + node.name() + "` alone: its type is complex, meta or sparse";
        out.nodes = {node.id()};
        return out;
    }
    const CompiledRule& compiled = set->at(0);
    Match match(compiled, options);
    MatchTrace trace;
    out.matched = matchRule(compiled, node, MutationRegions(node.graph()), match, &trace);
    if (out.matched) {
        for (const Node* matched : match.nodes()) out.nodes.push_back(matched->id());
    } else {
        out.reason = std::move(trace.reason);
        if (trace.node != NodeId::None) out.nodes = {trace.node};
    }
    return out;
}

bool hasUnsupportedType(const Node& node) {
    const auto unsupported = [](const Node& one) {
        const TensorType* type = one.type().tensor();
        if (type == nullptr) return false;
        return isComplex(type->dtype) || type->device.type == DeviceType::Meta || type->layout != Layout::Strided;
    };
    if (node.isCall("aten.view_as_complex.default") || node.isCall("aten.lift_fresh_copy.default")) return false;
    if (unsupported(node)) return true;
    bool found = false;
    for (const Argument& arg : node.args()) arg.forEachNode([&](const Node* input) { found |= unsupported(*input); });
    return found;
}

}  // namespace cutaway
