#include "engine/autograd/gradient_check.h"

#include <cmath>
#include <map>
#include <set>

#include "engine/autograd/joint_graph.h"
#include "engine/interpret/higher_order.h"
#include "engine/interpret/specialize.h"
#include "engine/numerics/raise.h"
#include "engine/ops/build.h"
#include "engine/support/number_text.h"

namespace cutaway {

const char* wordOf(GradientVerdict verdict) {
    switch (verdict) {
        case GradientVerdict::Right: return "right";
        case GradientVerdict::Wrong: return "wrong";
        case GradientVerdict::Kink: return "kink";
        case GradientVerdict::Undecided: return "undecided";
    }
    return "";
}

const DerivativeRow* GradientCheck::guilty() const {
    for (const DerivativeRow& row : calls)
        if (row.verdict == GradientVerdict::Wrong) return &row;
    return nullptr;
}
bool GradientCheck::wrong() const {
    return all.verdict == GradientVerdict::Wrong || guilty() != nullptr ||
           std::any_of(each.begin(), each.end(),
                       [](const GradientRow& row) { return row.verdict == GradientVerdict::Wrong; });
}

namespace {

constexpr double kStep = 1e-5, kOffset = 1e-3;
constexpr double kTolerance = 1e-4;  // of the gradient along the direction, or of what it is usually as large as

struct Disagreement {
    double gradient = 0, difference = 0;
    GradientVerdict verdict = GradientVerdict::Right;
    std::string why;
};

/// Judges gradients where the probe stands.
class Judgement {
  public:
    Judgement(GradientProbe& probe, const std::vector<size_t>& which) : m_probe(probe), m_which(which) {}

    Result<Disagreement> here() {
        CT_TRY_VOID(m_probe.differentiate());
        Disagreement found;
        double squares = 0;
        for (const size_t at : m_which) {
            const Dot& product = m_probe.products()[at];
            found.gradient += product.sum;
            squares += product.usual * product.usual;
        }
        m_usual = std::sqrt(squares);
        CT_TRY(found.difference, central(kStep));
        if (close(found, 0, kStep)) return found;
        // A smaller step, and what the two differ in, tell an error from a function that bends.
        CT_TRY(const double half, central(kStep / 4));
        CT_TRY(const double here, m_probe.scalarAt(0, m_which));
        const double unsettled = std::abs(half - found.difference);
        found.difference = half;
        if (close(found, 4 * unsettled, kStep / 4)) return found;
        const double apart = std::isfinite(found.gradient) ? std::abs(found.gradient - half) : std::abs(half);
        const double bend = std::abs(m_right - 2 * here + m_left) / (kStep / 4);  // of one-sided differences
        const bool settled = std::isfinite(half) && unsettled <= 0.1 * apart, smooth = bend <= 0.1 * apart;
        found.verdict = settled && smooth ? GradientVerdict::Wrong : GradientVerdict::Undecided;
        if (found.verdict == GradientVerdict::Undecided)
            found.why = !std::isfinite(half) ? "a difference is not finite"
                        : !smooth            ? "differences to the right and to the left disagree"
                                             : "central differences of two steps disagree";
        return found;
    }

  private:
    Result<double> central(double step) {
        CT_TRY(m_right, m_probe.scalarAt(step, m_which));
        CT_TRY(m_left, m_probe.scalarAt(-step, m_which));
        return (m_right - m_left) / (2 * step);
    }
    bool close(const Disagreement& found, double unsettled, double step) const {
        constexpr double kRounding = 1e-15;
        if (!std::isfinite(found.gradient)) return false;
        const double size = std::max({std::abs(found.gradient), std::abs(found.difference), m_usual});
        const double allowed = kTolerance * size + unsettled + kRounding * m_probe.magnitude() / step;
        return std::abs(found.gradient - found.difference) <= allowed;  // false for NaN
    }

