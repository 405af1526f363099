#pragma once
// The Kernels window: the kernels of the last build with their cost, and the source of the chosen one or what the
// compiler said.

#include "ui/models/kernels_model.h"
#include "ui/windows/window.h"

class QLabel;
class QSplitter;
class QTableView;
class QTabWidget;

namespace cutaway::ui {

class CodeView;
class Columns;

class KernelsWindow : public Window {
    Q_OBJECT

  public:
    KernelsWindow(const WindowRow& tableRow, const WindowParts& parts);
    /// Whether a kernel of the code that was generated last computes the node.
    bool computes(NodeKey node) const { return m_kernels.rowOf(node) >= 0; }

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    void listKernels(const BuildInfo& info, const QString& run);
    void showBuild(const BuildInfo& info, const QString& run);
    void showKernel(int row);
    void clear();
    void copyRows();
    int rowAt(const QModelIndex& shown) const;

    Selection& m_selection;
    KernelsModel& m_kernels;  // a child, not a member: the view still asks it while this window closes
    QString m_said;           // of the kernels, in the summary
    QLabel* m_summary;
    QTableView* m_table;
    Columns* m_columns;  // those of times are there when there are some
    QSplitter* m_areas;
    QTabWidget* m_texts;
    CodeView *m_source, *m_compileLog;
};

}  // namespace cutaway::ui
