// Kernels, plans and nests without a compiler: what a plan's text says, which plans are refused, and that the nests of
// any legal plan give what the kernel means. CUTAWAY_SEED starts the random plans elsewhere, CUTAWAY_SEEDS makes more
// of them.
#include <QtTest>
#include <random>

#include "engine/loops/known_indices.h"
#include "engine/loops/nest_text.h"
#include "engine/schedule/traffic.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"
using namespace cutaway;
using namespace cutaway::testing;

namespace {

Expr x(int axis) { return Expr::axis(axis); }
Expr load(int buffer, const Expr& index, DType dtype = DType::F32) {
    return Expr::load(bufferName(buffer), index, dtype);
}

/// Why the plan of this text does not compute the kernel; empty if it does.
std::string problemOfText(const std::string& text, const Kernel& kernel) {
    const auto plan = parsePlan(text);
    return plan ? problemOf(*plan, kernel, kCpuTarget) : plan.error().text();
}

}  // namespace

class LoopsTest : public QObject {
    Q_OBJECT

  private slots:
    void chosenPlans_data() {
        QTest::addColumn<int>("which");
        QTest::addColumn<QString>("plan");
        QTest::newRow("one pass for each, along rows")
            << 0 << "order x0\nvectors inner 16\nloop r0 accumulators 4\nloop r1\nloop s0\ncache r1\n";
        QTest::newRow("tile of a transpose") << 1 << "order x0 x1\nvectors rows 16\ntile x0 128 in_registers\n";
        QTest::newRow("reductions of one row share a pass")
            << 2 << "order x0\nvectors inner 16\nloop r0 r1 accumulators 4\n";
        QTest::newRow("columns of bags") << 3 << "order x0 x1\nvectors rows 16\nunroll_jam 2\nloop r0\n";
        QTest::newRow("few long rows in parts")
            << 4 << "order x0\nvectors inner 16\nloop r0 r1 accumulators 4\nsplit 32\n";
        QTest::newRow("a last loop that is short") << 5 << "order x1 x0\nvectors rows 16\n";
        QTest::newRow("a last loop that fills half a vector") << 6 << "order x0 x1\nvectors rows 16\n";
        QTest::newRow("sums of many columns") << 7 << "order x0\nvectors rows 16\nunroll_jam 8\nloop r0\nsplit 4\n";
        QTest::newRow("sums of few columns") << 8 << "order x0\nvectors rows 16\nunroll_jam 2\nloop r0\nsplit 16\n";
        QTest::newRow("short sums of columns") << 9 << "order x0\nvectors rows 16\nunroll_jam 4\nloop r0\n";
        QTest::newRow("bytes") << 10 << "order x0 x1\nvectors rows 64\n";
        QTest::newRow("bytes of short rows") << 11 << "order x0 x1\nvectors rows 32\n";
        QTest::newRow("two bytes") << 12 << "order x0 x1\nvectors rows 32\n";
        QTest::newRow("few long rows in blocks") << 15 << "order x0 x1\nvectors rows 16\nblock 32768\n";
        QTest::newRow("additions") << 14 << "order x0 x1\nvectors rows 16\n";
        QTest::newRow("four bytes") << 13 << "order x0 x1\nvectors rows 16\n";
    }
    void chosenPlans() {
        QFETCH(int, which);
        QFETCH(QString, plan);
        const Kernel kernels[] = {softmax(100, 300),
                                  transpose(100, 300),
                                  largest(100, 300),
                                  bags(10, 64),
                                  largest(2, 1 << 20),
                                  transpose(4, 100),
                                  transpose(8, 100),
                                  columnSums(2048, 2048),
                                  columnSums(8192, 40),
                                  columnSums(20, 1024),
                                  integers(9, 300, DType::U8),
                                  integers(9, 40, DType::I8),
                                  integers(9, 300, DType::I16),
                                  integers(9, 300, DType::I32),
                                  scatterAdded(100, 40, 64),
                                  integers(2, 1 << 20, DType::I32)};
        const LoopPlan chosen = choosePlan(kernels[which], kCpuTarget);
        QCOMPARE(problemOf(chosen, kernels[which], kCpuTarget), std::string());
        QString own = QString::fromStdString(text(chosen));
        QVERIFY(which == 1 || own.contains("# vectors: "));
        const auto parsed = parsePlan(text(chosen));
        QVERIFY(bool(parsed));
        QVERIFY(parsed->sameChoices(chosen));
        QCOMPARE(text(*parsed), text(chosen));
        own.remove(QRegularExpression("#[^\n]*\n"));
        QCOMPARE(own, plan);
    }

