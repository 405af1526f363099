#pragma once
// The canvas with what belongs to it: builds scenes in the background, shows one or two panes on the same positions,
// remembers which folds were opened. Two panes share one view, so that they scroll and zoom together. Where only one of
// them would show nodes, the other shows the nearest place that has some, and says so: no pane is empty beside one that
// is not.
#include <QSplitter>
#include <QTimer>

#include "ui/graph/graph_canvas.h"
#include "ui/graph/graph_scene.h"

namespace cutaway::ui {

class GraphView : public QSplitter {
    Q_OBJECT

  public:
    explicit GraphView(QWidget* parent = nullptr);

    /// `about` names what is shown: folds that were opened stay open while it is the same from call to call.
    /// `current` is drawn as itself, in no fold.
    /// `look`: how it was looked at before; null: as what is new.
    void showGraph(std::shared_ptr<const UnionGraph> graph, const QString& about, NodeKey current = NodeKey::None,
                   std::shared_ptr<const GraphLook> look = nullptr);
    /// The next scene has the node in view.
    void wantInView(NodeKey id) { m_wanted = id; }
    GraphLook look() const;
    /// What is on show, as it was looked at before.
    void lookAgain(std::shared_ptr<const GraphLook> look);
    /// Shows a part alone, or the whole graph again. Says why not where the graph has no such part.
    void showPart(const std::optional<GraphPart>& part);
    const std::optional<GraphPart>& part() const { return m_options.part; }
    void clear(const QString& hint);
    void setMode(GraphMode mode);
    /// What the panes side by side are called: "Before" and "After" unless they show something else.
    void setPaneNames(const QString& first, const QString& second);
    /// Whether two panes share one view. Else each has its own, which frames what is on its side.
    void setLinked(bool linked);
    void setMarks(std::shared_ptr<const SideMarks> marks);
    void setHeat(std::shared_ptr<const HeatMarks> heat);
    void setKernels(const KernelNames& kernels);
    void setMarkedOp(const QString& op);
    void setFolding(bool fold, int hops);
    /// The next graph is of another model: which of its modules are closed.
    void startAnew(const ModuleFolding& modules);
    const ModuleFolding& modules() const { return m_options.modules; }
    /// Opens a closed module, and with `equal` all that have its structure.
    void openModule(const QString& key, bool equal);
    void closeModule(const QString& key);
    /// The module around a node that closing would make a box of; empty if there is none.
    QString moduleToClose(NodeKey node) const;
    /// All modules that stand at the same depth: one level more, or less.
    void openLevel(bool more);
    /// All of them; or as they were at first.
    void openAllModules();
    void foldModulesBack();
    /// Times of nodes, for the closed modules that hold them; null: not known.
    void setTimes(std::shared_ptr<const QHash<quint64, double>> microseconds);
    void setCurrent(NodeKey id, bool reveal);
    /// Brings a node into view, out of its fold if it is in one.
    void goTo(NodeKey id);
    /// The node that changed, or reads another value, next to (or before) the current one, as they are drawn from top
    /// to bottom, in closed modules, too; None without any.
    NodeKey nextChange(bool forward) const;
    void fit();
    GraphCanvas& canvas() { return *m_first; }
    GraphCanvas& secondCanvas() { return *m_second; }
    SceneBuilder& builder() { return m_builder; }
    const std::shared_ptr<const UnionGraph>& graph() const { return m_graph; }

  signals:
    /// Somebody is about to change which boxes there are.
    void aboutToOpen();
    /// Another node is the current one because of what was opened or closed.
    void nodeFollows(cutaway::NodeKey id);
    void message(const QString& text);
    void menuWanted(cutaway::NodeKey id, QPoint at);
    void nodeChosen(cutaway::NodeKey id);
    void nodeActivated(cutaway::NodeKey id);
    /// A new scene is on show; `note` says what was unusual about its layout.
    void sceneShown(const QString& note);
    void layoutStarted(int nodes);
    /// Somebody opened or closed modules.
    void modulesChanged();

  private:
    NodeKey changedIn(const Picture::Node& module, bool first) const;
    void modulesMoved();
    void showOpened();
    void openAs(std::shared_ptr<const GraphLook> look);
    void sceneReady(const std::shared_ptr<const GraphScene>& scene);
    void rebuild();
    void namePanes();
    void reveal(const std::vector<NodeKey>& members, NodeKey wanted);
    void connectCanvas(GraphCanvas* canvas, GraphCanvas* other);
    bool isSideBySide() const;
    void lookTogether(GraphCanvas* leader, bool byHand);
    void lookTogether();  // led by the first pane, by the second while the first is apart
    bool eventFilter(QObject* watched, QEvent* event) override;

    SceneBuilder m_builder;
    GraphCanvas *m_first, *m_second;
    std::shared_ptr<const UnionGraph> m_graph;
    PictureOptions m_options;
    QString m_about;
    QString m_firstName = tr("Before"), m_secondName = tr("After");
    QString m_opened, m_closed;               // modules; come into view when the scene is there
    std::shared_ptr<const GraphLook> m_look;  // to come back when the scene is there
    bool m_fitNext = false;                   // so is a view of all of it
    bool m_linked = true;
    bool m_isNew = false;              // the graph that is laid out is of another step
    NodeKey m_wanted = NodeKey::None;  // to bring into view when the scene is there
    QTimer m_handRests;
    GraphCanvas* m_hand = nullptr;  // the last that somebody moved
};

}  // namespace cutaway::ui