    GradientProbe& m_probe;
    const std::vector<size_t>& m_which;
    double m_usual = 0, m_right = 0, m_left = 0;
};

/// Where gradients are not right, they are looked at once more at a point beside: what is right there has met a kink.
Result<Disagreement> judge(GradientProbe& probe, const std::vector<size_t>& which) {
    CT_TRY(Disagreement found, Judgement(probe, which).here());
    if (found.verdict == GradientVerdict::Right) return found;
    if (!probe.blind().empty()) {
        found.verdict = GradientVerdict::Undecided;
        found.why = *probe.blind().begin() +
                    " cannot be held against differences: it rounds, or has another derivative by "
                    "design";
        return found;
    }
    probe.moveTo(kOffset);
    auto beside = Judgement(probe, which).here();
    probe.moveTo(0);
    if (!beside) return beside.error();
    if (beside->verdict == GradientVerdict::Right) {
        found.verdict = GradientVerdict::Kink;
        found.why = "right at a point beside";
        return found;
    }
    return *beside;
}

std::string beside(const Disagreement& found) {
    return shortNumber(found.gradient) + " along the direction, by central differences " +
           shortNumber(found.difference);
}

std::vector<size_t> upTo(size_t count) {
    std::vector<size_t> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = i;
    return all;
}

/// One call with placeholders for its operands, which lie packed: parts of other tensors are none here.
struct CallAlone {
    std::shared_ptr<Module> module;
    std::vector<std::string> differentiated;
    std::vector<const Node*> operands;  // of the whole graph, one per placeholder
};
std::optional<CallAlone> aloneOf(const Module& whole, const Node& call, const std::vector<bool>& flow) {
    CallAlone alone{std::make_shared<Module>(), {}, {}};
    for (const auto& [name, body] : whole.subgraphs)
        alone.module->subgraphs.emplace_back(name, std::make_unique<Module>(*body));
    Graph& graph = alone.module->graph();
    std::map<const Node*, Node*> inputs;
    std::set<std::string> wanted;
    for (const Node* operand : call.inputs()) {
        if (operand->type().tensor() == nullptr) return std::nullopt;
        if (inputs.contains(operand)) continue;
        const TensorType& type = operand->tensor();
        Node& input = graph.placeholder("x" + std::to_string(inputs.size()),
                                        TensorType::contiguous(type.dtype, type.sizes, type.device));
        inputs[operand] = &input;
        alone.operands.push_back(operand);
        alone.module->inputs.emplace_back();
        if (flow[index(operand->id())]) alone.differentiated.push_back(input.name());
    }
    if (alone.differentiated.empty()) return std::nullopt;
    std::vector<Argument> args;
    for (const Argument& arg : call.args())
        args.push_back(arg.mapNodes([&](Node* operand) { return inputs.at(operand); }));
    ValueType type = call.type();
    if (call.op().schema() != nullptr && !isHigherOrder(call.op().name())) {
        auto packed = inferCall(call.op(), args);
        if (!packed) return std::nullopt;
        type = std::move(*packed);
    }
    Node& made = graph.call(call.op(), std::move(args), std::move(type), nullptr, call.name());
    // Results that nothing reads get no gradient, and derivatives need not know of it. A view is not a result of its
    // own.
    ArgumentList results{{}, true};
    GraphBuilder builder(graph);
    const auto give = [&](const Value& value) {
        results.items.emplace_back((call.is(Tag::View) ? unary("aten.clone.default", value) : value).node());
    };
    if (call.type().tuple()) {
        std::set<int64_t> read;
        for (const Node* reader : call.users())
            if (reader->isCall("operator.getitem") && flow[index(reader->id())])
                read.insert(reader->arg(1).asInt().value_or(0));
        for (const int64_t item : read) give(builder.value(made)[item]);
    } else {
        give(builder.value(made));
    }
    if (builder.error() || results.items.empty()) return std::nullopt;
    alone.module->outputs.resize(results.items.size());
    graph.output(Argument(std::move(results)));
    return alone;
}

/// Goes through the calls of the forward part, each with the operands that the whole graph computes.
class CallWalk {
  public:
    CallWalk(GradientProbe& probe, const GradientCheckPlan& plan, GradientCheck& check)
        : m_probe(probe), m_plan(plan), m_check(check) {}

    Result<void> run() {
        const ReadyGraph& forward = m_probe.forward();
        RaisedGraph wide = raiseDtypes(*forward.module);
        Module* editable = freeSymbols(*wide.module).empty() ? nullptr : wide.module.get();
        InterpretOptions options;
        options.cancel = m_plan.cancel;
        options.begin = m_plan.begin;
        RaisedInterpreter run(*forward.module, wide, editable, options);
        run.dropResults();
        run.begin(forward.inputs);
        while (run.next() != nullptr && !run.next()->isOutput()) {
            const Node& node = *run.next();
            const Node& plain = *forward.module->graph().find(node.id());
            const bool structural = !node.isCall() || node.isCall("operator.getitem");
            if (!structural && m_probe.flow()[index(node.id())]) CT_TRY_VOID(look(plain, run));
            CT_TRY_VOID(run.advance());
        }
        return {};
    }

