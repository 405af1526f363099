#pragma once
// Turns one serialized graph with its nested graphs into a Module (spec: input-formats §3.5). Weights and the archive
// are read elsewhere (pt2.h).
#include <string>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/json.h"
#include "engine/formats/pt2_types.h"
#include "engine/ir/module.h"

namespace cutaway {

/// Fills the graph, input and output specs and subgraphs of an empty module. `signature` is null for nested graphs.
/// Every value has the type that the file gives it (PT2-15). Getitem nodes, which files do not hold, are made for the
/// results that have a name of their own (PT2-6); the placeholder names of unused results get none.
/// Errors name the node. `remarks` collects what was kept without being understood.
Result<void> readPt2Graph(const Json& graph, const Json* signature, Module& module, Pt2Types& types,
                          std::vector<std::string>& remarks, const std::string& where);

}  // namespace cutaway
