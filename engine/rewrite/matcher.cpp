#include "engine/rewrite/matcher.h"

#include <algorithm>

#include "engine/ops/torch/torch_calls.h"
#include "engine/rewrite/matcher_words.h"
#include "engine/rewrite/python_pattern.h"

namespace cutaway {

/// Depth-first search with every choice undone on the way back. A Frame is a list of arguments still to be matched; the
/// frames form the rest of the work, so a choice made deep inside is tried again when something later fails.
class Matcher {
  public:
    Matcher(const CompiledRule& rule, const MutationRegions& regions, Match& match, MatchTrace* trace)
        : m_rule(rule), m_pattern(rule.pattern), m_regions(regions), m_match(match), m_trace(trace) {}

    bool run(Node& root) {
        m_match.m_root = &root;
        return matchCall(m_pattern.results[0], own(&root), nullptr);
    }

  private:
    struct Frame {
        const PatternArg* patterns;
        const Argument* values;
        size_t count;
        bool swapped;  // operands 0 and 1 in the other order
        const Frame* rest;
        size_t at = 0;
        int each = -1;             // slot of the `each` call that matches the values one after the other; -1: none
        size_t matched = 0;        // how many of them it has matched
        const Node* of = nullptr;  // the node whose arguments the values are, for reasons; then its schema's parameters
        const Schema* parameters = nullptr;
        bool items = false;  // the values are items of a list argument
    };

    const Argument* own(Argument value) { return &m_match.m_own.emplace_front(std::move(value)); }
    const Argument*& bound(int slot) { return m_match.m_bound[static_cast<size_t>(slot)]; }
    /// A name of the rule, quoted differently from nodes of the graph; nested calls have none.
    std::string nameOf(int slot) const {
        const std::string& name = m_pattern.names[static_cast<size_t>(slot)];
        return name[0] == '%' ? "an operand" : "'" + name + "'";
    }

    /// How a reason begins that is about a sibling. Once all siblings have matched (m_sibling <= m_furthest) it is that
    /// of a later check.
    std::string ofSibling() const {
        if (!m_siblings || m_sibling <= m_furthest) return {};
        return "`" + (*m_siblings)[m_sibling - 1]->name() + "`, which reads what `" + m_match.root().name() +
               "` reads, does not match: ";
    }
    /// Notes why this attempt failed; `sentence` is composed only when explaining.
    template <class Sentence>
    bool fail(const Node* about, Sentence&& sentence, bool sayBothOrders = false) {
        if (m_trace && m_progress > m_trace->progress) {
            m_trace->progress = m_progress;
            m_trace->reason = ofSibling() + sentence();
            m_trace->node = about ? about->id() : NodeId::None;
            m_bothOrders = m_otherOrder || !sayBothOrders;
        } else if (m_trace && m_progress == m_trace->progress && m_otherOrder && sayBothOrders && !m_bothOrders) {
            if (const std::string again = sentence(); ofSibling() + again != m_trace->reason)
                m_trace->reason += "; with the operands exchanged, it " + again;
            m_bothOrders = true;
        }
        return false;
    }

