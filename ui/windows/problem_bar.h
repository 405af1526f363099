#pragma once
// The bar over the windows that tells the latest problem: what failed, where, what to do next.
#include <QFrame>

#include "ui/models/log_model.h"

class QLabel;
class QPushButton;

namespace cutaway::ui {

class ProblemBar : public QFrame {
    Q_OBJECT

  public:
    explicit ProblemBar(QWidget* parent = nullptr);
    void showProblem(const LogEntry& entry);
    QString text() const;

  signals:
    void goTo(const cutaway::Place& place);

  protected:
    bool event(QEvent* event) override;

  private:
    void fitHeight();
    QLabel *m_what, *m_more;
    QPushButton* m_go;
    std::optional<Place> m_where;
};

}  // namespace cutaway::ui
