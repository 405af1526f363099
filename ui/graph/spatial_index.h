#pragma once
// A static R-tree over rectangles: built once per scene, asked for every paint and click. Answers in ascending index
// order, so that what is painted on top of what does not depend on the tree.
#include <QRectF>
#include <vector>

namespace cutaway::ui {

class SpatialIndex {
  public:
    SpatialIndex() = default;
    explicit SpatialIndex(const std::vector<QRectF>& boxes);

    /// Indices of all boxes that touch `area`.
    std::vector<int> touching(const QRectF& area) const;

  private:
    struct Branch {
        QRectF box;
        int first = 0, count = 0;  // children in the level below, or entries of m_order
    };
    std::vector<QRectF> m_boxes;
    std::vector<int> m_order;
    std::vector<std::vector<Branch>> m_levels;  // leaves first
};

}  // namespace cutaway::ui
