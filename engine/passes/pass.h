#pragma once
// A pass: a free function with a name, in one visible table (pipeline.cpp).
#include <functional>
#include <string_view>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

struct Pass {
    std::string_view stage;    // "pre_grad", "capture", "joint", "post_grad"
    std::string_view name;     // PyTorch's observer name where it has one
    std::string_view summary;  // one sentence for the user
    /// Edits the module through the rewriter; true if anything changed.
    Result<bool> (*run)(Module& module, Rewriter& rewriter);
    /// Whether it runs with these options; absent = always.
    bool (*enabled)(const CompileOptions& options) = nullptr;
    /// Not zero: runs only when CompileOptions::enabledPasses names it. Neighbours of one number run in the order in
    /// which they are named, each as often as its setting `counter` says.
    int optional = 0;
    /// From functionalize on, graphs hold no mutation but final copies; the runner verifies it after each such pass.
    bool functional = true;
    /// Why a second run at once may change the graph again, as a sentence; empty: it never does.
    std::string_view repeats = "";
    /// In place of `run` in passes of the user's own.
    const std::function<Result<bool>(Module& module, Rewriter& rewriter)>* own = nullptr;
};

}  // namespace cutaway
