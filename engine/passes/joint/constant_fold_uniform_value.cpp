#include "engine/passes/joint/constant_fold_uniform_value.h"

#include <cmath>
#include <set>

#include "engine/ir/live_nodes.h"
#include "engine/ops/eval.h"
#include "engine/rewrite/refusing.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

constexpr std::string_view kFull = "aten.full.default";

/// View-like ops through which a uniform value passes unchanged.
bool passesValue(const Node& node) {
    static constexpr std::string_view kPackets[] = {"aten.squeeze", "aten.unsqueeze",  "aten.alias",
                                                    "aten.slice",   "aten.t",          "prims.broadcast_in_dim",
                                                    "aten.expand",  "aten.as_strided", "aten.permute"};
    const std::string_view packet = node.op().packet();
    return node.isCall("aten.view.default") ||
           std::find(std::begin(kPackets), std::end(kPackets), packet) != std::end(kPackets);
}

bool isUnsignedDType(DType dtype) { return isUnsigned(dtype); }

constexpr std::string_view kUniform = "uniform_value", kZeroProduct = "zero_product",
                           kNeutralOperand = "neutral_operand", kRepeated = "repeated_view",
                           kUnreadView = "unread_view", kUnreadSource = "unread_source";

/// Whether one factor is the literal int 0.
bool multipliesByZero(const Node& node) {
    if (!node.isCall("aten.mul.Tensor") && !node.isCall("aten.mul.Scalar")) return false;
    for (size_t i = 0; i < 2; ++i)
        if (const auto* value = node.arg(i).get<int64_t>(); value && *value == 0) return true;
    return false;
}

bool isWhole(DType dtype) { return isIntegral(dtype, true); }

/// Operands of one call as synthetic weights, for evaluating the call on them.
class UniformOperands : public ValueSource {
  public:
    explicit UniformOperands(const Graph& graph) : m_values(graph.idLimit()), m_source(graph.idLimit(), NodeId::None) {}

    const TensorList& valueOf(const Node& node) const override { return m_values[index(node.id())]; }
    const Tensor* find(const Node& node) const {
        const TensorList& value = m_values[index(node.id())];
        return value.empty() ? nullptr : &value[0];
    }
    /// `source`: the node whose computation made the value (views share it).
    void set(const Node& node, Tensor value, NodeId source) {
        m_values[index(node.id())] = {std::move(value)};
        m_source[index(node.id())] = source;
    }
    NodeId sourceOf(const Node& node) const { return m_source[index(node.id())]; }

  private:
    std::vector<TensorList> m_values;
    std::vector<NodeId> m_source;
};

class UniformFolding {
  public:
    UniformFolding(Module& module, Rewriter& rewriter)
        : m_module(module), m_graph(module.graph()), m_rewriter(rewriter), m_known(m_graph) {}

    Result<bool> run() {
        interpret();
        CT_TRY(bool changed, replaceFrontier());
        CT_TRY(const bool neutral, removeNeutralOperands());
        CT_TRY(const bool views, shareReinterpretations());
        return changed || neutral || views;
    }

  private:
    void interpret() {
        for (Node& node : m_graph.nodes()) {
            const Refusing no(m_rewriter, kUniform, node);
            if (node.kind() == NodeKind::GetAttr) {
                no("a tensor of the module is a constant as it is");
                auto found = m_module.tensors.find(node.target());
                if (found != m_module.tensors.end() && found->second.numel() == 1)
                    m_known.set(node, uniformSample(found->second), node.id());
                continue;
            }
            if (!mayBeUniform(node, no)) continue;
            if (isZeroProduct(node)) {
                no("a product with 0 is for the rule zero_product");
                // As in PyTorch, its value is not passed on to users: to them it is an unknown tensor.
                m_folded.insert(node.id());
                m_zeroProducts.insert(node.id());
                continue;
            }
            if (auto value = valueOf(node, no)) {
                const Node* source =
                    passesValue(node) || node.isCall("aten.view.dtype") ? node.arg(0).node() : nullptr;  // one storage
                m_known.set(node, std::move(*value), source ? m_known.sourceOf(*source) : node.id());
                if (!node.isCall("aten.lift_fresh_copy.default")) m_folded.insert(node.id());
                else no("it copies a constant of the module, which a call that makes one would not shorten");
            }
        }
    }

