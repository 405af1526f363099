#include "engine/passes/freezing/constant_fold.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "cutaway/words.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/higher_order.h"
#include "engine/ir/data_dependent.h"
#include "engine/ir/live_nodes.h"
#include "engine/ir/recipe_graph.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kFoldConstants = "fold_constant", kDrop = "drop_constant";

/// Rules that make quantized calls look for these, so they stay (spec: freezing §2.5).
constexpr std::array<std::string_view, 4> kKept = {
    "quantized_decomposed.dequantize_per_channel.default", "quantized_decomposed.dequantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.tensor", "quantized_decomposed.convert_element_type.no_fuse"};

bool widensInt8(const Node& node) {
    const Node* read = node.isCall("prims.convert_element_type.default") ? node.arg(0).node() : nullptr;
    return read && read->kind() == NodeKind::GetAttr && read->type().tensor() && read->tensor().dtype == DType::I8 &&
           node.tensor().dtype == DType::BF16;
}
/// Weights of eight bits that a product widens as it reads them.
bool isWeightOnly(const Node& node) {
    if (!node.type().tensor()) return false;
    if (widensInt8(node)) return true;
    return node.isCall("aten.permute.default") && node.users().size() == 1 && node.arg(0).node() &&
           node.arg(0).node()->kind() == NodeKind::GetAttr &&
           node.users()[0]->isCall("prims.convert_element_type.default") && node.arg(0).node()->type().tensor() &&
           node.tensor().dtype == DType::I8;
}

int64_t bytesOf(const TensorType& type) { return numel(toInts(type.sizes)) * byteSize(type.dtype); }
class ConstantFolding {
  public:
    ConstantFolding(Module& module, Rewriter& rewriter)
        : m_module(module),
          m_graph(module.graph()),
          m_rewriter(rewriter),
          m_names(module),
          m_known(m_graph.idLimit()) {}

    bool run() {
        for (const Node& node : m_graph.nodes()) {
            m_known[index(node.id())] = isConstant(node);
            if (node.kind() == NodeKind::GetAttr && node.hasUsers()) m_rewriter.refuse(kDrop, node, "it is read");
        }
        for (Node* node : LiveNodes(m_graph)) {
            if (!onFrontier(*node)) continue;
            const Go go = m_rewriter.begin(kFoldConstants, *node, why(*node));
            if (go == Go::Stop) break;
            if (go == Go::Yes) fold(*node);
        }
        for (Node* node : LiveNodes(m_graph)) {
            if (node->kind() != NodeKind::GetAttr || node->hasUsers()) continue;
            if (m_rewriter.begin(kDrop, *node, "nobody reads it") == Go::Yes) m_graph.erase(*node);
        }
        dropUnread();
        return m_rewriter.changed();
    }

  private:
    bool known(const Node& node) const { return m_known[index(node.id())]; }

    /// Whether its value is the same in every run. Says why not.
    bool isConstant(const Node& node) {
        if (node.kind() == NodeKind::GetAttr) return node.type().tensor() != nullptr;
        if (!node.isCall()) return false;
        const Refusing no(m_rewriter, kFoldConstants, node);
        bool tensors = false;
        for (const Node* input : node.inputs()) {
            if (!known(*input) && !isMade(*input)) return no(NodeWithKind{input}, " is not constant");
            tensors = tensors || (known(*input) && !input->type().sym());
        }
        if (node.op().isOpaque()) return no("nothing is known of ", node.op().name());
        if (isHigherOrder(node.op().name())) return no("it runs a graph of its own");
        if (node.is(Tag::Random)) return no("it draws random numbers");
        if (!isPure(node)) return no("it does more than make a value");
        if (!tensors) return no("it makes a tensor from nothing, which costs less than reading one");
        if (std::find(kKept.begin(), kKept.end(), node.op().name()) != kKept.end() || isWeightOnly(node))
            return no("rules that make quantized calls look for it");
        if (sizeDependsOnData(node.op(), node.args())) return no("its size depends on data");
        if (!hasNumbers(node.type())) return no("its size is known only at run time");
        return !grows(node) || no("its ", bytesText(bytesOf(node.tensor())), " are made of far fewer");
    }
    static bool hasNumbers(const ValueType& type) {
        if (const TupleType* items = type.tuple()) return std::all_of(items->begin(), items->end(), hasNumbers);
        const TensorType* tensor = type.tensor();
        return tensor && allInts(tensor->sizes) && allInts(tensor->strides) && tensor->offset.isInt() &&
               tensor->layout == Layout::Strided;
    }