  private:
    Result<void> look(const Node& call, const RaisedInterpreter& run) {
        const auto alone = aloneOf(*m_probe.forward().module, call, m_probe.flow());
        if (!alone) return {};
        auto joint = makeJointGraph(*alone->module, {alone->differentiated, false});
        if (!joint) return remark(call, joint.error().message);
        ReadyGraph graph{std::shared_ptr<Module>(std::move(*joint)), {}};
        for (const Node* operand : alone->operands) {
            const TensorList& values = run.valueOf(*operand);
            if (values.size() != 1 || !values[0].defined()) return {};
            graph.inputs.push_back(values[0].contiguous());
        }
        const std::vector<Node*> inputs = graph.module->graph().placeholders();
        for (size_t i = graph.inputs.size(); i < inputs.size(); ++i) {
            const TensorType* type = inputs[i]->type().tensor();
            if (type == nullptr || !allInts(type->sizes) || !allInts(type->strides)) return {};
            graph.inputs.push_back(tangentOf(*type, i));
        }
        GradientProbe probe(std::move(graph), {m_plan.seed, {}, m_plan.cancel});
        if (probe.gradients().empty()) return {};
        const std::vector<size_t> all = upTo(probe.gradients().size());
        auto together = judge(probe, all);
        if (!together && together.error().code == ErrorCode::Cancelled) return together.error();
        if (!together) return remark(call, together.error().message);
        ++m_check.callsChecked;
        if (together->verdict == GradientVerdict::Right) return {};
        if (all.size() == 1) return note(call, probe, 0, *alone, *together);
        bool noted = false;
        for (const size_t one : all) {
            CT_TRY(const Disagreement found, judge(probe, {one}));
            if (found.verdict == GradientVerdict::Right) continue;
            CT_TRY_VOID(note(call, probe, one, *alone, found));
            noted = true;
        }
        return noted ? Result<void>() : note(call, probe, 0, *alone, *together);
    }
    Tensor tangentOf(const TensorType& type, size_t salt) const {
        Tensor out = Tensor::empty(raised(type.dtype), toInts(type.sizes), toInts(type.strides));
        auto* to = static_cast<double*>(out.data());
        const int64_t numbers = out.numel() * (isComplex(out.dtype()) ? 2 : 1);
        uint64_t state = m_plan.seed * 0x9e3779b97f4a7c15ULL + salt;
        for (int64_t i = 0; i < numbers; ++i) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            to[i] = 0.5 + static_cast<double>(state >> 12) * 0x1p-52;  // none near zero
            if ((state >> 7 & 1) != 0) to[i] = -to[i];
        }
        return out;
    }
    Result<void> note(const Node& call, const GradientProbe& probe, size_t gradient, const CallAlone& alone,
                      const Disagreement& found) {
        DerivativeRow row;
        row.node = nodeKey(0, call.id());
        row.name = call.name();
        row.op = call.op().name();
        const Node* operand = alone.operands[probe.gradients()[gradient].input];
        row.operand = operand->name();
        if (const Schema* schema = call.op().schema())
            for (size_t i = schema->params.size(); i-- > 0;) {
                if (i >= call.args().size()) continue;
                call.arg(i).forEachNode([&](const Node* one) {
                    if (one == operand) row.operand = schema->params[i].name;
                });
            }
        row.gradient = found.gradient;
        row.difference = found.difference;
        row.verdict = found.verdict;
        row.why = beside(found) + (found.why.empty() ? "" : "; " + found.why);
        m_check.calls.push_back(std::move(row));
        return {};
    }
    Result<void> remark(const Node& call, const std::string& why) {
        if (m_skipped.insert(call.op().name()).second)
            m_check.remarks.push_back("the derivative of " + call.op().name() + " was not looked at: " + why);
        return {};
    }

    GradientProbe& m_probe;
    const GradientCheckPlan& m_plan;
    GradientCheck& m_check;
    std::set<std::string> m_skipped;
};

/// Looks for inputs whose gradients are not right, in halves; so many runs at most.
class EachGradient {
  public:
    EachGradient(GradientProbe& probe, GradientCheck& check, int most)
        : m_probe(probe), m_check(check), m_most(probe.runs() + most) {}
    /// At the point beside: what is wrong is so there.
    Result<void> run() {
        m_probe.moveTo(kOffset);
        auto done = look(upTo(m_probe.gradients().size()), true);
        m_probe.moveTo(0);
        return done;
    }

