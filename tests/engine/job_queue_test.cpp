// The engine's queue: order, replacement by tag, cancellation, and that it ends cleanly whatever is in it.
#include <QtTest>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <variant>

#include "cutaway/jobs.h"
#include "engine/support/check.h"
#include "engine/support/out_of_memory.h"
#include "tests/support/suites.h"

using namespace cutaway;

class JobQueueTest : public QObject {
    Q_OBJECT

    /// A job that says that it runs, then waits to be cancelled.
    static std::function<void(const Progress&)> untilCancelled(std::atomic<bool>& started,
                                                               std::atomic<bool>& cancelled) {
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
    /// A job that does not look whether it is cancelled keeps its thread, and only that.
    void aJobThatHangsIsLeftBehind() {
        std::atomic<bool> started = false, over = false;
        std::atomic<std::thread::id> first{};
        JobQueue queue;
        const auto hung = queue.post("hung", [&](const Progress&) {
            first = std::this_thread::get_id();
            started = true;
            await(over);
        });
        await(started);
        bool later = false;
        queue.post("later", [&](const Progress&) { later = std::this_thread::get_id() != first.load(); });
        QVERIFY(!queue.leaveBehind(CancelToken()));
        QVERIFY(queue.leaveBehind(*hung));
        QVERIFY(!queue.leaveBehind(*hung));
        queue.drain();
        QVERIFY(later);
        QVERIFY(!endAllJobs(std::chrono::milliseconds(20)));
        over = true;
        QVERIFY(endAllJobs(std::chrono::seconds(60)));
        bool last = false;
        queue.post("last", [&](const Progress&) { last = true; });
        queue.drain();
        QVERIFY(last);
    }
    void allJobsOfAProgramAreEnded() {
        std::atomic<bool> started = false, cancelled = false;
        JobQueue one, other;
        one.post("one", untilCancelled(started, cancelled));
        await(started);
        QVERIFY(endAllJobs(std::chrono::seconds(60)));
        QVERIFY(cancelled);
    }
    void whatAJobThrowsIsToldInWords_data() {
        QTest::addColumn<std::function<void()>>("raise");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, auto exception, ErrorCode code, const char* says) {
            QTest::newRow(name) << std::function<void()>([=] { throw exception; }) << static_cast<int>(code)
                                << QString(says);
        };
        row("check", InternalError("sizes agree"), ErrorCode::Internal, "sizes agree");
        row("allocation", OutOfMemory(size_t{3} << 30), ErrorCode::Limit, "out of memory: 3.0 GiB could not be had");
        row("bad_alloc", std::bad_alloc(), ErrorCode::Limit, "out of memory");
        row("length_error", std::length_error("vector::reserve"), ErrorCode::Limit, "a size is larger than any memory");
        row("system_error", std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)),
            ErrorCode::ToolFailed, "Resource temporarily unavailable");
        row("runtime_error", std::runtime_error("on purpose"), ErrorCode::Internal, "on purpose");
        row("out_of_range", std::out_of_range("map::at"), ErrorCode::Internal, "map::at");
        row("bad_variant_access", std::bad_variant_access(), ErrorCode::Internal, "variant");
        row("bad_optional_access", std::bad_optional_access(), ErrorCode::Internal, "optional");
        row("bad_function_call", std::bad_function_call(), ErrorCode::Internal, "function");
        row("no standard exception", 42, ErrorCode::Internal, "an unexpected exception");
    }
    void whatAJobThrowsIsToldInWords() {
        QFETCH(std::function<void()>, raise);
        QFETCH(int, code);
        QFETCH(QString, says);
        JobQueue queue;
        std::optional<Error> told;
        bool ran = false;
        queue.post(
            "bad", [&](const Progress&) { raise(); }, {}, [&](const Error& error) { told = error; });
        queue.post("good", [&](const Progress&) { ran = true; });
        queue.drain();
        QVERIFY(told && ran);
        QCOMPARE(static_cast<int>(told->code), code);
        QVERIFY2(QString::fromStdString(told->message).contains(says), told->message.c_str());
    }
    void theQueueOutlivesAJobThatNobodyAnswersFor() {
        JobQueue queue;
        bool ran = false;
        queue.post("unheard", [](const Progress&) { throw std::runtime_error("on purpose"); });
        queue.post(
            "worse", [](const Progress&) { throw std::runtime_error("on purpose"); }, {},
            [](const Error&) { throw std::bad_alloc(); });
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
        queue.post(
            "a", [](const Progress& progress) { progress.say(0.5, "half"); },
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

CUTAWAY_SUITE(JobQueueTest)
#include "job_queue_test.moc"
