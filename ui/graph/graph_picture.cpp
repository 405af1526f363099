#include "ui/graph/graph_picture.h"

#include <QFontMetricsF>
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "ui/graph/box_merging.h"
#include "ui/graph/module_boxes.h"
#include "ui/graph/picture_order.h"

namespace cutaway::ui {
namespace {

constexpr double kPadding = 10, kMaxText = 230, kChipGap = 4;
constexpr int kChipUsers = 4;  // a scalar with that many readers is a chip
constexpr size_t kMaxChips = 3;
constexpr size_t kHub = 24;            // neighbours from which on a node leads everywhere
constexpr size_t kMapBoxes = 60;       // of a large graph whose modules are closed
constexpr size_t kGatheredInputs = 8;  // of a map, from which on they are one box
constexpr QLatin1String kItemTitle("operator.getitem");
constexpr size_t kGatheredUnused = 3;  // of any picture

/// The work of makePicture, one stage a function; `m_graph` is read only.
class PictureMaker {
  public:
    PictureMaker(const UnionGraph& graph, const PictureOptions& options)
        : m_graph(graph),
          m_options(options),
          m_boldMetrics(bold(options.font)),
          m_smallMetrics(smaller(options.font)) {}

    Picture make() {
        indexNodes();
        findChips();
        findVisible();
        m_fold.assign(m_graph.nodes.size(), -1);
        closeModules();
        gatherUnused();
        groupFolds();
        makeGroups();
        addBoxes();
        addEdges();
        sortBoxes(m_picture);
        markEqual();
        addClusters(m_picture, m_picture.modules > 0);
        return std::move(m_picture);
    }

  private:
    struct Fold {
        Picture::Box kind = Picture::Box::Unchanged;
        QString key;  // of a closed module
    };

    static QFont smaller(QFont font) {
        font.setPointSizeF(font.pointSizeF() * 0.85);
        return font;
    }
    static QFont bold(QFont font) {
        font.setBold(true);
        return font;
    }

    void indexNodes() {
        const size_t count = m_graph.nodes.size();
        m_inputs.resize(count);
        m_users.resize(count);
        for (size_t i = 0; i < count; ++i) m_slot.insert(packed(m_graph.nodes[i].info.id), static_cast<int>(i));
        for (const auto& edge : m_graph.edges) {
            const int from = m_slot.value(packed(edge.from), -1), to = m_slot.value(packed(edge.to), -1);
            if (from < 0 || to < 0) continue;
            m_users[from].push_back(to);
            m_inputs[to].push_back(from);
        }
        m_picture.total = static_cast<int>(count);
        m_picture.changed = m_graph.added + m_graph.removed + m_graph.edited > 0;
        for (const auto& edge : m_graph.edges) m_picture.changed |= edge.change != Change::Unchanged;
    }

    void findChips() {
        m_chip.assign(m_graph.nodes.size(), false);
        for (size_t i = 0; i < m_graph.nodes.size(); ++i) {
            const NodeInfo& info = m_graph.nodes[i].info;
            if (m_users[i].empty() || !m_inputs[i].empty()) continue;
            const bool stored = isStored(info.role);
            const bool scalar =
                info.scalarLike && info.role != NodeRole::Input && static_cast<int>(m_users[i].size()) >= kChipUsers;
            // A stored tensor that the graph returns or that an edge of it rewires must stay a box of its own.
            const bool returned = std::any_of(m_users[i].begin(), m_users[i].end(), [&](int user) {
                return m_graph.nodes[user].info.role == NodeRole::Output;
            });
            m_chip[i] = (stored || scalar) && !returned;
        }
    }

    /// Visible: changes, ends of rewired edges, what was asked for, and `hops` around them; or everything.
    void findVisible() {
        const size_t count = m_graph.nodes.size();
        const auto drawn = static_cast<int>(std::count(m_chip.begin(), m_chip.end(), false));
        m_visible.assign(count, true);
        if (!m_options.fold || !m_picture.changed || drawn <= m_options.foldAbove) return;
        std::vector<int> distance(count, -1);
        std::deque<int> queue;
        const auto start = [&](int node, int at) {
            if (node < 0 || distance[node] >= 0) return;
            distance[node] = at;
            queue.push_back(node);
        };
        for (size_t i = 0; i < count; ++i)
            if (m_graph.nodes[i].change != Change::Unchanged) start(static_cast<int>(i), 0);
        for (const auto& edge : m_graph.edges)
            if (edge.change != Change::Unchanged) {
                start(m_slot.value(packed(edge.from), -1), 0);
                start(m_slot.value(packed(edge.to), -1), 0);
            }
        while (!queue.empty()) {
            const int node = queue.front();
            queue.pop_front();
            if (distance[node] >= m_options.hops || m_chip[node]) continue;
            // Neighbours through an unchanged hub (the output, an input that every layer reads) do not count.
            if (distance[node] > 0 && m_inputs[node].size() + m_users[node].size() > kHub) continue;
            for (int other : m_inputs[node]) start(other, distance[node] + 1);
            for (int other : m_users[node]) start(other, distance[node] + 1);
        }
        for (size_t i = 0; i < count; ++i)
            m_visible[i] = distance[i] >= 0 || m_options.revealed.contains(packed(m_graph.nodes[i].info.id));
    }

