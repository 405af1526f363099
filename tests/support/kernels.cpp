#include "tests/support/kernels.h"

#include <random>

#include "engine/loops/nest_text.h"
#include "engine/ops/op_registry.h"
#include "engine/schedule/schedule.h"
#include "tests/support/op_record.h"

namespace cutaway::testing {
namespace {

Expr x(int axis) { return Expr::axis(axis); }
Expr add(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}); }
Expr mul(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}); }
Expr load(int buffer, const Expr& index, DType dtype = DType::F32) {
    return Expr::load(bufferName(buffer), index, dtype);
}
Expr reduceOver(ReduceKind kind, std::vector<Loop> loops, const Expr& body) {
    return makeReduce(static_cast<int>(kind), loops, body);
}
/// The largest of b1 [.., columns] over three steps of axis 2; minus infinity where `position` is not in 0 .. limit.
Expr largestOfThree(const Expr& position, int64_t limit, const Expr& row, int64_t columns, const Expr& column) {
    const Expr inside = compare(ExprKind::Ge, position, num(0)) && compare(ExprKind::Lt, position, num(limit));
    const Expr at = Expr::where(inside, row * num(columns) + column, num(0));
    const Expr element =
        Expr::where(inside, load(1, at), Expr::real(-std::numeric_limits<double>::infinity(), DType::F32));
    return reduceOver(ReduceKind::Max, {{2, SymInt(3)}}, element);
}

}  // namespace

Kernel softmax(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "softmax";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, rows}};
    auto at = [&](int axis) { return add(mul(num(columns), x(0)), x(axis)); };
    const Expr most = reduceOver(ReduceKind::Max, {{2, columns}}, load(1, at(2)));
    const Expr sum = reduceOver(ReduceKind::Sum, {{3, columns}}, call1("exp", load(1, at(3)) - most));
    kernel.stores = {{0, {{1, columns}}, at(1), call1("exp", load(1, at(1)) - most) / sum}};
    return kernel;
}
Kernel transpose(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "transpose";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, columns}, {1, rows}};
    kernel.stores = {{0, {}, add(mul(num(rows), x(0)), x(1)), load(1, add(mul(num(columns), x(1)), x(0)))}};
    return kernel;
}
Kernel integers(int64_t rows, int64_t columns, DType dtype) {
    Kernel kernel;
    kernel.name = "integers";
    kernel.buffers = {{dtype, true}, {dtype, false}, {dtype, false}};
    kernel.outer = {{0, rows}, {1, columns}};
    const Expr at = add(mul(num(columns), x(0)), x(1)), own = load(1, at, dtype), sum = own + load(2, x(1), dtype);
    kernel.stores = {{0, {}, at, Expr::where(compare(ExprKind::Lt, own, sum), sum, own)}};
    return kernel;
}
Kernel largest(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "largest";
    kernel.buffers = {{DType::I64, true}, {DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, rows}};
    const Expr at = add(mul(num(columns), x(0)), x(1));
    kernel.stores = {{0, {}, x(0), reduceOver(ReduceKind::ArgMax, {{1, columns}}, load(2, at))},
                     {1, {}, x(0), reduceOver(ReduceKind::Sum, {{1, columns}}, load(2, at))}};
    return kernel;
}
Kernel bags(int64_t count, int64_t dims) {
    Kernel kernel;
    kernel.name = "bags";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::I64, false}};
    kernel.outer = {{0, count}, {1, dims}};
    const Expr first = load(2, x(0), DType::I64), last = load(2, add(x(0), num(1)), DType::I64);
    const SymInt length{Expr::make(ExprKind::Sub, {last, first})};
    const Expr row = add(first, x(2));
    kernel.stores = {{0,
                      {},
                      add(mul(num(dims), x(0)), x(1)),
                      reduceOver(ReduceKind::Sum, {{2, length}}, load(1, add(mul(num(dims), row), x(1))))}};
    return kernel;
}

Kernel windows(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "windows";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, rows}, {1, columns}};
    const Expr row = x(0) + x(2) - num(1);
    kernel.stores = {{0, {}, x(0) * num(columns) + x(1), largestOfThree(row, rows, row, columns, x(1))}};
    return kernel;
}

Kernel pooled(int64_t rows, int64_t columns, int64_t step) {
    Kernel kernel;
    kernel.name = "pooled";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    const int64_t across = (columns - 1) / step + 1;
    kernel.outer = {{0, rows}, {1, across}};
    const Expr column = x(1) * num(step) + x(2) - num(1);
    kernel.stores = {{0, {}, x(0) * num(across) + x(1), largestOfThree(column, columns, x(0), columns, column)}};
    return kernel;
}

