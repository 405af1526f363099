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
        const QPointF ab = (points[0] + points[1]) / 2, bc = (points[1] + points[2]) / 2,
                      cd = (points[2] + points[3]) / 2;
        const QPointF abc = (ab + bc) / 2, bcd = (bc + cd) / 2, middle = (abc + bcd) / 2;
        return {{{points[0], ab, abc, middle}}, {{middle, bcd, cd, points[3]}}};
    }
};

/// Like QRectF::intersects, but a straight line's hull, which has no area, counts.
bool touches(const QRectF& hull, const QRectF& area) {
    return hull.left() <= area.right() && hull.right() >= area.left() && hull.top() <= area.bottom() &&
           hull.bottom() >= area.top();
}

/// As lines: pieces that `area` does not see are dropped, bent ones halved until they are straight to `tolerance`.
void addLines(QList<QLineF>& out, const Curve& curve, const QRectF& area, double tolerance, int depth) {
    if (!touches(curve.hull(), area)) return;
    const auto& p = curve.points;
    const auto bend = [](QPointF a, QPointF b, QPointF c) { return (a - 2 * b + c).manhattanLength(); };
    // A cubic leaves its chord by at most three quarters of its larger second difference.
    if (depth == kDeepestCut || std::max(bend(p[0], p[1], p[2]), bend(p[1], p[2], p[3])) * 0.75 <= tolerance) {
        out.append(QLineF(p[0], p[3]));
        return;
    }
    const auto [first, second] = curve.halves();
    addLines(out, first, area, tolerance, depth + 1);
    addLines(out, second, area, tolerance, depth + 1);
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

/// Calls visit(curve) for each piece of the path, lines as curves.
template <class Visit>
void forEachCurve(const QPainterPath& path, Visit&& visit) {
    QPointF at;
    for (int i = 0; i < path.elementCount(); ++i) {
        const QPainterPath::Element element = path.elementAt(i);
        const QPointF to = element;
        if (element.isCurveTo()) {
            visit(Curve{{at, to, path.elementAt(i + 1), path.elementAt(i + 2)}});
            at = path.elementAt(i + 2);
            i += 2;
            continue;
        }
        if (element.isLineTo()) visit(Curve{{at, at + (to - at) / 3, at + (to - at) * 2 / 3, to}});
        at = to;
    }
}

}  // namespace

QPainterPath visiblePart(const QPainterPath& path, const QRectF& area) {
    const QRectF bounds = path.controlPointRect();
    if (bounds.width() <= 2 * area.width() && bounds.height() <= 2 * area.height()) return path;
    QPainterPath out;
    forEachCurve(path, [&](const Curve& curve) { add(out, curve, area, 0); });
    return out;
}

void appendVisibleLines(const QPainterPath& path, const QRectF& area, double tolerance, QList<QLineF>& out) {
    forEachCurve(path, [&](const Curve& curve) { addLines(out, curve, area, tolerance, 0); });
}

}  // namespace cutaway::ui
