#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// An op that returns its operand with one part written, and the view that shows that part.
struct ScatterOp {
    std::string_view op, view;
    bool always;  // becomes a copy into the part even if the operand would otherwise never be in memory
};
/// The row of this call, or null.
const ScatterOp* scatterOp(const Node& node);

/// Where a scatter writes: `views` lead from its operand to the part that `source` replaces. Nested scatters have
/// several views: slice_scatter(x, select_scatter(slice(x), v)) has two.
struct ScatterPlace {
    struct View {
        std::string_view op;
        std::vector<Argument> args;  // behind the tensor
    };
    std::vector<View> views;
    Argument source;
    std::vector<Node*> inner;  // the scatters that make the source, outermost first; nothing else reads them
    bool always = false;
};
/// `scatter` is a call of one of the ops above.
ScatterPlace scatterPlace(const Node& scatter);

/// Moves nested scatters (see ScatterPlace) next to each other, behind the innermost, each on a view made for it; other
/// readers of an inner result read that part of the outer one (PST-19). Later passes can then take them as one write.
Result<bool> mergeScatters(Graph& graph, Rewriter& rewriter);

}  // namespace cutaway