    /// 0 times NaN or infinity is NaN, so only integers are known to become 0. PyTorch takes real numbers for 0,
    /// too, up to 2.13 (H-9: only with parity).
    bool isZeroProduct(const Node& node) const {
        const CompileRequest& request = m_rewriter.request();
        return multipliesByZero(node) && (isWhole(node.tensor().dtype) ||
                                          (request.parity && !has(request.pytorch, ReleaseChange::ProductsWithZero)));
    }

    bool mayBeUniform(const Node& node, const Refusing& no) {
        if (node.isCall("aten.mul.Tensor") || node.isCall("aten.mul.Scalar")) {
            const Refusing noProduct(m_rewriter, kZeroProduct, node);
            if (!multipliesByZero(node)) noProduct("neither ", node.arg(0), " nor ", node.arg(1), " is the number 0");
            else if (!isZeroProduct(node))
                noProduct("it is ", node.type(), ", and 0 times NaN or infinity is NaN (only with parity)");
        }
        if (!node.isCall()) return no(KindOf{node}, " is known only when the graph runs");
        if (!node.type().tensor()) return no("its value is not a tensor");
        return !node.is(Tag::Random) || no("it draws random numbers");
    }

    static Tensor uniformSample(const Tensor& value) {
        return value.rank() == 0 ? value : value.view({1}, {1}, value.offset());
    }

    std::optional<Tensor> valueOf(const Node& node, const Refusing& no) {
        const DType dtype = node.tensor().dtype;
        if (node.isCall(kFull)) {
            const auto value = CallView(node).scalar("fill_value");
            if (!value) {
                no("what it is filled with is known only when the graph runs");
                return std::nullopt;
            }
            return Tensor::full(dtype, node.tensor().rank() == 0 ? Dims{} : Dims{1}, *value);
        }
        if (passesValue(node) || node.isCall("aten.lift_fresh_copy.default")) {
            const Node* source = node.arg(0).node();
            const Tensor* value = source ? m_known.find(*source) : nullptr;
            if (value == nullptr) {
                notUniform(source, no);
                return std::nullopt;
            }
            return *value;
        }
        if (node.isCall("aten.view.dtype")) {  // other bits are no longer one value where elements split or join
            const Node* source = node.arg(0).node();
            if (!source || byteSize(source->tensor().dtype) != byteSize(dtype)) {
                no("elements are split or joined");
                return std::nullopt;
            }
            return evaluate(node, no);
        }
        // PyTorch does not count copy among the pointwise operators.
        if ((!node.is(Tag::Pointwise) && !node.isCall("aten.scalar_tensor.default")) ||
            node.isCall("aten.copy.default")) {
            no(KindOf{node}, " does not work element by element");
            return std::nullopt;
        }
        return evaluate(node, no);
    }
    static bool notUniform(const Node* source, const Refusing& no) {
        return no.about(source, NodeWithKind{source}, " is not known to hold one value everywhere");
    }

