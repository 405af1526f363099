#include "ui/graph/visible_path.h"

#include <algorithm>

namespace cutaway::ui {
namespace {

constexpr int kDeepestCut = 12;

struct Curve {
    QPointF points[4];

    QRectF hull() const {
        const auto [left, right] = std::minmax({points[0].x(), points[1].x(), points[2].x(), points[3].x()});
        const auto [top, bottom] = std::minmax({points[0].y(), points[1].y(), points[2].y(), points[3].y()});
        return {left, top, right - left, bottom - top};
    }
    /// De Casteljau's cut in the middle.
    std::pair<Curve, Curve> halves() const {
        const QPointF ab = (points[0] + points[1]) / 2, bc = (points[1] + points[2]) / 2, cd = (points[2] + points[3]) / 2;
        const QPointF abc = (ab + bc) / 2, bcd = (bc + cd) / 2, middle = (abc + bcd) / 2;
        return {{{points[0], ab, abc, middle}}, {{middle, bcd, cd, points[3]}}};
    }
};

/// Like QRectF::intersects, but a straight line's hull, which has no area, counts.
bool touches(const QRectF& hull, const QRectF& area) {
    return hull.left() <= area.right() && hull.right() >= area.left() && hull.top() <= area.bottom() && hull.bottom() >= area.top();
}

void add(QPainterPath& out, const Curve& curve, const QRectF& area, int depth) {
    const QRectF hull = curve.hull();
    if (!touches(hull, area)) return;
    if (depth == kDeepestCut || (hull.width() <= 2 * area.width() && hull.height() <= 2 * area.height())) {
        if (out.isEmpty() || out.currentPosition() != curve.points[0]) out.moveTo(curve.points[0]);
        out.cubicTo(curve.points[1], curve.points[2], curve.points[3]);
        return;
    }
    const auto [first, second] = curve.halves();
    add(out, first, area, depth + 1);
    add(out, second, area, depth + 1);
}

}  // namespace

QPainterPath visiblePart(const QPainterPath& path, const QRectF& area) {
    const QRectF bounds = path.controlPointRect();
    if (bounds.width() <= 2 * area.width() && bounds.height() <= 2 * area.height()) return path;
    QPainterPath out;
    QPointF at;
    for (int i = 0; i < path.elementCount(); ++i) {
        const QPainterPath::Element element = path.elementAt(i);
        const QPointF to = element;
        if (element.isCurveTo()) {
            add(out, {{at, to, path.elementAt(i + 1), path.elementAt(i + 2)}}, area, 0);
            at = path.elementAt(i + 2);
            i += 2;
            continue;
        }
        if (element.isLineTo()) add(out, {{at, at + (to - at) / 3, at + (to - at) * 2 / 3, to}}, area, 0);
        at = to;
    }
    return out;
}

}  // namespace cutaway::ui