    /// A wish to share a box, to be given to nodes in m_fold.
    int newFold(Picture::Box kind, const QString& key = {}) {
        m_folds.push_back({kind, key});
        return static_cast<int>(m_folds.size()) - 1;
    }
    bool stays(size_t slot) const {
        const NodeKey id = m_graph.nodes[slot].info.id;
        return id == m_options.current || m_options.revealed.contains(packed(id));
    }

    void closeModules() {
        const ModuleBoxes modules(m_graph);
        if (!modules.any()) return;
        std::vector<bool> counts(m_graph.nodes.size());
        int drawn = 0;
        for (size_t i = 0; i < counts.size(); ++i) {
            counts[i] = !m_chip[i] && (!m_inputs[i].empty() || m_graph.nodes[i].info.role == NodeRole::Call);
            drawn += counts[i] && m_visible[i];
        }
        const bool large = drawn > m_options.modules.above;
        m_picture.depth = modules.depth();
        m_picture.level =
            m_options.modules.level.value_or(large ? modules.levelFor(counts, kMapBoxes) : ModuleFolding::kAll);
        const std::vector<QString> closed = modules.closedAt(m_picture.level, m_options.modules, m_options.current);
        const std::vector<bool> opened = modules.openedByHand(m_options.modules);
        std::map<QString, int> folds;
        for (size_t i = 0; i < closed.size(); ++i) {
            if (m_chip[i] || closed[i].isEmpty()) {
                m_visible[i] = m_visible[i] || (m_picture.level < ModuleFolding::kAll && opened[i]);
                continue;
            }
            const auto [at, fresh] = folds.try_emplace(closed[i], 0);
            if (fresh) at->second = newFold(Picture::Box::Module, closed[i]);
            m_fold[i] = at->second;
        }
        openSingles();
        if (std::any_of(m_fold.begin(), m_fold.end(), [](int fold) { return fold >= 0; })) gatherInputs();
    }

    /// A module with one call says less than the call in the same room.
    void openSingles() {
        std::vector<int> calls(m_folds.size(), 0);
        for (size_t i = 0; i < m_fold.size(); ++i)
            if (m_fold[i] >= 0 && m_graph.nodes[i].info.role == NodeRole::Call) ++calls[static_cast<size_t>(m_fold[i])];
        for (size_t i = 0; i < m_fold.size(); ++i)
            if (m_fold[i] >= 0 && calls[static_cast<size_t>(m_fold[i])] <= 1) {
                m_fold[i] = -1;
                m_visible[i] = true;
            }
    }

    /// What is made of nothing belongs to the closed module that alone reads it. Inputs that several read are one box
    /// if there are many: in a map they would be a row as wide as a screen.
    void gatherInputs() {
        const auto isSource = [&](size_t slot) {
            const NodeInfo& info = m_graph.nodes[slot].info;
            return !m_chip[slot] && m_fold[slot] < 0 && info.module.empty() && info.role != NodeRole::Output &&
                   !m_users[slot].empty() && !stays(slot) &&
                   std::all_of(m_inputs[slot].begin(), m_inputs[slot].end(),
                               [&](int input) { return m_source[input]; });
        };
        m_source.assign(m_graph.nodes.size(), false);
        for (size_t i = 0; i < m_source.size(); ++i) m_source[i] = isSource(i);
        // Few inputs are what the program is about.
        const auto isInput = [&](size_t slot) { return m_graph.nodes[slot].info.role == NodeRole::Input; };
        size_t inputs = 0;
        for (size_t i = 0; i < m_source.size(); ++i) inputs += m_source[i] && isInput(i);
        for (size_t i = m_source.size(); i-- > 0;) {
            if (!m_source[i] || (isInput(i) && inputs < kGatheredInputs)) continue;
            const int fold = m_fold[m_users[i].front()];
            const bool alone =
                std::all_of(m_users[i].begin(), m_users[i].end(), [&](int user) { return m_fold[user] == fold; });
            if (alone && fold >= 0) m_fold[i] = fold;
        }
        std::vector<size_t> rest;
        for (size_t i = 0; i < m_source.size(); ++i)
            if (m_source[i] && m_fold[i] < 0 && m_inputs[i].empty() && m_graph.nodes[i].change == Change::Unchanged &&
                m_graph.nodes[i].info.role != NodeRole::Call)
                rest.push_back(i);
        gather(rest, Picture::Box::Inputs, kGatheredInputs);
    }