    /// The call on synthetic weights. Its operands become placeholders of a scratch graph, so that the shape rule and
    /// the kernel see one-element tensors.
    std::optional<Tensor> evaluate(const Node& node, const Refusing& no) {
        for (const Node* input : node.inputs())
            if (m_known.find(*input) == nullptr) {
                notUniform(input, no);
                return std::nullopt;
            }
        Graph scratch;
        std::map<NodeId, Node*> twins;
        for (const Node* input : node.inputs()) {
            const Tensor& value = *m_known.find(*input);
            twins[input->id()] =
                &scratch.placeholder("x", TensorType::contiguous(value.dtype(), toSymDims(value.sizes())));
        }
        std::vector<Argument> args;
        for (const Argument& arg : node.args()) {
            if (arg.get<Expr>()) {
                no("it reads a size that is known only at run time");
                return std::nullopt;
            }
            if (arg.get<MemoryFormat>()) args.emplace_back();  // a synthetic weight has no layout
            else args.push_back(arg.mapNodes([&](Node* input) { return twins.at(input->id()); }));
        }
        const auto type = inferCall(node.op(), args);
        if (!type || !type->tensor()) {
            no("it cannot be computed on single numbers");
            return std::nullopt;
        }
        UniformOperands values(scratch);
        for (const Node* input : node.inputs()) values.set(*twins.at(input->id()), *m_known.find(*input), input->id());
        EvalResult result = evaluateCall(node.op(), args, *type, values);
        if (!result.ok() || result.tensors().size() != 1 || result.tensors()[0].numel() != 1) {
            no("it cannot be computed on single numbers");
            return std::nullopt;
        }
        Tensor value = result.tensors()[0].to(node.tensor().dtype);
        return node.tensor().rank() == 0 ? value.view({}, {}, value.offset()) : value.view({1}, {1}, value.offset());
    }

    /// A folded node whose users are all folded need not be replaced itself. PyTorch finds that out by counting: at the
    /// last user, if that is folded, it compares how often folded calls name the node with its number of users, and a
    /// call may name it twice.
    bool onFrontier(const Node& node, const Refusing& no) const {
        // PyTorch replaces a full by a full, too, in every run anew.
        if (!node.hasUsers()) return no("nobody reads it");
        const auto isFolded = [&](const Node& user) {
            return m_folded.contains(user.id()) && !m_zeroProducts.contains(user.id());
        };
        const Node* last = node.users()[0];
        size_t named = 0;
        for (const Node* user : node.users()) {
            if (m_graph.isBefore(*last, *user)) last = user;
            if (!isFolded(*user)) continue;
            for (const Argument& arg : user->args())
                arg.forEachNode([&](const Node* input) { named += input == &node; });
        }
        return !isFolded(*last) || named != node.users().size() ||
               no.about(node.users()[0], "it has one value everywhere, but so has what reads it: ", *node.users()[0]);
    }
    std::string_view ruleOf(const Node& node) const {
        return m_zeroProducts.contains(node.id()) ? kZeroProduct : kUniform;
    }

    Result<bool> replaceFrontier() {
        std::vector<Node*> frontier;
        std::map<NodeId, int> sharing;
        for (Node& node : m_graph.nodes())
            if (m_folded.contains(node.id()) && onFrontier(node, {m_rewriter, ruleOf(node), node})) {
                frontier.push_back(&node);
                if (!m_zeroProducts.contains(node.id())) ++sharing[m_known.sourceOf(node)];
            }
        bool changed = false;
        for (Node* node : frontier) {
            const TensorType& type = node->tensor();
            const Refusing no(m_rewriter, ruleOf(*node), *node);
            if (!isMadeByFull(type, no)) continue;
            const bool zeroProduct = m_zeroProducts.contains(node->id());
            // Two frontier nodes over one storage stay: separate fulls would no longer alias.
            if (!zeroProduct && sharing[m_known.sourceOf(*node)] > 1) {
                no("it shares its memory with another value that would be made by full");
                continue;
            }
            const Scalar value = zeroProduct ? Scalar(int64_t{0}) : literalOf(*node);
            if (node->isCall(kFull)) {
                no("it is made by full already");
                noteUniform(*node, value);
                continue;
            }
            const auto sizes = sizesFor(*node);
            if (!sizes) no("no node before it computes its sizes, ", type);
            if (!sizes) continue;
            const Go go = m_rewriter.begin(
                ruleOf(*node), *node,
                !zeroProduct          ? "every element has the same value"
                : isWhole(type.dtype) ? "zero times an integer is zero"
                                      : "zero times anything is taken for zero, even where that is NaN or infinite");
            if (go == Go::Stop) return changed;
            if (go == Go::Skip) continue;
            GraphBuilder builder = m_rewriter.builder(m_graph, node->next(), *node);
            const Value replacement = builder.call(
                "aten.full.default", {*sizes, Argument(value)},
                {{"dtype", type.dtype}, {"layout", Layout::Strided}, {"device", type.device}, {"pin_memory", false}});
            if (builder.error()) return *builder.error();
            m_rewriter.replace(*node, *replacement.node());
            noteUniform(*replacement.node(), value);
            changed = true;
        }
        return changed;
    }

