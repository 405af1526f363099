// The Help menu.
#include <QMessageBox>

#include "cutaway/version.h"
#include "ui/windows/commands.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/manual_dialog.h"

namespace cutaway::ui {

void showKeys(MainWindow& main) { KeysDialog(*main.menuBar(), &main).exec(); }

namespace {

void showAbout(MainWindow& main) {
    QMessageBox::about(
        &main, MainWindow::tr("About Cutaway"),
        MainWindow::tr("<b>Cutaway %1</b><p>An interactive debugger for graph compilers.</p><p>%2</p>")
            .arg(QString::fromStdString(version()),
                 QString::fromStdString(buildText()).toHtmlEscaped().replace('\n', QStringLiteral("<br>"))));
}

void showManual(MainWindow& main) {
    auto* dialog = main.findChild<ManualDialog*>();
    if (!dialog) dialog = new ManualDialog(&main);
    dialog->show();
    dialog->raise();
}

const Command kHelpCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Manual"), .key = "Shift+F1", .icon = "manual", .run = showManual},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Keys"), .key = "F1", .icon = "keys", .run = showKeys},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&About Cutaway"), .icon = "about", .run = showAbout},
};

}  // namespace

std::span<const Command> helpCommands() { return kHelpCommands; }

}  // namespace cutaway::ui
