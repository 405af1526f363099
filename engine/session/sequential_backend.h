#pragma once
// PyTorch's ts_compile (spec: debug-minify-export §1.2) on our graphs: the same nine slots in the same order, each of
// which leaves a graph that can be looked at.
#include "cutaway/debug_compile.h"
#include "engine/ir/module.h"

namespace cutaway {

struct Sequential {
    std::shared_ptr<Module> graph;      // behind all slots
    std::vector<SequentialStep> steps;  // without the warm-up, which is a run
};
/// `parity`: devices lose their index. Errors: a slot's pass fails; Cancelled.
Result<Sequential> compileSequentially(const Module& module, SequentialBackend backend, bool parity,
                                       const Progress& progress = {});

/// The graph in Graphviz's language.
std::string drawn(const Module& module);

}  // namespace cutaway
