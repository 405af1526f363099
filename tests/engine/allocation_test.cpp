// Opening, compiling and running while the n-th allocation fails, here and in the worker: every time an error in words,
// no crash, no process left, and the same request works afterwards. This program stands in for cutaway-worker, too, so
// that its allocations can be counted. CUTAWAY_ALLOCATIONS=all tries every n up to 2000, not only some.
#include <sys/wait.h>

#include <QtTest>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "cutaway/session.h"
#include "engine/runtime/worker_pool.h"
#include "engine/support/process.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

std::atomic<long> allocationsLeft{-1};  // before the one that fails; negative: none does
std::atomic<bool> goesOnFailing{false};

[[maybe_unused]] bool fails() {  // sanitizers' own functions stay in place
    if (allocationsLeft.load(std::memory_order_relaxed) < 0) return false;
    const long left = allocationsLeft.fetch_sub(1);
    if (left > 0) return false;
    if (goesOnFailing) allocationsLeft = 0;
    errno = ENOMEM;
    return true;
}
void failAt(long number, bool goingOn) {
    goesOnFailing = goingOn;
    allocationsLeft = number - 1;
}
/// Whether an allocation was made to fail.
bool endFailing() {
    const bool struck = goesOnFailing ? allocationsLeft == 0 : allocationsLeft < 0;
    allocationsLeft = -1;
    return struck;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The C library's functions under the names that everything in the process calls; operator new ends here as well.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) { return fails() ? nullptr : __libc_realloc(memory, bytes); }
void* aligned_alloc(size_t unit, size_t bytes) { return fails() ? nullptr : __libc_memalign(unit, bytes); }
int posix_memalign(void** out, size_t unit, size_t bytes) {
    if (fails()) return ENOMEM;
    *out = __libc_memalign(unit, bytes);
    return *out == nullptr ? ENOMEM : 0;
}
}
constexpr bool kCounts = true;
#else
constexpr bool kCounts = false;
#endif

namespace {

// Made before anything fails: what callers allocate is not the session's.
const std::string kModel = CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2";
const CompileRequest kOptions;
const Progress kProgress;
constexpr const char* kWorkerFailsAt = "CUTAWAY_TEST_WORKER_FAILS_AT";
constexpr long kLast = 2000;

long step() { return qEnvironmentVariable("CUTAWAY_ALLOCATIONS") == "all" ? 1 : 97; }

Result<RunId> compiled(Session& session) {
    CT_TRY(const RunId run, session.compile(kOptions, {}, kProgress));
    CT_TRY(const auto steps, session.steps(run));
    if (!steps.empty() && steps.back().state == StepState::Failed)
        return Error{ErrorCode::InvalidInput, steps.back().error, {}, {}};
    return run;
}
Result<RunReport> ran(Session& session, RunId run, Backend backend) {
    RunOptions options;
    options.backend = backend;
    return session.run(run, options, kProgress);
}

int serve(int argc, char** argv) {
    if (const char* number = std::getenv(kWorkerFailsAt)) failAt(std::abs(std::atol(number)), *number == '-');
    return workerMain(argc, argv);
}

}  // namespace

class AllocationTest : public QObject {
    Q_OBJECT

    /// Calls again and again, failing at another allocation each time, until there are fewer than that.
    template <class Call>
    static void sweep(bool goingOn, Call&& call) {
        for (long number = 1; number <= kLast; number += step()) {
            failAt(number, goingOn);
            const auto result = call();
            const bool struck = endFailing();
            const QByteArray where = "allocation " + QByteArray::number(static_cast<qlonglong>(number));
            if (!result) QVERIFY2(!result.error().message.empty(), where.constData());
            QVERIFY2(result || struck, (where + ": " + (result ? "" : result.error().text().c_str())).constData());
            const auto next = call();
            QVERIFY2(next.has_value(), (where + ", then: " + (next ? "" : next.error().text().c_str())).constData());
            if (!struck) return;
        }
    }
    static void sweepWorker(bool goingOn, const std::function<Result<RunReport>()>& call) {
        for (long number = 1; number <= kLast; number += step()) {
            qputenv(kWorkerFailsAt, QByteArray::number(static_cast<qlonglong>(goingOn ? -number : number)));
            endIdleWorkers();  // a new worker reads the variable when it starts
            const auto result = call();
            qunsetenv(kWorkerFailsAt);
            // A library that does not expect allocations to fail ends the worker; the error then names the call that it
            // was at: libraries are set up by the first call that needs them.
            const QByteArray where = "allocation " + QByteArray::number(static_cast<qlonglong>(number));
            const bool died = !result && result.error().message.find("signal") != std::string::npos;
            const bool atCall =
                !result && !result.error().where.empty() && result.error().where != "start of the worker";
            if (!result)
                QVERIFY2(!result.error().message.empty() && (!died || atCall),
                         (where + ": " + result.error().text().c_str()).constData());
        }
        endIdleWorkers();
        const auto next = call();
        QVERIFY2(next.has_value(), next ? "" : next.error().text().c_str());
    }

  private slots:
    void initTestCase() {
        if (!kCounts) QSKIP("sanitizers bring their own allocator");
        qputenv("CUTAWAY_WORKER", QByteArray::fromStdString(programPath()));
    }
    void cleanup() {
        endIdleWorkers();
        QCOMPARE(::waitpid(-1, nullptr, WNOHANG), -1);
        QCOMPARE(errno, ECHILD);
    }
    void opening_data() { modes(); }
    void opening() {
        QFETCH(bool, goingOn);
        Session session;
        sweep(goingOn, [&] { return session.open(kModel, kProgress); });
    }
    void compiling_data() { modes(); }
    void compiling() {
        QFETCH(bool, goingOn);
        Session session;
        QVERIFY(session.open(kModel, kProgress).has_value());
        sweep(goingOn, [&] { return compiled(session); });
    }
    void running_data() {
        QTest::addColumn<bool>("goingOn");
        QTest::addColumn<int>("backend");
        QTest::addColumn<bool>("inWorker");
        for (const bool goingOn : {false, true})
            for (const auto& [backend, name] :
                 {std::pair{Backend::Reference, "reference"}, std::pair{Backend::Cpu, "compiled"}})
                for (const bool inWorker : {false, true})
                    QTest::addRow("%s, %s, %s", name, inWorker ? "worker" : "here",
                                  goingOn ? "from the n-th on" : "the n-th")
                        << goingOn << static_cast<int>(backend) << inWorker;
    }
    void running() {
        QFETCH(bool, goingOn);
        QFETCH(int, backend);
        QFETCH(bool, inWorker);
        Session session;
        QVERIFY(session.open(kModel, kProgress).has_value());
        const auto run = compiled(session);
        QVERIFY(run.has_value());
        const auto call = [&] { return ran(session, *run, static_cast<Backend>(backend)); };
        const auto first = call();
        QVERIFY2(first.has_value(), first ? "" : first.error().text().c_str());
        if (inWorker) sweepWorker(goingOn, call);
        else sweep(goingOn, call);
    }

  private:
    static void modes() {
        QTest::addColumn<bool>("goingOn");
        QTest::newRow("the n-th") << false;
        QTest::newRow("from the n-th on") << true;
    }
};

CUTAWAY_SUITE(AllocationTest)
CUTAWAY_ROLE("serve", serve)
#include "allocation_test.moc"
