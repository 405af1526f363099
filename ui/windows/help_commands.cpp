// The Help menu.
#include <QMessageBox>
#include <QTimer>
#include <chrono>
#include <future>

#include "cutaway/devices.h"
#include "cutaway/version.h"
#include "ui/windows/commands.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/manual_dialog.h"
#include "ui/windows/window.h"

namespace cutaway::ui {

void showKeys(MainWindow& main) { KeysDialog(*main.menuBar(), &main).exec(); }

namespace {

QString asHtml(const std::string& lines) {
    return QString::fromStdString(lines).trimmed().toHtmlEscaped().replace('\n', QStringLiteral("<br>"));
}

/// The GPUs follow when a worker has found them.
void showAbout(MainWindow& main) {
    QMessageBox box(&main);
    box.setWindowTitle(MainWindow::tr("About Cutaway"));
    box.setIconPixmap(main.windowIcon().pixmap(64));
    const QString text =
        MainWindow::tr("<b>Cutaway %1</b><p>An interactive debugger for graph compilers.</p><p>%2</p><p>%3</p>")
            .arg(QString::fromStdString(version()), asHtml(buildText()));
    box.setText(text.arg(MainWindow::tr("Looking for GPUs…")));
    box.setStandardButtons(QMessageBox::Ok);
    Progress progress;
    auto asked = std::async(std::launch::async, [&progress] { return findDevices(progress); });
    QTimer timer;
    QObject::connect(&timer, &QTimer::timeout, &box, [&] {
        if (asked.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
        timer.stop();
        const auto found = asked.get();
        box.setText(text.arg(asHtml(found ? cutaway::text(*found) : found.error().text())));
    });
    constexpr int kMilliseconds = 50;
    timer.start(kMilliseconds);
    box.exec();
    progress.cancel->cancel();
}

/// At the page of the window that has the focus.
void showManual(MainWindow& main) {
    const Window* window = nullptr;
    for (QWidget* at = main.focusWidget(); at && !window; at = at->parentWidget()) window = qobject_cast<Window*>(at);
    auto* dialog = main.findChild<ManualDialog*>();
    if (!dialog) dialog = new ManualDialog(&main);
    // Pages have the names of the table, which are never translated.
    if (window) dialog->showPage(QString::fromLatin1(window->row().name) + QStringLiteral(" window"));
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
