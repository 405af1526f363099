// The File menu.
#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QGridLayout>
#include <QSaveFile>
#include <QSettings>

#include "ui/windows/commands.h"
#include "ui/windows/export_graph.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/start_folder.h"

namespace cutaway::ui {

QString needsModel(MainWindow& main) {
    return main.controller().model() ? QString() : MainWindow::tr("Open a model first (Ctrl+O).");
}

void chooseFile(MainWindow& main) {
    const QString last = QSettings().value(QStringLiteral("recent")).toStringList().value(0);
    const QString from = main.controller().model() || last.isEmpty() ? startFolder() : QFileInfo(last).absolutePath();
    const QString path = beginAt(
        QFileDialog::getOpenFileName(&main, MainWindow::tr("Open a model or graph"), from,
                                     MainWindow::tr("Models and graphs (*.pt2 *.py *.txt *.log *.pt);;All files (*)")));
    if (!path.isEmpty()) main.open(path);
}

void chooseFolder(MainWindow& main) {
    const QString path =
        beginAt(QFileDialog::getExistingDirectory(&main, MainWindow::tr("Open a debug folder"), startFolder()));
    if (!path.isEmpty()) main.open(path);
}

namespace {

/// Takes a folder that is there, and one that is not yet: QFileDialog's own modes know either files or folders that are
/// there.
class FolderDialog : public QFileDialog {
  public:
    FolderDialog(QWidget* parent, const QString& title) : QFileDialog(parent, title) {
        setOption(QFileDialog::DontUseNativeDialog);  // they have the same modes
        setFileMode(QFileDialog::AnyFile);
        setFilter(QDir::AllDirs | QDir::NoDotAndDotDot);
        setAcceptMode(QFileDialog::AcceptSave);
        setDirectory(startFolder());
    }

  protected:
    void accept() override { QDialog::accept(); }
};

}  // namespace

QString askForNewFolder(MainWindow& main, const QString& title) {
    FolderDialog dialog(&main, title);
    return dialog.exec() == QDialog::Accepted ? beginAt(dialog.selectedFiles().value(0)) : QString();
}

void chooseGraph(MainWindow& main) {
    SessionController& controller = main.controller();
    auto* dialog = new GraphDialog(controller.graphs(), controller.path(), controller.graph(), &main);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    QObject::connect(dialog, &QDialog::accepted, &main, [&main, dialog, path = controller.path()] {
        if (!dialog->graph().isEmpty() && dialog->graph() != main.controller().graph())
            main.open(path, dialog->graph());
    });
    dialog->open();
}

namespace {

QString needsSeveralGraphs(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    return main.controller().graphs().size() > 1 ? QString() : MainWindow::tr("This file holds one graph.");
}

void fillRecent(MainWindow& main, QMenu& menu) {
    const QStringList recent = QSettings().value(QStringLiteral("recent")).toStringList();
    for (const QString& path : recent) menu.addAction(path, &main, [&main, path] { main.open(path); });
    if (recent.isEmpty()) menu.addAction(MainWindow::tr("No file was opened yet"))->setEnabled(false);
}

void exportPicture(MainWindow& main) {
    GraphWindow& graph = main.get<GraphWindow>();
    const GraphScene* scene = graph.view().canvas().scene();
    if (!scene) return main.say(MainWindow::tr("The graph is not drawn yet."));
    const QString path =
        askForFile(&main, MainWindow::tr("Export the graph"), QStringLiteral("graph"),
                   {MainWindow::tr("SVG (*.svg)"), MainWindow::tr("PNG (*.png)"), MainWindow::tr("Graphviz (*.dot)")});
    if (path.isEmpty()) return;
    const GraphCanvas& canvas = graph.view().canvas();
    const auto done =
        exportGraph(*scene, canvas.mode(), {canvas.marks(), canvas.heat()}, main.palette(), graph.pictureTitle(), path);
    if (done) return main.say(MainWindow::tr("Wrote %1").arg(path));
    main.logProblem(entryOf(done.error(), MainWindow::tr("Exporting the graph")));
}

void exportText(MainWindow& main) {
    const QString path = askForFile(&main, MainWindow::tr("Export the graph as a Python program"),
                                    QStringLiteral("graph"), {MainWindow::tr("Python (*.py)")});
    if (path.isEmpty()) return;
    main.controller().runnableText(main.selection().place(), [&main, path](const QString& text) {
        QSaveFile file(path);
        if (file.open(QIODevice::WriteOnly) && file.write(text.toUtf8()) >= 0 && file.commit())
            return main.say(MainWindow::tr("Wrote %1").arg(path));
        main.logProblem({LogEntry::Level::Problem,
                         MainWindow::tr("Exporting the text: %1").arg(file.errorString()),
                         path,
                         MainWindow::tr("Choose a folder that you can write to."),
                         {},
                         NodeKey::None});
    });
}

/// Where an export goes, and how it is made: below Qt's own rows those of the tables of cutaway/export.h.
class ExportFolderDialog final : public FolderDialog {
  public:
    explicit ExportFolderDialog(QWidget* parent)
        : FolderDialog(parent, MainWindow::tr("Folder for the compiled library, new or empty, or FILE.zip")),
          m_target(choicesOf(exportTargets(), "target")),
          m_weights(choicesOf(exportWeights(), "weights")),
          m_debug(new QCheckBox(MainWindow::tr("With what a &debugger reads"))),
          m_check(new QCheckBox(MainWindow::tr("Load and &run it, and compare with the reference"))) {
        m_debug->setObjectName("debug");
        m_check->setObjectName("check");
        m_check->setChecked(true);
        auto* rows = new QFormLayout;
        rows->addRow(MainWindow::tr("Compiled &for:"), m_target);
        rows->addRow(MainWindow::tr("&Weights:"), m_weights);
        rows->addRow(m_debug);
        rows->addRow(m_check);
        if (auto* grid = qobject_cast<QGridLayout*>(layout())) grid->addLayout(rows, grid->rowCount(), 0, 1, -1);
    }
    ExportOptions options() const {
        ExportOptions options;
        options.folder = selectedFiles().value(0).toStdString();
        options.target = m_target->currentData().toString().toStdString();
        options.weights = m_weights->currentData().toString().toStdString();
        options.debug = m_debug->isChecked();
        options.check = m_check->isChecked();
        return options;
    }