    static bool isMadeByFull(const TensorType& type, const Refusing& no) {
        if (!type.isContiguous()) return no("full makes row-major tensors, and its layout is another one");
        return !isUnsignedDType(type.dtype) || no("it is ", type, ", and unsigned integers stay, as in PyTorch");
    }

    /// The sizes of a full in place of the node: a symbolic one is the first node that computes it. nullopt if none
    /// does in a graph that keeps its sizes in nodes, as PyTorch's do; elsewhere expressions are written as they are.
    std::optional<Argument> sizesFor(const Node& node) {
        const SymDims& sizes = node.tensor().sizes;
        if (allInts(sizes)) return Argument(sizes);
        if (!m_sizeNodes) {
            m_sizeNodes.emplace();
            for (Node& one : m_graph.nodes())
                if (const SymType* type = one.type().sym(); type && type->expr)
                    m_sizeNodes->emplace(text(type->expr), &one);
        }
        if (m_sizeNodes->empty()) return Argument(sizes);
        std::vector<Argument> items;
        for (const SymInt& size : sizes) {
            const auto found = size.isInt() ? m_sizeNodes->end() : m_sizeNodes->find(size.text());
            if (found != m_sizeNodes->end() && m_graph.isBefore(*found->second, node))
                items.emplace_back(found->second);
            else if (size.isInt()) items.emplace_back(size);
            else return std::nullopt;
        }
        return Argument(std::move(items));
    }

    Scalar literalOf(const Node& node) const {
        if (node.isCall(kFull)) return *CallView(node).scalar("fill_value");
        return m_known.find(node)->item();
    }
    void noteUniform(const Node& node, const Scalar& value) {
        if (std::holds_alternative<std::complex<double>>(value)) return;
        if (toDouble(value) == 0) m_zeros.insert(node.id());
        if (toDouble(value) == 0 && std::signbit(toDouble(value))) m_negativeZeros.insert(node.id());
        if (toDouble(value) == 1) m_ones.insert(node.id());
    }

