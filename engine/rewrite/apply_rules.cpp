// Rewriter::applyRules: the sweep over a graph, and replacing what was found.
#include <algorithm>
#include <chrono>
#include <map>

#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rewriter.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

/// Builds the replacement text over what the match bound.
class TemplateBuilder {
  public:
    TemplateBuilder(const PatternText& text, const Match& match, GraphBuilder& builder)
        : m_text(text), m_match(match), m_builder(builder) {}

    std::vector<Argument> run() {
        for (const PatternStatement& statement : m_text.statements) {
            std::vector<Argument> positional;
            for (const PatternItem& item : statement.positional) positional.push_back(argument(item));
            NamedArguments keywords;
            for (const auto& [key, item] : statement.keywords) keywords.emplace_back(key, argument(item));
            const Op& op =
                findOrMakeOpaque(statement.ops[0], statement.method ? Op::Style::Method : Op::Style::Function);
            m_made[statement.name] = m_builder.call(op, std::move(positional), std::move(keywords));
        }
        std::vector<Argument> results;
        for (const PatternItem& item : m_text.results) results.push_back(argument(item));
        return results;
    }

  private:
    Argument argument(const PatternItem& item) const {
        if (item.kind == PatternItem::Kind::Constant) return item.constant;
        if (item.kind == PatternItem::Kind::List) {
            std::vector<Argument> items;
            for (const PatternItem& one : item.items) {
                if (one.kind != PatternItem::Kind::Star) {
                    items.push_back(argument(one));
                    continue;
                }
                const auto* others = m_match[one.name].list();
                if (others) items.insert(items.end(), others->begin(), others->end());
                else
                    m_builder.fail(invalidInput("'*" + one.name + "' stands for " + constantText(m_match[one.name]) +
                                                ", which is not a list"));
            }
            return Argument(ArgumentList{std::move(items), item.tuple});
        }
        const auto made = m_made.find(item.name);
        return made != m_made.end() ? Argument(made->second) : m_match[item.name];
    }

    const PatternText& m_text;
    const Match& m_match;
    GraphBuilder& m_builder;
    std::map<std::string_view, Value> m_made;
};

/// What takes the place of each result: one node, or for a tuple the nodes of its items.
struct Exchange {
    Node* old = nullptr;
    std::vector<Node*> made;
    bool tuple = false;
};

class RuleApplication {
  public:
    RuleApplication(Graph& graph, Rewriter& rewriter, const CompiledRule& rule, const Match& match)
        : m_graph(graph), m_rewriter(rewriter), m_rule(rule), m_match(match), m_matched(match.nodes()) {
        for (Node* result : match.results()) m_exchanges.push_back({result, {}, false});
    }

    /// False: the rule's function declined, or the result would share memory that it must not; the graph is untouched.
    Result<bool> run() {
        Node* position = m_exchanges[0].old;
        for (const Exchange& one : m_exchanges)
            if (m_graph.isBefore(*one.old, *position)) position = one.old;
        GraphBuilder builder = m_rewriter.builder(m_graph, position, m_match.root());
        Provenance provenance = builder.provenance();
        provenance.origin.clear();
        for (const Node* node : m_matched)
            for (const NodeId origin : m_rewriter.originsOf(*node)) provenance.origin.push_back(origin);
        provenance.createdBy = std::string(m_rule.rule->name);
        builder.setProvenance(std::move(provenance));
        const bool handled = build(builder);
        if (builder.error()) return broken("its replacement does not fit: " + builder.error()->text());
        if (!handled) {
            CT_CHECK(builder.created().empty(), "a rule declines before it builds anything");
            m_refusal = "the rule matches, but finds nothing to build";
            return false;
        }
        m_created = builder.created();
        if (const auto [shared, source] = sharedByExchange(); shared) {
            const Node& root = storageRoot(*source);
            const bool input = root.isPlaceholder() || root.kind() == NodeKind::GetAttr;
            m_refusal = "`" + shared->name() + "` reaches the output, and would come to share memory with `" +
                        root.name() + "`, " + (input ? "an input" : "which does, too");
            eraseUnused(m_created);
            return false;
        }
        if (!keepsWhatIsRead()) {
            m_refusal = "its storage is read by position, and the replacement has another layout";
            eraseUnused(m_created);
            return false;
        }
        m_rewriter.record(m_rule.rule->name, m_match.root().graph(), m_match.root().name(), m_match.root().id(),
                          m_match.note().empty() ? std::string(m_rule.rule->why)
                                                 : std::string(m_rule.rule->why) + ": " + m_match.note());
        CT_TRY_VOID(exchange());
        return true;
    }

