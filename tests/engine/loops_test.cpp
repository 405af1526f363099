// Kernels, plans and nests without a compiler: what a plan's text says, which plans are refused, and that the nests of
// any legal plan give what the kernel means. CUTAWAY_SEED starts the random plans elsewhere, CUTAWAY_SEEDS makes more
// of them.
#include <QtTest>
#include <random>

#include "engine/loops/interpret.h"
using namespace cutaway;

namespace {

Expr x(int axis) { return Expr::axis(axis); }
Expr num(int64_t value) { return Expr::integer(value); }
Expr add(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Add, {a, b}); }
Expr mul(const Expr& a, const Expr& b) { return Expr::make(ExprKind::Mul, {a, b}); }
Expr load(int buffer, const Expr& index, DType dtype = DType::F32) {
    return Expr::load(bufferName(buffer), index, dtype);
}
Expr reduceOver(ReduceKind kind, std::vector<Loop> loops, const Expr& body) {
    return makeReduce(static_cast<int>(kind), loops, body);
}

/// b0[rows, columns] = softmax of b1 along the columns.
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
/// b0[columns, rows] = b1[rows, columns], turned.
Kernel transpose(int64_t rows, int64_t columns) {
    Kernel kernel;
    kernel.name = "transpose";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}};
    kernel.outer = {{0, columns}, {1, rows}};
    kernel.stores = {{0, {}, add(mul(num(rows), x(0)), x(1)), load(1, add(mul(num(columns), x(1)), x(0)))}};
    return kernel;
}
/// b0[rows] = where the largest element of a row is, b2[rows] = the sum of it.
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
/// b0[bag, d] = the sum of rows of a table [items, dims] that stand from offsets[bag] to offsets[bag + 1]: a length
/// that follows from data.
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

/// b0[n + m] = b1[n] beside b2[m] with a border of `pad` zeros: conditions that change within the vector loop.
Kernel beside(int64_t n, int64_t m, int64_t pad) {
    Kernel kernel;
    kernel.name = "beside";
    kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::F32, false}};
    kernel.outer = {{0, 3}, {1, n + m + pad}};
    const Expr at = x(1), first = compare(ExprKind::Lt, at, num(n));
    const Expr inside = compare(ExprKind::Lt, at, num(n + m));
    const Expr a = load(1, Expr::where(first, add(mul(num(n), x(0)), at), num(0)));
    const Expr b = load(2, Expr::where(logicalNot(first) && inside, add(mul(num(m), x(0)), add(at, num(-n))), num(0)));
    kernel.stores = {{0, {}, add(mul(num(n + m + pad), x(0)), at),
                      Expr::where(first, a, Expr::where(inside, b, Expr::real(0, DType::F32)))}};
    return kernel;
}

/// Memory for every buffer: numbers from the seed where a kernel reads, -7 where it writes.
struct Memory {
    std::vector<std::vector<char>> bytes;
    std::vector<void*> pointers;
    Memory(const Kernel& kernel, size_t elements, uint32_t seed) {
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
};

/// Where the plan's nests give something else than the kernel means; nothing if they agree. Reductions are summed in
/// other orders by other plans, so floats may differ by `ulps` of f32.
QString difference(const Kernel& kernel, const LoopPlan& plan, size_t elements, uint32_t seed, int64_t chunk) {
    Memory meant(kernel, elements, seed), made(kernel, elements, seed);
    if (interpretKernel(kernel, meant.pointers, {}) != KernelFault::None) return "the kernel failed";
    if (interpretNests(lowerLoops(kernel, plan), made.pointers, {}, chunk) != KernelFault::None)
        return "the nests failed";
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
                         QString::fromStdString(text(lowerLoops(kernel, plan).nests[0])));
        }
    return {};
}

/// A plan made by chance; most are legal.
LoopPlan randomPlan(const Kernel& kernel, std::mt19937& random) {
    LoopPlan plan = choosePlan(kernel, {});
    std::shuffle(plan.order.begin(), plan.order.end(), random);
    plan.vectors = static_cast<VectorOver>(random() % 3);
    plan.lanes = plan.vectors == VectorOver::Nothing ? 1 : 16;
    plan.parts = random() % 2 ? 1 : static_cast<int>(1 + random() % 7);
    plan.tiled = random() % 2 && !plan.order.empty() ? plan.order[random() % plan.order.size()] : -1;
    plan.tile = plan.tiled < 0 ? 1 : static_cast<int>(1 + random() % 20);
    // Each reduction may also have a pass over memory of its own.
    if (random() % 2) {
        std::vector<Walk> walks;
        for (const Walk& walk : plan.walks) {
            for (const int r : walk.reductions) walks.push_back({{r}, {}});
            for (const int s : walk.stores) walks.push_back({{}, {s}});
        }
        plan.walks = walks;
    }
    return plan;
}

