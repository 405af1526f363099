#include "engine/passes/freezing/concat_products.h"

#include <algorithm>

#include "engine/passes/freezing/options.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

/// One of PyTorch's patterns, in the order in which they are tried.
struct JoinedPattern {
    std::string_view rule, op;
    size_t products;
    size_t input, weight;  // positions of operands; addmm has its bias at 0
};
constexpr JoinedPattern kPatterns[] = {{"matmul_fuse_pattern", "aten.mm.default", 3, 0, 1},
                                       {"matmul_fuse_pattern_two", "aten.mm.default", 2, 0, 1},
                                       {"addmm_fuse_pattern_second", "aten.addmm.default", 3, 1, 2}};
bool hasBias(const JoinedPattern& pattern) { return pattern.input == 1; }

class Concatenation {
  public:
    Concatenation(Module& module, Rewriter& rewriter)
        : m_graph(module.graph()), m_rewriter(rewriter), m_onCpu(freezingOptions(rewriter.request()).concatLinear) {}

    Result<bool> run() {
        std::vector<NodeId> calls;
        for (const Node& node : m_graph.nodes())
            if (node.isCall()) calls.push_back(node.id());
        for (auto id = calls.rbegin(); id != calls.rend(); ++id)
            for (const JoinedPattern& pattern : kPatterns) {
                Node* node = m_graph.find(*id);
                if (node == nullptr || !node->isCall(pattern.op)) continue;
                const std::vector<Node*> products = find(*node, pattern);
                if (products.empty()) continue;
                const Go go = m_rewriter.begin(pattern.rule, *node, "one product reads the tensor once");
                if (go == Go::Stop) return m_rewriter.changed();
                if (go != Go::Yes) continue;
                explainTaken(products, pattern);
                CT_TRY_VOID(join(products, pattern));
            }
        return m_rewriter.changed();
    }

  private:
    bool fits(const Node& node, const JoinedPattern& pattern, const Refusing& no) const {
        const Node *input = node.arg(pattern.input).node(), *weight = node.arg(pattern.weight).node();
        for (size_t at = 0; at <= pattern.weight; ++at)
            if (const Node* operand = node.arg(at).node(); operand == nullptr || !operand->type().tensor())
                return no("the types of its operands are not known");
        if (input->tensor().device.type == DeviceType::Cpu && !m_onCpu)
            return no("on the CPU it is off (--enable freeze=enable_concat_linear:1)");
        if (weight->kind() != NodeKind::GetAttr) return no("its weight, ", NodeWithKind{weight}, ", is not a constant");
        if (!hasBias(pattern)) return true;
        const Node* bias = node.arg(0).node();
        if (bias->kind() != NodeKind::GetAttr) return no("its bias, ", NodeWithKind{bias}, ", is not a constant");
        if (m_rewriter.request().parity) return true;  // PyTorch drops the factors (trap 7)
        for (const std::string_view param : {"beta", "alpha"})
            if (node.arg(param).asReal() != 1.0) return no("it is scaled: ", param, " is ", node.arg(param));
        return true;
    }

    /// The call and those before it that read the same tensor, in the order of the graph; empty if there are too few.
    std::vector<Node*> find(Node& node, const JoinedPattern& pattern) const {
        const Refusing no(m_rewriter, pattern.rule, node);
        if (!fits(node, pattern, no)) return {};
        const Node& input = *node.arg(pattern.input).node();
        std::vector<Node*> siblings;
        for (Node* user : input.users())
            if (user != &node && user->isCall(pattern.op) && user->arg(pattern.input).node() == &input &&
                m_graph.isBefore(*user, node) && fits(*user, pattern, {}) && sameShapes(node, *user, pattern) &&
                otherConstants(node, *user, siblings, pattern))
                siblings.push_back(user);
        if (siblings.size() + 1 < pattern.products) {
            no("no ", pattern.products == 2 ? "other product of " : "two other products of ", input,
               " before it has another weight of the same size");
            return {};
        }
        std::sort(siblings.begin(), siblings.end(),
                  [&](const Node* a, const Node* b) { return m_graph.isBefore(*a, *b); });
        siblings.erase(siblings.begin(), siblings.end() - static_cast<std::ptrdiff_t>(pattern.products - 1));
        siblings.push_back(&node);
        return siblings;
    }
    static bool sameShapes(const Node& a, const Node& b, const JoinedPattern& pattern) {
        const auto same = [&](size_t at) {
            const TensorType &one = a.arg(at).node()->tensor(), &other = b.arg(at).node()->tensor();
            return one.sizes == other.sizes && one.dtype == other.dtype;
        };
        return same(pattern.weight) && (!hasBias(pattern) || same(0));
    }
    /// Whether weight and bias differ from those of `node` and of all `chosen`, as PyTorch's pattern demands.
    static bool otherConstants(const Node& node, const Node& next, const std::vector<Node*>& chosen,
                               const JoinedPattern& pattern) {
        const auto differs = [&](const Node& one) {
            return one.arg(pattern.weight).node() != next.arg(pattern.weight).node() &&
                   (!hasBias(pattern) || one.arg(0).node() != next.arg(0).node());
        };
        return differs(node) && std::all_of(chosen.begin(), chosen.end(), [&](Node* one) { return differs(*one); });
    }

    /// Refuses these products to all patterns of their op, since `pattern` joins them.
    void explainTaken(const std::vector<Node*>& products, const JoinedPattern& pattern) const {
        for (Node* product : products)
            for (const JoinedPattern& other : kPatterns)
                if (other.op == pattern.op)
                    Refusing(m_rewriter, other.rule, *product)("it is joined with others by ", pattern.rule);
    }

    Result<void> join(const std::vector<Node*>& products, const JoinedPattern& pattern) {
        Node& first = *products.front();
        std::vector<Argument> weights, biases;
        for (Node* node : products) {
            for (const size_t at : {pattern.weight, size_t{0}})
                if (at == pattern.weight || hasBias(pattern)) {
                    Node& constant = *node->arg(at).node();
                    if (!m_graph.isBefore(constant, first)) m_graph.moveBefore(constant, first);
                    (at == pattern.weight ? weights : biases).emplace_back(&constant);
                }
        }
        const SymInt columns = first.arg(pattern.weight).node()->tensor().sizes[1];
        GraphBuilder builder = m_rewriter.builder(m_graph, &first, first);
        const Value weight = builder.call("aten.cat.default", {Argument(std::move(weights)), 1});
        std::vector<Argument> args = first.args();
        args.resize(pattern.weight + 1);  // without factors: they are 1, or PyTorch drops them (trap 7)
        args[pattern.weight] = weight;
        if (hasBias(pattern)) {
            const int64_t dim = first.arg(0).node()->tensor().rank() - 1;
            args[0] = builder.call("aten.cat.default", {Argument(std::move(biases)), dim});
        }
        const Value joined = builder.call(first.op(), std::move(args));
        const Value parts = builder.call("aten.split.Tensor", {joined, Argument(columns), 1});
        std::vector<Value> results;
        for (size_t i = 0; i < products.size() && !builder.error(); ++i)
            results.push_back(parts[static_cast<int64_t>(i)]);
        if (builder.error()) return *builder.error();
        for (size_t i = 0; i < products.size(); ++i) m_rewriter.replace(*products[i], *results[i].node());
        return {};
    }

    Graph& m_graph;
    Rewriter& m_rewriter;
    bool m_onCpu;
};

}  // namespace

Result<bool> concatProducts(Module& module, Rewriter& rewriter) { return Concatenation(module, rewriter).run(); }

}  // namespace cutaway
