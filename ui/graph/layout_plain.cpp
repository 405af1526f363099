#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/graph/layout_problem.h"

namespace cutaway::ui {
namespace {

constexpr int kSweeps = 6;
constexpr double kBendWidth = 8;  // of a bend: the point at which an edge passes a rank

/// A node, or the bend of an edge in a rank that it only passes.
struct Item {
    int node = -1;
    int rank = 0;
    double width = kBendWidth, x = 0;
    std::vector<int> above, below;
};

struct Layers {
    std::vector<Item> items;               // nodes first, in their order
    std::vector<std::vector<int>> ranks;   // item indices from left to right
    std::vector<std::vector<int>> chains;  // per edge: items from tail to head; empty for stubs
};

Layers buildLayers(const LayoutProblem& problem) {
    Layers layers;
    const std::vector<int> rank = layoutRanks(problem);
    for (size_t i = 0; i < problem.nodes.size(); ++i) {
        Item item;
        item.node = static_cast<int>(i);
        item.rank = rank[i];
        item.width = problem.nodes[i].width;
        layers.items.push_back(item);
    }
    for (const auto& edge : problem.edges) {
        layers.chains.emplace_back();
        const int span = rank[edge.to] - rank[edge.from];
        if (edge.from == edge.to || std::abs(span) > problem.longEdgeRanks) continue;
        std::vector<int>& chain = layers.chains.back();
        chain.push_back(edge.from);
        const int step = span < 0 ? -1 : 1;
        for (int r = rank[edge.from] + step; span != 0 && r != rank[edge.to]; r += step) {
            chain.push_back(static_cast<int>(layers.items.size()));
            Item bend;
            bend.rank = r;
            layers.items.push_back(bend);
        }
        chain.push_back(edge.to);
        for (size_t i = 0; i + 1 < chain.size(); ++i) {
            const bool down = layers.items[chain[i]].rank <= layers.items[chain[i + 1]].rank;
            const int upper = down ? chain[i] : chain[i + 1], lower = down ? chain[i + 1] : chain[i];
            layers.items[upper].below.push_back(lower);
            layers.items[lower].above.push_back(upper);
        }
    }
    int depth = 0;
    for (const Item& item : layers.items) depth = std::max(depth, item.rank + 1);
    layers.ranks.resize(static_cast<size_t>(depth));
    for (size_t i = 0; i < layers.items.size(); ++i) layers.ranks[layers.items[i].rank].push_back(static_cast<int>(i));
    return layers;
}

/// Median position of the neighbours, or the item's own position if it has none.
double median(const Layers& layers, const std::vector<int>& neighbours, double own) {
    if (neighbours.empty()) return own;
    std::vector<double> at;
    for (int other : neighbours) at.push_back(layers.items[other].x);
    std::sort(at.begin(), at.end());
    const size_t middle = at.size() / 2;
    return at.size() % 2 ? at[middle] : (at[middle - 1] + at[middle]) / 2;
}

void orderRanks(Layers& layers) {
    for (auto& rank : layers.ranks)
        for (size_t i = 0; i < rank.size(); ++i) layers.items[rank[i]].x = static_cast<double>(i);
    const int depth = static_cast<int>(layers.ranks.size());
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        const bool down = sweep % 2 == 0;
        for (int step = 1; step < depth; ++step) {
            auto& rank = layers.ranks[down ? step : depth - 1 - step];
            std::vector<std::pair<double, int>> keyed;
            for (int item : rank) {
                const Item& at = layers.items[item];
                keyed.emplace_back(median(layers, down ? at.above : at.below, at.x), item);
            }
            std::stable_sort(keyed.begin(), keyed.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
            for (size_t i = 0; i < rank.size(); ++i) {
                rank[i] = keyed[i].second;
                layers.items[rank[i]].x = static_cast<double>(i);
            }
        }
    }
}

/// Moves one rank as near as possible (least squares) to where its items want to be, keeping order and gaps. With the
/// gaps taken off, that is isotonic regression: neighbours that would pass each other are pooled.
void settleRank(Layers& layers, const std::vector<int>& rank, const std::vector<double>& wish) {
    struct Pool {
        double sum;
        int count;
        double mean() const { return sum / count; }
    };
    std::vector<Pool> pools;
    std::vector<double> offset(rank.size(), 0);
    for (size_t i = 0; i < rank.size(); ++i) {
        if (i > 0)
            offset[i] = offset[i - 1] + kNodeGap + (layers.items[rank[i - 1]].width + layers.items[rank[i]].width) / 2;
        pools.push_back({wish[i] - offset[i], 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
            pools[pools.size() - 2].sum += pools.back().sum;
            pools[pools.size() - 2].count += pools.back().count;
            pools.pop_back();
        }
    }
    size_t i = 0;
    for (const Pool& pool : pools)
        for (int k = 0; k < pool.count; ++k, ++i) layers.items[rank[i]].x = pool.mean() + offset[i];
}

void placeRanks(Layers& layers) {
    for (const auto& rank : layers.ranks) settleRank(layers, rank, std::vector<double>(rank.size(), 0));
    const int depth = static_cast<int>(layers.ranks.size());
    for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (int step = 0; step < depth; ++step) {
            const bool down = sweep % 2 == 0;
            const auto& rank = layers.ranks[down ? step : depth - 1 - step];
            std::vector<double> wish;
            for (int item : rank) {
                const Item& at = layers.items[item];
                wish.push_back(median(layers, down ? at.above : at.below, at.x));
            }
            settleRank(layers, rank, wish);
        }
}

/// A smooth curve through the chain: vertical tangents at every item.
std::vector<LayoutPoint> routeThrough(const std::vector<LayoutPoint>& via) {
    std::vector<LayoutPoint> route = {via.front()};
    for (size_t i = 0; i + 1 < via.size(); ++i) {
        const double middle = (via[i].y + via[i + 1].y) / 2;
        route.push_back({via[i].x, middle});
        route.push_back({via[i + 1].x, middle});
        route.push_back(via[i + 1]);
    }
    return route;
}

void readRoutes(LayoutAnswer& answer, const Layers& layers, const LayoutProblem& problem,
                const std::vector<double>& rankY) {
    for (const auto& chain : layers.chains) {
        answer.routes.emplace_back();
        if (chain.empty()) continue;
        std::vector<LayoutPoint> via;
        for (int item : chain) via.push_back({layers.items[item].x, rankY[layers.items[item].rank]});
        const bool down = via.front().y <= via.back().y;
        via.front().y += (down ? 0.5 : -0.5) * problem.nodes[chain.front()].height;
        via.back().y -= (down ? 0.5 : -0.5) * problem.nodes[chain.back()].height;
        answer.routes.back() = routeThrough(via);
    }
}

void boxClusters(LayoutAnswer& answer, const LayoutProblem& problem) {
    constexpr double kMargin = 8, kTitle = 12;
    std::vector<bool> any(problem.clusters.size(), false);
    answer.clusters.resize(problem.clusters.size());
    const auto include = [&](int cluster, double left, double top, double right, double bottom) {
        LayoutBox& box = answer.clusters[cluster];
        if (!any[cluster]) box = {left, top, right - left, bottom - top};
        any[cluster] = true;
        const double x = std::min(box.x, left), y = std::min(box.y, top);
        box = {x, y, std::max(box.x + box.width, right) - x, std::max(box.y + box.height, bottom) - y};
    };
    for (size_t i = 0; i < problem.nodes.size(); ++i) {
        const auto& node = problem.nodes[i];
        const LayoutPoint at = answer.centres[i];
        if (node.cluster >= 0)
            include(node.cluster, at.x - node.width / 2 - kMargin, at.y - node.height / 2 - kMargin - kTitle,
                    at.x + node.width / 2 + kMargin, at.y + node.height / 2 + kMargin);
    }
    for (size_t i = problem.clusters.size(); i-- > 0;)  // parents come first, so children are complete here
        if (const int parent = problem.clusters[i].parent; parent >= 0 && any[i]) {
            const LayoutBox& box = answer.clusters[i];
            include(parent, box.x - kMargin, box.y - kMargin - kTitle, box.x + box.width + kMargin,
                    box.y + box.height + kMargin);
        }
}

}  // namespace

LayoutAnswer layoutPlainly(const LayoutProblem& problem) {
    LayoutAnswer answer;
    Layers layers = buildLayers(problem);
    orderRanks(layers);
    placeRanks(layers);
    double left = 0, right = 0, y = 0;
    std::vector<double> rankY;
    for (const auto& rank : layers.ranks) {
        double height = 0;
        for (int index : rank) {
            const Item& item = layers.items[index];
            left = std::min(left, item.x - item.width / 2);
            right = std::max(right, item.x + item.width / 2);
            if (item.node >= 0) height = std::max(height, problem.nodes[item.node].height);
        }
        rankY.push_back(y + height / 2);
        y += height + kRankGap;
    }
    for (Item& item : layers.items) item.x -= left;
    for (size_t i = 0; i < problem.nodes.size(); ++i)
        answer.centres.push_back({layers.items[i].x, rankY[layers.items[i].rank]});
    readRoutes(answer, layers, problem, rankY);
    boxClusters(answer, problem);
    answer.width = right - left;
    answer.height = problem.nodes.empty() ? 0 : y - kRankGap;
    return answer;
}

}  // namespace cutaway::ui
