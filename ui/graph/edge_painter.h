#pragma once
// Paints the edges of a scene; for graph_painter.cpp.
#include "ui/graph/graph_painter.h"

namespace cutaway::ui {

class EdgePainter {
  public:
    /// All are borrowed; what is painted is added to `work`.
    EdgePainter(QPainter& painter, const GraphScene& scene, const GraphColors& colors, const PaintRequest& request,
                PaintWork& work);

    void paint(const std::vector<int>& touching);
    void paintFar(const std::vector<int>& edges);

  private:
    bool touchesCurrent(int edge) const;
    bool nodeShown(int node) const;
    bool edgeShown(int index) const;
    /// The change that the edge is drawn as: Kept for every edge on the picture of a partition.
    Change lookOf(int edge) const;
    QPen penOf(int edge) const;
    void paintEdge(int index);
    void paintPlainEdges(const std::vector<int>& edges);
    void paintArrowOf(int index, const QColor& color);
    void paintSignOf(int index);
    void paintArrow(QPointF from, QPointF head, const QColor& color);
    void paintSign(QPointF at, Change change);

    QPainter& m_painter;
    const GraphScene& m_scene;
    const GraphColors& m_colors;
    const PaintRequest& m_request;
    PaintWork& m_work;
    QFont m_signFont;
};

}  // namespace cutaway::ui