Kernel picked(int64_t rows, int64_t columns, const std::string& how) {
    Kernel kernel;
    kernel.name = how;
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, rows}, {1, columns}};
    Expr index = Expr::make(ExprKind::Mod, {add(x(1), num(5)), num(columns)});
    if (how == "reflect")
        index = Expr::where(compare(ExprKind::Lt, x(1), num(3)), add(num(2), mul(num(-1), x(1))), x(1));
    if (how == "enlarge")
        index = Expr::cast(
            Expr::make(ExprKind::Mul, {Expr::cast(x(1), DType::F32), Expr::real(0.5, DType::F32)}, DType::F32),
            DType::I64);
    if (how == "squares") index = Expr::make(ExprKind::Mod, {mul(x(1), x(1)), num(columns)});
    const Expr inside = Expr::call("checked_index", {index, num(columns)}, DType::I64);
    kernel.stores = {{0, {}, add(mul(num(columns), x(0)), x(1)), load(1, add(mul(num(columns), x(0)), inside))}};
    return kernel;
}

Kernel beside(int64_t n, int64_t m, int64_t pad) {
    Kernel kernel;
    kernel.name = "beside";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::F32, false}};
    kernel.outer = {{0, 3}, {1, n + m + pad}};
    const Expr at = x(1), first = compare(ExprKind::Lt, at, num(n));
    const Expr inside = compare(ExprKind::Lt, at, num(n + m));
    const Expr a = load(1, Expr::where(first, add(mul(num(n), x(0)), at), num(0)));
    const Expr b = load(2, Expr::where(logicalNot(first) && inside, add(mul(num(m), x(0)), add(at, num(-n))), num(0)));
    kernel.stores = {{0,
                      {},
                      add(mul(num(n + m + pad), x(0)), at),
                      Expr::where(first, a, Expr::where(inside, b, Expr::real(0, DType::F32)))}};
    return kernel;
}
Kernel gelu(int64_t count) {
    Kernel kernel;
    kernel.name = "gelu";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, count}};
    const Expr expr = load(1, x(0));
    const Expr half = constantLike(expr, 0.5), root = constantLike(expr, 0.70710678118654752);
    kernel.stores = {{0, {}, x(0), half * expr * (constantLike(expr, 1) + call1("erf", expr * root))}};
    return kernel;
}
Kernel columnSums(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "columns";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, columns}};
    kernel.stores = {
        {0, {}, x(0), reduceOver(ReduceKind::Sum, {{1, rows}}, load(1, add(mul(num(columns), x(1)), x(0))))}};
    return kernel;
}
Kernel bordered(int64_t rows, int64_t columns) {
    Kernel kernel = columnSums(rows, columns);
    kernel.outer = {{0, columns + 4}};
    const Expr at = add(x(0), num(-2));
    const Expr inside = compare(ExprKind::Ge, at, num(0)) && compare(ExprKind::Lt, at, num(columns));
    const Expr value = load(1, Expr::where(inside, add(mul(num(columns), x(1)), at), num(0)));
    kernel.stores[0].value =
        reduceOver(ReduceKind::Sum, {{1, rows}}, Expr::where(inside, value, Expr::real(0, DType::F32)));
    return kernel;
}
Kernel rowSumsAdded(int64_t rows, int64_t columns, int64_t inner) {
    Kernel kernel;
    kernel.name = "added";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::F32, false}};
    kernel.outer = {{3, rows}, {4, columns}};
    const Expr at = add(mul(num(columns), x(3)), x(4));
    const Expr sum = reduceOver(ReduceKind::Sum, {{5, inner}}, load(2, add(mul(num(inner), x(3)), x(5))));
    kernel.stores = {{0, {}, at, load(1, at) + sum}};
    return kernel;
}
Kernel scatterAdded(int64_t count, int64_t items, int64_t dims) {
    Kernel kernel;
    kernel.name = "scatter";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::I64, false}};
    kernel.outer = {{0, count}, {1, dims}};
    const Expr spread = add(load(2, x(0), DType::I64), mul(x(0), num(7919)));
    const Expr item =
        Expr::call("checked_index", {Expr::make(ExprKind::Mod, {spread, num(items)}), num(items)}, DType::I64);
    kernel.stores = {{0, {}, add(mul(num(dims), item), x(1)), load(1, add(mul(num(dims), x(0)), x(1))), true}};
    return kernel;
}
Kernel gather(int64_t count) {
    Kernel kernel;
    kernel.name = "gather";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::I64, false}};
    kernel.outer = {{0, count}};
    // Offsets grow beyond the table, so they are brought back into it.
    const Expr index = Expr::make(ExprKind::Mod, {load(2, x(0), DType::I64), num(count)});
    kernel.stores = {{0, {}, x(0), load(1, Expr::call("checked_index", {index, num(count)}, DType::I64))}};
    return kernel;
}

