// What is written on boxes and said about them.
#include <QRegularExpression>

#include "ui/graph/graph_picture.h"

namespace cutaway::ui {

QString signOf(Change change) {
    switch (change) {
        case Change::Added: return QStringLiteral("+");
        case Change::Removed: return QStringLiteral("−");
        case Change::Edited: return QStringLiteral("~");
        case Change::Unchanged: break;
    }
    return {};
}

QString signOf(const Picture::Node& node) {
    return node.change == Change::Unchanged && node.moved ? QStringLiteral("↕") : signOf(node.change);
}

QString certaintyWord(Certainty certainty) {
    switch (certainty) {
        case Certainty::Likely: return QStringLiteral("likely the same");
        case Certainty::Unsure: return QStringLiteral("perhaps the same");
        case Certainty::Sure: break;
    }
    return {};
}

QString textOf(const std::string& utf8) { return QString::fromStdString(utf8); }

QString shortOp(const std::string& op) {
    const QString text = textOf(op);
    return text.startsWith(QStringLiteral("aten.")) ? text.mid(5) : text;
}

QString spokenText(const Picture& picture, int at) {
    static const char* const kStates[] = {"unchanged", "added", "removed", "edited"};
    const Picture::Node& node = picture.nodes[static_cast<size_t>(at)];
    if (node.isModule())
        return QStringList({QStringLiteral("closed module ") + node.key, node.detail, node.more})
                   .filter(QRegularExpression(QStringLiteral(".")))
                   .join(QStringLiteral(", ")) +
               QStringLiteral("; Enter or Right opens it") +
               (node.equal > 1 ? QStringLiteral(", with Ctrl all equal ones") : QString());
    if (node.isFold())
        return QStringLiteral("folded: ") + node.title +
               (node.detail.isEmpty() ? QString() : QStringLiteral(", ") + node.detail) +
               QStringLiteral("; Enter shows them");
    if (!picture.graph) return node.title;
    QHash<quint64, const NodeInfo*> infos;
    for (const auto& known : picture.graph->nodes) infos.insert(packed(known.info.id), &known.info);
    const NodeInfo* info = infos.value(packed(node.id));
    if (!info) return node.title;
    QStringList inputs, users;
    for (const auto& edge : picture.graph->edges) {
        if (edge.to == node.id && infos.contains(packed(edge.from)))
            inputs << textOf(infos.value(packed(edge.from))->name);
        if (edge.from == node.id && infos.contains(packed(edge.to)))
            users << textOf(infos.value(packed(edge.to))->name);
    }
    const auto listed = [](QStringList names) {
        names.removeDuplicates();
        if (names.size() > 6) names = names.mid(0, 6) << QStringLiteral("… (%1)").arg(names.size());
        return names.join(QStringLiteral(", "));
    };
    QString text =
        QString::fromLatin1(kStates[static_cast<int>(node.change)]) + QStringLiteral(": ") + textOf(info->name);
    if (node.change == Change::Unchanged && node.moved) text += QStringLiteral(", moved");
    if (node.role == NodeRole::Call) text += QStringLiteral(", ") + textOf(info->op);
    if (!info->type.empty()) text += QStringLiteral(", ") + textOf(info->type);
    for (const auto& known : picture.graph->nodes)
        if (known.info.id == node.id && known.certainty != Certainty::Sure)
            text += QStringLiteral(", ") + certaintyWord(known.certainty);
    if (!inputs.isEmpty()) text += QStringLiteral("; reads ") + listed(inputs);
    if (!users.isEmpty()) text += QStringLiteral("; read by ") + listed(users);
    return text;
}

}  // namespace cutaway::ui
