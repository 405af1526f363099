#pragma once
// The Package window: what AOTInductor compiled, with its sources, and which calls of the run on show compute the same.
#include "cutaway/jobs.h"
#include "ui/models/package_model.h"
#include "ui/windows/window.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSplitter;
class QTableView;

namespace cutaway::ui {

class CodeView;

class PackageWindow : public Window {
    Q_OBJECT

  public:
    PackageWindow(const WindowRow& tableRow, const WindowParts& parts);
    /// Reads a package, an archive or a folder; it stays until another is read.
    void open(const QString& path);

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    void askFile();
    void askFolder();
    void shown(CompiledPackage package);
    void showModel();
    void compare();
    void showRow();
    void follow();

    SessionController& m_controller;
    Selection& m_selection;
    PackageModel& m_model;  // a child, not a member: the view still asks it while this window closes
    QTableView* m_table;
    QLabel* m_state;
    QSplitter* m_areas;
    QComboBox* m_models;
    QPushButton *m_open, *m_folder, *m_compare;
    CodeView *m_theirs, *m_ours;
    std::optional<CompiledPackage> m_package;
    std::shared_ptr<const PackageComparison> m_comparison;
    QString m_said;
    int m_reading = 0, m_looking = 0;
    JobQueue m_reads;  // last, so destroyed first
};

}  // namespace cutaway::ui