    void gatherUnused() {
        std::map<Change, std::vector<size_t>> unused;
        for (size_t i = 0; i < m_graph.nodes.size(); ++i) {
            const UnionGraph::Node& node = m_graph.nodes[i];
            if (node.info.role == NodeRole::Call || node.info.role == NodeRole::Output || m_fold[i] >= 0) continue;
            if (m_users[i].empty() && m_inputs[i].empty() && !stays(i)) unused[node.change].push_back(i);
        }
        for (const auto& [change, nodes] : unused) gather(nodes, Picture::Box::Unused, kGatheredUnused);
    }

    void gather(const std::vector<size_t>& nodes, Picture::Box kind, size_t least) {
        if (nodes.size() < least) return;
        const int fold = newFold(kind);
        for (const size_t node : nodes) m_fold[node] = fold;
    }

    /// Hidden nodes become folds: connected regions of equal depth, where depth counts the visible stretches passed on
    /// the way. Depth never falls along an edge, so that without other folds the picture stays free of cycles.
    void groupFolds() {
        const size_t count = m_graph.nodes.size();
        std::vector<int> depth(count, 0), group(count);
        const auto hidden = [&](int node) { return !m_visible[node] && !m_chip[node] && m_fold[node] < 0; };
        for (size_t i = 0; i < count; ++i) {
            group[i] = static_cast<int>(i);
            if (m_chip[i]) continue;
            for (int input : m_inputs[i])
                if (!m_chip[input])
                    depth[i] =
                        std::max(depth[i], depth[input] + (!hidden(input) && hidden(static_cast<int>(i)) ? 1 : 0));
        }
        const auto root = [&](int node) {
            while (group[node] != node) node = group[node] = group[group[node]];
            return node;
        };
        for (size_t i = 0; i < count; ++i) {
            if (!hidden(static_cast<int>(i))) continue;
            for (int input : m_inputs[i])
                if (hidden(input) && depth[input] == depth[i]) {
                    const int a = root(input), b = root(static_cast<int>(i));
                    group[std::max(a, b)] = std::min(a, b);
                }
        }
        std::vector<int> fold(count, -1);
        for (size_t i = 0; i < count; ++i)
            if (hidden(static_cast<int>(i))) {
                int& of = fold[static_cast<size_t>(root(static_cast<int>(i)))];
                if (of < 0) of = newFold(Picture::Box::Unchanged);
                fold[i] = of;
            }
        for (size_t i = 0; i < count; ++i)
            if (fold[i] >= 0) m_fold[i] = fold[i];
    }

    /// The nodes of each box, chips in none.
    void makeGroups() {
        m_group = mergeBoxes(m_inputs, m_fold);
        m_members.resize(m_group.size());
        for (size_t i = 0; i < m_group.size(); ++i)
            if (!m_chip[i]) m_members[m_group[i]].push_back(static_cast<int>(i));
    }

    void addBoxes() {
        m_box.assign(m_graph.nodes.size(), -1);
        // A fold stands where its last member stands: every input of a member comes before that.
        for (size_t i = 0; i < m_graph.nodes.size(); ++i) {
            const int slot = static_cast<int>(i);
            if (m_chip[i]) continue;
            const std::vector<int>& members = m_members[m_group[i]];
            // "1 unchanged" says less than the node in the same room.
            if (m_fold[i] < 0 || members.size() == 1) {
                m_box[i] = addNode(slot);
            } else if (members.back() == slot) {
                const int box = addFold(m_folds[static_cast<size_t>(m_fold[i])], members);
                for (int member : members) m_box[member] = box;
            }
        }
        for (size_t i = 0; i < m_graph.nodes.size(); ++i) {
            int box = m_box[i];
            if (m_chip[i])
                for (int user : m_users[i])
                    if (box < 0 && m_box[user] >= 0) box = m_box[user];
            if (box >= 0) m_picture.where.insert(packed(m_graph.nodes[i].info.id), box);
        }
    }

