#include "ui/models/node_query.h"

#include <QRegularExpression>
#include <QStringList>

namespace cutaway::ui {
namespace {

const QStringList& textFields() {
    static const QStringList fields = {"name", "op", "type", "module", "change"};
    return fields;
}
const QStringList& numberFields() {
    static const QStringList fields = {"numel", "bytes", "users", "inputs"};
    return fields;
}

QString textField(const QString& field, const UnionGraph::Node& node) {
    static const char* const kChanges[] = {"kept", "added", "removed", "edited"};
    if (field == "name") return QString::fromStdString(node.info.name);
    if (field == "op") return QString::fromStdString(node.info.op);
    if (field == "type") return QString::fromStdString(node.info.type);
    if (field == "module") return QString::fromStdString(node.info.module);
    return QString::fromLatin1(kChanges[static_cast<int>(node.change)]);
}

double numberField(const QString& field, const UnionGraph::Node& node) {
    if (field == "numel") return elementsOf(node.info.type);
    if (field == "bytes") return static_cast<double>(node.info.bytes);
    if (field == "users") return static_cast<double>(node.info.users.size());
    return static_cast<double>(node.info.inputs.size());
}

}  // namespace

double elementsOf(const std::string& type) {
    static const QRegularExpression shape(QStringLiteral("\\[([^\\]]*)\\]"));
    double sum = 0;
    auto all = shape.globalMatch(QString::fromStdString(type));
    if (!all.hasNext()) return -1;
    while (all.hasNext()) {
        double product = 1;
        const QString sizes = all.next().captured(1).trimmed();
        if (!sizes.isEmpty())
            for (const QString& size : sizes.split(',')) {
                bool ok = false;
                product *= size.trimmed().toDouble(&ok);
                if (!ok) return -1;
            }
        sum += product;
    }
    return sum;
}

Result<NodeQuery> NodeQuery::parse(const QString& text) {
    static const QRegularExpression condition(QStringLiteral("^\\s*(\\w+)\\s*(<=|>=|!=|=|<|>)\\s*(.+?)\\s*$"));
    NodeQuery query;
    for (const QString& part : text.split('&', Qt::SkipEmptyParts)) {
        const auto match = condition.match(part);
        if (!match.hasMatch()) {
            for (const QString& word : part.split(' ', Qt::SkipEmptyParts))
                query.m_conditions.push_back({"any", "=", word, 0});
            continue;
        }
        Condition made{match.captured(1).toLower(), match.captured(2), match.captured(3), 0};
        if (numberFields().contains(made.field)) {
            bool ok = false;
            made.number = made.value.toDouble(&ok);
            if (!ok)
                return invalidInput(
                    QStringLiteral("%1 needs a number, not \"%2\"").arg(made.field, made.value).toStdString());
        } else if (!textFields().contains(made.field)) {
            return invalidInput(QStringLiteral("no field \"%1\"; there are %2")
                                    .arg(made.field, (textFields() + numberFields()).join(", "))
                                    .toStdString());
        } else if (made.comparison != "=" && made.comparison != "!=") {
            return invalidInput(QStringLiteral("%1 is text: compare with = or !=").arg(made.field).toStdString());
        }
        query.m_conditions.push_back(made);
    }
    return query;
}

bool NodeQuery::holds(const Condition& condition, const UnionGraph::Node& node) {
    if (condition.field == "any") {
        for (const QString& field : textFields())
            if (field != "change" && textField(field, node).contains(condition.value, Qt::CaseInsensitive)) return true;
        return false;
    }
    if (textFields().contains(condition.field))
        return textField(condition.field, node).contains(condition.value, Qt::CaseInsensitive) ==
               (condition.comparison == "=");
    const double value = numberField(condition.field, node);
    if (condition.comparison == "=") return value == condition.number;
    if (condition.comparison == "!=") return value != condition.number;
    if (condition.comparison == "<") return value >= 0 && value < condition.number;
    if (condition.comparison == "<=") return value >= 0 && value <= condition.number;
    if (condition.comparison == ">") return value > condition.number;
    return value >= condition.number;
}

bool NodeQuery::matches(const UnionGraph::Node& node) const {
    for (const Condition& condition : m_conditions)
        if (!holds(condition, node)) return false;
    return true;
}

}  // namespace cutaway::ui
