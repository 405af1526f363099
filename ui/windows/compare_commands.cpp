// Comparing the current graph with another one: commands of the Debug menu.
#include <QFileDialog>

#include "ui/windows/commands.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/main_window.h"
#include "ui/windows/start_folder.h"

namespace cutaway::ui {
namespace {

void chooseAndCompare(MainWindow& main, const QString& path, const std::vector<GraphSummary>& graphs) {
    auto* dialog = new GraphDialog(graphs, path, {}, &main);
    dialog->setWindowTitle(MainWindow::tr("Compare with"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    QObject::connect(dialog, &QDialog::accepted, &main, [&main, dialog, path] {
        if (!dialog->graph().isEmpty()) main.controller().compareWith(path, dialog->graph());
    });
    dialog->open();
}

}  // namespace

void compareWithGraph(MainWindow& main) {
    const SessionController& controller = main.controller();
    if (controller.graphs().size() > 1) return chooseAndCompare(main, controller.path(), controller.graphs());
    compareWithFile(main);
}

void compareWithFile(MainWindow& main) {
    const QString path = beginAt(
        QFileDialog::getOpenFileName(&main, MainWindow::tr("Compare with a graph of this file"), startFolder()));
    if (path.isEmpty()) return;
    main.controller().graphsOf(path, [&main, path](const std::vector<GraphSummary>& graphs) {
        if (graphs.size() > 1 && graphs.front().name != "main") chooseAndCompare(main, path, graphs);
        else main.controller().compareWith(path, {});
    });
}

void compareRecorded(MainWindow& main) {
    const Run* run = main.controller().runOf(main.selection().place().run);
    CompileRequest options = run ? run->options : CompileRequest{};
    if (!run) options.pytorch = main.controller().releaseOfFile().value_or(kDefaultRelease);
    main.controller().compareRecorded(options);
}

QString needsRecorded(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    return main.controller().recordedPair()
               ? QString()
               : MainWindow::tr(
                     "This file has no graphs from before and after PyTorch's post-grad passes: open a trace "
                     "(TORCH_TRACE) or a debug folder.");
}

}  // namespace cutaway::ui