    struct Neutral {
        std::string_view op;
        size_t operand;  // position of the neutral operand
        bool zero;       // neutral are zeros, else ones
    };
    /// Since 2.14 numbers count, whatever the operand's zeros are: x + 0 is x, even where x is -0.
    bool isNeutralNumber(const Node& node, const Neutral& rule, size_t number, const Refusing& no) const {
        const Argument& value = node.arg(number);
        if (!has(m_rewriter.request().pytorch, ReleaseChange::NumbersThatChangeNothing))
            return no("an operand is a number: ", value);
        const bool commutes = node.isCall("aten.add.Tensor") || node.isCall("aten.mul.Tensor");
        if (number != rule.operand) return !commutes && no("an operand is a number: ", value);
        if (value.asReal() != (rule.zero ? 0.0 : 1.0)) return no("the number is ", value);
        if (node.op().schema()->find("alpha") >= 0 && node.arg("alpha").asReal() != 1.0)
            return no("its alpha is ", node.arg("alpha"));
        const Node& kept = *node.arg(1 - number).node();
        const TensorType &out = node.tensor(), &in = kept.tensor();
        return (out.sizes == in.sizes && out.device == in.device) ||
               no.about(&kept, "it is ", out, ", but what would be left, ", kept, ", is ", in);
    }
    bool isNeutral(const Node& node, const Neutral& rule) {
        const Refusing no(m_rewriter, kNeutralOperand, node);
        const Node *left = node.arg(0).node(), *right = node.arg(1).node();
        const auto isTensor = [](const Node* operand) { return operand && operand->type().tensor(); };
        if (isTensor(left) != isTensor(right)) return isNeutralNumber(node, rule, isTensor(left) ? 1 : 0, no);
        if (!isTensor(left)) return no("both operands are numbers");
        if (node.op().schema()->find("alpha") >= 0 && node.arg("alpha").asReal() != 1.0)
            return no("its alpha is ", node.arg("alpha"));
        const auto& uniform = rule.zero ? m_zeros : m_ones;
        const Node &neutral = rule.operand == 0 ? *left : *right, &kept = rule.operand == 0 ? *right : *left;
        if (!uniform.contains(neutral.id())) {
            // Commutative calls have a row for each operand: refused only if neither is neutral.
            const bool either = node.isCall("aten.add.Tensor") || node.isCall("aten.mul.Tensor");
            const char* const what = rule.zero ? "zeros everywhere" : "ones everywhere";
            if (!either) return no.about(&neutral, neutral, " is not known to hold ", what);
            return !uniform.contains(kept.id()) && no("neither ", *left, " nor ", *right, " is known to hold ", what);
        }
        if (!m_rewriter.request().parity && !keepsBits(node, rule, neutral, kept.tensor().dtype, no)) return false;
        const TensorType &out = node.tensor(), &in = kept.tensor();
        return (out.sizes == in.sizes && out.device == in.device) ||
               no.about(&kept, "it is ", out, ", but what would be left, ", kept, ", is ", in);
    }
    /// Whether the result is the operand to the sign of its zeros, which PyTorch 2.11 does not ask: -0 + 0 is +0, but
    /// -0 - 0 and -0 + -0 are -0. Products of complex numbers mix their parts, so that infinity times one has a NaN.
    bool keepsBits(const Node& node, const Neutral& rule, const Node& neutral, DType kept, const Refusing& no) const {
        const DType dtype = node.tensor().dtype;
        if (isWhole(dtype)) return true;
        if (!rule.zero) return !isComplex(dtype) || no("infinity times a complex one has a NaN (only with parity)");
        if (isWhole(kept)) return true;  // no -0 comes from an integer
        const bool negative = m_negativeZeros.contains(neutral.id());
        if (node.isCall("aten.sub.Tensor"))
            return !negative || no.about(&neutral, "subtracting -0 makes +0 of -0 (only with parity)");
        return (negative && !isComplex(dtype)) ||
               no.about(&neutral, "-0 + 0 is +0, so the zeros of ", neutral, " change a -0 (only with parity)");
    }
    Result<bool> removeNeutralOperands() {
        static constexpr Neutral kNeutral[] = {{"aten.add.Tensor", 0, true},  {"aten.add.Tensor", 1, true},
                                               {"aten.sub.Tensor", 1, true},  {"aten.mul.Tensor", 0, false},
                                               {"aten.mul.Tensor", 1, false}, {"aten.div.Tensor", 1, false}};
        bool changed = false;
        for (const Neutral& rule : kNeutral)
            for (Node* node : LiveNodes(m_graph)) {
                if (!node->isCall(rule.op) || !isNeutral(*node, rule)) continue;
                Node* kept = node->arg(1 - rule.operand).node();
                const TensorType &out = node->tensor(), &in = kept->tensor();
                if (m_rewriter.begin(
                        kNeutralOperand, *node,
                        rule.zero ? "adding zeros changes nothing" : "multiplying by ones changes nothing") != Go::Yes)
                    return changed;
                if (out.dtype != in.dtype) {
                    GraphBuilder builder = m_rewriter.builder(m_graph, node, *node);
                    kept = convert(builder.value(*kept), out.dtype).node();
                    if (builder.error()) return *builder.error();
                }
                m_rewriter.replace(*node, *kept);
                changed = true;
            }
        return changed;
    }