    /// A tensor made from nothing (zero points, masks), which is not a constant by itself. In PyTorch it keeps what is
    /// computed from it and from weights from being folded.
    bool isMade(const Node& node) const {
        return !m_rewriter.request().parity && node.isCall() && !node.op().isOpaque() && node.is(Tag::Factory) &&
               !node.is(Tag::Random) && isPure(node) && node.inputs().empty() && hasNumbers(node.type());
    }

    /// A constant that something other than constants reads.
    bool onFrontier(const Node& node) {
        if (!known(node) || !node.isCall()) return false;
        const Refusing no(m_rewriter, kFoldConstants, node);
        if (node.type().tensor() == nullptr) return no("its results are folded one by one");
        if (!node.hasUsers()) return no("nobody reads it");
        if (std::all_of(node.users().begin(), node.users().end(), [&](const Node* user) { return known(*user); }))
            return no("it is computed with what reads it, which is constant, too");
        return true;
    }
    /// Whether it is much larger than all that it is computed from: PyTorch keeps that in memory all the same.
    bool grows(const Node& node) const {
        constexpr int64_t kMuch = 64 << 20, kTimes = 16;
        const TensorType* type = node.type().tensor();
        if (m_rewriter.request().parity || type == nullptr || node.is(Tag::View) || bytesOf(*type) < kMuch)
            return false;
        int64_t read = 0;
        for (const Node* input : node.inputs()) {
            const TensorType* given = input->type().tensor();
            if (given == nullptr) return false;
            // An expanded operand counts with what it has in memory: dims of stride 0 once.
            int64_t elements = 1;
            for (size_t i = 0; i < given->sizes.size(); ++i)
                if (given->strides[i].isInt() && given->strides[i].value() != 0) elements *= given->sizes[i].value();
            read += elements * byteSize(given->dtype);
        }
        return bytesOf(*type) > kTimes * read;
    }

    std::string why(const Node& node) const {
        return "it is computed from constants alone, once for all runs (" + bytesText(bytesOf(node.tensor())) + ")";
    }

    void fold(Node& node) {
        const std::string name = node.name();
        Node& constant = makeConstant(m_module, m_names.next(), recipeGraph(m_module, node), node);
        Provenance provenance = node.provenance();
        provenance.origin = {node.id()};
        provenance.createdBy = std::string(m_rewriter.pass());
        m_graph.setProvenance(constant, std::move(provenance));
        m_graph.replaceUses(node, constant);
        m_rewriter.eraseDead(node);
        m_graph.rename(constant, name);
    }

    /// Tensors that nothing reads any more live on in the recipes of what was made of them.
    void dropUnread() {
        if (!m_rewriter.changed()) return;
        std::unordered_set<std::string> read;
        for (const Node& node : m_graph.nodes())
            if (node.kind() == NodeKind::GetAttr) read.insert(node.target());
        for (const InputSpec& input : m_module.inputs) read.insert(input.target);
        for (const OutputSpec& output : m_module.outputs) read.insert(output.target);
        for (const auto& [name, body] : m_module.subgraphs)
            for (const auto& [held, tensor] : body->tensors) read.insert(held);
        std::erase_if(m_module.tensors, [&](const auto& one) { return !read.contains(one.first); });
        std::erase_if(m_module.recipes, [&](const auto& one) { return !read.contains(one.first); });
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    ConstantNames m_names;
    std::vector<bool> m_known;
};

}  // namespace

ConstantNames::ConstantNames(const Module& module) {
    for (const auto& [name, tensor] : module.tensors) m_taken.insert(name);
    addRead(module.graph());
    // Constants that only recipes read are no longer the module's, but their names stay taken.
    for (const auto& [name, recipe] : module.recipes) {
        m_taken.insert(name);
        addRead(recipe->graph().graph());
    }
}
void ConstantNames::addRead(const Graph& graph) {
    for (const Node& node : graph.nodes())
        if (node.kind() == NodeKind::GetAttr) m_taken.insert(node.target());
}
std::string ConstantNames::next() {
    std::string name;
    do name = "_frozen_param" + std::to_string(m_number++);
    while (!m_taken.insert(name).second);
    return name;
}

Node& makeConstant(Module& module, const std::string& name, std::shared_ptr<const Module> graph, Node& before) {
    TensorType type = graph->graph().outputs().at(0).node()->tensor();
    type.requiresGrad = false;
    module.recipes[name] = makeRecipe(std::move(graph));
    return module.graph().getAttr(name, ValueType(std::move(type)), &before);
}

Result<bool> foldConstants(Module& module, Rewriter& rewriter) { return ConstantFolding(module, rewriter).run(); }

}  // namespace cutaway
