#include "ui/models/node_model.h"

#include <QFont>
#include <QRegularExpression>
#include <algorithm>

#include "cutaway/words.h"
#include "ui/models/number_cells.h"
#include "ui/models/units.h"
#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

QString find(const std::vector<std::pair<std::string, std::string>>& rows, const std::string& key) {
    for (const auto& [name, value] : rows)
        if (name == key) return text(value);
    return {};
}

}  // namespace

struct NodeModel::Item {
    QString label, value;
    QString whole;        // the full text where `value` is shortened
    bool digits = false;  // sizes, strides, numbers: to be compared place by place
    NodeKey node = NodeKey::None;
    int step = -2;
    QString kernel;  // to go to its code
    Item* parent = nullptr;
    int row = 0;
    std::vector<std::unique_ptr<Item>> children;

    Item* add(const QString& newLabel, const QString& newValue = {}) {
        auto child = std::make_unique<Item>();
        child->label = newLabel;
        child->value = newValue;
        child->parent = this;
        child->row = static_cast<int>(children.size());
        children.push_back(std::move(child));
        return children.back().get();
    }
};

NodeModel::NodeModel(QObject* parent) : QAbstractItemModel(parent), m_root(std::make_unique<Item>()) {}
NodeModel::~NodeModel() = default;

void NodeModel::clear() {
    beginResetModel();
    m_root = std::make_unique<Item>();
    endResetModel();
}

namespace {

/// "old → new" where both sides have a value and they differ.
QString beforeAfter(const QString& before, const QString& after) {
    if (before.isEmpty() || before == after) return after;
    if (after.isEmpty()) return before;
    return before + QStringLiteral(" → ") + after;
}

QString valueInUnits(const std::string& key, const QString& value) {
    bool isNumber = false;
    const qlonglong bytes = key == "bytes" ? value.toLongLong(&isNumber) : 0;
    return isNumber ? sizeText(bytes) : value;
}

/// 'File "site-packages/torch/nn/linear.py", line 5, in forward' as "forward" and "nn/linear.py:5": the beginning of a
/// path says least.
template <class Item>
void addFrame(Item& frames, const QString& frame) {
    static const QRegularExpression kFrame(QStringLiteral("^File \"([^\"]*)\", line (\\d+)(?:, in ([^:]*)(?::.*)?)?$"));
    const auto match = kFrame.match(frame.section(QChar('\n'), 0, 0).trimmed());
    Item* row = frames.add(
        match.captured(3),
        match.hasMatch() ? match.captured(1).section(QChar('/'), -2) + QChar(':') + match.captured(2) : frame);
    row->whole = frame;
}

QString number(double value) { return QString::number(value, 'g', 6); }
QString range(const ValueSummary& values) {
    return QObject::tr("%1 to %2").arg(number(values.least), number(values.most));
}

}  // namespace

/// What a constant is made from, and what its numbers are like.
void NodeModel::addConstant(const NodeDetails& now, const NodeDetails& was, const NodeFacts& facts) {
    if (!now.constant) return;
    const ConstantInfo& constant = *now.constant;
    const QString bytes = sizeText(constant.bytes);
    const bool folded = !constant.recipe.empty();
    Item* item = m_root->add(
        tr("Constant"),
        folded ? tr("%1, from %2")
                     .arg(bytes, counted(static_cast<qsizetype>(constant.sources.size()), tr("tensor"), tr("tensors")))
               : tr("%1, from the model").arg(bytes));
    if (was.constant && was.constant->bytes != constant.bytes) item->add(tr("Before"), sizeText(was.constant->bytes));
    if (constant.shared) item->add(tr("Memory"), tr("shared with what it is made from"));
    for (size_t i = 0; i < constant.sources.size(); ++i) {
        const auto& [name, type] = constant.sources[i];
        Item* source =
            item->add(folded ? tr("Computed from") : tr("Tensor"), text(name) + QStringLiteral("  ") + text(type));
        if (!facts.values || i >= facts.values->sources.size()) continue;
        source->value += QStringLiteral("  ") + range(facts.values->sources[i]);
        addNumbers(*source, facts.values->sources[i]);
    }
    for (size_t i = 0; i < constant.recipe.size(); ++i)
        item->add(i == 0 ? tr("Computed as") : QString(), text(constant.recipe[i]))->digits = true;
    if (!facts.values) return;
    Item* values = m_root->add(tr("Values"), range(*facts.values));
    values->digits = true;
    addNumbers(*values, *facts.values);
}

