#include "engine/passes/joint/chunk_plan.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>

#include "engine/ir/infer.h"

namespace cutaway {

ChunkSettings::ChunkSettings(const CompileRequest& options) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = options.enabled("auto_chunker");
    const OptionalPass& settings = given ? *given : kDefaults;
    chunks = std::max<int64_t>(static_cast<int64_t>(settings.number("num_chunk", 8)), 1);
    outputSizeThreshold = settings.number("output_size_threshold", 1024 * 1024);
    amplifyRatioThreshold = settings.number("amplify_ratio_threshold", 8);
}

bool isTangent(const Node& node) { return node.isPlaceholder() && node.name().find("tangent") != std::string::npos; }

namespace {

const TensorType* tensorOf(const Node& node) { return node.type().tensor(); }
/// Elements; none for what is not a tensor or has symbolic sizes.
std::optional<int64_t> elementsOf(const Node& node) {
    const TensorType* type = tensorOf(node);
    if (type == nullptr || !allInts(type->sizes)) return std::nullopt;
    int64_t count = 1;
    for (const SymInt& size : type->sizes) count *= size.value();
    return count;
}
double bytesOf(const Node& node) {
    const auto count = elementsOf(node);
    return count ? static_cast<double>(*count) * static_cast<double>(byteSize(tensorOf(node)->dtype)) : 0;
}
bool isSingle(const Node& node) { return elementsOf(node) == 1; }
std::string named(const Node& node) { return std::string("`").append(node.name()).append("`"); }
std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

bool isChunkedProduct(const Node& node) { return node.isCall("aten.mm.default") || node.isCall("aten.addmm.default"); }
bool readsTangent(const Node& node) {
    const auto inputs = node.inputs();
    return std::any_of(inputs.begin(), inputs.end(), [](const Node* input) { return isTangent(*input); });
}
/// Bytes of the result divided by bytes of the operands; 0 where those of the operands are not known.
double growthOf(const Node& product) {
    double operands = 0;
    product.forEachInput([&](const Node* input) { operands += bytesOf(*input); });
    return operands == 0 ? 0 : bytesOf(product) / operands;
}

/// The empty sentence if the product is worth it.
std::string unlessGrows(const Node& product, const ChunkSettings& settings) {
    if (!elementsOf(product)) return "its sizes are symbolic";
    if (bytesOf(product) <= settings.outputSizeThreshold)
        return "its result has " + number(bytesOf(product)) + " bytes, not more than " +
               number(settings.outputSizeThreshold) + " (output_size_threshold)";
    if (growthOf(product) <= settings.amplifyRatioThreshold)
        return "its result is " + number(growthOf(product)) + " times as large as its operands, not more than " +
               number(settings.amplifyRatioThreshold) + " times (amplify_ratio_threshold)";
    return {};
}

/// Nodes from which values as large as the product's are reached: forward through readers, or backward through
/// operands, where gradients that come in count too.
std::vector<bool> leadingToLarge(Graph& graph, const Node& product, bool forward) {
    std::vector<bool> leads(graph.idLimit());
    std::vector<Node*> order = graph.nodeList();
    if (forward) std::reverse(order.begin(), order.end());
    for (const Node* node : order) {
        if (node->isOutput() || tensorOf(*node) == nullptr) continue;
        bool reaches = elementsOf(*node) == elementsOf(product) || (!forward && isTangent(*node));
        if (forward) {
            for (const Node* user : node->users()) reaches |= leads[static_cast<size_t>(user->id())];
        } else {
            node->forEachInput([&](const Node* input) { reaches |= leads[static_cast<size_t>(input->id())]; });
        }
        leads[static_cast<size_t>(node->id())] = reaches;
    }
    return leads;
}

constexpr Cut kWhole{};
constexpr Cut kSummed{.summed = true};
Cut alongDim(int64_t dim) { return {.dim = dim}; }

/// Spreads cuts over the graph. Every rule looks at one call and says how its operands and its result must be cut,
/// given what is known of any of them.
class Spreading {
  public:
    Spreading(Graph& graph, const Node& product)
        : m_cuts(graph.idLimit()),
          m_forward(leadingToLarge(graph, product, true)),
          m_backward(leadingToLarge(graph, product, false)) {}

