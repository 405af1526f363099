#pragma once
// A graph in a folder, as GraphModule.to_folder writes it (spec: debug-minify-export §1.4), with its inputs and the
// request beside it.
#include "engine/formats/open.h"
#include "engine/ir/module.h"

namespace cutaway {

struct GraphBundle {
    std::shared_ptr<Module> module;  // parameters, buffers and constants are attributes, and all have data
    std::vector<Tensor> inputs;
    std::string request;  // text
};

/// Parameters, buffers and constants that are inputs become attributes under their own names, with synthetic weights
/// where the file has no data. Errors: a tensor of unknown size.
Result<std::shared_ptr<Module>> withOwnTensors(const Module& module);

/// Writes module.py, __init__.py, state_dict.pt, graph.py, inputs.safetensors and request.txt; their names. Errors: the
/// folder holds something else, or cannot be written; the graph is not Python that runs.
Result<std::vector<std::string>> writeBundle(const std::string& folder, const GraphBundle& bundle);
/// The graph of such a folder. Errors: those of its reader.
Result<std::shared_ptr<Module>> readBundle(const std::string& folder);

/// The first difference of two graphs as a sentence, node by node in order: operators, arguments, names of attributes;
/// empty if there is none. Types that only one of them knows do not count.
std::string structuralDifference(const Module& a, const Module& b);

}  // namespace cutaway
