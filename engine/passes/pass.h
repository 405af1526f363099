#pragma once
// A pass: a free function with a name, as one row of its stage's table (passes/stages). Everything that holds for one
// pass is said on its row.
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A rewrite of a pass that is written as a function, by the name that Rewriter::begin gets.
struct CodeRewrite {
    std::string_view name, what;
    /// The anchors: nodes that Rewriter::begin may get. Names of calls with ", " between them: operators
    /// ("aten.cat.default"), Python functions ("torch.cat"), methods ("Tensor.view"), all with a prefix
    /// ("aten.slice.*"); or "call", "placeholder", "get_attr", "output". Empty: any node. At other nodes a pass need
    /// not say why it does nothing: explaining says that the rule does not start there.
    std::string_view starts = {};
};

/// What has to run earlier.
struct Dependency {
    std::string_view first;  // a pass or a stage by name, or kFunctionalPasses
    std::string_view why;    // a clause: "only ATen operators are expanded"
};
/// Stands for all passes that keep graphs functional.
constexpr std::string_view kFunctionalPasses = "functional passes";

struct Pass {
    std::string_view name;     // PyTorch's observer name where it has one
    std::string_view summary;  // one sentence for the user
    /// Edits the module through the rewriter; true if anything changed.
    Result<bool> (*run)(Module& module, Rewriter& rewriter) = nullptr;
    /// In place of `run`: turns one graph into one for each graph of the `split` that the pass belongs to (plan.h).
    Result<std::vector<std::shared_ptr<Module>>> (*split)(const Module& module, Rewriter& rewriter) = nullptr;
    /// In place of `run`: on a split's later graph it is also given the graph that the earlier graph ended with, on
    /// others null.
    Result<bool> (*follow)(Module& module, const Module* earlier, Rewriter& rewriter) = nullptr;
    /// In place of `run`: compares the graph before the stage with the graph as it is now, and says what it found.
    std::string (*compare)(const Module& before, const Module& after, const OptionalPass& settings) = nullptr;

    /// Whether it belongs to a run of this kind; absent = always.
    bool (*when)(const CompileRequest& request) = nullptr;
    /// Off by default: runs if CompileRequest::enabled names it, as often as its setting `counter` says.
    bool onRequest = false;
    Releases releases = {};                 // of PyTorch, those that have it
    std::string_view alsoRequestedBy = {};  // another name that switches it on
    /// Later passes cannot do without it: its rewrites cost no fuel.
    bool required = false;
    /// PyTorch runs it ahead of what it calls the stage: the stage's graph before it is the one that this pass leaves.
    bool prepares = false;
    /// Also one of PyTorch's passes for graphs before dispatch (is_predispatch, PRE-12).
    bool predispatch = false;
    /// From functionalize on, graphs hold no mutation but final copies; the runner verifies it after each such pass.
    bool functional = true;
    /// Why a second run right after the first may change the graph again, as a sentence; empty: it never does.
    std::string_view repeats = {};
    std::span<const Dependency> after = {};

    // What it rewrites: a table of rules, or rewrites that it makes itself; without any of these one rewrite that has
    // the pass's name and summary, and starts at `starts`.
    std::span<const Rule> (*rules)() = nullptr;
    std::span<const CodeRewrite> rewrites = {};
    std::vector<CodeRewrite> (*operatorRewrites)(const Pass& pass) = nullptr;  // made from a table of operators
    std::string_view starts = {};
    /// Not empty: its rewrites belong together, because a graph is functional, or has gradients, as a whole or not at
    /// all. Only the pass can be switched off, not single rewrites; this says what holds after it.
    std::string_view undivided = {};

    /// In place of `run` in passes of the user's own.
    const std::function<Result<bool>(Module& module, Rewriter& rewriter)>* own = nullptr;

    Result<bool> operator()(Module& module, Rewriter& rewriter) const {
        return own ? (*own)(module, rewriter) : run(module, rewriter);
    }
};

}  // namespace cutaway
