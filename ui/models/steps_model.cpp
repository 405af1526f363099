#include "ui/models/steps_model.h"

#include <algorithm>

#include "ui/models/steps_item.h"

namespace cutaway::ui {

StepsModel::StepsModel(QObject* parent) : QAbstractItemModel(parent), m_root(std::make_unique<Item>()) {}
StepsModel::~StepsModel() = default;

void StepsModel::setRun(RunId run, std::vector<StepInfo> steps) {
    beginResetModel();
    m_resetting = true;
    m_run = run;
    m_steps = std::move(steps);
    m_passItems.clear();
    m_root = std::make_unique<Item>();
    m_root->add(Item::make(Kind::Opened));
    for (size_t i = 0; i < m_steps.size(); ++i) append(static_cast<int>(i));
    m_resetting = false;
    endResetModel();
}

void StepsModel::addSteps(const std::vector<StepInfo>& steps) {
    for (const StepInfo& step : steps) {
        m_steps.push_back(step);
        append(static_cast<int>(m_steps.size()) - 1);
    }
}

void StepsModel::clear() {
    beginResetModel();
    m_steps.clear();
    m_passItems.clear();
    m_root = std::make_unique<Item>();
    endResetModel();
}

StepsModel::Item* StepsModel::insert(Item* above, std::unique_ptr<Item> item) {
    if (m_resetting) return above->add(std::move(item));
    const int row = static_cast<int>(above->children.size());
    beginInsertRows(indexOf(above), row, row);
    Item* added = above->add(std::move(item));
    endInsertRows();
    return added;
}

/// Rows for a step behind those that have some.
void StepsModel::append(int step) {
    const StepInfo& info = m_steps[static_cast<size_t>(step)];
    const QString stageName = QString::fromStdString(info.stage);
    const QString graphName = QString::fromStdString(info.graphName);
    // The track `main` is not a level of its own in the tree.
    const bool alone = graphName.isEmpty() || graphName == QStringLiteral("main");
    const auto lastOf = [](const Item& above) {
        return above.children.empty() ? nullptr : above.children.back().get();
    };
    Item* above = m_root.get();
    if (!alone) {
        // The stages of forward and backward take turns; each has its row.
        const auto found = std::find_if(m_root->children.begin(), m_root->children.end(), [&](const auto& row) {
            return row->kind == Kind::Graph && row->graphName == graphName;
        });
        if (found != m_root->children.end()) {
            above = found->get();
        } else {
            auto fresh = Item::make(Kind::Graph);
            fresh->graphName = graphName;
            above = insert(m_root.get(), std::move(fresh));
        }
    }
    Item* stage = lastOf(*above);
    if (!stage || stage->kind != Kind::Stage || stage->stage != stageName) {
        auto fresh = Item::make(Kind::Stage);
        fresh->graphName = graphName;
        fresh->stage = stageName;
        stage = insert(above, std::move(fresh));
    }
    Item* last = stage->children.empty() ? nullptr : stage->children.back().get();
    const auto folds = [](const StepInfo& each) { return each.state == StepState::Unchanged; };
    const bool unchanged = folds(info);
    if (unchanged && last && last->kind == Kind::Pass && folds(*stepOf(*last))) {
        // One unchanged pass takes no more room than a row that says so; a second makes it worth folding both.
        auto fold = Item::make(Kind::Fold);
        m_passItems[static_cast<size_t>(last->step)] = fold->add(Item::make(Kind::Pass, last->step));
        if (!m_resetting) beginRemoveRows(indexOf(stage), last->row, last->row);
        stage->children.pop_back();
        if (!m_resetting) endRemoveRows();
        last = insert(stage, std::move(fold));
    }
    m_passItems.push_back(
        insert(unchanged && last && last->kind == Kind::Fold ? last : stage, Item::make(Kind::Pass, step)));
    if (m_resetting) return;
    emit dataChanged(indexOf(stage), indexOf(stage, ColumnCount - 1));  // counts
    if (above != m_root.get()) emit dataChanged(indexOf(above), indexOf(above, ColumnCount - 1));
    if (last && last->kind == Kind::Fold) emit dataChanged(indexOf(last), indexOf(last));
}

void StepsModel::setRewrites(int step, std::vector<RewriteInfo> rewrites) {
    if (step < 0 || step >= static_cast<int>(m_passItems.size())) return;
    Item* pass = m_passItems[static_cast<size_t>(step)];
    const QModelIndex at = indexOf(pass);
    if (!pass->children.empty()) {
        beginRemoveRows(at, 0, static_cast<int>(pass->children.size()) - 1);
        pass->children.clear();
        endRemoveRows();
    }
    pass->asked = pass->answered = true;
    if (rewrites.empty()) return;
    beginInsertRows(at, 0, static_cast<int>(rewrites.size()) - 1);
    for (RewriteInfo& rewrite : rewrites) {
        Item* child = pass->add(Item::make(Kind::Rewrite, step));
        child->rewrite = std::move(rewrite);
    }
    endInsertRows();
}

void StepsModel::setMarks(std::optional<Place> a, std::optional<Place> b) {
    m_markA = a;
    m_markB = b;
    // Marks may stand on rows of any depth; names are repainted all the way down.
    const auto touch = [&](auto&& self, const Item& item) -> void {
        if (item.children.empty()) return;
        const QModelIndex above = &item == m_root.get() ? QModelIndex() : indexOf(&item);
        emit dataChanged(index(0, Name, above), index(static_cast<int>(item.children.size()) - 1, Name, above),
                         {Qt::DisplayRole, Qt::FontRole});
        for (const auto& child : item.children) self(self, *child);
    };
    touch(touch, *m_root);
}

StepsModel::Item* StepsModel::itemOf(const QModelIndex& at) const {
    return at.isValid() ? static_cast<Item*>(at.internalPointer()) : m_root.get();
}

QModelIndex StepsModel::indexOf(const Item* item, int column) const {
    return item == m_root.get() ? QModelIndex() : createIndex(item->row, column, item);
}

const StepInfo* StepsModel::stepOf(const Item& item) const {
    return item.kind == Kind::Pass ? &m_steps[static_cast<size_t>(item.step)] : nullptr;
}

std::optional<Place> StepsModel::placeOf(const QModelIndex& at) const {
    if (!at.isValid() || m_run == kUnderWay) return {};
    const Item& item = *itemOf(at);
    switch (item.kind) {
        case Kind::Opened: return Place{m_run, -1, -1};
        case Kind::Pass: return Place{m_run, item.step, -1};
        case Kind::Rewrite: return Place{m_run, item.step, item.row + 1};
        default: return {};
    }
}

QModelIndex StepsModel::indexOf(const Place& place) const {
    if (place.run != m_run || m_root->children.empty()) return {};
    if (place.step < 0) return index(0, 0);
    if (place.step >= static_cast<int>(m_passItems.size())) return {};
    const Item* pass = m_passItems[static_cast<size_t>(place.step)];
    const int rewrite = place.rewrites - 1;
    if (rewrite >= 0 && rewrite < static_cast<int>(pass->children.size()))
        return indexOf(pass->children[static_cast<size_t>(rewrite)].get());
    return indexOf(pass);
}

QModelIndex StepsModel::index(int row, int column, const QModelIndex& parent) const {
    if (!hasIndex(row, column, parent)) return {};
    return createIndex(row, column, itemOf(parent)->children[static_cast<size_t>(row)].get());
}

QModelIndex StepsModel::parent(const QModelIndex& at) const {
    if (!at.isValid()) return {};
    return indexOf(itemOf(at)->parent);
}

int StepsModel::rowCount(const QModelIndex& parent) const {
    return parent.column() > 0 ? 0 : static_cast<int>(itemOf(parent)->children.size());
}
int StepsModel::columnCount(const QModelIndex&) const { return ColumnCount; }

bool StepsModel::hasChildren(const QModelIndex& parent) const {
    if (parent.column() > 0) return false;
    if (rowCount(parent) > 0) return true;
    const Item& item = *itemOf(parent);
    const StepInfo* step = stepOf(item);
    return step && step->rewrites > 0 && !item.answered && m_run != kUnderWay;
}

bool StepsModel::canFetchMore(const QModelIndex& parent) const {
    if (!parent.isValid() || parent.column() > 0) return false;
    const Item& item = *itemOf(parent);
    const StepInfo* step = stepOf(item);
    return step && step->rewrites > 0 && !item.asked && m_run != kUnderWay;
}

void StepsModel::fetchMore(const QModelIndex& parent) {
    if (!canFetchMore(parent)) return;
    itemOf(parent)->asked = true;
    emit rewritesWanted(m_run, itemOf(parent)->step);
}

bool StepsModel::placeMatches(const Item& item, const std::optional<Place>& mark) const {
    return mark && placeOf(indexOf(&item)) == mark;
}

Qt::ItemFlags StepsModel::flags(const QModelIndex& at) const {
    if (!at.isValid()) return Qt::NoItemFlags;
    Qt::ItemFlags flags = Qt::ItemIsEnabled;
    // What is highlighted is what is on show; rows that hold others show nothing.
    const Kind kind = itemOf(at)->kind;
    if (kind != Kind::Graph && kind != Kind::Stage && kind != Kind::Fold) flags |= Qt::ItemIsSelectable;
    const StepInfo* step = stepOf(*itemOf(at));
    if (at.column() == Name && step && m_run != kUnderWay) flags |= Qt::ItemIsUserCheckable;
    return flags;
}

bool StepsModel::setData(const QModelIndex& at, const QVariant& value, int role) {
    const StepInfo* step = at.isValid() && role == Qt::CheckStateRole ? stepOf(*itemOf(at)) : nullptr;
    if (!step) return false;
    const bool enabled = value.toInt() == Qt::Checked;
    if (enabled == (step->state != StepState::Disabled)) return false;
    emit passToggled(QString::fromStdString(step->name), enabled);
    return false;
}

}  // namespace cutaway::ui