std::vector<KernelSample> kernelSamples() {
    std::vector<KernelSample> all;
    for (const int64_t n : {1, 15, 16, 17, 40, 150}) {
        const auto elements = static_cast<size_t>(n * 9);
        all.push_back({"softmax", softmax(9, n), elements});
        all.push_back({"transpose", transpose(9, n), elements});
        all.push_back({"transpose", transpose(n, 9), elements});
        all.push_back({"largest", largest(9, n), elements});
    }
    all.push_back({"beside", beside(5, 20, 3), size_t{100}});
    all.push_back({"beside", beside(16, 16, 0), size_t{100}});
    for (const int64_t n : {1, 16, 37}) all.push_back({"windows", windows(5, n), static_cast<size_t>(5 * n)});
    for (const int64_t n : {1, 2, 16, 33, 70})
        for (const int64_t step : {1, 2, 3}) all.push_back({"pooled", pooled(5, n, step), static_cast<size_t>(5 * n)});
    for (const int64_t n : {3, 16, 17, 33, 70})
        for (const char* how : {"roll", "reflect", "enlarge", "squares"})
            all.push_back({how, picked(5, n, how), static_cast<size_t>(5 * n)});
    for (const int64_t n : {1, 31, 32, 33, 63, 64, 65, 150})
        for (const DType dtype : {DType::I8, DType::U8, DType::I16})
            all.push_back({"integers", integers(3, n, dtype), static_cast<size_t>(3 * n)});
    for (const int64_t n : {1, 16, 40})
        all.push_back({"added", rowSumsAdded(5, n, 7), static_cast<size_t>(5 * n + 35)});
    for (const int64_t n : {1, 16, 40, 150}) {
        all.push_back({"columns", columnSums(9, n), static_cast<size_t>(n * 9)});
        all.push_back({"bordered", bordered(9, n), static_cast<size_t>(n * 9)});
    }
    for (const int64_t dims : {1, 16, 37}) {
        all.push_back({"scatter", scatterAdded(23, 5, dims), static_cast<size_t>(23 * dims)});
        all.push_back({"scatter", scatterAdded(40, 64, dims), static_cast<size_t>(64 * dims)});
    }
    all.push_back({"bags", bags(7, 19), size_t{2000}});
    all.push_back({"bags", bags(7, 3), size_t{2000}});
    return all;
}

Memory::Memory(const Kernel& kernel, size_t elements, uint32_t seed) {
    std::mt19937 random(seed);
    for (const KernelBuffer& buffer : kernel.buffers) {
        auto& own = bytes.emplace_back(elements * static_cast<size_t>(byteSize(buffer.dtype)));
        int64_t running = 0;
        for (size_t i = 0; i < elements; ++i) {
            // Integers are offsets of bags: they grow, from 0.
            running += buffer.written ? 0 : static_cast<int64_t>(random() % 5);
            const double real = buffer.written ? -7 : static_cast<double>(random() % 1024) / 64 - 8;
            writeElement(own.data(), buffer.dtype, static_cast<int64_t>(i), {real, i == 0 ? 0 : running});
        }
    }
    for (auto& own : bytes) pointers.push_back(own.data());
}

