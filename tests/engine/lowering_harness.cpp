#include "tests/engine/lowering_harness.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"

namespace cutaway::testing {
namespace {

/// Digits of the significand after the first, and the exponent of the smallest number that has them all.
struct FloatFormat {
    int digits, smallest;
};
FloatFormat formatOf(DType dtype) {
    switch (dtype) {
        case DType::F16: return {10, -14};
        case DType::BF16: return {7, -126};
        case DType::F64: return {52, -1022};
        default: return {23, -126};
    }
}
/// The distance between floats of the dtype around a number.
double unitAt(double value, DType dtype) {
    const FloatFormat format = formatOf(dtype);
    const int exponent = value == 0 || !std::isfinite(value) ? format.smallest : std::ilogb(value);
    return std::ldexp(1.0, std::max(exponent, format.smallest) - format.digits);
}
double largestOf(const Tensor& tensor) {
    double largest = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (const double value = std::fabs(toDouble(tensor.item(i))); std::isfinite(value))
            largest = std::max(largest, value);
    return largest;
}
std::string shown(double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    return digits;
}

bool sameBits(const Tensor& a, const Tensor& b) {
    if (a.defined() != b.defined()) return false;
    if (!a.defined()) return true;
    if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
    const Tensor x = a.contiguous(), y = b.contiguous();
    return x.numel() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

std::string wrongElement(double actual, double expected, double wide, double unit, const Bound& bound) {
    if (std::isnan(expected) && std::isnan(actual)) return {};
    const bool same =
        actual == expected && (actual != 0 || bound.ulps > 0 || std::signbit(actual) == std::signbit(expected));
    if (same) return {};
    const double fromWide = bound.sums ? std::fabs(actual - wide) : 0;
    if (bound.sums && fromWide <= 2 * std::fabs(expected - wide)) return {};
    const double distance = bound.sums ? fromWide : std::fabs(actual - expected);
    if (distance <= bound.ulps * unit) return {};
    std::string away;
    if (std::isfinite(distance)) away = ", " + shown(distance / unit) + " units away";
    return shown(actual) + " instead of " + shown(expected) + away;
}

std::string shapeText(const Tensor& tensor) {
    return TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text();
}

/// Of one case, from `run` on.
std::string wrongResults(const LoweringCase& one, std::span<const Tensor> outputs) {
    for (size_t i = 0; i < one.expected.size(); ++i) {
        const std::string wrong =
            beyondBound(outputs[i], one.expected[i], i < one.wide.size() ? one.wide[i] : Tensor(), one.bound);
        if (!wrong.empty()) return (one.expected.size() > 1 ? "result " + std::to_string(i) + ": " : "") + wrong;
    }
    return {};
}

void judge(const Way& way, std::span<const LoweringCase* const> cases, std::span<std::string> wrong) {
    if (cases.empty()) return;
    const JoinedCases joined = joinCases(cases);
    const auto runs = way.run(joined.module, joined.inputs);
    if (!runs && cases.size() > 1) {
        const size_t half = cases.size() / 2;
        judge(way, cases.first(half), wrong.first(half));
        return judge(way, cases.subspan(half), wrong.subspan(half));
    }
    if (!runs) {
        wrong[0] = way.name + ": " + runs.error().text();
        return;
    }
    size_t first = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
        const size_t count = cases[i]->expected.size();
        const auto own = [&](const WayRun& run) { return std::span(run.outputs).subspan(first, count); };
        for (const WayRun& run : *runs) {
            if (wrong[i].empty() && &run != &(*runs)[0] &&
                !std::equal(own(run).begin(), own(run).end(), own((*runs)[0]).begin(), sameBits))
                wrong[i] = way.name + ": " + run.name + " and " + (*runs)[0].name + " give different bits";
            if (!wrong[i].empty()) break;
            if (const std::string found = wrongResults(*cases[i], own(run)); !found.empty())
                wrong[i] = way.name + ", " + run.name + ": " + found;
        }
        first += count;
    }
}

}  // namespace

std::string beyondBound(const Tensor& actual, const Tensor& expected, const Tensor& wide, const Bound& bound) {
    if (actual.defined() != expected.defined()) return "None on one side";
    if (!expected.defined()) return {};
    if (actual.dtype() != expected.dtype() || actual.sizes() != expected.sizes())
        return shapeText(actual) + " instead of " + shapeText(expected);
    if (sameBits(actual, expected)) return {};
    const bool floating = isFloating(expected.dtype());
    Bound own = floating ? bound : Bound{};
    own.sums = own.sums && wide.defined() && wide.sizes() == expected.sizes();
    const double scale = own.sums ? std::max(largestOf(wide), largestOf(expected)) : 0;
    for (int64_t i = 0; i < expected.numel(); ++i) {
        std::string wrong;
        if (!floating) {
            const int64_t got = toInt(actual.item(i)), due = toInt(expected.item(i));
            if (got != due) wrong = std::to_string(got) + " instead of " + std::to_string(due);
        } else {
            const double got = toDouble(actual.item(i)), due = toDouble(expected.item(i));
            wrong = wrongElement(got, due, own.sums ? toDouble(wide.item(i)) : 0,
                                 unitAt(own.sums ? scale : due, expected.dtype()), own);
        }
        if (!wrong.empty()) return "element " + std::to_string(i) + " is " + wrong;
    }
    return {};
}

JoinedCases joinCases(std::span<const LoweringCase* const> cases) {
    auto module = std::make_shared<Module>();
    JoinedCases joined;
    std::vector<Argument> outputs;
    Graph& graph = module->graph();
    for (const LoweringCase* one : cases) {
        std::map<const Node*, Node*> copies;
        const auto twin = [&](Node* operand) { return copies.at(operand); };
        for (const Node& node : one->module->graph().nodes()) {
            if (node.isOutput()) continue;
            std::vector<Argument> args;
            for (const Argument& arg : node.args()) args.push_back(arg.mapNodes(twin));
            copies[&node] = node.isPlaceholder() ? &graph.placeholder("x", node.type())
                                                 : &graph.call(node.op(), std::move(args), node.type());
            if (node.isPlaceholder()) module->inputs.emplace_back();
        }
        for (const Argument& output : one->module->graph().outputs()) outputs.push_back(output.mapNodes(twin));
        joined.inputs.insert(joined.inputs.end(), one->inputs.begin(), one->inputs.end());
    }
    graph.output(ArgumentList{std::move(outputs), true});
    module->outputs.resize(graph.outputs().size());
    joined.module = std::move(module);
    return joined;
}

Way pureInterpreter() {
    return {"interpreter",
            [](const std::shared_ptr<const Module>& module,
               const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
                InterpretOptions options;
                options.pure = true;
                CT_TRY(std::vector<Tensor> outputs, interpret(*module, inputs, options));
                return std::vector<WayRun>{{"a run", std::move(outputs)}};
            }};
}

Way compiledCode(std::vector<int> threads) {
    return {
        "compiled",
        [threads](const std::shared_ptr<const Module>& module,
                  const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
            CT_TRY(const CpuProgram program, buildCpu(module));
            std::vector<WayRun> runs;
            for (const int count : threads) {
                CpuRunOptions options;
                options.repeat = 0;
                options.threads = count;
                options.splitSmall = true;
                CT_TRY(CpuRun run, runCpu(program, inputs, options));
                runs.push_back({std::to_string(count) + (count == 1 ? " thread" : " threads"), std::move(run.outputs)});
            }
            return runs;
        }};
}

std::vector<std::string> wrongOf(const Way& way, std::span<const LoweringCase> cases, size_t perGraph) {
    std::vector<std::string> wrong(cases.size());
    std::vector<const LoweringCase*> all;
    for (const LoweringCase& one : cases) all.push_back(&one);
    std::atomic<size_t> next{0};
    const auto work = [&] {
        for (size_t begin; (begin = next.fetch_add(perGraph)) < all.size();) {
            const size_t count = std::min(perGraph, all.size() - begin);
            judge(way, std::span(all).subspan(begin, count), std::span(wrong).subspan(begin, count));
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return wrong;
}

}  // namespace cutaway::testing