    /// The empty sentence, or why it is impossible.
    std::string run(Node& product);
    std::vector<std::optional<Cut>>& cuts() { return m_cuts; }

  private:
    std::optional<Cut>& cut(const Node& node) { return m_cuts[static_cast<size_t>(node.id())]; }
    bool isCut(const Node& node) { return cut(node) && (cut(node)->dim >= 0 || cut(node)->summed); }
    bool alongIs(const Node& node, int64_t dim) { return cut(node) && cut(node)->dim == dim; }
    void set(Node& node, const Cut& wanted);
    void refuse(std::string reason) {
        if (m_reason.empty()) m_reason = std::move(reason);
    }
    void visit(Node& node);
    void product(Node& node);
    void elementwise(Node& node);
    void samePlace(Node& node);
    void reduction(Node& node);
    void total(Node& node);
    void permute(Node& node);
    void expand(Node& node);

    std::vector<std::optional<Cut>> m_cuts;
    std::vector<bool> m_forward, m_backward;
    std::string m_reason;
    bool m_changed = false;
};

void Spreading::set(Node& node, const Cut& wanted) {
    std::optional<Cut>& have = cut(node);
    if (have && have->dim == wanted.dim && have->summed == wanted.summed) return;
    if (have) return refuse(named(node) + " would have to be cut in two ways");
    have = Cut{.dim = wanted.dim, .summed = wanted.summed};
    m_changed = true;
}

std::string Spreading::run(Node& start) {
    set(start, alongDim(0));
    std::deque<Node*> queue = {&start};
    while (!queue.empty() && m_reason.empty()) {
        Node& node = *queue.front();
        queue.pop_front();
        // set() reports a change; the cut of the start node, set above, does not count as one.
        m_changed = false;
        visit(node);
        if (!m_changed) continue;
        node.forEachInput([&](Node* input) {
            if (isTangent(*input)) cut(*input) = Cut{.scale = input};
            else if (!input->isPlaceholder() && m_backward[static_cast<size_t>(input->id())]) queue.push_back(input);
        });
        if (m_forward[static_cast<size_t>(node.id())])
            queue.insert(queue.end(), node.users().begin(), node.users().end());
    }
    return m_reason;
}

void Spreading::visit(Node& node) {
    using Rule = void (Spreading::*)(Node&);
    struct Row {
        std::string_view op;
        Rule rule;
    };
    static constexpr Row kRules[] = {{"aten.mm.default", &Spreading::product},
                                     {"aten.addmm.default", &Spreading::product},
                                     {"prims.convert_element_type.default", &Spreading::elementwise},
                                     {"aten.exp.default", &Spreading::elementwise},
                                     {"aten.log.default", &Spreading::elementwise},
                                     {"aten.neg.default", &Spreading::elementwise},
                                     {"aten.add.Tensor", &Spreading::elementwise},
                                     {"aten.sub.Tensor", &Spreading::elementwise},
                                     {"aten.mul.Tensor", &Spreading::elementwise},
                                     {"aten.div.Tensor", &Spreading::elementwise},
                                     {"prims.fma.default", &Spreading::elementwise},
                                     {"aten.where.self", &Spreading::elementwise},
                                     {"aten.squeeze.dim", &Spreading::samePlace},
                                     {"aten.gather.default", &Spreading::samePlace},
                                     {"aten.scatter.value", &Spreading::samePlace},
                                     {"aten.amax.default", &Spreading::reduction},
                                     {"aten.sum.dim_IntList", &Spreading::reduction},
                                     {"aten.sum.default", &Spreading::total},
                                     {"aten.permute.default", &Spreading::permute},
                                     {"aten.expand.default", &Spreading::expand}};
    if (node.isCall("aten.full.default")) return;  // every chunk makes its own
    if (node.isOutput()) return refuse("the value of every row is returned, so that they have to be kept");
    for (const Row& row : kRules)
        if (node.isCall(row.op)) return (this->*row.rule)(node);
    refuse("no rule says how " + (node.isCall() ? node.op().name() : "a value that is not a call") + " (" +
           named(node) + ") is computed in chunks");
}

/// mm and addmm: rows of the first operand are rows of the result; of the shared dim the chunks' products are added up.
void Spreading::product(Node& node) {
    Node& left = *node.arg(node.isCall("aten.mm.default") ? 0 : 1).node();
    Node& right = *node.arg(node.isCall("aten.mm.default") ? 1 : 2).node();
    Node* bias = node.isCall("aten.mm.default") ? nullptr : node.arg(0).node();
    const bool rows = alongIs(node, 0) || alongIs(left, 0);
    const bool shared = (cut(node) && cut(node)->summed) || alongIs(left, 1) || alongIs(right, 0);
    if (rows && !isCut(right)) {
        set(node, alongDim(0));
        set(left, alongDim(0));
        set(right, kWhole);
        if (bias)
            set(*bias, tensorOf(*bias)->rank() == 2 && !isSingle(*bias) && !(tensorOf(*bias)->sizes[0] == SymInt(1))
                           ? alongDim(0)
                           : kWhole);
    } else if (shared && !rows && !bias) {
        set(left, alongDim(1));
        set(right, alongDim(0));
        set(node, kSummed);
    } else if (isCut(node) || isCut(left) || isCut(right) || (bias && isCut(*bias))) {
        refuse("the operands of " + named(node) + " are cut where chunks cannot be multiplied one by one");
    }
}

/// Elementwise calls: what has the rank of the result is cut like it; operands that are the same for every row stay
/// whole.
void Spreading::elementwise(Node& node) {
    std::vector<Node*> large, single;
    node.forEachInput([&](Node* input) {
        if (tensorOf(*input)) (isSingle(*input) ? single : large).push_back(input);
    });
    for (const Node* operand : single)
        if (isCut(*operand)) return refuse(named(*operand) + " is one number of all chunks together");
    std::optional<Cut> found = cut(node);
    for (size_t i = 0; i < large.size() && !isCut(node); ++i)
        if (isCut(*large[i])) {
            found = cut(*large[i]);
            break;
        }
    if (!found) return;
    if (found->summed && !(large.size() == node.inputs().size() &&
                           (node.isCall("aten.add.Tensor") || node.isCall("aten.sub.Tensor") ||
                            node.isCall("aten.neg.default") || node.isCall("prims.convert_element_type.default"))))
        return refuse(named(node) + " needs sums of all chunks");
    const int64_t rank = tensorOf(node)->rank();
    for (Node* operand : large) {
        const TensorType& type = *tensorOf(*operand);
        const int64_t missing = rank - type.rank();
        if (found->dim < 0) set(*operand, *found);
        else if (missing > 0 && found->dim >= missing)
            return refuse(named(*operand) + " is broadcast, and cut where it is not");
        else if (missing > 0 || !(type.sizes[static_cast<size_t>(found->dim)] ==
                                  tensorOf(node)->sizes[static_cast<size_t>(found->dim)]))
            set(*operand, kWhole);
        else set(*operand, *found);
    }
    for (Node* operand : single)
        if (!cut(*operand)) set(*operand, kWhole);
    set(node, *found);
}

/// squeeze, gather and scatter: rows stay where they are, as long as the call works along another dim.
void Spreading::samePlace(Node& node) {
    std::optional<Cut> found = cut(node);
    std::vector<Node*> inputs = node.inputs();
    for (const Node* input : inputs)
        if (!found) found = cut(*input);
    if (!found) return;
    const TensorType& first = *tensorOf(*inputs[0]);
    const auto dim = InferContext(node).dim("dim", first.rank());
    if (!dim || found->dim < 0 || found->dim >= *dim) return refuse(named(node) + " works along the dim that is cut");
    for (Node* input : inputs) {
        const SymDims& sizes = tensorOf(*input)->sizes;
        if (sizes.size() != first.sizes.size() ||
            !(sizes[static_cast<size_t>(found->dim)] == first.sizes[static_cast<size_t>(found->dim)]))
            return refuse("the operands of " + named(node) + " have different numbers of rows");
        set(*input, *found);
    }
    set(node, *found);
}

void Spreading::reduction(Node& node) {
    Node& operand = *node.arg(0).node();
    const int64_t rank = tensorOf(operand)->rank();
    const InferContext call(node);
    const auto dims = call.dims("dim", rank, true);
    if (!dims) return refuse(named(node) + " has no dims that are known");
    const bool sums = node.isCall("aten.sum.dim_IntList"), keeps = call.flag("keepdim");
    const auto reduced = [&](int64_t dim) { return std::find(dims->begin(), dims->end(), dim) != dims->end(); };
    // For each dim of the operand, the dim of the result that it becomes; -1 where it is reduced away.
    std::vector<int64_t> place(static_cast<size_t>(rank), -1);
    for (int64_t dim = 0, next = 0; dim < rank; ++dim)
        if (keeps || !reduced(dim)) place[static_cast<size_t>(dim)] = next++;
    if (const auto have = cut(operand)) {
        if (have->summed || have->dim < 0)
            return sums ? set(node, *have) : refuse(named(node) + " needs sums of all chunks");
        if (!reduced(have->dim)) return set(node, alongDim(place[static_cast<size_t>(have->dim)]));
        if (!sums || dims->size() != 1) return refuse(named(node) + " reduces the dim that is cut");
        return set(node, kSummed);
    }
    const auto have = cut(node);
    if (!have) return;
    if (have->dim >= 0) {
        for (int64_t dim = 0; dim < rank; ++dim)
            if (!reduced(dim) && place[static_cast<size_t>(dim)] == have->dim) return set(operand, alongDim(dim));
    } else if (have->summed && sums && dims->size() == 1) {
        return set(operand, alongDim((*dims)[0]));
    }
    refuse(named(node) + " does not say how its operand is cut");
}

/// A sum of everything.
void Spreading::total(Node& node) {
    Node& operand = *node.arg(0).node();
    if (alongIs(operand, -1) && cut(operand)->summed) return refuse(named(node) + " needs sums of all chunks");
    if (isCut(operand)) set(node, kSummed);
    else if (isCut(node)) refuse(named(node) + " does not say how its operand is cut");
}

void Spreading::permute(Node& node) {
    Node& operand = *node.arg(0).node();
    const auto order = InferContext(node).dims("dims", tensorOf(operand)->rank(), false);
    if (!order) return refuse(named(node) + " has no order that is known");
    if (const auto have = cut(operand)) {
        const auto at = std::find(order->begin(), order->end(), have->dim);
        if (at == order->end()) return refuse(named(node) + " permutes what is not cut");
        set(node, alongDim(at - order->begin()));
    } else if (const auto wanted = cut(node)) {
        if (wanted->dim < 0) return refuse(named(node) + " permutes what is not cut");
        set(operand, alongDim((*order)[static_cast<size_t>(wanted->dim)]));
    }
}

void Spreading::expand(Node& node) {
    Node& operand = *node.arg(0).node();
    if (!isSingle(operand)) return refuse(named(node) + " expands more than one number");
    if (cut(node)) set(operand, kWhole);
}

/// Follows incoming gradients, which are taken to be 1, through the part: exactly one operand of each call may carry
/// the factor, or both sides of a sum. Returns "" or a sentence that says where that fails.
class Scaling {
  public:
    explicit Scaling(std::vector<std::optional<Cut>>& cuts) : m_cuts(cuts) {}
    std::string run(const Graph& graph);

