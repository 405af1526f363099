#include "ui/models/memory_chart.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>

#include "cutaway/words.h"
#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("cutaway::ui::MemoryChart", text); }

}  // namespace

int64_t MemoryChart::bottomOf(int value) const {
    return at(value).offset + (at(value).place == MemoryValue::Place::Heap ? m_plan->arena : 0);
}

int MemoryChart::valueAt(int call, int64_t byte) const {
    for (int i = 0; i < values(); ++i) {
        const int64_t bottom = bottomOf(i);
        if (at(i).first <= call && call <= at(i).last && bottom <= byte && byte < bottom + at(i).bytes) return i;
    }
    return -1;
}

int MemoryChart::valueOf(NodeKey node) const {
    if (node == NodeKey::None) return -1;
    int found = -1, foundOfCall = -1;
    const auto larger = [&](int candidate, int than) { return than < 0 || at(candidate).bytes > at(than).bytes; };
    for (int i = 0; i < values(); ++i) {
        const std::vector<NodeKey>& nodes = call(at(i).first).nodes;
        if (at(i).node == node && !at(i).workspace) found = larger(i, found) ? i : found;
        else if (std::find(nodes.begin(), nodes.end(), node) != nodes.end())
            foundOfCall = larger(i, foundOfCall) ? i : foundOfCall;
    }
    return found >= 0 ? found : foundOfCall;
}

int MemoryChart::neighbour(int value, int call, bool above) const {
    int found = value;
    for (int i = 0; i < values(); ++i) {
        if (at(i).first > call || call > at(i).last || i == value) continue;
        const int64_t bottom = bottomOf(i), own = bottomOf(value), best = bottomOf(found);
        if (above && bottom > own && (found == value || bottom < best)) found = i;
        if (!above && bottom < own && (found == value || bottom > best)) found = i;
    }
    return found;
}

QString makerText(const MemoryPlan& plan, const MemoryValue& value) {
    QStringList words;
    switch (plan.calls[static_cast<size_t>(value.first)].maker) {
        case MemoryMaker::Kernel: words << tr("kernel"); break;
        case MemoryMaker::Library: words << tr("library"); break;
        case MemoryMaker::Reference: words << tr("fallback"); break;
    }
    if (value.workspace) words << tr("workspace");
    if (value.place == MemoryValue::Place::Heap) words << tr("own memory");
    if (!value.over.empty()) words << tr("in place of %1").arg(QString::fromStdString(value.over));
    if (value.output) words << tr("returned");
    return words.join(QStringLiteral(", "));
}

QString MemoryChart::said(int value) const {
    const MemoryValue& bar = at(value);
    const MemoryCall& made = call(bar.first);
    const QString calls = bar.first == bar.last ? tr("call %1").arg(bar.first + 1)
                                                : tr("calls %1 to %2").arg(bar.first + 1).arg(bar.last + 1);
    QStringList words{
        QString::fromStdString(bar.name), QString::fromStdString(bar.type), sizeText(bar.bytes), calls,
        QStringLiteral("%1 (%2)").arg(QString::fromStdString(made.name), QString::fromStdString(made.kind))};
    if (bar.place == MemoryValue::Place::Heap) words << tr("memory of its own");
    if (!bar.over.empty()) words << tr("in place of %1").arg(QString::fromStdString(bar.over));
    if (bar.output) words << tr("returned");
    return words.join(QStringLiteral(" · "));
}

}  // namespace cutaway::ui
