#pragma once
// What freezing can be told, by PyTorch's names of the options where it has one (spec: freezing §0).
#include <string>

#include "cutaway/request.h"
#include "engine/support/release_changes.h"

namespace cutaway {

struct FreezingOptions {
    bool layoutOptimization = true;    // layout_optimization
    bool forceLayout = false;          // force_layout_optimization
    bool linearBinaryFolding = false;  // enable_linear_binary_folding
    bool concatLinear = false;         // enable_concat_linear: products on the CPU, too
    bool weightPrepack = true;         // weight_prepack
    /// Ours: PyTorch gives linear layers of float32 to MKL, which computes nothing of their results.
    bool fuseFloat32Linear = false;
    /// How many of the last inputs are given for each run, in graphs that do not say which are parameters; -1: guess.
    int64_t inputs = -1;
};
inline FreezingOptions freezingOptions(const CompileRequest& request) {
    FreezingOptions options;
    const OptionalPass* given = request.enabled("freeze");
    if (given == nullptr) return options;
    options.layoutOptimization = given->flag("layout_optimization", true);
    options.forceLayout = given->flag("force_layout_optimization", false);
    options.linearBinaryFolding = given->flag("enable_linear_binary_folding", false);
    options.concatLinear = given->flag("enable_concat_linear", false);
    options.weightPrepack = given->flag("weight_prepack", true);
    options.fuseFloat32Linear = given->flag("fuse_float32_linear", false);
    options.inputs = static_cast<int64_t>(given->number("inputs", -1));
    return options;
}

/// Whether a run packs weights for the library that computes with them on the CPU.
inline bool packsWeights(const CompileRequest& request) {
    return request.target == Target::Cpu && freezingOptions(request).weightPrepack;
}

/// Whether a run joins what is quantized. Since 2.14 TorchAO does, if it is there: --enable torchao.
inline bool joinsQuantized(const CompileRequest& request) {
    return packsWeights(request) &&
           (!has(request.pytorch, ReleaseChange::QuantizationElsewhere) || request.enabled("torchao") != nullptr);
}

}  // namespace cutaway