  private:
    static QComboBox* choicesOf(std::span<const ExportChoice> choices, const char* name) {
        auto* box = new QComboBox;
        box->setObjectName(name);
        for (const ExportChoice& choice : choices) {
            const auto text = [](std::string_view from) {
                return QString::fromUtf8(from.data(), static_cast<qsizetype>(from.size()));
            };
            box->addItem(text(choice.title), text(choice.word));
            box->setItemData(box->count() - 1, text(choice.meaning), Qt::ToolTipRole);
        }
        return box;
    }

    QComboBox *m_target, *m_weights;
    QCheckBox *m_debug, *m_check;
};

void exportLibrary(MainWindow& main) {
    const auto run = currentRun(main);
    if (!run) return;
    ExportFolderDialog dialog(&main);
    if (dialog.exec() != QDialog::Accepted || dialog.selectedFiles().isEmpty()) return;
    beginAt(dialog.selectedFiles().value(0));
    main.controller().exportProgram(*run, dialog.options());
}

const Command kFileCommands[] = {
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Open…"),
     .key = "Ctrl+O",
     .icon = "open",
     .bar = {1, true},
     .run = chooseFile},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Open &Folder…"),
     .key = "Ctrl+Shift+O",
     .icon = "open-folder",
     .run = chooseFolder},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Open Another &Graph…"),
     .key = "Ctrl+Shift+G",
     .icon = "graphs",
     .run = chooseGraph,
     .whyNot = needsSeveralGraphs},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Open &Recent"), .icon = "recent", .fill = fillRecent},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Close"),
     .key = "Ctrl+W",
     .icon = "close",
     .run = [](MainWindow& main) { main.controller().close(); },
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Export &Picture…"),
     .key = "Ctrl+Shift+E",
     .icon = "picture",
     .first = true,
     .run = exportPicture,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Export &Text…"),
     .icon = "export-text",
     .run = exportText,
     .whyNot = needsModel},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "Export Compiled &Library…"),
     .icon = "export-library",
     .run = exportLibrary,
     .whyNot = asRunSays<&Run::notBuilt>},
    {.text = QT_TRANSLATE_NOOP("cutaway::ui", "&Quit"),
     .key = "Ctrl+Q",
     .icon = "quit",
     .first = true,
     .run = [](MainWindow& main) { main.close(); }},
};

}  // namespace

std::span<const Command> fileCommands() { return kFileCommands; }

}  // namespace cutaway::ui