struct Sample {
    const char* name;
    Kernel kernel;
    size_t elements;
};
std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (const int64_t n : {1, 15, 16, 17, 40}) {
        const auto elements = static_cast<size_t>(n * 9);
        all.push_back({"softmax", softmax(9, n), elements});
        all.push_back({"transpose", transpose(9, n), elements});
        all.push_back({"transpose", transpose(n, 9), elements});
        all.push_back({"largest", largest(9, n), elements});
    }
    all.push_back({"beside", beside(5, 20, 3), size_t{100}});
    all.push_back({"beside", beside(16, 16, 0), size_t{100}});
    all.push_back({"bags", bags(7, 19), size_t{2000}});
    all.push_back({"bags", bags(7, 3), size_t{2000}});
    return all;
}

}  // namespace

class LoopsTest : public QObject {
    Q_OBJECT

  private slots:
    void chosenPlans_data() {
        QTest::addColumn<int>("which");
        QTest::addColumn<QString>("plan");
        QTest::newRow("one pass for each, along rows")
            << 0 << "order x0\nvectors walks 16\nwalk r0\nwalk r1\nwalk s0\n";
        QTest::newRow("tile of a transpose") << 1 << "order x0 x1\nvectors rows 16\ntile x0 64\n";
        QTest::newRow("reductions of one row share a pass") << 2 << "order x0\nvectors walks 16\nwalk r0 r1\n";
        QTest::newRow("columns of bags") << 3 << "order x0 x1\nvectors rows 16\nwalk r0\n";
        QTest::newRow("few long rows in parts") << 4 << "order x0\nvectors walks 16\nwalk r0 r1\nparts 32\n";
    }
    void chosenPlans() {
        QFETCH(int, which);
        QFETCH(QString, plan);
        const Kernel kernels[] = {softmax(100, 300), transpose(100, 300), largest(100, 300), bags(10, 64),
                                  largest(2, 1 << 20)};
        const LoopPlan chosen = choosePlan(kernels[which], {});
        QCOMPARE(problemOf(chosen, kernels[which]), std::string());
        QString own = QString::fromStdString(text(chosen));
        QVERIFY(which == 1 || own.contains("# vectors: "));
        const auto parsed = parsePlan(text(chosen));
        QVERIFY(bool(parsed));
        QVERIFY(parsed->sameChoices(chosen));
        QCOMPARE(text(*parsed), text(chosen));
        own.remove(QRegularExpression("#[^\n]*\n"));
        QCOMPARE(own, plan);
    }

    void refusedTexts_data() {
        QTest::addColumn<QString>("plan");
        QTest::addColumn<QString>("why");
        QTest::newRow("key") << "order x0\nvectros rows 16"
                             << "a plan has lines order, vectors, walk, parts and tile";
        QTest::newRow("axis") << "order x"
                              << "order lists axes: order x0 x1";
        QTest::newRow("vectors") << "vectors columns 16"
                                 << "vectors are over nothing, rows or walks: vectors rows 16";
        QTest::newRow("walk") << "walk t0"
                              << "a walk lists reductions or stores: walk r0 r1";
        QTest::newRow("parts") << "parts many"
                               << "parts is a number: parts 8";
        QTest::newRow("tile") << "tile x0"
                              << "a tile is an axis and a size: tile x0 16";
    }
    void refusedTexts() {
        QFETCH(QString, plan);
        QFETCH(QString, why);
        const auto parsed = parsePlan(plan.toStdString());
        QVERIFY(!parsed);
        QCOMPARE(QString::fromStdString(parsed.error().message), why);
        QCOMPARE(QString::fromStdString(parsed.error().where), QStringLiteral("line %1").arg(plan.count('\n') + 1));
    }

    void refusedPlans_data() {
        QTest::addColumn<QString>("plan");
        QTest::addColumn<QString>("why");
        const QString rest = "walk r0\nwalk r1\nwalk s0\n";
        QTest::newRow("loop left out") << "order\nvectors walks 16\n" + rest
                                       << "order must name each outer loop of the kernel once";
        QTest::newRow("lanes") << "order x0\nvectors walks 8\n" + rest << "vectors have 16 lanes";
        QTest::newRow("store left out") << "order x0\nvectors walks 16\nwalk r0\nwalk r1\n"
                                        << "walks name each store with inner loops once";
        QTest::newRow("reduction left out") << "order x0\nvectors walks 16\nwalk r0\nwalk s0\n"
                                            << "reduction r1 is of every row, so a walk must compute it";
        QTest::newRow("too early") << "order x0\nvectors walks 16\nwalk r1\nwalk r0\nwalk s0\n"
                                   << "reduction r0 is needed by a walk before it is computed";
        QTest::newRow("twice") << "order x0\nvectors walks 16\nwalk r0 r0\nwalk r1\nwalk s0\n"
                               << "walks name each reduction of the kernel at most once";
        QTest::newRow("different loops") << "order x0\nvectors walks 16\nwalk r0 r1\nwalk s0\n"
                                         << "what shares a walk has equal loops";
        QTest::newRow("parts of rows") << "order x0\nvectors rows 16\n" + rest + "parts 4\n"
                                       << "parts need vectors along rows, or none";
        QTest::newRow("tile of walks") << "order x0\nvectors walks 16\n" + rest + "tile x0 4\n"
                                       << "tiles are of an outer loop inside vectors over rows, without reductions";
    }
    void refusedPlans() {
        QFETCH(QString, plan);
        QFETCH(QString, why);
        const auto parsed = parsePlan(plan.toStdString());
        QVERIFY2(bool(parsed), parsed ? "" : parsed.error().message.c_str());
        QCOMPARE(QString::fromStdString(problemOf(*parsed, softmax(9, 40))), why);
    }
    void differentLengthsAreNotLanes() {
        const Kernel kernel = bags(7, 1);
        auto plan = parsePlan("order x1 x0\nvectors rows 16\nwalk r0\n");
        QVERIFY(bool(plan));
        QCOMPARE(problemOf(*plan, kernel), std::string("vectors over rows need reductions of one length"));
    }

