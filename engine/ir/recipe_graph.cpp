#include "engine/ir/recipe_graph.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {
namespace {

/// The value and all that it is computed from, each once, operands first.
std::vector<const Node*> leadingTo(const Node& value) {
    std::vector<const Node*> order, pending = {&value};
    std::vector<bool> done(value.graph().idLimit()), open(value.graph().idLimit());
    while (!pending.empty()) {
        const Node* node = pending.back();
        const uint32_t id = index(node->id());
        if (done[id] || open[id]) {
            pending.pop_back();
            if (!done[id]) order.push_back(node);
            done[id] = true;
            continue;
        }
        open[id] = true;
        const std::vector<Node*> inputs = node->inputs();
        pending.insert(pending.end(), inputs.rbegin(), inputs.rend());
    }
    return order;
}

class RecipeMaker {
  public:
    explicit RecipeMaker(const Module& module) : m_module(module) {
        m_made->name = "constant";
        m_made->graph().reserveIds(module.graph().idLimit());
    }
    std::shared_ptr<const Module> make(const Node& value) {
        Graph& graph = m_made->graph();
        for (const Node* node : leadingTo(value)) take(*node);
        Node* result = graph.find(value.id());
        for (const auto& [leaf, computed] : m_inlined) {
            graph.replaceUses(*leaf, *computed);
            if (leaf == result) result = computed;
            graph.erase(*leaf);
        }
        graph.output(Argument(std::vector<Argument>{Argument(result)}));
        m_made->outputs.emplace_back();
        return m_made;
    }

  private:
    /// Nothing for a node that a recipe has brought already.
    void take(const Node& node) {
        Graph& graph = m_made->graph();
        if (graph.find(node.id())) return;
        if (node.kind() == NodeKind::GetAttr) {
            if (const auto recipe = m_module.recipes.find(node.target()); recipe != m_module.recipes.end()) {
                Node* computed = inlineRecipe(recipe->second->graph());
                m_inlined.emplace_back(&graph.take(node), computed);
                return;
            }
            if (const auto tensor = m_module.tensors.find(node.target()); tensor != m_module.tensors.end())
                m_made->tensors.insert(*tensor);
        }
        graph.take(node);
    }
    /// A node of several recipes is taken once: its id is the same in all of them.
    Node* inlineRecipe(const Module& recipe) {
        Graph& graph = m_made->graph();
        for (const Node& node : recipe.graph().nodes())
            if (!node.isOutput() && !graph.find(node.id())) graph.take(node);
        m_made->tensors.insert(recipe.tensors.begin(), recipe.tensors.end());
        return graph.find(recipe.graph().outputs().at(0).node()->id());
    }

    const Module& m_module;
    std::shared_ptr<Module> m_made = std::make_shared<Module>();
    std::vector<std::pair<Node*, Node*>> m_inlined;  // a constant with a recipe, and what the recipe computes
};

}  // namespace

std::shared_ptr<const Module> recipeGraph(const Module& module, const Node& value) {
    return RecipeMaker(module).make(value);
}

const Node* recipeResult(const Module& module, const Node& constant) {
    if (constant.kind() != NodeKind::GetAttr) return nullptr;
    const auto recipe = module.recipes.find(constant.target());
    return recipe == module.recipes.end() ? nullptr : recipe->second->graph().graph().outputs().at(0).node();
}

}  // namespace cutaway
