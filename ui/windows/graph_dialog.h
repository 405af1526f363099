#pragma once
// Which graph of a file or folder to open: a list with counts, to sort and to search.
#include <QDialog>
#include <vector>

#include "cutaway/session.h"

class QLineEdit;
class QTreeWidget;

namespace cutaway::ui {

class GraphDialog : public QDialog {
    Q_OBJECT

  public:
    /// `path`: of the file or folder that holds them; `current`: the graph that is open.
    GraphDialog(const std::vector<GraphSummary>& graphs, const QString& path, const QString& current,
                QWidget* parent = nullptr);
    /// The chosen one; empty if nothing is chosen.
    QString graph() const;

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void filter(const QString& text);
    QLineEdit* m_filter;
    QTreeWidget* m_list;
};

}  // namespace cutaway::ui
