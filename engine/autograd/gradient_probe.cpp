#include "engine/autograd/gradient_probe.h"

#include <cmath>

#include "engine/autograd/gradient_flow.h"
#include "engine/interpret/specialize.h"
#include "engine/numerics/element_reader.h"
#include "engine/numerics/raise.h"

namespace cutaway {
namespace {

/// Uniform in [-1, 1] (splitmix64).
double draw(uint64_t seed, size_t input, int64_t element) {
    uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (static_cast<uint64_t>(input) + 1) * 0xbf58476d1ce4e5b9ULL +
                 static_cast<uint64_t>(element) * 0x94d049bb133111ebULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}
constexpr uint64_t kOffsetSeed = 0x5eed;  // another direction

/// How far the elements of one input move.
struct Mover {
    uint64_t seed;
    size_t input;
    double scale, step, offset;

    double along(double x, int64_t element) const {
        return draw(seed, input, element) * std::max(std::abs(x), scale / 10);
    }
    double moved(double x, int64_t element) const {
        const double from =
            offset == 0 ? x : x + offset * draw(seed ^ kOffsetSeed, input, element) * std::max(std::abs(x), scale / 10);
        return step == 0 ? from : from + step * along(x, element);
    }
    Tensor operator()(const Tensor& value) const {
        Tensor out = Tensor::empty(raised(value.dtype()), value.sizes());
        auto* to = static_cast<double*>(out.data());
        forEachPiece(
            [&](int64_t first, int64_t count, const double* x) {
                for (int64_t i = 0; i < count; ++i) to[first + i] = moved(x[i], first + i);
            },
            value);
        const bool dense = extent(value.sizes(), value.strides()) == value.numel();
        return dense && value.strides() != out.strides() ? out.clone(value.strides()) : out;
    }
};

class MovedInterpreter : public RaisedInterpreter {
  public:
    MovedInterpreter(const Module& plain, RaisedGraph& graph, Module* editable, const InterpretOptions& options,
                     std::map<NodeId, Mover> movers)
        : RaisedInterpreter(plain, graph, editable, options), m_movers(std::move(movers)) {}

    const TensorList& valueOf(const Node& node) const override {
        const auto mover = m_movers.find(node.id());
        if (mover == m_movers.end()) return RaisedInterpreter::valueOf(node);
        TensorList& read = readInPlace(node);
        if (read.empty()) read = {mover->second(Interpreter::valueOf(node)[0])};
        return read;
    }

  private:
    std::map<NodeId, Mover> m_movers;
};

bool isContinuousInput(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return isFloating(tensor->dtype) || isComplex(tensor->dtype);
    if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), isContinuousInput);
    return false;
}

/// Quantization passes the gradient straight through what it rounds.
bool passesStraightThrough(const Node& node) { return node.op().name().find("fake_quant") != std::string::npos; }

/// The part of a joint graph that computes what has tangents; draws stay, since each moves those behind it.
ReadyGraph forwardOf(const ReadyGraph& joint, const std::map<NodeId, std::vector<size_t>>& results) {
    ReadyGraph forward{std::make_shared<Module>(*joint.module), joint.inputs};
    Graph& graph = forward.module->graph();
    ArgumentList returned{{}, true};
    for (const auto& [id, tangents] : results) returned.items.emplace_back(graph.find(id));
    graph.setArg(*graph.outputNode(), 0, std::move(returned));
    forward.module->outputs.assign(results.size(), OutputSpec());
    std::vector<Node*> nodes = graph.nodeList();
    bool behind = true;
    for (size_t i = nodes.size(); i-- > 0;) {
        behind = behind && !results.contains(nodes[i]->id());
        const bool draws = !behind && nodes[i]->is(Tag::Random);
        if (nodes[i]->isOutput() || nodes[i]->isPlaceholder() || nodes[i]->hasUsers() || draws) continue;
        graph.erase(*nodes[i]);
    }
    return forward;
}

}  // namespace

GradientProbe::GradientProbe(ReadyGraph joint, ProbeOptions options)
    : m_joint(std::move(joint)), m_options(std::move(options)), m_flow(gradientFlow(*m_joint.module)) {
    const Module& module = *m_joint.module;
    const std::vector<Node*> inputs = module.graph().placeholders();
    const std::vector<Argument> outputs = module.graph().outputs();
    for (size_t i = 0; i < inputs.size(); ++i) m_inputs.emplace(inputs[i]->id(), i);
    std::vector<size_t> primals;
    for (size_t i = 0; i < std::min(inputs.size(), module.inputs.size()); ++i) {
        if (module.inputs[i].kind != InputSpec::Kind::Tangent) {
            primals.push_back(i);
            continue;
        }
        const std::string& target = module.inputs[i].target;
        const size_t output = target.empty() ? outputs.size() : std::stoul(target);
        if (output < outputs.size() && outputs[output].node() != nullptr)
            m_resultsOf[outputs[output].node()->id()].push_back(i);
    }
    size_t next = 0;
    for (size_t i = 0; i < std::min(outputs.size(), module.outputs.size()); ++i) {
        if (module.outputs[i].kind != OutputSpec::Kind::Gradient) continue;
        const size_t primal = next++;
        if (primal >= primals.size() || outputs[i].node() == nullptr) continue;
        m_gradients.push_back({primals[primal], inputs[primals[primal]], outputs[i].node()});
    }
    m_forward = forwardOf(m_joint, m_resultsOf);
    for (const Node& node : m_forward.module->graph().nodes())
        if (node.isCall() && m_flow[index(node.id())] && passesStraightThrough(node)) m_blind.insert(node.op().name());
}