    void oldWords_data() {
        QTest::addColumn<QString>("written");
        QTest::addColumn<QString>("today");
        QTest::newRow("walk") << "order x0\nvectors nothing\nwalk r0 r1\nwalk s0\n"
                              << "order x0\nvectors nothing\nloop r0 r1\nloop s0\n";
        QTest::newRow("walks") << "order x0\nvectors walks 16\n"
                               << "order x0\nvectors inner 16\n";
        QTest::newRow("jam") << "order x0\nvectors rows 16\njam 4\n"
                             << "order x0\nvectors rows 16\nunroll_jam 4\n";
        QTest::newRow("chains") << "order x0\nvectors inner 16\nloop r0 chains 4\n"
                                << "order x0\nvectors inner 16\nloop r0 accumulators 4\n";
        QTest::newRow("keep") << "order x0\nvectors inner 16\nkeep r1\n"
                              << "order x0\nvectors inner 16\ncache r1\n";
        QTest::newRow("ahead") << "order x0\nvectors inner 16\nahead 1\n"
                               << "order x0\nvectors inner 16\nprefetch 1\n";
        QTest::newRow("parts") << "order x0\nvectors inner 16\nparts 8\n"
                               << "order x0\nvectors inner 16\nsplit 8\n";
        QTest::newRow("direct") << "order x0 x1\nvectors rows 16\ntile x0 16 direct\n"
                                << "order x0 x1\nvectors rows 16\ntile x0 16 in_registers\n";
    }
    /// Plans that version 0.1 has written.
    void oldWords() {
        QFETCH(QString, written);
        QFETCH(QString, today);
        const auto parsed = parsePlan(written.toStdString());
        QVERIFY2(bool(parsed), parsed ? "" : parsed.error().text().c_str());
        QCOMPARE(QString::fromStdString(text(*parsed)), today);
    }

