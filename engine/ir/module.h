#pragma once
// A program: a graph, its named subgraphs, and the tensors it owns.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/recipe.h"
#include "engine/support/hash.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct InputSpec {
    enum class Kind : uint8_t {
        UserInput,
        Parameter,
        Buffer,
        Constant,
        ConstantInput,
        CustomObject,
        Token,
        Tangent,         // of reverse mode: the gradient of an output
        Saved,           // of a backward: what its forward saved for it
        ForwardTangent,  // of forward mode: the direction in which an input moves
    };
    Kind kind = Kind::UserInput;
    /// The tensor's name in Module::tensors; of a tangent the number of the output, if known, of a forward tangent the
    /// name of the input.
    std::string target;
    bool persistent = true;  // buffers
    Argument constant;       // ConstantInput

    /// Whether its value is handed in for each run; all others belong to the module.
    bool isGiven() const {
        return kind == Kind::UserInput || kind == Kind::Tangent || kind == Kind::Saved || kind == Kind::ForwardTangent;
    }
};
struct OutputSpec {
    enum class Kind : uint8_t {
        UserOutput,
        Loss,
        BufferMutation,
        ParameterMutation,
        InputMutation,
        Gradient,
        Token,
        Saved,           // of a forward: for its backward
        ForwardTangent,  // of forward mode: how a result moves
    };
    Kind kind = Kind::UserOutput;
    /// Buffer, parameter or user input that the value is written back to, or is the gradient of; of a forward tangent
    /// the position of the value whose tangent it is among all returned values.
    std::string target;
};
/// Bounds and example value of a size symbol.
struct SymbolInfo {
    std::optional<int64_t> lower, upper, hint;
    /// The least value that the symbol may have. A lower bound of 2 means only that the exporter did not distinguish 0
    /// and 1: as in PyTorch, such programs run with these, too.
    int64_t least() const { return lower && *lower > 2 ? *lower : 0; }
};

/// What a module is, in the words of the place it was read from.
struct ModuleOrigin {
    std::string file;    // as the user named it
    std::string torch;   // the version of PyTorch that wrote it, "2.15.0+cpu"; empty: unknown
    std::string format;  // ".pt2 (PyTorch 2.11, schema 8.17)", "FX text"
    std::string
        stage;  // of the compiler that comes next, "post_grad", where PyTorch ran those before it; empty: unknown
    std::vector<std::string> remarks;  // what was assumed or left out while reading
};

/// What later stages decide about a graph beside its nodes, such as which of them share a kernel. It names nodes by id.
struct ModulePlan {
    virtual ~ModulePlan() = default;
    virtual Hash128 fingerprint() const = 0;
};

class Module {
  public:
    Module() : m_graph(std::make_unique<Graph>()) {}
    Module(const Module& other);
    Module& operator=(const Module&) = delete;

    Graph& graph() { return *m_graph; }
    const Graph& graph() const { return *m_graph; }

    std::string name = "main";
    std::vector<InputSpec> inputs;    // one per placeholder, in order
    std::vector<OutputSpec> outputs;  // one per returned value, in order
    /// Parameters, buffers and constants by name. Equal storages are ties and stay shared. A name that an InputSpec
    /// or a GetAttr uses may be missing: the payload was not in the file.
    std::map<std::string, Tensor> tensors;
    /// Constants that passes have made, by name: what they are computed from, in place of a tensor. No name is in both.
    std::map<std::string, std::shared_ptr<const Recipe>> recipes;
    /// Bodies of cond, while_loop and their kin, in the order in which they were registered.
    std::vector<std::pair<std::string, std::unique_ptr<Module>>> subgraphs;
    std::map<std::string, SymbolInfo> symbols;
    ModuleOrigin origin;
    std::shared_ptr<const ModulePlan> plan;  // null before the scheduling stage

    /// Whether a tensor or a recipe has this name.
    bool hasConstant(const std::string& wanted) const { return tensors.contains(wanted) || recipes.contains(wanted); }

    Module* subgraph(std::string_view wanted) const;
    /// The body at a path of names joined by "/", this module itself for ""; null if there is none.
    Module* body(std::string_view path);
    const Module* body(std::string_view path) const { return const_cast<Module*>(this)->body(path); }

  private:
    std::unique_ptr<Graph> m_graph;
};

/// What the UI, steps and caches hold.
using Snapshot = std::shared_ptr<const Module>;

}  // namespace cutaway
