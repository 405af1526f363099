#include "ui/graph/spatial_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cutaway::ui {
namespace {

constexpr int kFan = 16;

/// QRectF::intersects is false for flat rectangles; straight edges have flat boxes.
bool touch(const QRectF& a, const QRectF& b) {
    return a.left() <= b.right() && b.left() <= a.right() && a.top() <= b.bottom() && b.top() <= a.bottom();
}

/// QRectF::united ignores flat rectangles, for the same reason.
QRectF around(const QRectF& a, const QRectF& b) {
    return {QPointF(std::min(a.left(), b.left()), std::min(a.top(), b.top())),
            QPointF(std::max(a.right(), b.right()), std::max(a.bottom(), b.bottom()))};
}

}  // namespace

SpatialIndex::SpatialIndex(const std::vector<QRectF>& boxes) : m_boxes(boxes), m_order(boxes.size()) {
    std::iota(m_order.begin(), m_order.end(), 0);
    if (boxes.empty()) return;
    // Sort-tile-recursive: horizontal bands, each sorted by x.
    const int count = static_cast<int>(boxes.size());
    const int band = std::max(kFan, static_cast<int>(std::ceil(std::sqrt(static_cast<double>(count) / kFan))) * kFan);
    const auto byX = [&](int a, int b) { return m_boxes[a].center().x() < m_boxes[b].center().x(); };
    const auto byY = [&](int a, int b) { return m_boxes[a].center().y() < m_boxes[b].center().y(); };
    std::stable_sort(m_order.begin(), m_order.end(), byY);
    for (int at = 0; at < count; at += band)
        std::stable_sort(m_order.begin() + at, m_order.begin() + std::min(count, at + band), byX);
    std::vector<Branch> leaves;
    for (int at = 0; at < count; at += kFan) {
        Branch leaf{m_boxes[m_order[at]], at, std::min(kFan, count - at)};
        for (int i = 1; i < leaf.count; ++i) leaf.box = around(leaf.box, m_boxes[m_order[at + i]]);
        leaves.push_back(leaf);
    }
    m_levels.push_back(std::move(leaves));
    while (m_levels.back().size() > 1) {
        const auto& below = m_levels.back();
        std::vector<Branch> level;
        for (int at = 0; at < static_cast<int>(below.size()); at += kFan) {
            Branch branch{below[at].box, at, std::min(kFan, static_cast<int>(below.size()) - at)};
            for (int i = 1; i < branch.count; ++i) branch.box = around(branch.box, below[at + i].box);
            level.push_back(branch);
        }
        m_levels.push_back(std::move(level));
    }
}

std::vector<int> SpatialIndex::touching(const QRectF& area) const {
    std::vector<int> found;
    if (m_levels.empty()) return found;
    std::vector<std::pair<int, int>> open = {{static_cast<int>(m_levels.size()) - 1, 0}};
    while (!open.empty()) {
        const auto [level, at] = open.back();
        open.pop_back();
        const Branch& branch = m_levels[level][at];
        if (!touch(branch.box, area)) continue;
        for (int i = branch.first; i < branch.first + branch.count; ++i) {
            if (level > 0) open.emplace_back(level - 1, i);
            else if (touch(m_boxes[m_order[i]], area)) found.push_back(m_order[i]);
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace cutaway::ui
