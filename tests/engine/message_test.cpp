// What two processes give each other: written, read where it lies, or left there until it is asked for. The writer is
// a child of the test, so that its memory is another one.
#include "engine/runtime/message.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <numeric>

#include "engine/support/process_memory.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr int64_t kMany = 100'000;  // elements of a block that is large

Tensor counting(int64_t count, int64_t from) {
    Tensor tensor = Tensor::empty(DType::I64, {count});
    std::iota(tensor.as<int64_t>(), tensor.as<int64_t>() + count, from);
    return tensor;
}
bool counts(const Tensor& tensor, int64_t from) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (toInt(tensor.item(i)) != from + i) return false;
    return true;
}

/// A child that has written a message of tensors and sleeps; it is killed at the end.
class Writer {
  public:
    Writer(SharedMemory& memory, const std::vector<Tensor>& tensors) {
        int done[2];
        if (::pipe(done) != 0) qFatal("no pipe");
        m_process = ::fork();
        if (m_process == 0) {
            const bool written = writeMessage(memory, 0, "results", tensors, 1, {}, {.addresses = true}).has_value();
            // What came after the fork is this process's own.
            for (const Tensor& tensor : tensors)
                if (tensor.numel() >= kMany) Tensor(tensor).as<int64_t>()[0] = -1;
            if (::write(done[1], written ? "y" : "n", 1) != 1) ::_exit(1);
            while (true) ::pause();
        }
        char answer = 'n';
        if (::read(done[0], &answer, 1) != 1 || answer != 'y') qFatal("the child has written nothing");
        ::close(done[0]);
        ::close(done[1]);
    }
    ~Writer() { end(); }
    void end() {
        if (m_process == 0) return;
        ::kill(m_process, SIGKILL);
        ::waitpid(m_process, nullptr, 0);
        m_process = 0;
    }
    int process() const { return m_process; }

  private:
    int m_process = 0;
};

SharedMemory memoryFor(const char* what) {
    auto made = SharedMemory::create(what);
    if (!made) qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

}  // namespace

class MessageTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        if (!mayReadProcess(::getpid())) QSKIP("this system lets no process read another one's memory");
    }

    void largeBlocksAreReadWhereTheyLie() {
        SharedMemory memory = memoryFor("the results");
        const Tensor large = counting(kMany, 0), view(large.storage(), DType::I64, {kMany / 2}, {2}, 1);
        Writer writer(memory, {large, Tensor(), counting(3, 7), view});
        QVERIFY(mayReadProcess(writer.process()));
        const auto message = readMessage(memory, 0, {.process = writer.process()});
        QVERIFY2(message.has_value(), message ? "" : message.error().text().c_str());
        QCOMPARE(message->text, "results");
        QVERIFY(message->stayed);
        QVERIFY(message->bytes.size() < 8192);
        QCOMPARE(message->tensors.size(), size_t{4});
        // The child's number, not this process's: it was read there.
        QCOMPARE(toInt(message->tensors[0].item(0)), int64_t{-1});
        QCOMPARE(toInt(message->tensors[0].item(kMany - 1)), kMany - 1);
        QVERIFY(!message->tensors[1].defined());
        QVERIFY(counts(message->tensors[2], 7));
        QCOMPARE(message->tensors[3].storage(), message->tensors[0].storage());
        QCOMPARE(toInt(message->tensors[3].item(5)), int64_t{11});
        // It is the reader's own, and may be written.
        QVERIFY(!message->tensors[0].storage()->readOnly());
    }

    /// Whoever does not know the writer cannot follow its addresses.
    void addressesOfNobodyAreDamage() {
        SharedMemory memory = memoryFor("the results");
        Writer writer(memory, {counting(kMany, 0)});
        const auto message = readMessage(memory, 0);
        QVERIFY(!message);
        QVERIFY(message.error().message.find("is damaged") != std::string::npos);
    }

    void aWriterThatHasEndedIsAnError() {
        SharedMemory memory = memoryFor("the results");
        Writer writer(memory, {counting(kMany, 0)});
        const int process = writer.process();
        writer.end();
        QVERIFY(!mayReadProcess(process));
        const auto message = readMessage(memory, 0, {.process = process});
        QVERIFY(!message);
        QCOMPARE(message.error().code, ErrorCode::ToolFailed);
        QVERIFY2(message.error().message.find("could not be read: No such process") != std::string::npos,
                 message.error().message.c_str());
        // Nor has a process anything at an address that it does not use.
        std::byte byte{};
        QVERIFY(!readProcess(::getpid(), 8, {&byte, 1}));
    }

    /// Of two tensors the first is left; a third lies in the memory of the second and of the first.
    void whatIsLeftIsReadWhenItIsAskedFor() {
        SharedMemory memory = memoryFor("the results");
        Writer writer(memory, {counting(kMany, 1000), counting(kMany, 5000)});
        const auto left = std::make_shared<RemoteValues>(writer.process());
        const auto leaves = [](size_t tensor) { return tensor == 0; };
        const auto message = readMessage(memory, 0, {writer.process(), leaves, left});
        QVERIFY(message.has_value());
        const std::vector<Tensor>& tensors = message->tensors;
        QVERIFY(left->find(*tensors[0].storage()).has_value());
        QVERIFY(!left->find(*tensors[1].storage()).has_value());
        QCOMPARE(tensors[0].storage()->size(), size_t(8 * kMany));
        QCOMPARE(toInt(tensors[0].item(1)), int64_t{1001});

        // To the process that has it only its address goes, with where the tensor begins.
        SharedMemory request = memoryFor("the inputs");
        const Tensor part(tensors[0].storage(), DType::I64, {10}, {1}, 64);
        QVERIFY(writeMessage(request, 0, "again", {part, tensors[1]}, 1, {}, {.atReader = left.get()}).has_value());
        uint64_t asked = 0;
        ReadOptions options;
        options.own = [&](uint64_t address, size_t) {
            asked = address;
            return std::shared_ptr<const void>();
        };
        QVERIFY(!readMessage(request, 0, options));
        QCOMPARE(asked, *left->find(*tensors[0].storage()) + 64 * 8);

        left->keepOnly(tensors);
        QVERIFY(left->find(*tensors[0].storage()).has_value());
        left->end();
        QVERIFY(!left->find(*tensors[0].storage()).has_value());
        QVERIFY(tensors[0].storage()->load().has_value());  // its bytes are here since
    }

    /// Memory serves the next answer when nobody has the tensors of the last one.
    void memoryOfResultsIsUsedAgain() {
        SharedMemory memory = memoryFor("the results");
        Writer writer(memory, {counting(kMany, 0), counting(kMany, 7)});
        ResultMemory results;
        results.prepare({8 * kMany, 8 * kMany, 80});
        const auto read = [&] {
            const auto message = readMessage(memory, 0, {.process = writer.process(), .memory = &results});
            if (!message) qFatal("%s", message.error().text().c_str());
            return message->tensors;
        };
        const auto at = [](const Tensor& tensor) { return static_cast<const Storage*>(tensor.storage().get()); };
        std::vector<Tensor> first = read();
        const Storage *const one = at(first[0]), *const other = at(first[1]);
        QVERIFY(one != other);
        first[1] = Tensor();
        const std::vector<Tensor> second = read();
        QCOMPARE(at(second[0]), other);
        QVERIFY(at(second[1]) != one && at(second[1]) != other);
        for (const Tensor& tensor : {first[0], second[0]}) QCOMPARE(toInt(tensor.item(5)), int64_t{5});
        QCOMPARE(toInt(second[1].item(5)), int64_t{12});
    }

    void memoryOfResultsIsBounded() {
        constexpr size_t kHalf = size_t{40} << 20;
        ResultMemory results;
        results.prepare({kHalf, kHalf});
        const auto one = results.take(kHalf), other = results.take(kHalf);
        QCOMPARE(one.use_count(), long{2});
        QCOMPARE(other.use_count(), long{1});
        // What an answer has not taken is not held any longer.
        results.endAnswer();
        QCOMPARE(one.use_count(), long{2});
        results.endAnswer();
        QCOMPARE(one.use_count(), long{1});
    }

    void whatIsLeftMayBeGone_data() {
        QTest::addColumn<bool>("killed");
        QTest::newRow("the process has ended") << true;
        QTest::newRow("the process wants its memory for something else") << false;
    }
    void whatIsLeftMayBeGone() {
        QFETCH(const bool, killed);
        SharedMemory memory = memoryFor("the results");
        Writer writer(memory, {counting(kMany, 0)});
        const auto left = std::make_shared<RemoteValues>(writer.process());
        const auto message = readMessage(memory, 0, {writer.process(), [](size_t) { return true; }, left});
        QVERIFY(message.has_value());
        if (killed) writer.end();
        else left->end();
        const auto loaded = message->tensors[0].storage()->load();
        QVERIFY(!loaded);
        QCOMPARE(loaded.error().code, ErrorCode::ToolFailed);
        // Written to another process its bytes would be needed.
        SharedMemory request = memoryFor("the inputs");
        QVERIFY(!writeMessage(request, 0, "again", message->tensors));
    }
};

CUTAWAY_SUITE(MessageTest)
#include "message_test.moc"
