#pragma once
// A line for each activity: what it is, how far it is, for how long it has run, and a button that stops it. Work that
// ends within 0.2 s shows no line.
#include <QTimer>
#include <QWidget>

#include "ui/session/session_controller.h"

class QLabel;
class QProgressBar;
class QToolButton;
class QVBoxLayout;

namespace cutaway::ui {

class ElidedLabel;

class ActivityList : public QWidget {
    Q_OBJECT

  public:
    explicit ActivityList(QWidget* parent = nullptr);
    /// The activities, in the order in which they began. Esc stops the last.
    void setActivities(const QVector<Activity>& activities);
    /// The lines on show.
    QStringList texts() const;

  signals:
    void cancelWanted(const QString& tag);

  private:
    struct Row {
        QWidget* box = nullptr;
        ElidedLabel* text = nullptr;
        QProgressBar* bar = nullptr;
        QToolButton* cancel = nullptr;
        QString tag;
    };
    void refresh();
    void addRow();

    QVBoxLayout* m_column;
    QVector<Activity> m_activities;
    std::vector<Row> m_rows;
    QTimer m_tick;
};

}  // namespace cutaway::ui
