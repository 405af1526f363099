#pragma once
// Long curves are cut to what is seen before they are painted: stroking, above all dashing, costs in proportion to
// their whole length, and one edge of a large graph can be a thousand screens long.
#include <QLineF>
#include <QList>
#include <QPainterPath>

namespace cutaway::ui {

/// The pieces of `path` that may touch `area`; the path itself if it is short. Pieces are cut at fixed places, so that
/// dashes do not crawl while the view moves.
QPainterPath visiblePart(const QPainterPath& path, const QRectF& area);
/// The same as lines that are off the curve by at most about `tolerance`, appended to `out`.
void appendVisibleLines(const QPainterPath& path, const QRectF& area, double tolerance, QList<QLineF>& out);

}  // namespace cutaway::ui
