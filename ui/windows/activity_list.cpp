#include "ui/windows/activity_list.h"

#include <QHBoxLayout>
#include <QProgressBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/windows/elided_label.h"

namespace cutaway::ui {
namespace {

constexpr int kLateMilliseconds = 200, kTickMilliseconds = 100;
constexpr int kShowsSeconds = 2;  // the time is shown from then on
constexpr int kLetters = 62, kBarWidth = 120;

QString lineOf(const Activity& activity) {
    QString text = activity.doing;
    if (!activity.progress.isEmpty()) text += QStringLiteral(": ") + activity.progress;
    const qint64 seconds = activity.since.elapsed() / 1000;
    return seconds < kShowsSeconds ? text : ActivityList::tr("%1 · %2 s").arg(text).arg(seconds);
}

}  // namespace

ActivityList::ActivityList(QWidget* parent) : QWidget(parent), m_column(new QVBoxLayout(this)) {
    setObjectName(QStringLiteral("activities"));
    m_column->setContentsMargins(0, 0, 0, 0);
    m_column->setSpacing(1);
    m_tick.setInterval(kTickMilliseconds);
    connect(&m_tick, &QTimer::timeout, this, &ActivityList::refresh);
}

void ActivityList::setActivities(const QVector<Activity>& activities) {
    m_activities = activities;
    if (activities.isEmpty()) m_tick.stop();
    else if (!m_tick.isActive()) m_tick.start();
    if (activities.size() < static_cast<qsizetype>(m_rows.size())) refresh();
}

void ActivityList::addRow() {
    Row row;
    row.box = new QWidget(this);
    row.text = new ElidedLabel;
    row.text->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row.bar = new QProgressBar;
    row.bar->setFixedWidth(kBarWidth);
    row.bar->setMaximumHeight(fontMetrics().height());
    row.bar->setTextVisible(false);
    row.cancel = new QToolButton;
    row.cancel->setAutoRaise(true);
    row.cancel->setFocusPolicy(Qt::TabFocus);
    const auto at = static_cast<qsizetype>(m_rows.size());
    connect(row.cancel, &QToolButton::clicked, this,
            [this, at] { emit cancelWanted(m_rows[static_cast<size_t>(at)].tag); });
    auto* line = new QHBoxLayout(row.box);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(6);
    line->addWidget(row.text);
    line->addWidget(row.bar);
    line->addWidget(row.cancel);
    m_column->addWidget(row.box);
    m_rows.push_back(row);
}

/// Only what is different is set: a line must not flicker, nor a screen reader repeat it.
void ActivityList::refresh() {
    QVector<Activity> late;
    for (const Activity& activity : m_activities)
        if (activity.since.elapsed() >= kLateMilliseconds) late << activity;
    while (static_cast<qsizetype>(m_rows.size()) < late.size()) addRow();
    while (static_cast<qsizetype>(m_rows.size()) > late.size()) {
        m_rows.back().box->hide();
        m_rows.back().box->deleteLater();  // its button may be what asked
        m_rows.pop_back();
    }
    for (qsizetype i = 0; i < late.size(); ++i) {
        Row& row = m_rows[static_cast<size_t>(i)];
        const Activity& activity = late[i];
        row.tag = activity.tag;
        row.text->setFixedWidth(std::min(kLetters * fontMetrics().averageCharWidth(), window()->width() / 3));
        row.text->setText(lineOf(activity));
        row.bar->setRange(0, activity.fraction < 0 ? 0 : 1000);
        if (activity.fraction >= 0) row.bar->setValue(static_cast<int>(activity.fraction * 1000));
        row.bar->setAccessibleName(activity.doing);
        row.cancel->setText(i + 1 == late.size() ? tr("Cancel (Esc)") : tr("Cancel"));
        row.cancel->setAccessibleName(tr("Cancel: %1").arg(activity.doing));
        row.cancel->setToolTip(activity.tag == QLatin1String("compile")
                                   ? tr("Stops the compile; the steps that are done stay")
                                   : row.cancel->accessibleName());
    }
}

QStringList ActivityList::texts() const {
    QStringList texts;
    for (const Row& row : m_rows) texts << row.text->text();
    return texts;
}

}  // namespace cutaway::ui
