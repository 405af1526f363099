#pragma once
// Every key of the program, by menu and window, on a page that can be printed.
#include <QDialog>

class QMenuBar;

namespace cutaway::ui {

/// The page as rich text, in two columns of groups or in one.
QString keysPage(const QMenuBar& menus, bool twoColumns = true);

class KeysDialog : public QDialog {
    Q_OBJECT

  public:
    explicit KeysDialog(const QMenuBar& menus, QWidget* parent = nullptr);
};

}  // namespace cutaway::ui
