#include "ui/graph/kernel_marks.h"

#include <algorithm>

namespace cutaway::ui {

KernelMarks::KernelMarks(std::vector<KernelCall> calls) : m_calls(std::move(calls)) {
    for (size_t i = 0; i < m_calls.size(); ++i) {
        m_microseconds += m_calls[i].microseconds;
        for (const auto* nodes : {&m_calls[i].nodes, &m_calls[i].replaced})
            for (const NodeKey node : *nodes) m_places[packed(node)].push_back(static_cast<int>(i));
    }
}

const std::vector<int>& KernelMarks::callsOf(NodeKey node) const {
    static const std::vector<int> kNone;
    const auto found = m_places.constFind(packed(node));
    return found == m_places.constEnd() ? kNone : *found;
}

QSet<quint64> KernelMarks::together(NodeKey node) const {
    QSet<quint64> all;
    for (const int call : callsOf(node))
        for (const auto* nodes :
             {&m_calls[static_cast<size_t>(call)].nodes, &m_calls[static_cast<size_t>(call)].replaced})
            for (const NodeKey other : *nodes) all.insert(packed(other));
    return all;
}

QString KernelMarks::shortName(NodeKey node, const QString& graphName) const {
    for (const int place : callsOf(node)) {
        const KernelCall& call = m_calls[static_cast<size_t>(place)];
        if (!graphName.isEmpty() && graphName.toStdString() != call.graphName) continue;
        if (std::find(call.nodes.begin(), call.nodes.end(), node) == call.nodes.end()) continue;
        const QString name = nameOf(call);
        if (call.kernel.empty()) return name.section(QChar('('), 1).section(QChar(')'), 0, 0);
        return name.section(QChar('/'), -1).replace(QStringLiteral("kernel"), QStringLiteral("k"));
    }
    return {};
}

QString nameOf(const KernelCall& call) {
    if (!call.kernel.empty()) return QString::fromStdString(call.kernel);
    return QString::fromStdString(call.kind).section(QStringLiteral(": "), 1);
}

}  // namespace cutaway::ui
