#pragma once
#include "engine/autograd/metadata.h"
#include "engine/passes/pass_runner.h"

namespace cutaway {

/// The graph of a training run as differentiation found it, with facts of its results that the joint graph no longer
/// shows: which are detached, which are views of inputs. Ids are those of the joint graph.
struct DifferentiatedGraph {
    std::shared_ptr<const Module> graph;  // marked like the joint graph: which inputs' gradients are wanted
    std::vector<bool> flow;               // by node id, whether gradients flow through the value
    std::vector<OutputMemory> memory;
    size_t leading = 0;  // outputs of the joint graph before the first of this one's: new values of inputs

    /// Of an output of the joint graph; null for a leading one, and behind the results.
    const OutputMemory* memoryOf(size_t jointOutput) const {
        return jointOutput < leading || jointOutput - leading >= memory.size() ? nullptr
                                                                               : &memory[jointOutput - leading];
    }
};
/// Of a run that was split. A file that holds a joint graph has no other.
DifferentiatedGraph differentiatedGraph(const CompileTrace& trace);

}  // namespace cutaway
