#include "ui/graph/nearest_place.h"

#include <QLineF>
#include <algorithm>
#include <utility>

namespace cutaway::ui {
namespace {

constexpr double kPlaceMargin = 0.08;  // of the view, around what comes into it

double areaOf(const QRectF& box) { return box.width() * box.height(); }

/// By how much [low, high] must move to lie in [from, to]; if it is too long, to have the same middle.
double wayInto(double low, double high, double from, double to) {
    if (high - low > to - from) return (low + high - from - to) / 2;
    return low < from ? low - from : std::max(0.0, high - to);
}

/// Nodes on show in `mode` that are the fewest edges away from `start`.
std::vector<int> closest(const GraphScene& scene, GraphMode mode, std::vector<int> start) {
    const size_t count = scene.nodes.size();
    std::vector<std::vector<int>> next(count);
    for (const auto& edge : scene.picture.edges) {
        next[static_cast<size_t>(edge.from)].push_back(edge.to);
        next[static_cast<size_t>(edge.to)].push_back(edge.from);
    }
    std::vector<char> known(count, 0);
    for (const int node : start) known[static_cast<size_t>(node)] = 1;
    while (!start.empty()) {
        std::vector<int> found, ring;
        for (const int node : start)
            if (shownIn(mode, scene.picture.nodes[static_cast<size_t>(node)].change)) found.push_back(node);
        if (!found.empty()) return found;
        for (const int node : start)
            for (const int other : next[static_cast<size_t>(node)])
                if (!std::exchange(known[static_cast<size_t>(other)], 1)) ring.push_back(other);
        start = std::move(ring);
    }
    return {};
}

}  // namespace

bool showsNodes(const GraphScene& scene, GraphMode mode, const QRectF& view) {
    const std::vector<int> there = scene.nodeIndex.touching(view);
    return std::any_of(there.begin(), there.end(), [&](int node) {
        const QRectF& box = scene.nodes[static_cast<size_t>(node)];
        return shownIn(mode, scene.picture.nodes[static_cast<size_t>(node)].change) &&
               (view.contains(box) || areaOf(box & view) >= areaOf(view) / 2);
    });
}

QPointF wayToNearest(const GraphScene& scene, GraphMode mode, const QRectF& view) {
    std::vector<int> offered = closest(scene, mode, scene.nodeIndex.touching(view));
    if (offered.empty())
        for (size_t i = 0; i < scene.nodes.size(); ++i)
            if (shownIn(mode, scene.picture.nodes[i].change)) offered.push_back(static_cast<int>(i));
    const QRectF inner = view.adjusted(view.width() * kPlaceMargin, view.height() * kPlaceMargin,
                                       -view.width() * kPlaceMargin, -view.height() * kPlaceMargin);
    QPointF best;
    bool any = false;
    for (const int node : offered) {
        const QRectF& box = scene.nodes[static_cast<size_t>(node)];
        const QPointF way(wayInto(box.left(), box.right(), inner.left(), inner.right()),
                          wayInto(box.top(), box.bottom(), inner.top(), inner.bottom()));
        if (!any || QLineF(QPointF(), way).length() < QLineF(QPointF(), best).length()) best = way;
        any = true;
    }
    return best;
}

}  // namespace cutaway::ui