void NodeModel::addNumbers(Item& item, const ValueSummary& values) {
    item.add(tr("Min"), number(values.least));
    item.add(tr("Max"), number(values.most));
    item.add(tr("Mean"), number(values.mean));
    const double all = static_cast<double>(std::max<int64_t>(values.elements, 1));
    item.add(tr("Zeros"), tr("%1 %").arg(100 * static_cast<double>(values.zeros) / all, 0, 'f', 1));
    if (values.notFinite) item.add(tr("Not finite"), QString::number(values.notFinite));
    if (!values.histogram.empty()) {
        const int64_t tallest = *std::max_element(values.histogram.begin(), values.histogram.end());
        QString bars;
        for (const int64_t count : values.histogram)
            bars += count == 0 ? QChar(u' ') : QChar(static_cast<char16_t>(u'\u2581' + 7 * count / tallest));
        item.add(tr("Histogram"), bars)->whole =
            tr("Bars of equal width from least to most; the tallest has %1 elements").arg(tallest);
    }
    QStringList first;
    for (const double value : values.first) first << number(value);
    if (values.elements > static_cast<int64_t>(values.first.size())) first << QStringLiteral("…");
    item.add(tr("First"), first.join(QStringLiteral(", ")));
    if (values.madeUp) item.add(tr("Data"), tr("made up: the file has none"));
}

/// What computes it, how long that took, and, from the schedule on, with which others and why.
void NodeModel::addKernels(const NodeDetails& now, const NodeFacts& facts) {
    const std::vector<int> calls = facts.kernels ? facts.kernels->callsOf(now.node.id) : std::vector<int>();
    if (!now.kernel && calls.empty()) return;
    QString value = tr("%1 later").arg(counted(static_cast<qsizetype>(calls.size()), tr("call"), tr("calls")));
    if (now.kernel) {
        const auto others = static_cast<qsizetype>(now.kernel->nodes.size()) - 1;
        value = !now.kernel->library.empty() ? tr("a call of %1").arg(text(now.kernel->library))
                : others == 0                ? tr("of its own")
                                             : tr("shared with %1").arg(counted(others, tr("node"), tr("nodes")));
    }
    Item* kernel = m_root->add(tr("Kernel"), value);
    for (const int place : calls) {
        const KernelCall& call = facts.kernels->calls()[static_cast<size_t>(place)];
        QStringList said{text(call.kind)};
        if (call.microseconds > 0)
            said << durationText(call.microseconds / 1000)
                 << tr("%1 of the last run").arg(shareText(call.microseconds / facts.kernels->microseconds()));
        Item* row =
            kernel->add(call.kernel.empty() ? tr("Library") : text(call.kernel), said.join(QStringLiteral(" · ")));
        row->kernel = text(call.kernel);
    }
    if (!now.kernel) return;
    for (const NodeKey id : now.kernel->nodes)
        if (id != now.node.id) kernel->add(nameIn(facts.nodes, id))->node = id;
    for (const std::string& reason : now.kernel->reasons) kernel->add(tr("Fusion"), text(reason));
}