    void nestsDoWhatKernelsMean() {
        for (const Sample& sample : samples())
            for (const int64_t chunk : {0, 1, 5, 16}) {
                const QString wrong =
                    difference(sample.kernel, choosePlan(sample.kernel, {}), sample.elements, 1, chunk);
                QVERIFY2(wrong.isEmpty(), qPrintable(sample.name + (": " + wrong)));
            }
    }
    void anyLegalPlanDoes() {
        const auto seed = static_cast<uint32_t>(qEnvironmentVariableIntValue("CUTAWAY_SEED"));
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        const std::vector<Sample> all = samples();
        int legal = 0;
        for (int round = 0; legal < std::max(2000, qEnvironmentVariableIntValue("CUTAWAY_SEEDS")); ++round) {
            const Sample& sample = all[static_cast<size_t>(round) % all.size()];
            const LoopPlan plan = randomPlan(sample.kernel, random);
            if (!problemOf(plan, sample.kernel).empty()) continue;
            ++legal;
            const QString wrong =
                difference(sample.kernel, plan, sample.elements, random(), static_cast<int64_t>(random() % 20));
            QVERIFY2(wrong.isEmpty(), qPrintable(QStringLiteral("seed %1, %2: %3").arg(seed).arg(sample.name, wrong)));
            const auto parsed = parsePlan(text(plan));
            QVERIFY(parsed && parsed->sameChoices(plan));
        }
    }
    /// Threads take parts; which ones each takes changes no bit.
    void bitsDoNotDependOnThreads() {
        const Kernel kernel = softmax(2, 1 << 12);
        auto plan = choosePlan(kernel, {});
        plan.parts = 5;
        std::vector<std::vector<char>> first;
        for (const int64_t chunk : {0, 1, 2, 3}) {
            Memory memory(kernel, size_t{2} << 12, 3);
            interpretNests(lowerLoops(kernel, plan), memory.pointers, {}, chunk);
            if (first.empty()) first = memory.bytes;
            QVERIFY(memory.bytes == first);
        }
    }
    void faultsAreOfActiveLanes() {
        // Of 17 indices the last is out of range; the 15 lanes behind it are no elements.
        Kernel kernel;
        kernel.name = "gather";
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::I64, false}};
        kernel.outer = {{0, 17}};
        const Expr index = Expr::call("checked_index", {load(2, x(0), DType::I64), num(40)}, DType::I64);
        kernel.stores = {{0, {}, x(0), load(1, index)}};
        Memory memory(kernel, 64, 1);
        auto* offsets = static_cast<int64_t*>(memory.pointers[2]);
        for (int i = 0; i < 64; ++i) offsets[i] = i < 16 ? i : i == 16 ? 40 : -1;
        const LoweredKernel lowered = lowerLoops(kernel, choosePlan(kernel, {}));
        QCOMPARE(interpretNests(lowered, memory.pointers, {}), KernelFault::IndexOutOfRange);
        offsets[16] = 39;
        QCOMPARE(interpretNests(lowered, memory.pointers, {}), KernelFault::None);
        QCOMPARE(interpretKernel(kernel, memory.pointers, {}), KernelFault::None);
    }
    /// After the split no piece has a condition or a gather.
    void guardsAreSplit() {
        const Kernel kernel = beside(20, 33, 4);
        std::vector<LoopStep> steps;
        lowerLoops(kernel, choosePlan(kernel, {}), &steps);
        const QString split = QString::fromStdString(steps[1].text);
        QCOMPARE(split.count("vector 16 for x1 in "), 3);
        QVERIFY2(!split.contains("Where"), qPrintable(split));
        QVERIFY(split.contains("for x1 in 20 .. 53:"));
    }
    void stepsAreShown() {
        std::vector<LoopStep> steps;
        lowerLoops(softmax(9, 40), choosePlan(softmax(9, 40), {}), &steps);
        QStringList names;
        for (const LoopStep& step : steps) names += QString::fromStdString(step.name);
        QCOMPARE(names, (QStringList{"build", "guards", "vectorise", "reductions", "divisions", "share"}));
        QVERIFY(steps[0].text.find("update sum t2 with") != std::string::npos);
        QVERIFY(steps[2].text.find("vector 16 for x3 in 0 .. 40:") != std::string::npos);
        QVERIFY(steps[3].text.find("update") == std::string::npos);
    }
};

QTEST_APPLESS_MAIN(LoopsTest)
#include "loops_test.moc"
