#include "ui/windows/window.h"

#include <QCoreApplication>

namespace cutaway::ui {

Window::Window(const WindowRow& row) : QDockWidget(QCoreApplication::translate("cutaway::ui", row.title)), m_row(row) {
    setObjectName(QString::fromLatin1(row.name));
}

}  // namespace cutaway::ui
