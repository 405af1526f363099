#include "engine/plugins/text_difference.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "cutaway/words.h"
#include "engine/ir/diff.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

Error wrong(const std::string& what, std::string_view where) { return invalidInput(what, std::string(where)); }
std::string inQuotes(std::string_view name) { return "'" + visibleText(name) + "'"; }

class Difference {
  public:
    Difference(Graph& graph, const std::unordered_map<std::string_view, Node*>& lines, const TextFunction& before,
               const TextFunction& after, const FunctionTexts& all)
        : m_graph(graph), m_lines(lines), m_before(before), m_after(after), m_all(all) {}

    Result<TextDifference> find() {
        CT_TRY_VOID(checkSignature());
        CT_TRY_VOID(readLines());
        CT_TRY_VOID(parseChanged());
        CT_TRY_VOID(pairNodes());
        placeNodes();
        CT_TRY_VOID(rewireKept());
        if (m_parsed) CT_TRY_VOID(rewireParsed());
        CT_TRY_VOID(checkOrder());
        m_out.parsed = std::move(m_parsed);
        return std::move(m_out);
    }

  private:
    static std::string comments(const std::vector<std::string_view>& lines) {
        std::string out;
        for (const std::string_view line : lines)
            if (const std::string_view comment = commentIn(line); !comment.empty()) out.append(comment) += '\n';
        return out;
    }

    Result<void> checkSignature() const {
        const char* const keep = "a plugin's pass keeps inputs and outputs as they are";
        if (m_before.head != m_after.head)
            return Error{ErrorCode::InvalidInput, "the graph has other inputs", std::string(m_after.name), {keep}};
        if (comments(m_before.result) != comments(m_after.result))
            return Error{ErrorCode::InvalidInput, "the graph has other outputs", std::string(m_after.name), {keep}};
        if (m_before.rest != m_after.rest)
            return Error{ErrorCode::InvalidInput,
                         "the graphs inside " + std::string(m_after.name) + " are others",
                         std::string(m_after.name),
                         {"a plugin's pass changes the main graph and those that it calls"}};
        return {};
    }

    /// What stands in the newer text, in order: a kept node, or a line to parse.
    struct Entry {
        Node* kept = nullptr;
        std::string_view line;
    };

    Result<void> readLines() {
        std::unordered_set<const Node*> seen;
        for (const std::string_view line : m_after.body) {
            const auto found = m_lines.find(line);
            if (found == m_lines.end()) {
                m_entries.push_back({nullptr, line});
                if (const std::string_view name = definedName(line); !name.empty()) m_defined.insert(name);
                continue;
            }
            if (!seen.insert(found->second).second)
                return wrong(inQuotes(found->second->name()) + " is computed twice", line);
            m_keptLines.insert(found->second);
            if (!found->second->isPlaceholder()) m_entries.push_back({found->second, line});
        }
        for (const std::string_view name : m_defined) {
            const Node* node = m_graph.findByName(name);
            if (node && node->isPlaceholder())
                return wrong(inQuotes(name) + " is an input, and is computed under the same name", m_after.name);
            if (node && m_keptLines.contains(node)) return wrong(inQuotes(name) + " is computed twice", m_after.name);
        }
        m_sameResult = m_before.result == m_after.result;
        return {};
    }

    /// Parses the lines that are new as a function of the values that they read.
    Result<void> parseChanged() {
        std::string body;
        std::vector<std::string_view> words;
        std::unordered_set<std::string_view> read;
        const auto take = [&](std::string_view line) {
            body.append(line) += '\n';
            forEachWord(line, [&](std::string_view word) { words.push_back(word); });
        };
        for (const Entry& entry : m_entries)
            if (!entry.kept) take(entry.line);
        if (body.empty() && m_sameResult) return {};
        if (m_sameResult) body += "    return None\n";
        else
            for (const std::string_view line : m_after.result) take(withoutComment(line));
        std::string text, parameters;
        for (const std::string_view line : m_all.comments) text.append(line) += '\n';
        // As they are, offsets included, which no annotation says.
        ParseOptions options;
        std::set<std::string_view> bodies;
        for (const std::string_view word : words) {
            if (m_all.find(word) && word != "forward") bodies.insert(word);
            Node* const node = m_graph.findByName(word);
            if (!node || m_defined.contains(word) || !read.insert(word).second) continue;
            parameters += (parameters.empty() ? "" : ", ") + node->name();
            options.types.emplace_hint(options.types.end(), node->name(), node->type());
        }
        const size_t lineBefore = m_all.comments.size() + 1;
        text += "def forward(" + parameters + "):\n" + body;
        for (const std::string_view name : bodies) text.append("\n").append(m_all.find(name)->text) += '\n';
        auto parsed = parseText(text, options);
        if (!parsed) return inWords(parsed.error(), text, lineBefore);
        m_parsed = std::move(*parsed);
        return {};
    }

