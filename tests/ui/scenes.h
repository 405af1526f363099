#pragma once
// Pictures and scenes of small graphs, laid out in this process.
#include "tests/ui/graphs.h"
#include "ui/graph/graph_canvas.h"
#include "ui/graph/graph_view.h"

namespace cutaway::testing {

using namespace cutaway::ui;

/// Folds from so few nodes on that tests can read the picture.
inline PictureOptions options(bool fold = true, int hops = 1) {
    PictureOptions made;
    made.fold = fold;
    made.hops = hops;
    made.foldAbove = 8;
    return made;
}

inline std::shared_ptr<const GraphScene> sceneOf(const UnionGraph& graph, const PictureOptions& how) {
    Picture picture = makePicture(graph, how);
    picture.graph = std::make_shared<const UnionGraph>(graph);
    const LayoutAnswer answer = layoutPlainly(problemOf(picture));
    return placeScene(std::move(picture), answer, how.font);
}

inline NodeKey idOf(const GraphScene& scene, const QString& detailStart) {
    for (const auto& node : scene.picture.nodes)
        if (node.detail.startsWith(detailStart)) return node.id;
    return NodeKey::None;
}

}  // namespace cutaway::testing