    bool proceed(const Frame* frame) {
        if (frame == nullptr) return m_probing || matchNextResult();
        if (frame->each >= 0) return proceedItems(*frame);
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
                ok = sameConstant(pattern.constant, value) ? proceed(rest) : fail(rest ? rest->of : nullptr, [&] {
                    const std::string what = parameterText(rest);
                    return "needs " + (what.empty() ? "the constant " : what + " to be ") +
                           constantText(pattern.constant) + (what.empty() ? ", but finds " : ", but it is ") +
                           constantText(value);
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

    /// "'dim' of `amax`" for the argument before the place where the frame goes on; empty if it has no name.
    static std::string parameterText(const Frame* frame) {
        const bool item = frame && frame->items;
        while (frame && frame->items) frame = frame->rest;
        if (frame == nullptr || frame->parameters == nullptr || frame->at == 0) return {};
        const size_t at = frame->at - 1, value = frame->swapped && at < 2 ? 1 - at : at;
        return (item ? "an item of '" : "'") + frame->parameters->params[value].name + "' of `" + frame->of->name() +
               "`";
    }
    static std::string foundText(const Frame* frame) {
        const std::string what = parameterText(frame);
        return what.empty() ? ", but finds " : ", but " + what + " is ";
    }

    bool matchAttribute(int slot, const Argument& value, const Frame* rest) {
        const Node* inside = nullptr;
        value.forEachNode([&](const Node* node) { inside = node; });
        if (inside)
            return fail(inside, [&] {
                return "needs " + nameOf(slot) + " to be a constant, but finds `" + inside->name() + "`";
            });
        return bindValue(slot, &value, rest);
    }

    bool bindValue(int slot, const Argument* value, const Frame* rest) {
        const Argument*& place = bound(slot);
        if (place)
            return sameConstant(*place, *value) ? proceed(rest) : fail(value->node(), [&] {
                return "needs " + nameOf(slot) + " to be the same value everywhere, but finds " + constantText(*place) +
                       " and " + constantText(*value);
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
                const std::string what = parameterText(rest);
                return "needs " + (what.empty() ? "" : what + " to be ") + "a list of " + std::to_string(fixed) +
                       (pattern.starAt < 0 ? "" : " or more") +
                       (fixed == 1 && pattern.starAt < 0 ? " item" : " items") +
                       (what.empty() ? ", but finds " : ", but it is ") + constantText(value);
            });
        if (pattern.starAt < 0) {
            Frame frame{pattern.items.data(), items->data(), fixed, false, rest};
            frame.items = true;
            return proceed(&frame);
        }
        const auto before = static_cast<size_t>(pattern.starAt), after = fixed - before, middle = items->size() - fixed;
        Frame tail{pattern.items.data() + before, items->data() + before + middle, after, false, rest};
        Frame head{pattern.items.data(), items->data(), before, false, &tail};
        tail.items = head.items = true;
        if (pattern.starSlot < 0) return proceed(&head);
        if (m_pattern.isCall(pattern.starSlot)) {
            if (middle == 0)
                return fail(value.node(), [&] {
                    return "needs one item or more for " + nameOf(pattern.starSlot) + ", but finds " +
                           constantText(value);
                });
            Frame each{nullptr, items->data() + before, middle, false, &head, 0, pattern.starSlot};
            each.items = true;
            return proceed(&each);
        }
        const auto begin = items->begin() + static_cast<std::ptrdiff_t>(before);
        const Argument* others = own(std::vector<Argument>(begin, begin + static_cast<std::ptrdiff_t>(middle)));
        return bindValue(pattern.starSlot, others, &head);
    }

    /// The items that one call of the pattern stands for: the bindings of each item are put aside before the next.
    bool proceedItems(const Frame& frame) {
        const size_t found = m_match.m_items.size();
        const std::vector<const Argument*> saved = m_match.m_bound;
        if (frame.matched > 0) putAside(frame.each);
        const bool ok = frame.at == frame.count ? finishItems(frame) : matchItem(frame);
        if (!ok) {
            m_match.m_items.resize(found);
            m_match.m_bound = saved;
        }
        return ok;
    }
    bool matchItem(const Frame& frame) {
        Frame next = frame;
        const Argument& item = frame.values[next.at++];
        const bool some = m_pattern.callAt(frame.each).each == PatternCall::Each::Some;
        if (some && !matchesAlone(frame.each, item)) return proceedItems(next);
        ++next.matched;
        ++m_progress;
        const bool ok = matchCall(frame.each, &item, &next);
        --m_progress;
        return ok;
    }
    /// Moves what this slot's call, and the calls that only it reads, have matched for one item or sibling to m_items.
    void putAside(int slot) {
        for (const PatternCall& call : m_pattern.calls) {
            const bool others = call.each != PatternCall::Each::No && call.slot != slot;
            if (!call.perItem || others || bound(call.slot) == nullptr) continue;
            m_match.m_items.emplace_back(call.slot, bound(call.slot)->node());
            bound(call.slot) = nullptr;
        }
    }
    bool finishItems(const Frame& frame) {
        if (frame.matched == 0)
            return fail(nullptr, [&] { return "finds no item that " + nameOf(frame.each) + " stands for"; });
        bound(frame.each) = own(Argument(foundAs(frame.each)));
        return proceed(frame.rest);
    }
    std::vector<Argument> foundAs(int wanted) const {
        std::vector<Argument> items;
        for (const auto& [slot, node] : m_match.m_items)
            if (slot == wanted) items.emplace_back(node);
        return items;
    }
    /// Whether the item fits, whatever comes after it; binds nothing.
    bool matchesAlone(int slot, const Argument& item) {
        const std::vector<const Argument*> saved = m_match.m_bound;
        m_probing = true;
        const bool ok = matchCall(slot, &item, nullptr);
        m_probing = false;
        m_match.m_bound = saved;
        return ok;
    }
    bool matchCall(int slot, const Argument* value, const Frame* rest) {
        Node* node = value->node();
        if (++m_tries > kMostTries)
            return fail(node, [&] {
                return "was given up after " + std::to_string(kMostTries) +
                       " tries: too many orders of operands are possible";
            });
        if (const Argument* already = bound(slot))
            return already->node() == node && node ? proceed(rest) : fail(node, [&] {
                return "needs " + nameOf(slot) + " to be the same value everywhere, but finds " +
                       constantText(*already) + " and " + constantText(*value);
            });
        const PatternCall& call = m_pattern.callAt(slot);
        const auto isForm = [&](const PatternCall::Form& form) {
            return node && node->isCall() && form.op == &node->op();
        };
        const auto form = std::find_if(call.forms.begin(), call.forms.end(), isForm);
        if (form == call.forms.end())
            return fail(
                node,
                [&] {
                    return "needs " + nameOf(slot) + " to be " + namesOf(call) + foundText(rest) + describe(*value);
                },
                true);
        if (const Node* unknown = inputOfUnknownType(*node))
            return fail(unknown, [&] { return "the type of `" + unknown->name() + "` is not known"; });
        if (!mayHaveReaders(call, *node)) return failReaders(slot, *node);
        bound(slot) = value;
        if (node->op().isOpaque() ? matchPythonCall(call, *node, rest)
                                  : matchArguments(*form, node->args().data(), *node, node->op().schema(), rest))
            return true;
        bound(slot) = nullptr;
        return false;
    }
    /// `values` in both orders where the call commutes.
    bool matchArguments(const PatternCall::Form& form, const Argument* values, const Node& node,
                        const Schema* parameters, const Frame* rest) {
        Frame frame{form.args.data(), values, form.args.size(), false, rest};
        frame.of = &node;
        frame.parameters = parameters;
        if (proceed(&frame)) return true;
        // Equal operands are the same in both orders: trying them again would double the work at each call of a chain.
        if (!form.commutes || !mayCommute(node) || sameConstant(values[0], values[1])) return false;
        frame.swapped = true;
        const bool before = std::exchange(m_otherOrder, true);
        const bool ok = proceed(&frame);
        m_otherOrder = before;
        return ok;
    }
    /// By parameter, where the function's are known; with parity, and where they are not, as the call is written.
    bool matchPythonCall(const PatternCall& call, const Node& node, const Frame* rest) {
        const auto form = std::find_if(call.forms.begin(), call.forms.end(),
                                       [&](const PatternCall::Form& one) { return one.op == &node.op(); });
        if (m_match.parity() || form->signature == nullptr) {
            WrittenCall written = pairWritten(*form, node, m_match.parity());
            if (!written.mismatch.empty()) return fail(&node, [&] { return std::move(written.mismatch); });
            const Frame frame{written.patterns.data(), own(Argument(std::move(written.values)))->list()->data(),
                              written.patterns.size(), false, rest};
            return proceed(&frame);
        }
        auto arguments = bindTorchCall(node.op(), node.args(), node.kwargs());
        if (!arguments)
            return fail(&node,
                        [&] { return "the arguments of `" + node.name() + "` are not those of " + node.op().name(); });
        const Argument* values = own(Argument(std::move(arguments->args)));
        for (const PatternCall::Form& one : call.forms)
            if (one.op == &node.op() && one.signature == arguments->signature)
                return matchArguments(one, values->list()->data(), node, arguments->signature, rest);
        return fail(&node, [&] { return "`" + node.name() + "` calls another overload of " + node.op().name(); });
    }

    /// Readers are counted before anything else is tried, and looked at one by one at the end.
    bool mayHaveReaders(const PatternCall& call, const Node& node) const {
        const size_t count = node.users().size();
        if (call.exactReaders) return count == static_cast<size_t>(call.exactReaders);
        if (call.shared || call.result || call.readByEach) return true;
        return m_match.parity() && !call.perItem ? count == call.readers : count <= call.readers;
    }
    bool mayCommute(const Node& node) const {
        if (m_match.parity() && !m_rule.rule->eitherOrder) return false;
        const Schema* schema = node.op().schema();
        if (schema == nullptr || node.op().is(Tag::Symbolic))
            return std::none_of(node.args().begin(), node.args().end(), [](const Argument& arg) {
                return arg.list() || (arg.node() && arg.node()->type().tuple());
            });
        const int alpha = schema->find("alpha");
        return alpha < 0 || node.arg(static_cast<size_t>(alpha)).asReal() == 1.0;
    }

    bool failReaders(int slot, const Node& node) {
        return fail(&node, [&]() -> std::string {
            const std::string value = "needs " + nameOf(slot) + " (`" + node.name() + "`) ";
            const std::string count = std::to_string(node.users().size());
            if (const int exactly = m_pattern.callAt(slot).exactReaders)
                return value + "to have " + std::to_string(exactly) + " readers, but it has " + count;
            for (const Node* user : node.users())
                if (!isMatched(*user))
                    return value + "to be read only here, but " +
                           (user->isOutput() ? "it is an output, too" : "`" + user->name() + "` reads it too");
            return value + "to have " + std::to_string(m_pattern.callAt(slot).readers) + " readers, but it has " +
                   count;
        });
    }
    bool isMatched(const Node& node) {
        const auto& items = m_match.m_items;
        if (std::any_of(items.begin(), items.end(), [&](const auto& item) { return item.second == &node; }))
            return true;
        return std::any_of(m_pattern.calls.begin(), m_pattern.calls.end(), [&](const PatternCall& call) {
            const Argument* value = bound(call.slot);
            return value && value->node() == &node;
        });
    }
    /// What the call has found: one node, or of one that stands for items, one for each.
    std::vector<Node*> foundBy(const PatternCall& call) {
        if (!call.perItem) return {bound(call.slot)->node()};
        std::vector<Node*> nodes;
        for (const auto& [slot, node] : m_match.m_items)
            if (slot == call.slot) nodes.push_back(node);
        return nodes;
    }

    /// Everything found so far fits: look for the next result, or finish.
    bool matchNextResult() {
        for (const int slot : m_pattern.results) {
            if (bound(slot)) continue;
            std::vector<Node*> candidates;
            collectCandidates(slot, candidates);
            for (Node* candidate : candidates)
                if (matchCall(slot, own(candidate), nullptr)) return true;
            return fail(nullptr,
                        [&] { return "finds no " + nameOf(slot) + " beside `" + m_match.root().name() + "`"; });
        }
        return m_pattern.repeats() ? matchSiblings() : finish();
    }
    /// The root or a sibling matches: go on to the next sibling (O-4). Names mean one value for all of them; if one
    /// sibling does not match, none does.
    bool matchSiblings() {
        const int slot = m_pattern.results[0];
        const bool first = !m_siblings;
        if (first) {
            collectCandidates(slot, m_siblings.emplace());
            std::erase(*m_siblings, &m_match.root());
        }
        const size_t found = m_match.m_items.size();
        const std::vector<const Argument*> saved = m_match.m_bound;
        putAside(slot);
        const bool ok = m_sibling == m_siblings->size() ? finishSiblings(slot) : matchSibling(slot);
        if (!ok) {
            m_match.m_items.resize(found);
            m_match.m_bound = saved;
        }
        if (first) m_siblings.reset();
        return ok;
    }
    bool matchSibling(int slot) {
        Node* node = (*m_siblings)[m_sibling++];
        ++m_progress;
        const bool ok = matchCall(slot, own(node), nullptr);
        --m_progress;
        --m_sibling;
        return ok;
    }
    bool finishSiblings(int slot) {
        m_furthest = m_sibling;
        std::vector<Argument> all = foundAs(slot);
        const Graph& graph = m_match.root().graph();
        std::sort(all.begin(), all.end(),
                  [&](const Argument& a, const Argument& b) { return graph.isBefore(*a.node(), *b.node()); });
        bound(slot) = own(Argument(std::move(all)));
        return finish();
    }
    /// Candidates for this result: readers of bound values that its pattern reads too, from the operands outward (O-1).
    void collectCandidates(int slot, std::vector<Node*>& out) {
        const PatternCall& call = m_pattern.callAt(slot);
        std::vector<Node*> anchors;
        for (const PatternArg& arg : call.forms[0].args) collectAnchors(arg, anchors);
        for (const PatternArg& arg : call.forms[0].positional) collectAnchors(arg, anchors);
        for (const auto& [key, arg] : call.forms[0].keywords) collectAnchors(arg, anchors);
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
        const bool ok = valuesDiffer() && readersAreInside() && liesInOneRegion() && conditionHolds();
        --m_progress;
        return ok;
    }
    bool valuesDiffer() {
        for (const std::vector<int>& slots : m_pattern.different)
            for (size_t i = 0; i < slots.size(); ++i)
                for (size_t k = i + 1; k < slots.size(); ++k)
                    if (sameConstant(*bound(slots[i]), *bound(slots[k])))
                        return fail(bound(slots[i])->node(), [&] {
                            return "needs " + nameOf(slots[i]) + " and " + nameOf(slots[k]) +
                                   " to differ, but both are " + constantText(*bound(slots[i]));
                        });
        return true;
    }
    bool readersAreInside() {
        for (const PatternCall& call : m_pattern.calls) {
            if (call.shared || call.result || call.exactReaders) continue;
            for (const Node* node : foundBy(call))
                for (const Node* user : node->users())
                    if (!isMatched(*user)) return failReaders(call.slot, *node);
        }
        return true;
    }
    bool liesInOneRegion() {
        const Node& root = m_match.root();
        const uint32_t region = m_regions.regionOf(root);
        for (const PatternCall& call : m_pattern.calls)
            for (const Node* node : foundBy(call))
                if (m_regions.regionOf(*node) != region)
                    return fail(node, [&] {
                        return "`" + node->name() + "` and `" + root.name() + "` lie on two sides of a mutation";
                    });
        return true;
    }
    bool conditionHolds() {
        if (m_rule.rule->unless == nullptr) return true;
        ++m_progress;
        m_match.note({});  // of an attempt before
        const std::string_view refusal = m_rule.rule->unless(m_match);
        m_match.m_refused |= !refusal.empty();
        const bool ok = refusal.empty() || fail(&m_match.root(), [&] {
                            return filledIn(refusal, m_pattern, m_match.m_bound) +
                                   (m_match.note().empty() ? "" : ": " + m_match.note());
                        });
        --m_progress;
        return ok;
    }
    const CompiledRule& m_rule;
    const Pattern& m_pattern;
    const MutationRegions& m_regions;
    Match& m_match;
    MatchTrace* m_trace;
    /// Most attempts at one root. The pipeline's rules take a few hundred at most; a rule with many commutative calls
    /// of one op could take practically forever.
    static constexpr int kMostTries = 1 << 18;
    int m_progress = 0, m_tries = 0;
    bool m_probing = false;
    std::optional<std::vector<Node*>> m_siblings;  // of the root, while they are matched
    size_t m_sibling = 0, m_furthest = 0;  // siblings begun; most siblings that were begun when all of them matched
    bool m_otherOrder = false,
         m_bothOrders = false;  // operands of a call are exchanged just now; the trace has reasons of both orders
};

bool matchRule(const CompiledRule& rule, Node& root, const MutationRegions& regions, Match& match, MatchTrace* trace) {
    return Matcher(rule, regions, match, trace).run(root);
}

}  // namespace cutaway
