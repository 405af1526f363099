#pragma once
// Graphs for the tests of layout and canvas: seeded, of any size.
#include <random>

#include "cutaway/snapshot.h"
#include "ui/graph/layout_problem.h"

namespace cutaway::testing {

/// A layered problem in topological order: chains with side branches, residual edges and a few edges that span far.
inline ui::LayoutProblem randomProblem(int nodes, unsigned seed) {
    std::mt19937 random(seed);
    ui::LayoutProblem problem;
    for (int i = 0; i < nodes; ++i) {
        problem.nodes.push_back({60.0 + random() % 90, 34, -1});
        if (i == 0) continue;
        problem.edges.push_back({i - 1 - static_cast<int>(random() % std::min(i, 3)), i, 1});
        if (random() % 3 == 0) problem.edges.push_back({static_cast<int>(i - 1 - random() % std::min(i, 12)), i, 1});
        if (random() % 20 == 0) problem.edges.push_back({static_cast<int>(random() % i), i, 1});
    }
    return problem;
}

}  // namespace cutaway::testing