    /// Why run() did nothing.
    const std::string& refusal() const { return m_refusal; }

  private:
    Error broken(std::string what) const {
        return Error{ErrorCode::Internal,
                     "rule " + std::string(m_rule.rule->name) + ": " + std::move(what),
                     m_match.root().name(),
                     {}};
    }

    bool build(GraphBuilder& builder) {
        if (m_rule.rule->build == nullptr) {
            const std::vector<Argument> results = TemplateBuilder(m_rule.replacement, m_match, builder).run();
            for (size_t i = 0; i < results.size(); ++i) {
                if (const auto* items = results[i].list()) {
                    m_exchanges[i].tuple = true;
                    for (const Argument& item : *items) m_exchanges[i].made.push_back(item.node());
                } else {
                    m_exchanges[i].made = {results[i].node()};
                }
            }
            if (m_rule.pattern.repeats()) repeatFirst();
            return true;
        }
        const Values values = m_rule.rule->build(m_match, builder);
        if (!values.handled()) return false;
        std::vector<Node*> made;
        for (const Value& value : values.values()) made.push_back(value.node());
        if (m_rule.pattern.repeats() && !values.isTuple()) {
            m_exchanges[0].made = std::move(made);
            repeatFirst();
        } else if (m_exchanges.size() == 1 && !m_rule.pattern.repeats()) {
            m_exchanges[0].made = std::move(made);
            m_exchanges[0].tuple = values.isTuple();
        } else if (made.size() != m_exchanges.size()) {
            builder.fail(invalidInput("it builds " + std::to_string(made.size()) + " results for " +
                                      std::to_string(m_exchanges.size())));
        } else {
            for (size_t i = 0; i < made.size(); ++i) m_exchanges[i].made = {made[i]};
        }
        return true;
    }

    /// One value for all siblings; a function may also build a list with one for each.
    void repeatFirst() {
        for (Exchange& one : m_exchanges) {
            one.made = m_exchanges[0].made;
            one.tuple = m_exchanges[0].tuple;
        }
    }

    bool isNew(const Node& node) const {
        return std::find(m_created.begin(), m_created.end(), &node) != m_created.end();
    }

    /// Replacing a result by an existing value must not make an output share memory with an input or another output
    /// (spec: passes G-2). Returns the first result for which it would, and that value. PyTorch does not check
    /// (parity).
    std::pair<const Node*, const Node*> sharedByExchange() const {
        if (m_rewriter.request().parity) return {};
        for (const Exchange& one : m_exchanges)
            for (size_t item = 0; item < one.made.size(); ++item) {
                const Node* made = one.made[item];
                if (made == nullptr || isNew(*made)) continue;
                const Node* shared = one.tuple                     ? sharingReader(one, item, *made)
                                     : mayReplace(*one.old, *made) ? nullptr
                                                                   : one.old;
                if (shared) return {shared, made};
            }
        return {};
    }
    static const Node* sharingReader(const Exchange& one, size_t item, const Node& made) {
        for (const Node* reader : one.old->users())
            if (reader->isCall("operator.getitem") && reader->arg(1).asInt() == static_cast<int64_t>(item) &&
                !mayReplace(*reader, made))
                return reader;
        return nullptr;
    }

    /// A value that as_strided reads may be replaced only by one with the same elements at the same positions of its
    /// storage.
    bool keepsWhatIsRead() const {
        if (m_rewriter.request().parity) return true;
        for (const Exchange& one : m_exchanges) {
            if (!one.tuple && !mayBeRead(*one.old, one.made[0])) return false;
            for (const Node* reader : one.tuple ? one.old->users() : std::vector<Node*>()) {
                const auto item = reader->isCall("operator.getitem") ? reader->arg(1).asInt() : std::nullopt;
                if (item && *item >= 0 && static_cast<size_t>(*item) < one.made.size() &&
                    !mayBeRead(*reader, one.made[static_cast<size_t>(*item)]))
                    return false;
            }
        }
        return true;
    }
    static bool mayBeRead(const Node& old, const Node* made) {
        const TensorType *before = old.type().tensor(), *now = made ? made->type().tensor() : nullptr;
        if (before == nullptr || now == nullptr) return true;
        const Node& root = storageRoot(old);
        if (&root == &old && sameMemory(old.type(), made->type())) return true;
        return (&root == &storageRoot(*made) && before->offset == now->offset) || !storageIsRead(old);
    }