  private:
    const Node* scaleOf(const Argument& argument) const {
        const Node* node = argument.node();
        const auto* cut = node ? &m_cuts[static_cast<size_t>(node->id())] : nullptr;
        return cut && *cut ? (*cut)->scale : nullptr;
    }
    /// The scale of a product of `factors`: that of the one factor that has a scale. False if several have one.
    bool productScale(std::initializer_list<const Argument*> factors, const Node*& scale) const;
    /// False if the call does not let a factor through.
    bool through(const Node& node, const Node*& scale) const;

    std::vector<std::optional<Cut>>& m_cuts;
};

bool Scaling::productScale(std::initializer_list<const Argument*> factors, const Node*& scale) const {
    int count = 0;
    for (const Argument* factor : factors)
        if (const Node* found = scaleOf(*factor)) {
            scale = found;
            ++count;
        }
    return count <= 1;
}

bool Scaling::through(const Node& node, const Node*& scale) const {
    const auto arg = [&](size_t position) { return &node.arg(position); };
    if (node.isCall("aten.mul.Tensor") || node.isCall("aten.mm.default")) return productScale({arg(0), arg(1)}, scale);
    for (const std::string_view linear : {"prims.convert_element_type.default", "aten.sum.dim_IntList",
                                          "aten.sum.default", "aten.permute.default", "aten.expand.default"})
        if (node.isCall(linear)) return productScale({arg(0)}, scale);
    if (node.isCall("aten.div.Tensor")) {
        scale = scaleOf(*arg(0));
        return !scaleOf(*arg(1));
    }
    if (node.isCall("aten.add.Tensor") || node.isCall("aten.sub.Tensor")) {
        scale = scaleOf(*arg(0));
        return scale == scaleOf(*arg(1));
    }
    if (node.isCall("prims.fma.default")) return productScale({arg(0), arg(1)}, scale) && scale == scaleOf(*arg(2));
    if (node.isCall("aten.where.self")) {
        scale = scaleOf(*arg(1));
        const Node* other = arg(2)->node();
        return scale && !scaleOf(*arg(0)) && !scaleOf(*arg(2)) && other && other->isCall("aten.full.default") &&
               other->arg(1).asReal() == 0.0;
    }
    return false;
}

std::string Scaling::run(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
        auto& cut = m_cuts[static_cast<size_t>(node.id())];
        if (!cut || node.isPlaceholder()) continue;
        bool scaled = false;
        node.forEachInput([&](const Node* input) { scaled |= scaleOf(Argument(const_cast<Node*>(input))) != nullptr; });
        if (!scaled) continue;
        const Node* scale = nullptr;
        if (!through(node, scale))
            return "the gradient that comes in cannot be multiplied behind " + named(node) + ", a call of " +
                   node.op().name();
        cut->scale = scale;
    }
    return {};
}