    /// A parser's error names a line of the small text; the plugin's author wants the statement.
    static Error inWords(Error error, const std::string& text, size_t) {
        size_t line = 0;
        try {
            line = std::stoul(error.where);
        } catch (const std::exception&) {
            return error;
        }
        std::string_view rest = text;
        for (; line > 1 && rest.find('\n') != std::string_view::npos; --line) rest.remove_prefix(rest.find('\n') + 1);
        rest = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
        error.where = visibleText(rest.substr(0, 200));
        return error;
    }

    /// Which of the parsed nodes are nodes of the graph under another form, and what is gone.
    Result<void> pairNodes() {
        std::unordered_set<const Node*> stays(m_keptLines.begin(), m_keptLines.end());
        if (m_parsed)
            for (Node& node : m_parsed->graph().nodes()) {
                if (node.isOutput()) continue;
                Node* const old = m_graph.findByName(node.name());
                if (node.isPlaceholder()) {
                    m_out.values[&node] = {old, nullptr};
                    continue;
                }
                const bool same =
                    old && old->kind() == node.kind() &&
                    (node.isCall() ? old->op().name() == node.op().name() : old->target() == node.target());
                if (same && m_keptLines.contains(old)) return wrong(inQuotes(node.name()) + " is computed twice", {});
                m_out.values[&node] = same ? TextValue{old, nullptr} : TextValue{nullptr, &node};
                if (same) {
                    stays.insert(old);
                    m_pairs.emplace_back(old, &node);
                } else {
                    m_out.made.push_back(&node);
                    m_byName[node.name()] = &node;
                }
            }
        for (Node& node : m_graph.nodes()) {
            if (node.isPlaceholder() || node.isOutput() || stays.contains(&node)) continue;
            m_out.removed.push_back(&node);
            m_removed.insert(&node);
        }
        // A parameter of the small function is a value that something still computes.
        for (const auto& [parsedNode, value] : m_out.values) {
            if (value.kept == nullptr || !m_removed.contains(value.kept)) continue;
            return wrong(inQuotes(value.kept->name()) + " is read, and nothing computes it", m_after.name);
        }
        return {};
    }

    /// Where everything stands now.
    void placeNodes() {
        std::vector<Node*> parsedNodes;
        if (m_parsed)
            for (Node& node : m_parsed->graph().nodes())
                if (!node.isPlaceholder() && !node.isOutput()) parsedNodes.push_back(&node);
        size_t next = 0;
        std::vector<Node*> order;
        const auto put = [&](const TextValue& value) {
            m_position[value.any()] = ++m_count;
            order.push_back(value.any());
        };
        for (const Entry& entry : m_entries) {
            if (entry.kept) {
                put({entry.kept, nullptr});
                continue;
            }
            const std::string_view name = definedName(entry.line);
            if (name.empty()) continue;
            size_t end = next;
            while (end < parsedNodes.size() && parsedNodes[end]->name() != name) ++end;
            if (end == parsedNodes.size())
                continue;  // what the parser calls otherwise comes with the next that is found
            for (; next <= end; ++next) put(m_out.values[parsedNodes[next]]);
        }
        for (; next < parsedNodes.size(); ++next) put(m_out.values[parsedNodes[next]]);
        Node* following = m_graph.outputNode();
        for (size_t i = order.size(); i-- > 0;) {
            if (&order[i]->graph() == &m_graph) following = order[i];
            else m_out.next[order[i]] = following;
        }
        const Node* last = nullptr;
        bool moved = false;
        for (Node* node : order) {
            if (&node->graph() != &m_graph) continue;
            moved = moved || (last && !m_graph.isBefore(*last, *node));
            last = node;
        }
        if (moved)
            for (Node* node : order)
                if (&node->graph() == &m_graph) m_out.order.push_back(node);
    }