    Result<void> exchange() {
        std::vector<Node*> retyped;
        for (Exchange& one : m_exchanges) {
            if (one.tuple) {
                CT_TRY_VOID(replaceItems(one));
                continue;
            }
            Node* made = one.made[0];
            if (made == nullptr) return broken("a result is replaced by a constant");
            CT_TRY_VOID(checkType(one.old->type(), *made));
            if (!sameMemory(one.old->type(), made->type())) retyped.push_back(made);
            m_graph.replaceUses(*one.old, *made, [&](const Node& user) { return isNew(user); });
        }
        eraseUnused(m_matched);
        if (needsSort()) sortTopologically(m_graph);
        for (Node* node : retyped) CT_TRY_VOID(retypeReaders(m_graph, *node, !m_rewriter.request().parity));
        return {};
    }
    /// Erases the getitem readers of a tuple; the tuple itself is erased with the matched nodes.
    Result<void> replaceItems(Exchange& one) {
        const std::vector<Node*> readers = one.old->users();
        for (Node* reader : readers) {
            const auto item = reader->isCall("operator.getitem") ? reader->arg(1).asInt() : std::nullopt;
            if (!item || *item < 0 || static_cast<size_t>(*item) >= one.made.size() ||
                one.made[static_cast<size_t>(*item)] == nullptr)
                return broken("`" + reader->name() + "` reads a result that was not made");
            Node& made = *one.made[static_cast<size_t>(*item)];
            CT_TRY_VOID(checkType(reader->type(), made));
            const bool differs = !sameMemory(reader->type(), made.type());
            m_graph.replaceUses(*reader, made);
            m_matched.erase(std::remove(m_matched.begin(), m_matched.end(), reader), m_matched.end());
            m_graph.erase(*reader);
            if (differs) CT_TRY_VOID(retypeReaders(m_graph, made, !m_rewriter.request().parity));
        }
        return {};
    }
    Result<void> checkType(const ValueType& before, const Node& made) const {
        const TensorType *old = before.tensor(), *now = made.type().tensor();
        if (m_rule.rule->changesType || old == nullptr || now == nullptr) return {};
        if (old->dtype == now->dtype && old->sizes == now->sizes && old->device == now->device) return {};
        return broken("it makes " + now->fullText() + " where " + old->fullText() + " stood");
    }
    void eraseUnused(const std::vector<Node*>& nodes) {
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
            if (!(*node)->hasUsers() && isPure(**node)) m_graph.erase(**node);
    }
    /// New nodes stand before the first result, their operands may stand behind it.
    bool needsSort() const {
        if (m_exchanges.size() < 2) return false;
        for (const Node* node : m_created)
            for (const Node* input : node->inputs())
                if (!m_graph.isBefore(*input, *node)) return true;
        return false;
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    const CompiledRule& m_rule;
    const Match& m_match;
    std::vector<Node*> m_matched, m_created;
    std::vector<Exchange> m_exchanges;
    std::string m_refusal;
};

/// Whether the operands of the root are calls where the pattern wants calls. A cheap test that most rules fail, since a
/// table costs nodes times the rules that may begin at them.
bool beginsLike(const CompiledRule& rule, const Node& node) {
    const Pattern& pattern = rule.pattern;
    const auto callOf = [&](int slot) -> const PatternCall& {
        return pattern.calls[static_cast<size_t>(pattern.callOfSlot[static_cast<size_t>(slot)])];
    };
    const auto fits = [&](const PatternArg& wanted, const Argument& value) {
        if (wanted.kind != PatternArg::Kind::Call) return true;
        const Node* operand = value.node();
        const auto& forms = callOf(wanted.slot).forms;
        return operand && operand->isCall() &&
               std::any_of(forms.begin(), forms.end(),
                           [&](const PatternCall::Form& form) { return form.op == &operand->op(); });
    };
    if (node.op().isOpaque()) return true;
    for (const PatternCall::Form& form : callOf(pattern.results[0]).forms) {
        if (form.op != &node.op()) continue;
        const auto all = [&](bool swapped) {
            for (size_t i = 0; i < form.args.size(); ++i)
                if (!fits(form.args[i], node.arg(swapped && i < 2 ? 1 - i : i))) return false;
            return true;
        };
        return all(false) || (form.commutes && all(true));
    }
    return false;
}

Result<bool> sweep(Graph& graph, Rewriter& rewriter, const RuleSet& rules, std::vector<RuleStats>& stats) {
    std::vector<bool> disabled(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
        const Rule& rule = *rules.at(i).rule;
        disabled[i] = rewriter.disabled(rule.name) || !rule.releases.hold(rewriter.request().pytorch);
    }
    std::vector<NodeId> candidates;
    for (const Node& node : graph.nodes())
        if (node.isCall() && !rules.startingAt(node.op()).empty()) candidates.push_back(node.id());
    const MutationRegions regions(graph);
    bool changed = false;
    for (auto id = candidates.rbegin(); id != candidates.rend(); ++id) {
        for (size_t i = 0;; ++i) {
            Node* node = graph.find(*id);
            if (node == nullptr || (i == 0 && hasUnsupportedType(*node))) break;
            const auto entries = rules.startingAt(node->op());
            if (i >= entries.size()) break;
            if (rewriter.outOfFuel() || rewriter.cancelled()) return changed;
            if (disabled[entries[i]]) continue;
            const CompiledRule& rule = rules.at(entries[i]);
            if (!beginsLike(rule, *node)) {
                ++stats[entries[i]].tried;
                continue;
            }
            const auto start = std::chrono::steady_clock::now();
            Match match(rule, rewriter.context());
            bool applied = false;
            const bool matched = matchRule(rule, *node, regions, match);
            if (matched) {
                CT_TRY(applied, RuleApplication(graph, rewriter, rule, match).run());
            }
            RuleStats& stat = stats[entries[i]];
            ++stat.tried;
            stat.applied += applied;
            stat.counted += matched || (rule.rule->countsRefused && match.refused());
            stat.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            changed |= applied;
        }
    }
    return changed;
}

}  // namespace