    int addNode(int slot) {
        const UnionGraph::Node& from = m_graph.nodes[slot];
        Picture::Node node;
        node.id = from.info.id;
        node.change = from.change;
        node.role = from.info.role;
        node.module = textOf(from.info.module);
        node.backward = from.info.backward;
        node.kernel = from.kernel;
        node.opClass = from.info.opClass;
        node.moved = from.moved;
        addOp(node, slot);
        const QString name = textOf(from.info.name), type = textOf(from.info.type);
        const bool call = node.role == NodeRole::Call;
        node.title = call ? shortOp(from.info.op) : name;
        if (node.role == NodeRole::Output) node.title = QStringLiteral("return");
        node.detail = call ? name + QStringLiteral(" · ") + type : type;
        if (from.change == Change::Edited && !from.beforeOp.empty() && from.beforeOp != from.info.op)
            node.title = shortOp(from.beforeOp) + QStringLiteral(" → ") + node.title;
        if (from.change == Change::Edited && !from.beforeType.empty() && from.beforeType != from.info.type)
            node.detail = (call ? name + QStringLiteral(" · ") : QString()) + textOf(from.beforeType) +
                          QStringLiteral(" → ") + type;
        if (from.certainty != Certainty::Sure) node.detail += QStringLiteral(" · ") + certaintyWord(from.certainty);
        addChips(node, slot);
        measure(node);
        m_picture.nodes.push_back(std::move(node));
        return static_cast<int>(m_picture.nodes.size()) - 1;
    }

    void addChips(Picture::Node& node, int slot) {
        std::vector<int> inputs;
        for (int input : m_inputs[slot])
            if (m_chip[input] && std::find(inputs.begin(), inputs.end(), input) == inputs.end())
                inputs.push_back(input);
        for (size_t i = 0; i < inputs.size(); ++i) {
            const UnionGraph::Node& from = m_graph.nodes[inputs[i]];
            Picture::Chip chip{from.info.id, textOf(from.info.name), from.change, 0};
            if (i + 1 == kMaxChips && inputs.size() > kMaxChips) {
                chip = {NodeKey::None, QStringLiteral("+%1").arg(inputs.size() - i), Change::Unchanged, 0};
            } else {
                chip.text = m_smallMetrics.elidedText(signOf(from.change) + chip.text, Qt::ElideMiddle, 96);
            }
            chip.width = m_smallMetrics.horizontalAdvance(chip.text) + 10;
            node.chips.push_back(chip);
            if (chip.id == NodeKey::None) break;
        }
    }

    /// Shortens a text to what a box holds; answers its width. Most texts fit and are measured once.
    static double fit(const QFontMetricsF& metrics, QString& text) {
        double width = metrics.horizontalAdvance(text);
        if (width <= kMaxText) return width;
        text = metrics.elidedText(text, Qt::ElideRight, kMaxText);
        return metrics.horizontalAdvance(text);
    }

    void measure(Picture::Node& node) {
        const double title = fit(m_boldMetrics, node.title);
        const double detail = std::max(fit(m_smallMetrics, node.detail), fit(m_smallMetrics, node.more));
        double chips = 0;
        for (const auto& chip : node.chips) chips += chip.width + kChipGap;
        const double sign = signOf(node).isEmpty() ? 0 : 16;
        const double width = std::max({title + sign, detail, chips});
        double height = m_boldMetrics.height() + 10;
        if (!node.detail.isEmpty()) height += m_smallMetrics.height();
        if (!node.more.isEmpty()) height += m_smallMetrics.height();
        if (!node.chips.empty()) height += m_smallMetrics.height() + 6;
        node.size = QSizeF(std::ceil(std::max(width, 36.0) + 2 * kPadding), std::ceil(height));
    }

    void addOp(Picture::Node& node, int slot) {
        const std::string& op = m_graph.nodes[slot].info.op;
        if (op.empty()) return;
        const auto [at, fresh] = m_ops.try_emplace(op, static_cast<int>(m_picture.ops.size()));
        if (fresh) m_picture.ops.push_back(textOf(op));
        if (std::find(node.ops.begin(), node.ops.end(), at->second) == node.ops.end()) node.ops.push_back(at->second);
    }