/// Sorts the nodes of the part into inputs, body and outputs; the empty sentence, or why the part cannot be taken out.
std::string takeOut(Graph& graph, ChunkPlan& plan) {
    std::vector<bool> before(graph.idLimit()), inBody(graph.idLimit());
    const auto is = [](const std::vector<bool>& set, const Node* node) {
        return static_cast<bool>(set[static_cast<size_t>(node->id())]);
    };
    for (Node* node : graph.nodeList()) {
        const auto& cut = plan.cutOf(*node);
        const std::vector<Node*> inputs = node->inputs();
        const bool ready =
            std::all_of(inputs.begin(), inputs.end(), [&](const Node* input) { return is(before, input); });
        const bool known = std::all_of(inputs.begin(), inputs.end(),
                                       [&](const Node* input) { return plan.cutOf(*input).has_value(); });
        if (!cut) {
            before[static_cast<size_t>(node->id())] = ready;
        } else if (isTangent(*node)) {
            if (tensorOf(*node) == nullptr || tensorOf(*node)->rank() != 0)
                return "the gradient " + named(*node) + " is not a single number";
            plan.tangents.push_back(node);
            before[static_cast<size_t>(node->id())] = true;
        } else if (node->isPlaceholder() || !known) {
            if (!ready) return named(*node) + " is needed by the chunks and made of all of them";
            if (cut->summed) return named(*node) + " is summed over chunks, but not computed in them";
            plan.inputs.push_back(node);
            before[static_cast<size_t>(node->id())] = true;
        } else {
            plan.body.push_back(node);
            inBody[static_cast<size_t>(node->id())] = true;
            // Values that are the same for every chunk can also be computed outside of the part.
            before[static_cast<size_t>(node->id())] = cut->dim < 0 && !cut->summed && ready;
        }
    }
    for (Node* node : plan.body) {
        const auto& users = node->users();
        const bool outside =
            std::any_of(users.begin(), users.end(), [&](const Node* user) { return !is(inBody, user); });
        if (!allInts(tensorOf(*node)->sizes)) return named(*node) + " has symbolic sizes";
        const Cut& cut = *plan.cutOf(*node);
        const bool whole = cut.dim < 0 && !cut.summed;
        if (whole && !is(before, node)) return named(*node) + " is made of all chunks, but not summed over them";
        if (outside && !whole) plan.outputs.push_back(node);
    }
    return {};
}