Result<std::string> applyRuleAt(const Rule& rule, Node& node, const PassContext& context) {
    CT_TRY(const RuleSet set, RuleSet::compile({&rule, 1}));
    Match match(set.at(0), context);
    MatchTrace trace;
    if (!matchRule(set.at(0), node, MutationRegions(node.graph()), match, &trace)) return trace.reason;
    Rewriter rewriter(rule.name, context);
    RuleApplication application(node.graph(), rewriter, set.at(0), match);
    CT_TRY_VOID(application.run());
    return application.refusal();
}

RuleStats& Rewriter::statsOf(std::string_view rule) {
    for (RuleStats& stats : m_ruleStats)
        if (stats.rule == rule) return stats;
    return m_ruleStats.emplace_back(RuleStats{rule, 0, 0, 0});
}

Result<bool> Rewriter::applyRules(Graph& graph, std::span<const Rule> table) {
    return applyRules(graph, compiledRules(table));
}

Result<bool> Rewriter::applyRules(Graph& graph, const RuleSet& rules) {
    std::vector<RuleStats> stats(rules.size());
    Result<bool> changed = sweep(graph, *this, rules, stats);
    for (size_t i = 0; i < stats.size(); ++i) {
        if (stats[i].tried == 0) continue;
        RuleStats& total = statsOf(rules.at(i).rule->name);
        total.tried += stats[i].tried;
        total.applied += stats[i].applied;
        total.counted += stats[i].counted;
        total.seconds += stats[i].seconds;
    }
    return changed;
}

Result<bool> Rewriter::applyRules(Module& module, std::span<const Rule> table) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, applyRules(*body, table));
        changed |= inner;
    }
    CT_TRY(const bool outer, applyRules(module.graph(), table));
    return changed || outer;
}

}  // namespace cutaway
