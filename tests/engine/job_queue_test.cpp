// The engine's queue: order, replacement by tag, cancellation, and that it ends cleanly whatever is in it.
#include <QtTest>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "cutaway/jobs.h"

using namespace cutaway;

class JobQueueTest : public QObject {
    Q_OBJECT

    /// A job that says that it runs, then waits to be cancelled.
    static std::function<void(const Progress&)> untilCancelled(std::atomic<bool>& started, std::atomic<bool>& cancelled) {
        return [&](const Progress& progress) {
            started = true;
            while (!progress.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            cancelled = true;
        };
    }
    static void await(const std::atomic<bool>& flag) {
        while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

  private slots:
    void runsInOrderOnOneThread() {
        JobQueue queue;
        std::string order;
        std::vector<std::thread::id> threads;
        for (const char* tag : {"a", "b", "c"})
            queue.post(tag, [&, tag](const Progress&) {
                order += tag;
                threads.push_back(std::this_thread::get_id());
            });
        queue.drain();
        QCOMPARE(order, std::string("abc"));
        QVERIFY(threads[0] == threads[2] && threads[0] != std::this_thread::get_id());
    }
    void newReplacesWaitingOfItsTag() {
        JobQueue queue;
        std::atomic<bool> started = false, cancelled = false;
        const auto blocker = queue.post("block", untilCancelled(started, cancelled));
        await(started);
        std::string order;
        const auto first = queue.post("diff", [&](const Progress&) { order += "1"; });
        queue.post("text", [&](const Progress&) { order += "t"; });
        queue.post("diff", [&](const Progress&) { order += "2"; });
        QVERIFY(first->cancelled());
        QVERIFY(!blocker->cancelled());
        blocker->cancel();
        queue.drain();
        QCOMPARE(order, std::string("t2"));
    }
    void newStopsRunningOfItsTag() {
        JobQueue queue;
        std::atomic<bool> started = false, cancelled = false;
        queue.post("diff", untilCancelled(started, cancelled));
        await(started);
        bool second = false;
        queue.post("diff", [&](const Progress& progress) { second = !progress.cancelled(); });
        queue.drain();
        QVERIFY(cancelled && second);
    }
    void cancelledBeforeItRunsNeverRuns() {
        JobQueue queue;
        std::atomic<bool> started = false, cancelled = false;
        const auto blocker = queue.post("block", untilCancelled(started, cancelled));
        await(started);
        bool ran = false;
        queue.post("later", [&](const Progress&) { ran = true; })->cancel();
        blocker->cancel();
        queue.drain();
        QVERIFY(!ran);
    }
    void cancelAllDropsAndStops() {
        JobQueue queue;
        std::atomic<bool> started = false, cancelled = false;
        queue.post("block", untilCancelled(started, cancelled));
        await(started);
        bool ran = false;
        queue.post("later", [&](const Progress&) { ran = true; });
        queue.cancelAll();
        queue.drain();
        QVERIFY(cancelled && !ran);
    }
    void destructionCancelsAndJoins() {
        std::atomic<bool> started = false, cancelled = false, dropped = true;
        {
            JobQueue queue;
            queue.post("block", untilCancelled(started, cancelled));
            await(started);
            queue.post("later", [&](const Progress&) { dropped = false; });
        }
        QVERIFY(cancelled && dropped);
    }
    void aJobThatThrowsIsOver() {
        JobQueue queue;
        bool ran = false;
        queue.post("bad", [](const Progress&) { throw std::runtime_error("on purpose"); });
        queue.post("good", [&](const Progress&) { ran = true; });
        queue.drain();
        QVERIFY(ran);
    }
    void jobsMayPostJobs() {
        JobQueue queue;
        std::string order;
        queue.post("a", [&](const Progress&) {
            order += "a";
            queue.post("b", [&](const Progress&) { order += "b"; });
        });
        queue.drain();
        QCOMPARE(order, std::string("ab"));
    }
    void reportsProgress() {
        JobQueue queue;
        std::string said;
        queue.post("a", [](const Progress& progress) { progress.say(0.5, "half"); },
                   [&](double fraction, const std::string& what) { said = what + std::to_string(fraction); });
        queue.drain();
        QCOMPARE(said, "half" + std::to_string(0.5));
    }
    void drainOfNothingReturns() {
        JobQueue queue;
        queue.drain();
        QVERIFY(true);
    }
};

QTEST_GUILESS_MAIN(JobQueueTest)
#include "job_queue_test.moc"