void GradientProbe::moveTo(double offset) {
    if (offset == m_offset) return;
    m_offset = offset;
    m_differentiated = false;
    m_fixed.clear();
}

double GradientProbe::rootMeanSquare(size_t input) {
    const auto [at, fresh] = m_scales.emplace(input, 1.0);
    if (!fresh) return at->second;
    double squares = 0;
    int64_t numbers = 0;
    forEachPiece(
        [&](int64_t, int64_t count, const double* x) {
            for (int64_t i = 0; i < count; ++i) {
                if (!std::isfinite(x[i])) continue;
                squares += x[i] * x[i];
                ++numbers;
            }
        },
        m_joint.inputs[input]);
    if (squares > 0) at->second = std::sqrt(squares / static_cast<double>(numbers));
    return at->second;
}

Result<GradientProbe::Results> GradientProbe::run(const ReadyGraph& graph, double step, const std::set<NodeId>& moved,
                                                  bool gradients) {
    ++m_runs;
    RaisedGraph wide = raiseDtypes(*graph.module);
    Module* editable = freeSymbols(*wide.module).empty() ? nullptr : wide.module.get();
    std::map<NodeId, Mover> movers;
    for (const Gradient& gradient : m_gradients) {
        const double by = moved.contains(gradient.primal->id()) ? step : 0;
        if (by == 0 && m_offset == 0) continue;
        movers.emplace(gradient.primal->id(),
                       Mover{m_options.seed, gradient.input, rootMeanSquare(gradient.input), by, m_offset});
    }
    InterpretOptions options;
    options.cancel = m_options.cancel;
    options.begin = m_options.begin;
    options.exchange = [&](const Node& node, TensorList& values) {
        if (m_flow[index(node.id())] || !isContinuousInput(node.type())) return;
        if (m_forward.module->graph().find(node.id()) == nullptr) return;
        bool flowsIn = false;
        node.forEachInput([&](const Node* input) { flowsIn |= m_flow[index(input->id())]; });
        if (!flowsIn) return;
        if (gradients) m_fixed[node.id()] = values;
        else if (const auto it = m_fixed.find(node.id()); it != m_fixed.end()) values = it->second;
    };
    MovedInterpreter run(*graph.module, wide, editable, options, std::move(movers));
    run.dropResults();
    std::map<NodeId, std::vector<size_t>> gradientsOf;
    if (gradients)
        for (size_t i = 0; i < m_gradients.size(); ++i) gradientsOf[m_gradients[i].node->id()].push_back(i);
    const auto wanted = [&](const Node& node) {
        return (m_resultsOf.contains(node.id()) ? 1 : 0) + (gradientsOf.contains(node.id()) ? 1 : 0);
    };
    for (const Node& node : wide.module->graph().nodes())
        if (const int times = wanted(node)) run.keep(node, times);
    run.begin(graph.inputs);
    Results found;
    while (run.next() != nullptr && !run.next()->isOutput()) {
        const Node& node = *run.next();
        CT_TRY_VOID(run.advance());
        if (const auto result = m_resultsOf.find(node.id()); result != m_resultsOf.end()) {
            const Tensor value = run.Interpreter::valueOf(node)[0];
            for (const size_t tangent : result->second)
                forEachPiece(
                    [&](int64_t, int64_t count, const double* y, const double* t) {
                        for (int64_t i = 0; i < count; ++i) {
                            if (t[i] == 0) continue;
                            found.sum += y[i] * t[i];
                            found.magnitude += std::abs(y[i] * t[i]);
                        }
                    },
                    value, graph.inputs[tangent]);
            run.release(node);
        }
        if (const auto those = gradientsOf.find(node.id()); those != gradientsOf.end()) {
            const Tensor value = run.Interpreter::valueOf(node)[0];
            for (const size_t at : those->second) {
                const Gradient& gradient = m_gradients[at];
                const Mover mover{m_options.seed, gradient.input, rootMeanSquare(gradient.input), 1, 0};
                Dot dot;
                double squares = 0;
                forEachPiece(
                    [&](int64_t first, int64_t count, const double* g, const double* x) {
                        for (int64_t i = 0; i < count; ++i) {
                            const double part = g[i] * mover.along(x[i], first + i);
                            dot.sum += part;
                            squares += part * part;
                        }
                    },
                    value, graph.inputs[gradient.input]);
                dot.usual = std::sqrt(squares);
                m_products[at] = dot;
            }
            run.release(node);
        }
    }
    for (const std::string& op : run.ownDtypes()) {
        for (const Node& node : m_forward.module->graph().nodes())
            if (node.isCall(op) && m_flow[index(node.id())]) m_blind.insert(op);
    }
    return found;
}

Result<void> GradientProbe::differentiate() {
    if (m_differentiated) return {};
    m_products.assign(m_gradients.size(), {});
    CT_TRY(const Results results, run(m_joint, 0, {}, true));
    m_magnitude = results.magnitude;
    m_differentiated = true;
    return {};
}

Result<double> GradientProbe::scalarAt(double step, const std::vector<size_t>& moved) {
    CT_TRY_VOID(differentiate());
    std::set<NodeId> ids;
    for (const size_t at : moved) ids.insert(m_gradients[at].primal->id());
    CT_TRY(const Results results, run(m_forward, step, ids, false));
    return results.sum;
}

}  // namespace cutaway