    /// view.dtype twice to the same dtype is one; a view back to the source's dtype is the source. Then views that
    /// nobody reads are erased, and sources that nobody reads any more.
    Result<bool> shareReinterpretations() {
        bool changed = false;
        std::map<NodeId, std::map<DType, Node*>> seen;
        std::vector<Node*> views;  // and their sources; PyTorch's order of erasing does not matter
        for (Node* node : LiveNodes(m_graph)) {
            if (!node->isCall("aten.view.dtype") || !node->type().tensor()) continue;
            Node* source = node->arg(0).node();
            while (source->isCall("aten.view.dtype")) source = source->arg(0).node();
            if (!source->type().tensor()) continue;
            auto& known = seen[source->id()];
            if (known.emplace(source->tensor().dtype, source).second) views.push_back(source);
            const auto [found, fresh] = known.emplace(node->tensor().dtype, node);
            if (fresh || !found->second->tensor().sameMeta(node->tensor())) {
                const Refusing no(m_rewriter, kRepeated, *node);
                if (fresh)
                    no.about(source, "no other view of ", *source, " as ", info(node->tensor().dtype).torchName,
                             " stands before it");
                else no.about(found->second, *found->second, " is such a view, too, but in another layout");
                views.push_back(node);
                continue;
            }
            const Go go = m_rewriter.begin(kRepeated, *node, "the tensor has been reinterpreted as this dtype before");
            if (go == Go::Stop) return changed;
            if (go == Go::Skip) continue;
            m_rewriter.replace(*node, *found->second);
            changed = true;
        }
        CT_TRY(const bool erased, eraseUnread(views));
        sayWhyRead(views);
        return changed || erased;
    }
    /// PyTorch erases inputs too, which changes how the graph is called (H-6: only with parity).
    Result<bool> eraseUnread(std::vector<Node*>& nodes) {
        bool changed = false;
        for (bool found = true; found;) {
            found = false;
            for (Node*& node : nodes) {
                if (node == nullptr || node->hasUsers() ||
                    (node->isCall() ? !isPure(*node) : !m_rewriter.request().parity))
                    continue;
                const std::string_view rule = node->isCall() ? kUnreadView : kUnreadSource;
                const Go go = m_rewriter.begin(rule, *node, "nobody reads it");
                if (go == Go::Stop) return changed;
                if (go == Go::Skip) continue;
                if (node->isPlaceholder()) eraseInput(*node);
                m_graph.erase(*node);
                node = nullptr;
                found = changed = true;
            }
        }
        return changed;
    }

    /// `views`: null where they were erased.
    void sayWhyRead(const std::vector<Node*>& views) {
        for (const Node& node : m_graph.nodes()) {
            const Refusing no(m_rewriter, node.isCall() ? kUnreadView : kUnreadSource, node);
            if (!no.watched()) continue;
            if (std::find(views.begin(), views.end(), &node) == views.end())
                no("it is not a view as another dtype, nor read by one");
            else if (node.hasUsers()) no.about(node.users()[0], OtherReader{node});
            else
                no(node.isCall() ? "nobody reads it, but it does more than make a value"
                                 : "nobody reads it, but the graph is called with it; with parity it is dropped");
        }
    }

    void eraseInput(const Node& node) {
        const std::vector<Node*> all = m_graph.placeholders();
        const auto position = std::find(all.begin(), all.end(), &node) - all.begin();
        if (position < static_cast<std::ptrdiff_t>(m_module.inputs.size()))
            m_module.inputs.erase(m_module.inputs.begin() + position);
    }

    Module& m_module;
    Graph& m_graph;
    Rewriter& m_rewriter;
    UniformOperands m_known;
    std::optional<std::map<std::string, Node*>> m_sizeNodes;  // by expression; made when first asked for
    std::set<NodeId> m_folded, m_zeroProducts, m_zeros, m_negativeZeros, m_ones;
};

}  // namespace

Result<bool> constantFoldUniformValue(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, constantFoldUniformValue(*body, rewriter));
        changed |= inner;
    }
    CT_TRY(const bool folded, UniformFolding(module, rewriter).run());
    return changed || folded;
}

}  // namespace cutaway
