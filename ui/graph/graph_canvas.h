#pragma once
// Shows a scene, to be moved through by mouse and keyboard. Knows nothing of runs and steps: the current node comes in
// by setCurrent and goes out by nodeChosen. One tab stop; its nodes are accessible children (graph_accessible.h).
#include <QPixmap>
#include <QTimer>
#include <QWidget>
#include <memory>

#include "ui/graph/graph_look.h"
#include "ui/graph/graph_painter.h"
#include "ui/graph/graph_scene.h"

namespace cutaway::ui {

class GraphCanvas : public QWidget {
    Q_OBJECT

  public:
    explicit GraphCanvas(QWidget* parent = nullptr);

    /// Keeps the current node at its place on the screen if both scenes show it; otherwise frames the change. So it
    /// does with a scene of another step (`another`), if the node is not part of its change.
    void setScene(std::shared_ptr<const GraphScene> scene, bool another = false);
    const GraphScene* scene() const { return m_scene.get(); }
    const std::shared_ptr<const GraphScene>& sharedScene() const { return m_scene; }
    void setMode(GraphMode mode);
    GraphMode mode() const { return m_mode; }
    /// What an empty canvas says.
    void setHint(const QString& hint);
    /// The picture of something else is on its way: after a moment this one is dimmed, until it has gone.
    void setStale(bool stale);
    /// What is written in the corner: of two panes, which one it is.
    void setTitle(const QString& title);
    const QString& title() const { return m_title; }
    /// Sides of a partition, in place of what changed; null for none.
    void setMarks(std::shared_ptr<const SideMarks> marks);
    const SideMarks* marks() const { return m_marks.get(); }
    void setHeat(std::shared_ptr<const HeatMarks> heat);
    const HeatMarks* heat() const { return m_heat.get(); }
    void setKernels(const KernelNames& kernels);
    /// Nodes of the current node's kernels.
    const QSet<quint64>& ringed() const { return m_ringed; }
    /// Marks all calls of an operator, not only while the pointer is on one of them; empty: none.
    void setMarkedOp(const QString& op);
    const QString& markedOp() const { return m_markedOp; }
    /// One box in a sentence, with its mark.
    QString spoken(int node) const;
    /// Marks the node, or the box that contains it; brings it into view if asked. Emits nothing.
    void setCurrent(NodeKey id, bool reveal);
    NodeKey currentId() const { return m_currentId; }
    int currentIndex() const { return m_current; }

    double scale() const { return m_scale; }
    QPointF toScene(QPointF widget) const { return (widget - m_offset) / m_scale; }
    QPointF toWidget(QPointF scene) const { return scene * m_scale + m_offset; }
    QRectF view() const { return {toScene({0, 0}), QSizeF(size()) / m_scale}; }  // in scene coordinates
    void setView(double scale, QPointF offset);
    /// Shows what another canvas shows (`scale`, `offset`), moved by `away` (scene coordinates), of which a note then
    /// tells. `moved`: whether the user has chosen the view.
    void followView(double scale, QPointF offset, QPointF away, bool moved);
    bool isMoved() const { return m_moved; }
    /// Where the view stands; what is open is not the canvas's to say.
    GraphLook look() const;
    void lookAgain(const GraphLook& look);
    /// Of two panes one decides the view when a scene or a size is new; the one that follows leaves that to it.
    void setFollows(bool follows) { m_follows = follows; }
    bool isApart() const { return m_apart; }
    /// Whether the view frames the boxes of this pane's side alone, in place of the change of both.
    void setOwnSide(bool own) { m_ownSide = own; }
    void zoomBy(double factor, QPointF anchor);
    void fit();
    /// All of it if it is readable then, else the current box, else its top.
    void showAll();
    /// The whole if it is readable, else the first change at a readable size.
    void frameChange();
    void centreOn(int node);
    /// Brings an area into view that was opened, whole if it is readable then.
    void showArea(const QRectF& area);
    /// Marks a box that is not a node.
    void setCurrentBox(int node);
    bool minimapShown() const;
    /// In a corner where it lies over no box of the frame; null if there is none.
    QRectF minimapRect() const;
    const PaintWork& lastWork() const { return m_work; }

    QSize sizeHint() const override { return {760, 560}; }
    QSize minimumSizeHint() const override { return {160, 120}; }

  signals:
    /// The user asks for a node's context menu; `at` on the screen.
    void menuWanted(cutaway::NodeKey id, QPoint at);
    /// By click or key. None: the empty canvas, or a fold, which has no id.
    void nodeChosen(cutaway::NodeKey id);
    /// Enter or double click on a node.
    void nodeActivated(cutaway::NodeKey id);
    void foldActivated(const std::vector<cutaway::NodeKey>& members);
    /// A closed module is to open; `equal`: those of its structure, too.
    void moduleActivated(const QString& key, bool equal);
    /// This part of the graph alone is to be shown.
    void partWanted(const cutaway::ui::GraphPart& part);
    /// An open module is to close.
    void closeWanted(const QString& key);
    /// `byHand`: somebody drags, scrolls or pans right now.
    void viewChanged(bool byHand);

  protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;

  private:
    int nodeAt(QPointF scene) const;
    void choose(int node, NodeKey id);
    void activate(int node, bool equal = false);
    bool walkModules(int key, bool equal);
    void showModuleMenu(int node, QPoint at);
    QString clusterTitleAt(QPointF scene) const;
    void follow(const GraphScene::Stub& stub, QPoint at);
    void step(int key);
    int nearestToMiddle() const;
    void frameOwnSide();
    int neighbour(int key) const;
    QSizeF minimapSize() const;
    int paintedOp() const;
    void ringKernels();
    bool minimapWanted() const;
    int freeWidth() const;  // without the minimap's place, whether or not it is shown now
    void paintMinimap(QPainter& painter);
    void panByMinimap(QPointF at);
    void viewMoved(bool byHand = false);
    QRectF titleRect() const;
    void paintTitle(QPainter& painter);
    void paintApart(QPainter& painter);
    void ensureVisible(int node);

    std::shared_ptr<const GraphScene> m_scene;
    std::shared_ptr<const SideMarks> m_marks;
    std::shared_ptr<const HeatMarks> m_heat;
    KernelNames m_kernels;
    QSet<quint64> m_ringed;
    GraphColors m_colors;
    GraphMode m_mode = GraphMode::Union;
    QTimer m_staleFor;
    bool m_stale = false;
    QString m_hint, m_title, m_markedOp;
    double m_scale = 1;
    QPointF m_offset, m_pressed, m_pressedOffset;
    bool m_dragging = false, m_onMinimap = false;
    bool m_apart = false, m_follows = false, m_ownSide = false;
    bool m_noteBelow = false;  // the view was moved up to its nodes, so the note stands below
    bool m_moved = false;      // by hand: the view is then kept, otherwise it frames what is new
    NodeKey m_currentId = NodeKey::None;
    int m_current = -1, m_hovered = -1;
    QPixmap m_minimap;
    PaintWork m_work;
};

}  // namespace cutaway::ui