void NodeModel::setFacts(const NodeFacts& facts) {
    beginResetModel();
    m_root = std::make_unique<Item>();
    if (facts.after || facts.before) {
        const NodeDetails& now = facts.after ? *facts.after : *facts.before;
        const NodeDetails& was = facts.before ? *facts.before : now;
        const auto nameOf = [&](NodeKey id) { return nameIn(facts.nodes, id); };
        Item* node = m_root->add(tr("Node"), beforeAfter(text(was.node.name), text(now.node.name)));
        const QString state = !facts.before  ? tr("added in this step")
                              : !facts.after ? tr("removed in this step")
                                             : QString();
        if (!state.isEmpty()) node->add(tr("State"), state);
        if (!now.node.op.empty()) node->add(tr("Op"), beforeAfter(text(was.node.op), text(now.node.op)));
        if (!now.schema.empty()) node->add(tr("Schema"), text(now.schema));
        if (!now.line.empty()) node->add(tr("Text"), text(now.line).trimmed());
        if (!now.node.module.empty())
            node->add(tr("Module"),
                      text(now.node.module) +
                          (now.moduleType.empty() ? QString() : QStringLiteral(" (%1)").arg(text(now.moduleType))));
        node->add(tr("Part"), now.node.backward ? tr("backward") : tr("forward"));
        if (!facts.partition.isEmpty()) node->add(tr("Partition"), facts.partition);

        Item* result = m_root->add(tr("Result"), beforeAfter(text(was.node.type), text(now.node.type)));
        result->digits = true;
        for (const auto& [key, value] : now.tensor)
            result->add(text(key),
                        beforeAfter(valueInUnits(key, find(was.tensor, key)), valueInUnits(key, text(value))));
        for (const auto& [key, value] : was.tensor)
            if (find(now.tensor, key).isEmpty()) result->add(text(key), valueInUnits(key, text(value)));

        addConstant(now, was, facts);

        if (!now.arguments.empty()) {
            Item* arguments = m_root->add(tr("Arguments"), QString::number(now.arguments.size()));
            for (const auto& [key, value] : now.arguments)
                arguments->add(text(key), beforeAfter(find(was.arguments, key), text(value)));
            arguments->digits = true;
        }
        const auto addNodes = [&](const QString& label, const std::vector<NodeKey>& ids) {
            Item* list = m_root->add(label, ids.empty() ? tr("none") : QString::number(ids.size()));
            for (NodeKey id : ids) list->add(nameOf(id))->node = id;
        };
        addNodes(tr("Inputs"), now.node.inputs);
        addNodes(tr("Users"), now.node.users);

        addKernels(now, facts);
        const std::vector<int> calls = facts.kernels ? facts.kernels->callsOf(now.node.id) : std::vector<int>();
        if (!now.history.empty() || !calls.empty()) {
            Item* lives = m_root->add(tr("History"), counted(static_cast<qsizetype>(now.history.size() + calls.size()),
                                                             tr("event"), tr("events")));
            for (const auto& life : now.history) {
                const bool known = life.step >= 0 && life.step < static_cast<int>(facts.steps.size());
                Item* row = lives->add(life.step < 0 ? tr("as opened")
                                       : known       ? text(facts.steps[static_cast<size_t>(life.step)].name)
                                                     : tr("step %1").arg(life.step),
                                       text(life.what));
                row->step = life.step;
                for (NodeKey id : life.related) row->add(nameOf(id))->node = id;
            }
            for (const int place : calls) {
                const KernelCall& call = facts.kernels->calls()[static_cast<size_t>(place)];
                Item* row = lives->add(tr("code"), tr("computed by %1").arg(ui::nameOf(call)));
                row->kernel = text(call.kernel);
            }
        }
        if (!now.frames.empty()) {
            Item* frames = m_root->add(tr("Source"));
            for (const auto& frame : now.frames) addFrame(*frames, text(frame));
            frames->value = frames->children.back()->value;
        }
    }
    endResetModel();
}

NodeModel::Item* NodeModel::itemOf(const QModelIndex& at) const {
    return at.isValid() ? static_cast<Item*>(at.internalPointer()) : m_root.get();
}

QModelIndex NodeModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column, itemOf(parent)->children[static_cast<size_t>(row)].get());
}

QModelIndex NodeModel::parent(const QModelIndex& at) const {
    if (!at.isValid()) return {};
    const Item* above = itemOf(at)->parent;
    return above == m_root.get() ? QModelIndex() : createIndex(above->row, 0, above);
}

int NodeModel::rowCount(const QModelIndex& parent) const {
    return parent.column() > 0 ? 0 : static_cast<int>(itemOf(parent)->children.size());
}
int NodeModel::columnCount(const QModelIndex&) const { return 2; }

QVariant NodeModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const Item& item = *itemOf(at);
    switch (role) {
        case Qt::DisplayRole: return at.column() == 0 ? item.label : item.value;
        case Qt::ToolTipRole: return at.column() == 0 ? item.label : item.whole.isEmpty() ? item.value : item.whole;
        case Qt::FontRole: {
            const bool digits = at.column() == 1 && (item.digits || item.parent->digits);
            QFont font = digits ? numberFont() : QFont();
            font.setBold(item.parent == m_root.get() && at.column() == 0);
            font.setUnderline((item.node != NodeKey::None || item.step >= -1 || !item.kernel.isEmpty()) &&
                              at.column() == 0);
            return font;
        }
        case NodeRole: return item.node == NodeKey::None ? QVariant() : QVariant(cutaway::packed(item.node));
        case StepRole: return item.step < -1 ? QVariant() : QVariant(item.step);
        case KernelRole: return item.kernel.isEmpty() ? QVariant() : QVariant(item.kernel);
        default: return {};
    }
}

QVariant NodeModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    return section == 0 ? tr("Property") : tr("Value");
}

}  // namespace cutaway::ui