/// Rows per chunk, as aten.chunk deals them out.
std::string dealRows(const ChunkSettings& settings, ChunkPlan& plan) {
    const int64_t rows = plan.product->tensor().sizes[0].value();
    plan.count = settings.chunks;
    const int64_t piece = (rows + plan.count - 1) / plan.count;
    for (int64_t begin = 0; begin < rows; begin += piece) plan.rows.push_back(std::min(piece, rows - begin));
    if (plan.rows.size() < 2) return "its " + std::to_string(rows) + " rows make a single chunk";
    for (const auto* nodes : {&plan.inputs, &plan.body})
        for (const Node* node : *nodes)
            if (const int64_t dim = plan.cutOf(*node)->dim;
                dim >= 0 && !(node->tensor().sizes[static_cast<size_t>(dim)] == SymInt(rows)))
                return named(*node) + " has another number of rows";
    return {};
}

}  // namespace

ChunkPlanning planChunks(Graph& graph, const ChunkSettings& settings, const Node* product) {
    ChunkPlanning out;
    const auto placeholders = graph.placeholders();
    if (std::none_of(placeholders.begin(), placeholders.end(), [](const Node* node) { return isTangent(*node); })) {
        out.reason = "no gradient comes into the graph";
        return out;
    }
    ChunkPlan plan;
    bool reached = product == nullptr;
    for (Node& node : graph.nodes()) {
        if (readsTangent(node)) break;  // what follows is backward
        reached |= &node == product;
        if (isChunkedProduct(node) && unlessGrows(node, settings).empty() &&
            (!plan.product || growthOf(node) > growthOf(*plan.product)))
            plan.product = &node;
    }
    if (product && !reached) out.reason = "it belongs to the backward";
    else if (product && plan.product != product) out.reason = unlessGrows(*product, settings);
    if (out.reason.empty() && plan.product == nullptr) out.reason = "no product grows enough";
    if (out.reason.empty() && product && plan.product != product)
        out.reason = named(*plan.product) + " grows more, and one is taken at a time";
    if (!out.reason.empty()) return out;

    Spreading spreading(graph, *plan.product);
    out.reason = spreading.run(*plan.product);
    plan.cuts = std::move(spreading.cuts());
    const auto needed = [&](const Node* node) { return isTangent(*node) && plan.cutOf(*node); };
    if (out.reason.empty() && std::none_of(placeholders.begin(), placeholders.end(), needed))
        out.reason =
            "its gradient does not depend on what is computed from it, so nothing large has to be kept for the backward";
    if (out.reason.empty()) out.reason = Scaling(plan.cuts).run(graph);
    if (out.reason.empty()) out.reason = takeOut(graph, plan);
    if (out.reason.empty()) out.reason = dealRows(settings, plan);
    if (out.reason.empty()) out.plan = std::move(plan);
    return out;
}

}  // namespace cutaway