    int addFold(const Fold& fold, const std::vector<int>& members) {
        Picture::Node node;
        node.box = fold.kind;
        for (int member : members) {
            node.members.push_back(m_graph.nodes[member].info.id);
            addOp(node, member);
        }
        if (fold.kind == Picture::Box::Module) {
            node.key = fold.key;
            describeModule(node, m_graph, members, m_options.microseconds.get());
            node.structure = structureOf(m_graph, members, m_inputs, fold.key);
            ++m_picture.modules;
        } else {
            describeFold(node, m_graph, members);
            if (fold.kind == Picture::Box::Unused)  // which are gathered by what happened to them
                node.change = m_graph.nodes[static_cast<size_t>(members.front())].change;
            m_picture.folded += static_cast<int>(members.size());
        }
        measure(node);
        m_picture.nodes.push_back(std::move(node));
        return static_cast<int>(m_picture.nodes.size()) - 1;
    }

    void markEqual() {
        QHash<size_t, int> counts;
        for (const Picture::Node& node : m_picture.nodes)
            if (node.isModule()) ++counts[node.structure];
        for (Picture::Node& node : m_picture.nodes)
            if (node.isModule() && counts.value(node.structure) > 1) {
                node.equal = counts.value(node.structure);
                node.detail += QStringLiteral(" · %1 equal").arg(node.equal);
                measure(node);
            }
    }

    void addEdges() {
        std::map<std::pair<int, int>, size_t> known;
        for (const auto& edge : m_graph.edges) {
            const int fromSlot = m_slot.value(packed(edge.from), -1), toSlot = m_slot.value(packed(edge.to), -1);
            if (fromSlot < 0 || toSlot < 0 || m_chip[fromSlot] || m_chip[toSlot]) continue;
            const int from = m_box[fromSlot], to = m_box[toSlot];
            if (from == to || from < 0 || to < 0) continue;
            const auto stays = [&](int slot) {
                return m_graph.nodes[slot].change == Change::Unchanged || m_graph.nodes[slot].change == Change::Edited;
            };
            const bool rewired = edge.change != Change::Unchanged && stays(fromSlot) && stays(toSlot);
            const auto [at, fresh] = known.try_emplace({from, to}, m_picture.edges.size());
            if (fresh) m_picture.edges.push_back({from, to, edge.change, rewired, edge.from, edge.to});
            else if (m_picture.edges[at->second].change != edge.change)
                m_picture.edges[at->second] = {from,  to,        Change::Unchanged,
                                               false, edge.from, edge.to};  // several wires between folds: no one state
        }
    }

    const UnionGraph& m_graph;
    const PictureOptions& m_options;
    QFontMetricsF m_boldMetrics, m_smallMetrics;
    Picture m_picture;
    QHash<quint64, int> m_slot;
    std::unordered_map<std::string_view, int> m_ops;
    std::vector<std::vector<int>> m_inputs, m_users, m_members;
    std::vector<bool> m_chip, m_visible, m_source;
    std::vector<Fold> m_folds;
    std::vector<int> m_fold;  // by node: which of m_folds it is in; -1: it is drawn as itself
    std::vector<int> m_group, m_box;
};

}  // namespace

Picture makePicture(const UnionGraph& graph, const PictureOptions& options) {
    return PictureMaker(graph, options).make();
}

Picture drawnOf(std::shared_ptr<const UnionGraph> graph, PictureOptions options) {
    std::optional<UnionGraph> part;
    if (options.part) part = partOf(*graph, *options.part);
    const bool partly = part.has_value();
    if (partly) graph = std::make_shared<const UnionGraph>(std::move(*part));
    options.fold = options.fold && !partly;
    Picture picture = makePicture(*graph, options);
    picture.partly = partly;
    picture.graph = std::move(graph);
    return picture;
}

LayoutProblem problemOf(const Picture& picture) {
    LayoutProblem problem;
    for (const auto& cluster : picture.clusters) problem.clusters.push_back({cluster.parent});
    for (const auto& node : picture.nodes)
        problem.nodes.push_back({node.size.width(), node.size.height(), node.cluster});
    std::vector<int> users(picture.nodes.size(), 0), items(picture.nodes.size(), 0);
    for (const auto& edge : picture.edges) {
        problem.edges.push_back(
            {edge.from, edge.to, edge.change == Change::Removed ? 1 : 2});  // "after" is kept straight
        ++users[static_cast<size_t>(edge.from)];
        items[static_cast<size_t>(edge.from)] += picture.nodes[static_cast<size_t>(edge.to)].title == kItemTitle;
    }
    // The results of one call look alike, and would change places from step to step.
    for (size_t i = 0; i < users.size(); ++i) problem.nodes[i].inOrder = items[i] > 1 && items[i] == users[i];
    return problem;
}

}  // namespace cutaway::ui
