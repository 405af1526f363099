#pragma once
#include "cutaway/jobs.h"
#include "cutaway/snapshot.h"
#include "engine/ir/module.h"

namespace cutaway {

/// What a constant is made from; none for other nodes.
std::optional<ConstantInfo> constantInfo(const Module& module, const Node& node);
/// Session::values for a node of `module`.
Result<ValueSummary> constantValues(const Module& module, const Node& node, const Progress& progress = {});

}  // namespace cutaway
