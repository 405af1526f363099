#pragma once
// The page of the compile dialog that chooses files with rules of the user's own and switches single rules off.
#include <QWidget>

#include "cutaway/session.h"

class QLineEdit;
class QListWidget;

namespace cutaway::ui {

class RulesPage : public QWidget {
    Q_OBJECT

  public:
    /// `passes`: all that there are; other names that `from` switches off are names of rules.
    RulesPage(const std::vector<PassInfo>& passes, const CompileRequest& from, QWidget* parent = nullptr);
    void addFile(const QString& path, bool used);
    /// Adds the answers. Returns why they cannot be used; empty if they can.
    QString addTo(CompileRequest& request) const;
    /// The listed files are listed again the next time.
    void remember() const;

  private:
    QWidget* makeView();

    QListWidget* m_files;
    QLineEdit* m_off;
};

}  // namespace cutaway::ui