  private:
    Result<void> look(const std::vector<size_t>& which, bool known) {
        if (which.empty()) return {};
        if (m_probe.runs() > m_most) {
            m_left += which.size();
            return {};
        }
        if (!known || which.size() == 1) {
            CT_TRY(const Disagreement found, Judgement(m_probe, which).here());
            if (found.verdict == GradientVerdict::Right) return {};
            if (which.size() == 1) {
                const GradientProbe::Gradient& gradient = m_probe.gradients()[which[0]];
                m_check.each.push_back({nameOf(*gradient.primal), gradient.node->name(), found.gradient,
                                        found.difference, found.verdict, beside(found)});
                return {};
            }
        }
        const auto middle = which.begin() + static_cast<std::ptrdiff_t>(which.size() / 2);
        CT_TRY_VOID(look({which.begin(), middle}, false));
        return look({middle, which.end()}, false);
    }
    static std::string nameOf(const Node& primal) {
        const std::string& source = primal.provenance().sourceName;
        return source.empty() ? primal.name() : source;
    }

    GradientProbe& m_probe;
    GradientCheck& m_check;
    int m_most;
    size_t m_left = 0;

  public:
    size_t left() const { return m_left; }
};

/// Of a large graph the first gradients that are wrong must do.
int mostRuns(const ReadyGraph& joint) {
    constexpr double kElements = 2e9;
    double elements = 1;
    for (const Tensor& input : joint.inputs) elements += input.defined() ? static_cast<double>(input.numel()) : 0;
    return static_cast<int>(std::clamp(kElements / elements, 20.0, 100.0));
}

}  // namespace

Result<GradientCheck> checkGradients(const ReadyGraph& joint, const GradientCheckPlan& plan) {
    GradientCheck check;
    check.seed = plan.seed;
    GradientProbe probe(joint, {plan.seed, plan.begin, plan.cancel});
    check.gradients = static_cast<int>(probe.gradients().size());
    if (probe.gradients().empty()) return invalidInput("the graph returns no gradient");
    CT_TRY(const Disagreement all, judge(probe, upTo(probe.gradients().size())));
    check.all = {{}, {}, all.gradient, all.difference, all.verdict, beside(all)};
    if (!all.why.empty()) check.all.why += "; " + all.why;
    if (all.verdict == GradientVerdict::Wrong && plan.eachGradient) {
        EachGradient each(probe, check, mostRuns(joint));
        CT_TRY_VOID(each.run());
        if (each.left() > 0)
            check.remarks.push_back(std::to_string(each.left()) + " gradients were not looked at alone");
    }
    if (all.verdict == GradientVerdict::Wrong || all.verdict == GradientVerdict::Undecided || plan.everyCall)
        CT_TRY_VOID(CallWalk(probe, plan, check).run());
    check.runs = probe.runs();
    return check;
}

std::string summaryOf(const GradientCheck& check) {
    const std::string seed = " (seed " + std::to_string(check.seed) + ")";
    const std::string them = std::to_string(check.gradients) + (check.gradients == 1 ? " gradient" : " gradients");
    if (const DerivativeRow* row = check.guilty()) {
        std::set<std::string> others;
        int same = 0;
        for (const DerivativeRow& other : check.calls) {
            if (other.verdict != GradientVerdict::Wrong) continue;
            if (other.op == row->op) same += &other != row;
            else others.insert(other.op);
        }
        std::string text =
            "the derivative of " + row->op + " by '" + row->operand + "' is wrong at '" + row->name + "': " + row->why;
        if (same > 0) text += "; so are " + std::to_string(same) + " more of that operator";
        for (const std::string& other : others) text += "; so is that of " + other;
        return text + seed;
    }
    if (check.wrong()) {
        const bool one = !check.each.empty();
        return (one ? "the gradient of '" + check.each.front().input + "' is wrong: " + check.each.front().why
                    : "the gradients are wrong: " + check.all.why) +
               "; the derivative of each call by itself is right" + seed;
    }
    switch (check.all.verdict) {
        case GradientVerdict::Kink: return "the " + them + " meet a kink, and are right beside it" + seed;
        case GradientVerdict::Undecided:
            return "whether the " + them + " are right cannot be told: " + check.all.why + seed;
        default: return "the " + them + (check.gradients == 1 ? " is" : " are") + " right: " + check.all.why + seed;
    }
}

}  // namespace cutaway
