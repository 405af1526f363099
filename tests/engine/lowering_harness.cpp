#include "tests/engine/lowering_harness.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "cutaway/program.h"
#include "engine/interpret/interpret.h"
#include "engine/ops/build.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/schedule/schedule.h"
#include "engine/support/files.h"
#include "engine/support/process.h"
#include "engine/tensor/compare.h"
#include "tests/support/kernels.h"

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

/// A NaN is as good as another: 0 / 0 has one sign from the compiler, which folds it, and another from the processor.
bool sameOrNan(const Tensor& a, const Tensor& b) {
    if (sameBits(a, b)) return true;
    if (!a.defined() || !b.defined() || a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
    const Tensor x = a.contiguous(), y = b.contiguous();
    const auto width = static_cast<size_t>(byteSize(x.dtype()));
    const auto bytesOf = [&](const Tensor& tensor, int64_t i) {
        return static_cast<const std::byte*>(tensor.data()) + static_cast<size_t>(i) * width;
    };
    for (int64_t i = 0; i < x.numel(); ++i) {
        if (std::memcmp(bytesOf(x, i), bytesOf(y, i), width) == 0) continue;
        if (!isFloating(x.dtype()) || !std::isnan(toDouble(x.item(i))) || !std::isnan(toDouble(y.item(i))))
            return false;
    }
    return true;
}

/// What one element may be.
struct Allowed {
    double from = 0, distance = 0;
};
std::string wrongElement(double actual, double expected, bool exact, const Allowed& allowed, double unit) {
    if (std::isnan(expected) && std::isnan(actual)) return {};
    if (actual == expected && (actual != 0 || !exact || std::signbit(actual) == std::signbit(expected))) return {};
    const double distance = std::fabs(actual - allowed.from);
    if (distance <= allowed.distance) return {};
    std::string away;
    if (std::isfinite(distance)) away = ", " + shown(distance / unit) + " units away";
    return shown(actual) + " instead of " + shown(expected) + away;
}
/// How far the judge is from the result in f64, at most.
double worstOf(const Tensor& expected, const Tensor& wide) {
    double worst = 0;
    for (int64_t i = 0; i < expected.numel(); ++i)
        if (const double distance = std::fabs(toDouble(expected.item(i)) - toDouble(wide.item(i)));
            std::isfinite(distance))
            worst = std::max(worst, distance);
    return worst;
}

DType widenedType(DType dtype) { return isFloating(dtype) ? DType::F64 : dtype; }
/// The graph with f64 for all floats; null if an operator refuses that.
std::shared_ptr<const Module> widened(const Module& module) {
    auto wide = std::make_shared<Module>();
    GraphBuilder builder(wide->graph());
    std::map<const Node*, Node*> copies;
    const auto twin = [&](Node* operand) { return copies.at(operand); };
    for (const Node& node : module.graph().nodes()) {
        std::vector<Argument> args;
        for (const Argument& arg : node.args()) {
            const auto* dtype = arg.get<DType>();
            args.push_back(dtype ? Argument(widenedType(*dtype)) : arg.mapNodes(twin));
        }
        if (node.isPlaceholder()) {
            TensorType type = node.tensor();
            type.dtype = widenedType(type.dtype);
            copies[&node] = &wide->graph().placeholder("x", ValueType(type));
        } else if (node.isOutput()) {
            std::vector<Argument> outputs;
            for (const Argument& output : module.graph().outputs()) outputs.push_back(output.mapNodes(twin));
            wide->graph().output(ArgumentList{std::move(outputs), true});
        } else {
            copies[&node] = builder.callBound(node.op(), std::move(args)).node();
            if (builder.error()) return nullptr;
        }
    }
    wide->inputs.resize(module.inputs.size());
    wide->outputs.resize(module.outputs.size());
    return wide;
}

std::string shapeText(const Tensor& tensor) {
    return TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text();
}

/// What is wrong with the results of a case, which `outputs` begins with; empty for nothing.
std::string wrongResults(const LoweringCase& one, std::span<const Tensor> outputs) {
    for (size_t i = 0; i < one.expected.size(); ++i) {
        const std::string wrong =
            beyondBound(outputs[i], one.expected[i], i < one.wide.size() ? one.wide[i] : Tensor(), one.bound(i));
        if (!wrong.empty()) return (one.expected.size() > 1 ? "result " + std::to_string(i) + ": " : "") + wrong;
    }
    return {};
}

void compareAll(const Way& way, std::span<const LoweringCase* const> cases, std::span<std::string> wrong) {
    if (cases.empty()) return;
    const JoinedCases joined = joinCases(cases);
    const auto runs = way.run(joined.module, joined.inputs);
    if (!runs && cases.size() > 1) {
        const size_t half = cases.size() / 2;
        compareAll(way, cases.first(half), wrong.first(half));
        return compareAll(way, cases.subspan(half), wrong.subspan(half));
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
                !std::equal(own(run).begin(), own(run).end(), own((*runs)[0]).begin(), sameOrNan))
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
    if (sameOrNan(actual, expected)) return {};
    const bool floating = isFloating(expected.dtype());
    Bound own = floating ? bound : Bound{};
    // For f64 there is no wider result to count from, so that another order of the sums shows more.
    if (own.sums && expected.dtype() == DType::F64) own.ulps *= 16;
    own.sums = own.sums && wide.defined() && wide.sizes() == expected.sizes();
    const double scale = own.sums ? std::max(largestOf(wide), largestOf(expected)) : 0;
    const double worst = own.sums ? worstOf(expected, wide) : 0;
    for (int64_t i = 0; i < expected.numel(); ++i) {
        std::string wrong;
        if (!floating) {
            const int64_t got = toInt(actual.item(i)), due = toInt(expected.item(i));
            if (got != due) wrong = std::to_string(got) + " instead of " + std::to_string(due);
        } else {
            const double got = toDouble(actual.item(i)), due = toDouble(expected.item(i));
            const double unit = unitAt(own.sums ? scale : due, expected.dtype());
            // Where only one of f64 and the judge overflows, errors are counted from the judge's number.
            const double from =
                own.sums && std::isfinite(toDouble(wide.item(i))) && std::isfinite(due) ? toDouble(wide.item(i)) : due;
            wrong = wrongElement(got, due, own.ulps == 0, {from, own.ulps * unit + 4 * worst}, unit);
        }
        if (!wrong.empty()) return "element " + std::to_string(i) + " is " + wrong;
    }
    return {};
}

Result<void> judge(LoweringCase& one) {
    const Way way = pureInterpreter();
    CT_TRY(std::vector<WayRun> runs, way.run(one.module, one.inputs));
    one.expected = std::move(runs[0].outputs);
    if (std::none_of(one.bounds.begin(), one.bounds.end(), [](const Bound& bound) { return bound.sums; })) return {};
    const auto wide = widened(*one.module);
    if (!wide) return {};
    std::vector<Tensor> inputs;
    for (const Tensor& input : one.inputs) inputs.push_back(input.to(widenedType(input.dtype())));
    if (auto results = way.run(wide, inputs)) one.wide = std::move((*results)[0].outputs);
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

namespace {
Result<std::vector<WayRun>> runCompiled(const std::shared_ptr<const Module>& module, const std::vector<Tensor>& inputs,
                                        const CpuBuildOptions& build, CpuRunOptions run,
                                        const std::vector<int>& threads) {
    CT_TRY(const CpuProgram program, buildCpu(module, build));
    std::vector<WayRun> runs;
    run.repeat = 0;
    run.splitSmall = true;
    for (const int count : threads) {
        run.threads = count;
        CT_TRY(CpuRun done, runCpu(program, inputs, run));
        if (!done.refused.empty()) return invalidInput(done.refused.begin()->second);
        runs.push_back({std::to_string(count) + (count == 1 ? " thread" : " threads"), std::move(done.outputs)});
    }
    return runs;
}
}  // namespace

Way compiledCode(std::vector<int> threads) {
    return {"compiled", [threads](const std::shared_ptr<const Module>& module, const std::vector<Tensor>& inputs) {
                return runCompiled(module, inputs, {}, {}, threads);
            }};
}

Way compiledByAnyPlan(uint32_t seed) {
    return {"any plan",
            [seed](const std::shared_ptr<const Module>& module,
                   const std::vector<Tensor>& inputs) -> Result<std::vector<WayRun>> {
                CT_TRY(const ScheduledProgram program, scheduleModule(module, kCpuTarget));
                std::mt19937 random(seed);
                CpuBuildOptions build;
                for (const PlannedKernel& planned : program.kernels)
                    for (int attempt = 0; attempt < 20; ++attempt) {
                        const LoopPlan plan = randomPlan(planned.kernel, random);
                        if (!problemOf(plan, planned.kernel, kCpuTarget).empty()) continue;
                        build.plans[planned.kernel.name] = plan;
                        break;
                    }
                return runCompiled(module, inputs, build, {}, {1, 3});
            }};
}

std::vector<Way> judgedWays() {
    return {compiledCode(), interpretedKernels(Interpreted::Kernels, kCpuTarget),
            interpretedKernels(Interpreted::Nests, kCpuTarget)};
}

Result<Way> sanitizedCode(const std::string& folder) {
    CT_TRY(const std::string worker, findHelper("cutaway-worker", "CUTAWAY_WORKER"));
    ProcessOptions ask;
    ask.argv = {"g++", "-print-file-name=libasan.so"};
    CT_TRY(const ProcessEnd answer, runProcess(ask));
    const std::string library = answer.output.substr(0, answer.output.find('\n'));
    if (!answer.ok() || !library.starts_with("/"))
        return Error{ErrorCode::NotFound, "g++ has no address sanitizer", "", {"apt install g++"}};
    // Generated code is loaded into a program that was not built with the sanitizer.
    const std::string script = folder + "/worker";
    CT_TRY_VOID(writeFile(script, "#!/bin/sh\nexport LD_PRELOAD=" + library +
                                      " ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1\nexec '" + worker +
                                      "' \"$@\"\n"));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    ::setenv("CUTAWAY_WORKER", script.c_str(), 1);
    return Way{"sanitized", [](const std::shared_ptr<const Module>& module, const std::vector<Tensor>& inputs) {
                   CpuBuildOptions build;
                   build.compiler = "g++ -fsanitize=address,undefined -fno-sanitize-recover=all";
                   CpuRunOptions run;
                   run.apart = true;
                   run.memoryBytes = int64_t{1} << 50;  // the sanitizer reserves more than any machine has
                   return runCompiled(module, inputs, build, run, {2});
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
            compareAll(way, std::span(all).subspan(begin, count), std::span(wrong).subspan(begin, count));
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return wrong;
}

}  // namespace cutaway::testing