LoopPlan randomPlan(const Kernel& kernel, std::mt19937& random, const TargetInfo& target) {
    LoopPlan plan = choosePlan(kernel, target);
    const int lanes = target.loops.lanes;
    std::shuffle(plan.order.begin(), plan.order.end(), random);
    plan.vectors = static_cast<VectorOver>(random() % 3);
    plan.lanes = plan.vectors == VectorOver::Nothing ? 1 : lanes;
    if (plan.vectors == VectorOver::Rows) plan.lanes = std::min(lanes << random() % 3, mostLanes(kernel, target));
    if (plan.vectors == VectorOver::Inner && target.loops.warp > 0 && random() % 2)
        plan.lanes = std::min(target.loops.warp, lanes) >> random() % 3;
    plan.unrollJam = random() % 2 || plan.vectors != VectorOver::Rows ? 1 : static_cast<int>(1 + random() % 8);
    if (random() % 2) plan.cached.clear();
    plan.prefetch = static_cast<int>(random() % 4) - 1;
    plan.split = random() % 2 ? 1 : static_cast<int>(1 + random() % 7);
    plan.tiled = random() % 2 && !plan.order.empty() ? plan.order[random() % plan.order.size()] : -1;
    plan.block = random() % 3 ? 0 : plan.lanes * static_cast<int64_t>(1 + random() % 5);
    plan.tile = plan.tiled < 0 ? 1 : static_cast<int>(1 + random() % 20);
    plan.inRegisters = plan.tiled >= 0 && random() % 2;
    plan.indexBits = random() % 3 ? 64 : 32;
    // Each reduction may also have a pass over memory of its own.
    if (random() % 2) {
        std::vector<InnerLoop> singles;
        for (const InnerLoop& inner : plan.inner) {
            for (const int r : inner.reductions) singles.push_back({{r}, {}});
            for (const int s : inner.stores) singles.push_back({{}, {s}});
        }
        plan.inner = singles;
    }
    for (InnerLoop& inner : plan.inner)
        inner.accumulators = random() % 2 || (inner.reductions.empty() && target.loops.warp == 0)
                                 ? 1
                                 : static_cast<int>(1 + random() % 5);
    return plan;
}

namespace {

using RunNests = std::function<KernelFault(const LoweredKernel&, std::span<void* const>)>;
QString differenceBy(const RunNests& run, const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target,
                     size_t elements, uint32_t seed) {
    Memory meant(kernel, elements, seed), made(kernel, elements, seed);
    if (interpretKernel(kernel, meant.pointers, {}) != KernelFault::None) return "the kernel failed";
    if (run(lowerLoops(kernel, plan, target), made.pointers) != KernelFault::None) return "the nests failed";
    for (size_t b = 0; b < kernel.buffers.size(); ++b)
        for (size_t i = 0; i < elements; ++i) {
            const auto at = static_cast<int64_t>(i);
            const DType dtype = kernel.buffers[b].dtype;
            const Cell m = readElement(meant.bytes[b].data(), dtype, at),
                       n = readElement(made.bytes[b].data(), dtype, at);
            const bool same =
                isFloating(dtype) ? std::abs(m.real - n.real) <= 2e-7 * std::abs(m.real) : m.whole == n.whole;
            if (!same)
                return QStringLiteral("b%1[%2] is %3, not %4, by the plan\n%5\n%6")
                    .arg(b)
                    .arg(i)
                    .arg(isFloating(dtype) ? n.real : static_cast<double>(n.whole))
                    .arg(isFloating(dtype) ? m.real : static_cast<double>(m.whole))
                    .arg(QString::fromStdString(text(plan)),
                         QString::fromStdString(text(lowerLoops(kernel, plan, target).nests[0])));
        }
    return {};
}

}  // namespace

QString difference(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target, size_t elements, uint32_t seed,
                   int64_t chunk) {
    const auto run = [&](const LoweredKernel& lowered, std::span<void* const> buffers) {
        return interpretNests(lowered, buffers, {}, chunk);
    };
    return differenceBy(run, kernel, plan, target, elements, seed);
}
QString differenceOfLanes(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target, size_t elements,
                          uint32_t seed) {
    const auto run = [&](const LoweredKernel& lowered, std::span<void* const> buffers) {
        return interpretLanes(lowered, buffers, {}, seed);
    };
    return differenceBy(run, kernel, plan, target, elements, seed);
}

QString firstWrong(const std::function<QString(const PlannedKernel&)>& wrongOf, int& count) {
    for (const Op* op : allOps())
        for (const OpSample& sample : samplesOf(*op)) {
            const auto module = std::make_shared<Module>();
            if (!buildSampleModule(*op, sample.text, *module)) continue;
            const auto program = scheduleModule(module, kCpuTarget);
            if (!program) continue;
            for (const PlannedKernel& planned : program->kernels) {
                ++count;
                if (const QString why = wrongOf(planned); !why.isEmpty())
                    return QString::fromStdString(sample.name()) + ": " + why;
            }
        }
    return {};
}

}  // namespace cutaway::testing
