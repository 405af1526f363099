#pragma once
// A pass: a free function with a name, as one row of its stage's table (passes/stages). All that is said of a pass by
// name is said on its row.
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
    /// The nodes that Rewriter::begin may get: names of calls with ", " between them, operators ("aten.cat.default"),
    /// Python functions ("torch.cat") and methods ("Tensor.view"), all that begin alike ("aten.slice.*"); or "call",
    /// "placeholder", "get_attr", "output". Empty: any node. Of other nodes a pass need not say why it leaves them
    /// alone: whoever explains says that the rule does not start there.
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
    /// In place of `run`: makes of one graph one for each track of the `split` that the pass stands in (plan.h).
    Result<std::vector<std::shared_ptr<Module>>> (*split)(const Module& module, Rewriter& rewriter) = nullptr;
    /// In place of `run`: looks at the graph as its stage found it and as it is now, and says what it saw.
    std::string (*compare)(const Module& before, const Module& after, const OptionalPass& settings) = nullptr;

    /// Whether it belongs to a run of this kind; absent = always.
    bool (*when)(const CompileRequest& request) = nullptr;
    /// Runs only when CompileRequest::enabled names it, as often as its setting `counter` says.
    bool onRequest = false;
    std::string_view alsoRequestedBy = {};  // another name that switches it on
    /// What follows cannot do without it: its rewrites cost no fuel.
    bool required = false;
    /// It has its place among PyTorch's passes for graphs before dispatch, too (is_predispatch, PRE-12).
    bool predispatch = false;
    /// From functionalize on, graphs hold no mutation but final copies; the runner verifies it after each such pass.
    bool functional = true;
    /// Why a second run at once may change the graph again, as a sentence; empty: it never does.
    std::string_view repeats = {};
    std::span<const Dependency> after = {};

    // What it rewrites: a table of rules, or rewrites that it makes itself; without any of these one rewrite that has
    // the pass's name and summary, and starts at `starts`.
    std::span<const Rule> (*rules)() = nullptr;
    std::span<const CodeRewrite> rewrites = {};
    std::vector<CodeRewrite> (*operatorRewrites)(const Pass& pass) = nullptr;  // made from a table of operators
    std::string_view starts = {};
    /// Not empty: its rewrites belong together, because a graph is functional, or has gradients, as a whole or not at
    /// all. They are switched off as a pass only; this says what holds behind it.
    std::string_view undivided = {};

    /// In place of `run` in passes of the user's own.
    const std::function<Result<bool>(Module& module, Rewriter& rewriter)>* own = nullptr;

    Result<bool> operator()(Module& module, Rewriter& rewriter) const {
        return own ? (*own)(module, rewriter) : run(module, rewriter);
    }
};

}  // namespace cutaway
