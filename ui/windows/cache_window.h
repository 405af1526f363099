#pragma once
// The Cache window: compiled graphs that are kept for later runs.
#include "cutaway/jobs.h"
#include "ui/models/cached_graphs_model.h"
#include "ui/windows/window.h"

class QLabel;
class QPushButton;
class QTableView;

namespace cutaway::ui {

class CacheWindow : public Window {
    Q_OBJECT

  public:
    CacheWindow(const WindowRow& tableRow, const WindowParts& parts);
    static std::span<const KeyHint> keys();

  protected:
    void showEvent(QShowEvent* event) override;

  private:
    /// Lists what is there once `first` is done.
    void refresh(std::function<Result<void>()> first = {}, bool verify = false);
    void removeChosen();
    void follow();

    CachedGraphsModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QTableView* m_table;
    QLabel* m_state;
    QPushButton *m_verify, *m_remove, *m_clear;
    int m_listing = 0;
    JobQueue m_lists;  // last, so destroyed first
};

}  // namespace cutaway::ui
