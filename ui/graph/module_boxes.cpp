#include "ui/graph/module_boxes.h"

#include <algorithm>
#include <map>
#include <set>

#include "ui/models/units.h"
#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

QString separator() { return QStringLiteral(" · "); }

bool isNumber(const QString& name) {
    return !name.isEmpty() && std::all_of(name.begin(), name.end(), [](QChar c) { return c.isDigit(); });
}

/// "attn", and of numbered modules "layer.3".
QString shortName(const QString& path) {
    const QString last = path.section(QChar('.'), -1);
    return isNumber(last) && path.contains(QChar('.')) ? path.section(QChar('.'), -2) : last;
}

/// How many numbered modules it is made of; 0 if it holds anything else.
int blocksIn(const UnionGraph& graph, const std::vector<int>& members, const QString& path) {
    std::set<QString> names;
    for (const int member : members) {
        const std::string& module = graph.nodes[static_cast<size_t>(member)].info.module;
        if (module.empty()) continue;
        if (textOf(module) == path || path == ownCallsOf(textOf(module))) return 0;
        const QString inside = textOf(module).mid(path.size() + 1).section(QChar('.'), 0, 0);
        if (!isNumber(inside)) return 0;
        names.insert(inside);
    }
    return static_cast<int>(names.size());
}

QString changesIn(const UnionGraph& graph, const std::vector<int>& members, Picture::Node& module) {
    std::map<Change, int> counts;
    for (const int member : members) ++counts[graph.nodes[static_cast<size_t>(member)].change];
    // What is all new, or all gone, is drawn so, and only where its side is on show.
    module.change = counts.size() == 1 ? counts.begin()->first : Change::Edited;
    QStringList parts;
    for (const Change change : {Change::Added, Change::Removed, Change::Edited})
        if (counts[change] > 0) parts << signOf(change) + QString::number(counts[change]);
    const auto moved = std::count_if(members.begin(), members.end(), [&](int member) {
        const UnionGraph::Node& node = graph.nodes[static_cast<size_t>(member)];
        return node.change == Change::Unchanged && node.moved;
    });
    module.moved = moved > 0;
    if (moved > 0) parts << QStringLiteral("↕%1").arg(moved);
    return parts.join(QChar(' '));
}

/// How many kernels several nodes share, in the module or with others; empty before there are some.
QString kernelsIn(const UnionGraph& graph, const std::vector<int>& members) {
    std::set<int> kernels;
    for (const int member : members) kernels.insert(graph.nodes[static_cast<size_t>(member)].kernel);
    kernels.erase(-1);
    return kernels.empty() ? QString()
                           : counted(static_cast<qsizetype>(kernels.size()), QStringLiteral("fused kernel"),
                                     QStringLiteral("fused kernels"));
}

/// Time, and its share of what is known of all nodes.
QString timeIn(const UnionGraph& graph, const std::vector<int>& members, const QHash<quint64, double>& microseconds) {
    double all = 0, here = 0;
    for (const double one : microseconds) all += one;
    for (const int member : members)
        here += microseconds.value(packed(graph.nodes[static_cast<size_t>(member)].info.id), 0);
    if (here <= 0) return {};
    return durationText(here / 1000) + QStringLiteral(", ") + shareText(here / all);
}

}  // namespace

void describeModule(Picture::Node& node, const UnionGraph& graph, const std::vector<int>& members,
                    const QHash<quint64, double>* microseconds) {
    const QString path = pathOfModule(node.key);
    node.module = pathOfModule(moduleAround(node.key));
    node.backward = isBackward(node.key);
    node.title = shortName(path);
    if (const int blocks = blocksIn(graph, members, path); blocks > 1)
        node.title += QStringLiteral(" × %1").arg(blocks);
    int64_t bytes = 0;
    for (const int member : members) {
        const NodeInfo& info = graph.nodes[static_cast<size_t>(member)].info;
        if (info.role == NodeRole::Call && info.opClass != OpClass::View) bytes += info.bytes;
    }
    QStringList detail;
    if (node.backward) detail << QStringLiteral("backward");
    detail << QStringLiteral("%1 nodes").arg(members.size());
    if (bytes > 0) detail << sizeText(bytes);
    node.detail = detail.join(separator());
    QStringList more{changesIn(graph, members, node), kernelsIn(graph, members)};
    if (microseconds) more << timeIn(graph, members, *microseconds);
    more.removeAll(QString());
    node.more = more.join(separator());
}

void describeFold(Picture::Node& node, const UnionGraph& graph, const std::vector<int>& members) {
    if (node.box != Picture::Box::Unchanged) {
        node.role = NodeRole::Input;
        node.title =
            (node.box == Picture::Box::Unused ? QStringLiteral("%1 unused inputs") : QStringLiteral("%1 inputs"))
                .arg(members.size());
        return;
    }
    node.title = QStringLiteral("%1 unchanged").arg(members.size());
    std::set<QString> modules;
    for (const int member : members)
        modules.insert(textOf(graph.nodes[static_cast<size_t>(member)].info.module).section('.', 0, 2));
    modules.erase(QString());
    if (modules.size() == 1) node.detail = *modules.begin();
    if (modules.size() > 1) node.detail = *modules.begin() + QStringLiteral(" … ") + *modules.rbegin();
}

size_t structureOf(const UnionGraph& graph, const std::vector<int>& members,
                   const std::vector<std::vector<int>>& inputs, const QString& key) {
    QHash<int, int> place;
    size_t hash = isBackward(key);
    const size_t prefix = pathOfModule(key).toUtf8().size();
    const auto add = [&hash](size_t value) { hash = qHash(value, hash * 31 + 7); };
    for (const int member : members) {
        const UnionGraph::Node& node = graph.nodes[static_cast<size_t>(member)];
        add(std::hash<std::string>()(node.info.op));
        add(std::hash<std::string>()(node.info.type));
        if (node.info.module.size() >= prefix)
            add(std::hash<std::string_view>()(std::string_view(node.info.module).substr(prefix)));
        add(static_cast<size_t>(node.change));
        for (const int input : inputs[static_cast<size_t>(member)]) add(static_cast<size_t>(place.value(input, -1)));
        place.insert(member, static_cast<int>(place.size()));
    }
    return hash;
}

}  // namespace cutaway::ui
