// What is about the current node in the picture: parts of the graph around it, its operator, its kernel, its value.
#include <QCompleter>
#include <QInputDialog>
#include <QLineEdit>
#include <algorithm>

#include "ui/models/words.h"
#include "ui/windows/commands.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/kernels_window.h"
#include "ui/windows/loops_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/numerics_window.h"
#include "ui/windows/search_window.h"

namespace cutaway::ui {
namespace {

GraphView& viewOf(MainWindow& main) { return main.get<GraphWindow>().view(); }

void showAlone(MainWindow& main, GraphPart::Kind kind) {
    main.raiseWindow(&main.get<GraphWindow>());
    viewOf(main).showPart(GraphPart{kind, main.selection().node()});
}

/// The node that has a name in the graph on show.
NodeKey nodeNamed(MainWindow& main, const std::string& name) {
    for (const UnionGraph::Node& node : viewOf(main).graph()->nodes)
        if (node.info.name == name) return node.info.id;
    return NodeKey::None;
}

}  // namespace

QString needsNode(MainWindow& main) {
    if (const QString missing = needsModel(main); !missing.isEmpty()) return missing;
    return main.selection().node() == NodeKey::None
               ? MainWindow::tr("Choose a node first: click it in the Graph or the Text window.")
               : QString();
}

QString needsPart(MainWindow& main) {
    return viewOf(main).part() ? QString() : MainWindow::tr("The whole graph is on show.");
}

void showInputsAlone(MainWindow& main) { showAlone(main, GraphPart::Kind::Inputs); }
void showUsersAlone(MainWindow& main) { showAlone(main, GraphPart::Kind::Users); }
void showNeighboursAlone(MainWindow& main) { showAlone(main, GraphPart::Kind::Around); }
void showWholeGraph(MainWindow& main) { viewOf(main).showPart(std::nullopt); }

void askPath(MainWindow& main) {
    const NodeKey from = main.selection().node();
    if (from == NodeKey::None || !viewOf(main).graph()) return;
    QStringList names;
    for (const UnionGraph::Node& node : viewOf(main).graph()->nodes)
        if (node.info.id != from) names << textOf(node.info.name);
    QInputDialog dialog(&main);
    dialog.setWindowTitle(MainWindow::tr("Path between nodes"));
    dialog.setLabelText(MainWindow::tr("Path from %1 to the node:").arg(main.get<SearchWindow>().nameOf(from)));
    dialog.setTextValue({});  // makes the field
    if (auto* field = dialog.findChild<QLineEdit*>()) {
        auto* completer = new QCompleter(names, field);
        completer->setFilterMode(Qt::MatchContains);
        field->setCompleter(completer);
    }
    if (dialog.exec() != QDialog::Accepted) return;
    const QString name = dialog.textValue().trimmed();
    const NodeKey to = nodeNamed(main, name.toStdString());
    if (to == NodeKey::None) return main.say(MainWindow::tr("This graph has no node \"%1\".").arg(name));
    main.raiseWindow(&main.get<GraphWindow>());
    viewOf(main).showPart(GraphPart{GraphPart::Kind::Path, from, to});
}

void markOp(MainWindow& main) {
    GraphView& view = viewOf(main);
    const auto& graph = view.graph();
    if (!graph) return;
    const NodeKey current = main.selection().node();
    const auto found = std::find_if(graph->nodes.begin(), graph->nodes.end(),
                                    [&](const UnionGraph::Node& node) { return node.info.id == current; });
    const std::string wanted = found == graph->nodes.end() ? std::string() : found->info.op;
    const QString op = textOf(wanted);
    if (!view.canvas().markedOp().isEmpty() && (op.isEmpty() || op == view.canvas().markedOp())) {
        view.setMarkedOp({});
        return;
    }
    if (op.isEmpty()) return main.say(MainWindow::tr("Choose a call first: its operator's calls are marked."));
    const auto calls = std::count_if(graph->nodes.begin(), graph->nodes.end(),
                                     [&](const UnionGraph::Node& node) { return node.info.op == wanted; });
    view.setMarkedOp(op);
    main.say(MainWindow::tr("%1 of %2 marked; Ctrl+Shift+L ends it.")
                 .arg(counted(calls, MainWindow::tr("call"), MainWindow::tr("calls")), op));
}

void showItsKernel(MainWindow& main) {
    const NodeKey node = main.selection().node();
    Window* const window = main.get<KernelsWindow>().computes(node) ? static_cast<Window*>(&main.get<KernelsWindow>())
                                                                    : &main.get<LoopsWindow>();
    main.raiseWindow(window);
}

void runUpToHere(MainWindow& main) {
    auto& numerics = main.get<NumericsWindow>();
    main.raiseWindow(&numerics);
    numerics.runUpTo(main.selection().node());
}

void addPartActions(MainWindow& main, QMenu& menu, NodeKey node) {
    const auto add = [&main](QMenu& to, const QString& text, void (*run)(MainWindow&)) {
        to.addAction(text, &main, [&main, run] { run(main); });
    };
    QMenu& parts = *menu.addMenu(MainWindow::tr("Show only"));
    add(parts, MainWindow::tr("What it is made of"), showInputsAlone);
    add(parts, MainWindow::tr("What uses it"), showUsersAlone);
    add(parts, MainWindow::tr("The path to another node…"), askPath);
    add(parts, MainWindow::tr("Its neighbours"), showNeighboursAlone);
    if (viewOf(main).part()) add(parts, MainWindow::tr("The whole graph again"), showWholeGraph);
    add(menu, MainWindow::tr("Mark all calls of its operator"), markOp);
    add(menu, MainWindow::tr("Show its kernel"), showItsKernel);
    add(menu, MainWindow::tr("Run up to here"), runUpToHere);
    if (const QString module = viewOf(main).moduleToClose(node); !module.isEmpty())
        menu.addAction(MainWindow::tr("Fold module %1").arg(module), &main,
                       [&main, module] { viewOf(main).closeModule(module); });
}

}  // namespace cutaway::ui
