#pragma once
#include <string>
#include <unordered_set>

#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Computes what depends on constants alone (spec: freezing §2.5). A folded call becomes a constant with a recipe
/// (ir/recipe.h), so nothing is computed here.
Result<bool> foldConstants(Module& module, Rewriter& rewriter);

/// Names that no constant of a module has: "_frozen_param7", numbered as PyTorch does.
class ConstantNames {
  public:
    explicit ConstantNames(const Module& module);
    std::string next();

  private:
    void addRead(const Graph& graph);
    std::unordered_set<std::string> m_taken;  // membership only, never iterated
    size_t m_number = 0;
};

/// A constant of this name that `graph` computes (recipe_graph.h).
Node& makeConstant(Module& module, const std::string& name, std::shared_ptr<const Module> graph, Node& before);

}  // namespace cutaway