    void refusedTexts_data() {
        QTest::addColumn<QString>("plan");
        QTest::addColumn<QString>("why");
        QTest::newRow("key")
            << "order x0\nvectros rows 16"
            << "a plan has lines order, vectors, unroll_jam, block, loop, cache, prefetch, split, tile, indices and atomic";
        QTest::newRow("axis") << "order x"
                              << "order lists axes: order x0 x1";
        QTest::newRow("vectors") << "vectors columns 16"
                                 << "vectors are over nothing, rows or inner: vectors rows 16";
        QTest::newRow("unroll_jam") << "unroll_jam all"
                                    << "unroll_jam is a number of vectors: unroll_jam 4";
        QTest::newRow("inner loop") << "loop t0"
                                    << "an inner loop lists reductions or stores: loop r0 r1 accumulators 4";
        QTest::newRow("accumulators") << "loop r0 accumulators"
                                      << "an inner loop lists reductions or stores: loop r0 r1 accumulators 4";
        QTest::newRow("parts") << "split many"
                               << "split is a number: split 8";
        QTest::newRow("indices") << "indices narrow"
                                 << "indices are so many bits wide: indices 32";
        QTest::newRow("tile") << "tile x0"
                              << "a tile is an axis and a size: tile x0 16, or tile x0 16 in_registers";
        QTest::newRow("tile of another kind") << "tile x0 16 turned"
                                              << "a tile is an axis and a size: tile x0 16, or tile x0 16 in_registers";
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
        const QString rest = "loop r0\nloop r1\nloop s0\n";
        QTest::newRow("loop left out") << "order\nvectors inner 16\n" + rest
                                       << "order must name each outer loop of the kernel once";
        QTest::newRow("lanes") << "order x0\nvectors inner 8\n" + rest << "vectors have 16 lanes";
        QTest::newRow("store left out") << "order x0\nvectors inner 16\nloop r0\nloop r1\n"
                                        << "inner loops name each store with inner loops once";
        QTest::newRow("reduction left out") << "order x0\nvectors inner 16\nloop r0\nloop s0\n"
                                            << "reduction r1 is of every row, so an inner loop must compute it";
        QTest::newRow("too early") << "order x0\nvectors inner 16\nloop r1\nloop r0\nloop s0\n"
                                   << "reduction r0 is needed by an inner loop before it is computed";
        QTest::newRow("twice") << "order x0\nvectors inner 16\nloop r0 r0\nloop r1\nloop s0\n"
                               << "inner loops name each reduction of the kernel at most once";
        QTest::newRow("different loops") << "order x0\nvectors inner 16\nloop r0 r1\nloop s0\n"
                                         << "what shares an inner loop has equal loops";
        QTest::newRow("accumulators of stores")
            << "order x0\nvectors inner 16\nloop r0\nloop r1\nloop s0 accumulators 2\n"
            << "accumulators need a reduction whose inner loop is a vector loop";
        QTest::newRow("accumulators of rows") << "order x0\nvectors rows 16\nloop r0 accumulators 2\nloop r1\nloop s0\n"
                                              << "accumulators need a reduction whose inner loop is a vector loop";
        QTest::newRow("many accumulators") << "order x0\nvectors inner 16\nloop r0 accumulators 9\nloop r1\nloop s0\n"
                                           << "an inner loop has from 1 to 8 accumulators";
        QTest::newRow("unroll_jam of inner loops") << "order x0\nvectors inner 16\nunroll_jam 2\n" + rest
                                                   << "unroll_jam needs vectors of rows and inner loops";
        QTest::newRow("many unrolled") << "order x0\nvectors rows 16\nunroll_jam 9\n" + rest
                                       << "from 1 to 8 vectors are unrolled together";
        QTest::newRow("none unrolled") << "order x0\nvectors rows 16\nunroll_jam 0\n" + rest
                                       << "from 1 to 8 vectors are unrolled together";
        QTest::newRow("cache of nothing") << "order x0\nvectors inner 16\n" + rest + "cache r7\n"
                                          << "cache names a reduction of an inner loop";
        QTest::newRow("cache of parts") << "order x0\nvectors inner 16\n" + rest + "cache r1\nsplit 2\n"
                                        << "cache needs rows that are not vectors, and no split";
        QTest::newRow("block of inner loops")
            << "order x0\nvectors rows 16\nblock 32\n" + rest
            << "blocks are of the last of several loops over rows, without inner loops and tiles";
        QTest::newRow("tile of inner loops")
            << "order x0\nvectors inner 16\n" + rest + "tile x0 4\n"
            << "tiles are of an outer loop inside vectors over rows, without reductions";
    }
    void refusedPlans() {
        QFETCH(QString, plan);
        QFETCH(QString, why);
        const auto parsed = parsePlan(plan.toStdString());
        QVERIFY2(bool(parsed), parsed ? "" : parsed.error().message.c_str());
        QCOMPARE(QString::fromStdString(problemOf(*parsed, softmax(9, 40), kCpuTarget)), why);
    }
    void lanesOfNarrowElements() {
        const auto problem = [](int lanes, const Kernel& kernel) {
            return problemOfText("order x0 x1\nvectors rows " + std::to_string(lanes), kernel);
        };
        for (const int lanes : {16, 32}) QCOMPARE(problem(lanes, integers(9, 20, DType::I16)), std::string());
        QCOMPARE(problem(64, integers(9, 20, DType::I8)), std::string());
        QCOMPARE(problem(64, integers(9, 20, DType::I16)), std::string("vectors have 16 lanes or 32"));
        QCOMPARE(problem(32, integers(9, 20, DType::I32)), std::string("vectors have 16 lanes"));
    }
    void blocks() {
        const auto problem = [](const char* block) {
            return problemOfText(std::string("order x0 x1\nvectors rows 16\n") + block, integers(9, 20, DType::I32));
        };
        QCOMPARE(problem("block 32"), std::string());
        QCOMPARE(problem("block 24"), std::string("a block is a multiple of the lanes"));
        QCOMPARE(problem("block -16"), std::string("a block is a multiple of the lanes"));
        // Conditions that change within the row: each piece of the loop is cut to the block.
        for (const auto& [width, parts] : {std::pair{80, 9}, std::pair{53, 6}}) {
            const Kernel kernel = beside(40, width, 3);
            LoopPlan plan = choosePlan(kernel, kCpuTarget);
            plan.block = 48;
            const LoweredKernel lowered = lowerLoops(kernel, plan, kCpuTarget);
            QCOMPARE(lowered.nests[0].range, SymInt(parts));
            const QString own = QString::fromStdString(text(lowered.nests[0]));
            QCOMPARE(own.count("vector 16 for x1"), 3);
            QVERIFY2(!own.contains("Where"), qPrintable(own));
            const QString wrong = difference(kernel, plan, kCpuTarget, 400, 1, 0);
            QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        }
    }
    void narrowIndices() {
        const auto problem = [](int bits, const Kernel& kernel) {
            LoopPlan plan = choosePlan(kernel, kCpuTarget);
            plan.indexBits = bits;
            return problemOf(plan, kernel, kCpuTarget);
        };
        const std::string wide = "an index may need more than 32 bits";
        for (const int bits : {32, 64}) QCOMPARE(problem(bits, transpose(1 << 15, 1 << 15)), std::string());
        QCOMPARE(problem(48, transpose(9, 9)), std::string("indices have 32 or 64 bits"));
        QCOMPARE(problem(32, transpose(1 << 15, (1 << 15) + 1)), wide);
        QCOMPARE(problem(32, softmax(1 << 20, 1 << 11)), wide);
        QCOMPARE(problem(32, softmax(9, 40)), std::string());
        QCOMPARE(problem(32, bags(7, 5)), wide);  // from data, which nothing bounds
        QCOMPARE(problem(32, gather(1 << 20)), std::string());
        Kernel sized = gelu(1);
        sized.sizes = {"s0"};
        sized.outer[0].size = SymInt(Expr::symbol("s0"));
        QCOMPARE(problem(32, sized), wide);
        // Few rows, of which each part of the inner loop has states.
        LoopPlan parts = choosePlan(columnSums(1 << 12, 1 << 18), kCpuTarget);
        parts.indexBits = 32;
        QCOMPARE(problemOf(parts, columnSums(1 << 12, 1 << 18), kCpuTarget), std::string());
        parts.split = 1 << 13;
        QCOMPARE(problemOf(parts, columnSums(1 << 12, 1 << 18), kCpuTarget), wide);

        const Kernel kernel = picked(9, 40, "squares");
        LoopPlan plan = choosePlan(kernel, kCpuTarget);
        plan.indexBits = 32;
        QCOMPARE(QString::fromStdString(text(lowerLoops(kernel, plan, kCpuTarget).nests[0])),
                 QString("squares(b0: f32!, b1: f32)\n"
                         "  lanes 16\n"
                         "  range 9\n"
                         "  parallel for x2 in 0 .. 9:\n"
                         "    x0 = x2\n"
                         "    let t0: i32 = 40*i32(x0)\n"
                         "    vector 16 for x1 in 0 .. 40:\n"
                         "      b0[t0 + i32(x1) : 1_i32] = "
                         "b1[t0 + i32(checked_index(remainder(ramp(x1)*ramp(x1), 40), 40))]\n"));
        TargetInfo gpu = kCpuTarget;
        gpu.loops.indexBits = 32;
        QCOMPARE(choosePlan(kernel, gpu).indexBits, 32);
        QCOMPARE(choosePlan(bags(7, 5), gpu).indexBits, 64);
        QCOMPARE(choosePlan(kernel, kCpuTarget).indexBits, 64);
    }
    /// Each step reads where all before it have led: the time would double with each if one of them were walked twice.
    void narrowSearches() {
        Kernel kernel = gelu(64);
        kernel.buffers.push_back({DType::F32, false});
        Expr at = Expr::integer(0);
        for (int step = 0; step < 60; ++step) {
            const Expr less =
                compare(ExprKind::Lt, Expr::load("b2", at, DType::F32), Expr::load("b1", Expr::axis(0), DType::F32));
            at = Expr::where(less, Expr::make(ExprKind::Add, {at, Expr::integer(1)}), at);
        }
        kernel.stores[0].value = Expr::load("b2", at, DType::F32);
        LoopPlan plan = choosePlan(kernel, kCpuTarget);
        plan.indexBits = 32;
        QCOMPARE(problemOf(plan, kernel, kCpuTarget), std::string());
        const QString own = QString::fromStdString(text(lowerLoops(kernel, plan, kCpuTarget).nests[0]));
        QCOMPARE(own.count("b2["), 61);
        QVERIFY2(own.contains("i32x16"), qPrintable(own));
    }
    void additions() {
        const Kernel kernel = scatterAdded(9, 4, 20);
        TargetInfo gpu = kCpuTarget;
        gpu.loops.atomics = true;
        const LoopPlan atomic = choosePlan(kernel, gpu);
        QVERIFY(atomic.atomic);
        QCOMPARE(problemOf(atomic, kernel, gpu), std::string());
        QCOMPARE(problemOf(atomic, kernel, kCpuTarget), std::string("threads add at once on GPUs only"));
        QCOMPARE(lowerLoops(kernel, atomic, gpu).nests[0].range, SymInt(9));
        LoopPlan plan = choosePlan(kernel, kCpuTarget);
        QCOMPARE(lowerLoops(kernel, plan, kCpuTarget).nests[0].range, SymInt(1));
        plan.tiled = 0;
        QCOMPARE(problemOf(plan, kernel, kCpuTarget), std::string("what adds is not tiled"));
        Kernel inner = kernel;
        inner.stores[0].inner = {inner.outer.back()};
        inner.outer.pop_back();
        plan = choosePlan(inner, kCpuTarget);
        plan.split = 2;
        QCOMPARE(problemOf(plan, inner, kCpuTarget), std::string("a split kernel that adds is atomic"));
        QCOMPARE(problemOf(atomic, transpose(3, 3), gpu), std::string("only kernels that add are atomic"));
        Kernel puts = kernel;
        puts.stores[0].adds = false;
        QVERIFY(structureKey(puts) != structureKey(kernel));
    }
    void differentLengthsAreNotLanes() {
        const Kernel kernel = bags(7, 1);
        auto plan = parsePlan("order x1 x0\nvectors rows 16\nloop r0\n");
        QVERIFY(bool(plan));
        QCOMPARE(problemOf(*plan, kernel, kCpuTarget), std::string("vectors over rows need reductions of one length"));
    }