    /// Readers of what is gone, whose lines say the name of what took its place.
    Result<void> rewireKept() {
        std::unordered_set<const Node*> paired;
        for (const auto& [old, node] : m_pairs) paired.insert(old);
        std::unordered_set<Node*> readers;
        for (Node* node : m_out.removed)
            for (Node* user : node->users())
                if (!m_removed.contains(user) && !paired.contains(user) && (!user->isOutput() || m_sameResult))
                    readers.insert(user);
        // In the order of the graph, so that the same text gives the same rewrites.
        std::vector<Node*> ordered(readers.begin(), readers.end());
        std::sort(ordered.begin(), ordered.end(), [&](Node* a, Node* b) { return m_graph.isBefore(*a, *b); });
        for (Node* user : ordered) {
            size_t leaf = 0;
            std::string missing;
            user->forEachInput([&](Node* input) {
                if (m_removed.contains(input)) {
                    const auto found = m_byName.find(input->name());
                    if (found == m_byName.end()) missing = input->name();
                    else m_out.rewired.push_back({user, leaf, input, {nullptr, found->second}});
                }
                ++leaf;
            });
            if (!missing.empty())
                return wrong(inQuotes(missing) + " is read, and nothing computes it",
                             user->isOutput() ? "return" : user->name());
        }
        return {};
    }

    /// Of calls that are parsed and still the same nodes, and of the output, which operands are others.
    Result<void> rewireParsed() {
        const auto rewire = [&](Node& user, Node& parsed) {
            std::vector<Node*> now;
            parsed.forEachInput([&](Node* input) { now.push_back(input); });
            size_t leaf = 0;
            user.forEachInput([&](Node* input) {
                const TextValue value = m_out.values[now[leaf]];
                if (value.kept != input) m_out.rewired.push_back({&user, leaf, input, value});
                ++leaf;
            });
        };
        const auto leaves = [](const Node& node) {
            size_t count = 0;
            node.forEachInput([&](Node*) { ++count; });
            return count;
        };
        for (const auto& [old, node] : m_pairs) {
            // Types that text cannot say, of offsets, stay as they are.
            if (sameButForInputs(*old, *node) && leaves(*old) == leaves(*node)) rewire(*old, *node);
            else m_out.edited.emplace_back(old, node);
        }
        if (m_sameResult) return {};
        Node &was = *m_graph.outputNode(), &is = *m_parsed->graph().outputNode();
        if (m_graph.outputs().size() != m_parsed->graph().outputs().size() || !sameButForInputs(was, is) ||
            leaves(was) != leaves(is))
            return Error{ErrorCode::InvalidInput,
                         "the graph has other outputs",
                         std::string(m_after.name),
                         {"a plugin's pass keeps inputs and outputs as they are"}};
        rewire(was, is);
        return {};
    }

    Result<void> checkOrder() const {
        const auto late = [&](const TextValue& value, size_t reader) {
            const auto found = m_position.find(value.any());
            return found != m_position.end() && found->second >= reader;
        };
        const auto tooEarly = [&](const Node& value) {
            return wrong(inQuotes(value.name()) + " is read before it is computed", m_after.name);
        };
        if (m_parsed)
            for (Node& node : m_parsed->graph().nodes()) {
                if (node.isPlaceholder() || node.isOutput()) continue;
                const size_t at = m_position.at(m_out.values.at(&node).any());
                for (Node* input : node.inputs())
                    if (late(m_out.values.at(input), at)) return tooEarly(*input);
            }
        for (const TextRewire& rewire : m_out.rewired)
            if (!rewire.user->isOutput() && late(rewire.after, m_position.at(rewire.user)))
                return tooEarly(*rewire.after.any());
        for (Node* node : m_out.order)
            if (m_keptLines.contains(node))
                for (Node* input : node->inputs())
                    if (late({input, nullptr}, m_position.at(node))) return tooEarly(*input);
        return {};
    }

    Graph& m_graph;
    const std::unordered_map<std::string_view, Node*>& m_lines;
    const TextFunction &m_before, &m_after;
    const FunctionTexts& m_all;
    TextDifference m_out;
    std::unique_ptr<Module> m_parsed;
    std::vector<Entry> m_entries;
    std::unordered_set<std::string_view> m_defined;
    std::unordered_set<const Node*> m_keptLines, m_removed;
    std::vector<std::pair<Node*, Node*>> m_pairs;
    std::unordered_map<std::string_view, Node*> m_byName;
    std::unordered_map<const Node*, size_t> m_position;
    size_t m_count = 0;
    bool m_sameResult = true;
};

}  // namespace

Result<TextDifference> differenceOf(Graph& graph, const std::unordered_map<std::string_view, Node*>& lines,
                                    const TextFunction& before, const TextFunction& after, const FunctionTexts& all) {
    return Difference(graph, lines, before, after, all).find();
}

}  // namespace cutaway
