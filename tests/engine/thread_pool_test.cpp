// The parallel range of a kernel: every element once, whatever the range, its unit, the parts and the threads.
#include "engine/runtime/cpu/thread_pool.h"

#include <QtTest>
#include <atomic>

#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class ThreadPoolTest : public QObject {
    Q_OBJECT

  private slots:
    void everyElementOnce_data() {
        QTest::addColumn<int>("threads");
        for (int threads : {1, 2, 3, 8}) QTest::addRow("%d threads", threads) << threads;
    }
    void everyElementOnce() {
        QFETCH(int, threads);
        const ThreadPool pool(threads);
        QCOMPARE(pool.size(), threads);
        for (int64_t range : {0, 1, 2, 5, 7, 63, 64, 65, 127, 128, 129, 1000, 4097})
            for (int64_t unit : {1, 3, 64})
                for (int parts = 1; parts <= 10; ++parts) {
                    std::vector<std::atomic<int>> seen(static_cast<size_t>(range));
                    std::atomic<bool> whole = true;
                    pool.run(range, unit, parts, [&](int64_t begin, int64_t end) {
                        if (begin >= end || begin % unit != 0 || (end % unit != 0 && end != range)) whole = false;
                        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
                    });
                    const QString where = QString("range %1, unit %2, parts %3").arg(range).arg(unit).arg(parts);
                    QVERIFY2(whole, qPrintable(where));
                    QVERIFY2(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }),
                             qPrintable(where));
                }
    }
    void onlyWorthwhileWorkWakesThreads() {
        const ThreadPool pool(4);
        QCOMPARE(pool.threadsFor(0), 1);
        QCOMPARE(pool.threadsFor(5'000), 1);
        QCOMPARE(pool.threadsFor(1'000'000'000), 4);
    }

    void threadsDoNotChangeResults_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("elements") << R"(def forward(x: "f32[1000003]", y: "f32[1000003]"):
    a = aten.mul.Tensor(x, y)
    b = aten.exp.default(a)
    return (b,))";
        QTest::newRow("rows, one more than threads divide") << R"(def forward(x: "f32[7, 163840]"):
    s = aten.sum.dim_IntList(x, [1])
    return (s,))";
        QTest::newRow("softmax") << R"(def forward(x: "f32[513, 1031]"):
    m = aten.amax.default(x, [1], True)
    s = aten.sub.Tensor(x, m)
    e = aten.exp.default(s)
    t = aten.sum.dim_IntList(e, [1], True)
    d = aten.div.Tensor(e, t)
    return (d,))";
    }
    void threadsDoNotChangeResults() {
        QFETCH(QString, text);
        const auto module = moduleOf(text.toStdString());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto inputs = drawnInputs(*module, 3);
        const auto expected = runCpu(*program, inputs, {.threads = 1});
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        for (int threads : {2, 3, 5}) {
            const auto actual = runCpu(*program, inputs, {.threads = threads});
            QVERIFY2(actual.has_value(), actual ? "" : actual.error().text().c_str());
            for (size_t i = 0; i < expected->outputs.size(); ++i)
                QVERIFY2(compare(actual->outputs[i], expected->outputs[i], {0, 0}).within,
                         qPrintable(QString("%1 threads, output %2").arg(threads).arg(i)));
        }
    }
};

CUTAWAY_SUITE(ThreadPoolTest)
#include "thread_pool_test.moc"
