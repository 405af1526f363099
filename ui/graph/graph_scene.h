#pragma once
// A picture with positions: immutable, shared by every canvas that shows it. SceneBuilder makes one from a union graph
// without blocking the window.
#include <QObject>
#include <QPainterPath>
#include <memory>

#include "ui/graph/graph_picture.h"
#include "ui/graph/layout_client.h"
#include "ui/graph/spatial_index.h"

namespace cutaway::ui {

struct GraphScene {
    struct Edge {
        QPainterPath path;   // empty for stubs
        QPointF tail, head;  // ends, or for stubs the anchors at the two nodes
        QPointF middle;      // halfway along the path, where its sign stands
        bool stub = false;
    };
    /// Where an edge leads that is too long to draw.
    struct FarEnd {
        int box = 0;  // index of a node
        NodeKey node = NodeKey::None;
        QString name;
        int edge = 0;
    };
    /// A label at one end of such edges, at most as wide as its node; clicking it goes to the other end. Ends without a
    /// label of their own are in the list of the last label.
    struct Stub {
        QRectF box;
        QString text;
        int node = 0;  // where it hangs
        bool outgoing = false;
        std::vector<FarEnd> ends;  // at least one
    };
    Picture picture;
    QRectF bounds;
    std::vector<QRectF> nodes, clusters;
    std::vector<Edge> edges;
    std::vector<Stub> stubs;
    SpatialIndex nodeIndex, edgeIndex, stubIndex;
    QFont font;

    QRectF chipRect(int node, size_t chip) const;
    /// Whether a box, or what it reads, changed.
    bool isChanged(int node) const;
    /// Bounding box of all changed nodes and chips, else of those that stand elsewhere; null if nothing changed.
    QRectF changedArea() const;
    /// `area` itself if it holds a node that both sides have. Otherwise widened, as far as `room` allows, so that both
    /// panes show something: by the nodes of both sides that are reached from it over nodes of one side, nearest first,
    /// then by the nodes of one side next to those.
    QRectF withKeptNeighbours(const QRectF& area, QSizeF room) const;
};

std::shared_ptr<const GraphScene> placeScene(Picture picture, const LayoutAnswer& answer, const QFont& font);

class SceneBuilder : public QObject {
    Q_OBJECT

  public:
    explicit SceneBuilder(QObject* parent = nullptr);

    /// Replaces what is being built.
    void build(std::shared_ptr<const UnionGraph> graph, const PictureOptions& options);
    /// Takes the plain layout now instead of waiting for dot.
    void useSimpleLayout();
    bool isBusy() const { return m_busy; }
    LayoutClient& client() { return m_client; }

  signals:
    void started(int nodes);
    /// `note` says what was unusual about the layout; empty otherwise.
    void ready(std::shared_ptr<const cutaway::ui::GraphScene> scene, const QString& note);

  private:
    LayoutClient m_client;
    std::shared_ptr<Picture> m_picture;
    QFont m_font;
    int m_generation = 0, m_request = 0;
    bool m_busy = false;
};

}  // namespace cutaway::ui