    void nestsDoWhatKernelsMean() {
        for (const KernelSample& sample : kernelSamples())
            for (const int64_t chunk : {0, 1, 5, 16}) {
                const QString wrong = difference(sample.kernel, choosePlan(sample.kernel, kCpuTarget), kCpuTarget,
                                                 sample.elements, 1, chunk);
                QVERIFY2(wrong.isEmpty(), qPrintable(sample.name + (": " + wrong)));
            }
    }
    void anyLegalPlanDoes() {
        const auto seed = static_cast<uint32_t>(qEnvironmentVariableIntValue("CUTAWAY_SEED"));
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        const std::vector<KernelSample> all = kernelSamples();
        int legal = 0;
        for (int round = 0; legal < std::max(2000, qEnvironmentVariableIntValue("CUTAWAY_SEEDS")); ++round) {
            const KernelSample& sample = all[static_cast<size_t>(round) % all.size()];
            const LoopPlan plan = randomPlan(sample.kernel, random);
            if (!problemOf(plan, sample.kernel, kCpuTarget).empty()) continue;
            ++legal;
            const QString wrong = difference(sample.kernel, plan, kCpuTarget, sample.elements, random(),
                                             static_cast<int64_t>(random() % 20));
            QVERIFY2(wrong.isEmpty(), qPrintable(QStringLiteral("seed %1, %2: %3").arg(seed).arg(sample.name, wrong)));
            const auto parsed = parsePlan(text(plan));
            QVERIFY(parsed && parsed->sameChoices(plan));
        }
    }
    /// Threads take parts; which ones each takes changes no bit.
    /// Rows of the cache's size whose second inner loop computes for long.
    void rowsAhead() {
        const auto prefetch = [](const Kernel& kernel) { return choosePlan(kernel, kCpuTarget).prefetch; };
        QCOMPARE(prefetch(softmax(9, 1 << 10)), 1);
        QCOMPARE(prefetch(softmax(999, 1 << 15)), 1);
        QCOMPARE(prefetch(softmax(9, 1000)), -1);
        QCOMPARE(prefetch(softmax(999, (1 << 15) + 1)), -1);
        QCOMPARE(prefetch(rowSumsAdded(9, 5, 2048)), -1);  // one inner loop
        const Kernel kernel = softmax(9, 2048);
        const LoopPlan plan = choosePlan(kernel, kCpuTarget);
        const QString own = QString::fromStdString(text(lowerLoops(kernel, plan, kCpuTarget).nests[0]));
        const qsizetype inner = own.indexOf("exp(");
        QVERIFY2(own.lastIndexOf("prefetch b1[t", inner) > 0 && own.lastIndexOf("prefetch b0[t", inner) > 0,
                 qPrintable(own));
        QCOMPARE(own.count("prefetch"), 2);
        QVERIFY(own.contains("+ 2048]\n") && own.contains("] to write\n"));
        QCOMPARE(problemOfText("order x0\nvectors inner 16\nloop r0\nloop r1\nloop s0\nprefetch 0\n", kernel),
                 std::string("prefetch names an inner loop that is not the first"));
        QCOMPARE(problemOfText("order x0\nvectors inner 16\nloop r0\nloop r1\nloop s0\nprefetch 3\n", kernel),
                 std::string("prefetch names an inner loop that is not the first"));
        QCOMPARE(problemOfText("order x0\nvectors rows 16\nloop r0\nloop r1\nloop s0\nprefetch 1\n", kernel),
                 std::string("prefetch needs several rows, vectors inner, and no split"));
    }
    void bitsDoNotDependOnThreads() {
        const Kernel kernel = softmax(2, 1 << 12);
        auto plan = choosePlan(kernel, kCpuTarget);
        plan.cached.clear();
        plan.prefetch = -1;
        plan.split = 5;
        std::vector<std::vector<char>> first;
        for (const int64_t chunk : {0, 1, 2, 3}) {
            Memory memory(kernel, size_t{2} << 12, 3);
            interpretNests(lowerLoops(kernel, plan, kCpuTarget), memory.pointers, {}, chunk);
            if (first.empty()) first = memory.bytes;
            QVERIFY(memory.bytes == first);
        }
    }
    void faultsAreOfActiveLanes() {
        // Of 17 indices the last is out of range; the 15 lanes behind it are not elements.
        Kernel kernel;
        kernel.name = "gather";
        kernel.buffers = {{DType::F32, true}, {DType::F32, false}, {DType::I64, false}};
        kernel.outer = {{0, 17}};
        const Expr index = Expr::call("checked_index", {load(2, x(0), DType::I64), num(40)}, DType::I64);
        kernel.stores = {{0, {}, x(0), load(1, index)}};
        Memory memory(kernel, 64, 1);
        auto* offsets = static_cast<int64_t*>(memory.pointers[2]);
        for (int i = 0; i < 64; ++i) offsets[i] = i < 16 ? i : i == 16 ? 40 : -1;
        const LoweredKernel lowered = lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget);
        QCOMPARE(interpretNests(lowered, memory.pointers, {}), KernelFault::IndexOutOfRange);
        offsets[16] = 39;
        QCOMPARE(interpretNests(lowered, memory.pointers, {}), KernelFault::None);
        QCOMPARE(interpretKernel(kernel, memory.pointers, {}), KernelFault::None);
    }
    /// A sum over pieces: lanes are joined behind the last of them.
    void sumOverPieces() {
        Kernel kernel = beside(5, 20, 3);
        const Expr value = kernel.stores[0].value;
        kernel.outer = {{0, 3}};
        kernel.stores = {{0, {}, x(0), makeReduce(static_cast<int>(ReduceKind::Sum), {{1, 28}}, value)}};
        const QString wrong = difference(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget, 100, 1, 0);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
    }
    /// After the split no piece has a condition or a gather.
    void guardsAreSplit() {
        const Kernel kernel = beside(20, 33, 4);
        std::vector<LoopStep> steps;
        lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget, &steps);
        const QString split = QString::fromStdString(steps[1].text);
        QCOMPARE(split.count("vector 16 for x1 in "), 3);
        QVERIFY2(!split.contains("Where"), qPrintable(split));
        QVERIFY(split.contains("for x1 in 20 .. 53:"));
    }
    /// Padding of an axis that is not the vector's: each load is along memory, or none.
    void windowsArePlainLoads() {
        const Kernel kernel = windows(5, 64);
        std::vector<LoopStep> steps;
        lowerLoops(kernel, choosePlan(kernel, kCpuTarget), kCpuTarget, &steps);
        const QString vectors = QString::fromStdString(steps[2].text);
        QVERIFY2(vectors.contains("for x1 in 0 .. 64") && !vectors.contains("ramp("), qPrintable(vectors));
        QVERIFY2(QString::fromStdString(steps.back().text).contains(" : Where("), qPrintable(vectors));
    }
    /// Windows along the vector's axis: all but those that reach over an edge are loads in the step of the windows.
    void windowsAcrossAreSplit() {
        std::vector<LoopStep> steps;
        lowerLoops(pooled(5, 80, 2), choosePlan(pooled(5, 80, 2), kCpuTarget), kCpuTarget, &steps);
        const QString split = QString::fromStdString(steps[1].text);
        QVERIFY2(split.contains("for x1 in 0 .. 1:") && split.contains("for x1 in 1 .. 40:"), qPrintable(split));
        QCOMPARE(split.count("Where"), split.section("for x1 in 1 .. 40:", 0, 0).count("Where"));
        lowerLoops(pooled(5, 80, 1), choosePlan(pooled(5, 80, 1), kCpuTarget), kCpuTarget, &(steps = {}));
        for (const char* piece : {"for x1 in 0 .. 1:", "for x1 in 1 .. 79:", "for x1 in 79 .. 80:"})
            QVERIFY2(steps[1].text.find(piece) != std::string::npos, steps[1].text.c_str());
    }
    /// What a kernel reads of a table is what its indices and the lengths of its bags name, however large the table.
    void elementsThatAreRead() {
        const auto read = [](const Kernel& kernel) {
            return elementsRead(kernel, [](const SymInt& size) { return size.isInt() ? size.value() : 1000; });
        };
        QCOMPARE(read(gather(1000)), (std::vector<int64_t>{0, 1000, 1000}));
        QCOMPARE(read(transpose(30, 40)), (std::vector<int64_t>{0, 1200}));
        QCOMPARE(read(windows(5, 64)), (std::vector<int64_t>{0, 3 * 5 * 64}));
        QCOMPARE(read(rowSumsAdded(5, 40, 7)), (std::vector<int64_t>{0, 200, 35}));
        Kernel kernel = bags(7, 16);
        QCOMPARE(read(kernel)[1], std::numeric_limits<int64_t>::max());  // of no length that is known
        const Expr sum = kernel.stores[0].value;
        const Expr length = Expr::call("checked_index", {sum->operands[2], num(101)}, DType::I64);
        kernel.stores[0].value = makeReduce(static_cast<int>(ReduceKind::Sum), {{2, SymInt(length)}}, sum->operands[0]);
        QCOMPARE(read(kernel), (std::vector<int64_t>{0, 101 * 16, 2 * 7}));
    }
    /// Indices that follow from the column are known: straight ones become loads, stairs cost a division by their
    /// width.
    void indicesThatAreKnown() {
        const auto guarded = [](const char* how) {
            std::vector<LoopStep> steps;
            lowerLoops(picked(5, 64, how), choosePlan(picked(5, 64, how), kCpuTarget), kCpuTarget, &steps);
            return QString::fromStdString(steps[1].text);
        };
        const QString roll = guarded("roll"), reflect = guarded("reflect"), stairs = guarded("enlarge");
        QVERIFY2(roll.contains("for x1 in 0 .. 59:") && roll.contains("for x1 in 59 .. 64:"), qPrintable(roll));
        QVERIFY2(reflect.contains("for x1 in 0 .. 3:") && reflect.contains("for x1 in 3 .. 64:"), qPrintable(reflect));
        for (const QString& text : {roll, reflect, stairs}) QVERIFY2(!text.contains("checked_index"), qPrintable(text));
        QVERIFY2(stairs.contains("for x1 in 0 .. 64:") && stairs.contains("x1//2"), qPrintable(stairs));
        QVERIFY(guarded("squares").contains("checked_index"));
    }
    /// Where an index is out of range, the kernel says so.
    void indicesOutOfRangeAreLeft() {
        const Expr index = Expr::call("checked_index", {x(1), num(20)}, DType::I64);
        QVERIFY(!indexPieces(index, 1, 0, 21, 6));
        QCOMPARE(indexPieces(index, 1, 0, 20, 6)->size(), size_t(1));
        QVERIFY(!indexPieces(index + x(2), 1, 0, 20, 6));
    }
    void stepsAreShown() {
        std::vector<LoopStep> steps;
        lowerLoops(softmax(9, 40), choosePlan(softmax(9, 40), kCpuTarget), kCpuTarget, &steps);
        QStringList names;
        for (const LoopStep& step : steps) names += QString::fromStdString(step.name);
        QCOMPARE(names, (QStringList{"build", "guards", "vectorise", "unroll_jam", "accumulators", "reductions",
                                     "divisions", "share"}));
        QVERIFY(steps[0].text.find("accumulate sum t2 with") != std::string::npos);
        QVERIFY(steps[2].text.find("vector 16 for x3 in 0 .. 40:") != std::string::npos);
        QVERIFY(steps[5].text.find("accumulate") == std::string::npos);
    }
};

CUTAWAY_SUITE(LoopsTest)
#include "loops_test.moc"
