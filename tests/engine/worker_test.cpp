// Reference runs in a process of their own: the numbers are those of the interpreter at home, bit by bit, and whatever
// happens to the worker is told in words.
#include <sys/resource.h>
#include <unistd.h>

#include <QtTest>
#include <fstream>
#include <thread>

#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/peak.h"
#include "engine/interpret/specialize.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/module_io.h"
#include "engine/runtime/reference.h"
#include "engine/runtime/worker_pool.h"
#include "engine/support/machine.h"
#include "engine/support/sanitized.h"
#include "engine/support/temp_dir.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/fake_worker.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct Case {
    const char* name;
    const char* text;
};
constexpr Case kCases[] = {
    {"products", R"(def forward(x: "f32[40, 30]", y: "f32[30, 7]"):
    m = aten.mm.default(x, y)
    r = aten.relu.default(m)
    return (r,))"},
    {"inputs with gaps and turned around",
     R"(def forward(x: "f32[4, 8][16, 1]", y: "f32[4, 8][1, 4]", z: "f32[4, 8][0, 1]"):
    a = aten.add.Tensor(x, y)
    b = aten.mul.Tensor(a, z)
    return (b, x, z))"},
    {"dtypes",
     R"(def forward(a: "u8[5]", b: "i8[5]", c: "i16[5]", d: "i32[5]", e: "i64[5]", f: "f16[5]", g: "bf16[5]", h: "f64[5]", i: "b8[5]"):
    p = aten.add.Tensor(a, b)
    q = aten.mul.Tensor(c, d)
    r = aten.add.Tensor(e, f)
    s = aten.mul.Tensor(g, h)
    t = aten.logical_not.default(i)
    return (p, q, r, s, t))"},
    {"complex", R"(def forward(x: "c64[6]", y: "c128[6]"):
    a = aten.mul.Tensor(x, y)
    b = aten.view_as_real.default(a)
    return (a, b))"},
    {"None among the results", R"(def forward(x: "f32[3]"):
    a = aten.neg.default(x)
    return (None, a, None))"},
    {"no input, one number", R"(def forward():
    a = aten.full.default([2, 3], 1.5, dtype=torch.float32, device=device(type='cpu'), pin_memory=False)
    return (a, 3))"},
    {"empty", R"(def forward(x: "f32[0, 3]"):
    a = aten.sum.dim_IntList(x, [0])
    return (a, x))"},
    {"several results", R"(def forward(x: "f32[6, 9]"):
    t = aten.topk.default(x, 3)
    v = t[0]
    i = t[1]
    return (v, i))"},
    {"random numbers", R"(def forward(x: "f32[50]"):
    a = aten.rand_like.default(x)
    b = aten.bernoulli.default(a)
    return (a, b))"},
    {"writes to its input", R"(def forward(x: "f32[4]", y: "f32[4]"):
    a = aten.add_.Tensor(x, y)
    b = aten.mul.Tensor(x, y)
    return (b,))"},
    {"sizes of the inputs", R"(def forward(x: "f32[s0, 4]", y: "f32[s0]"):
    a = aten.sum.dim_IntList(x, [1])
    b = aten.add.Tensor(a, y)
    c = aten.expand.default(b, [2, s0])
    return (c,))"},
    {"sizes of the data", R"(def forward(x: "f32[10]"):
    m = aten.gt.Scalar(x, 0)
    v: "f32[u0]" = aten.masked_select.default(x, m)
    n: "i64[u1, 1]" = aten.nonzero.default(x)
    w: "f32[u0]" = aten.neg.default(v)
    return (w, n))"},
    {"as Python calls it", R"(def forward(x: "f32[2, 6]", y: "f32[3, 4]"):
    a = x.view(3, 4)
    s = a + y
    b = torch.nn.functional.relu(s)
    c = b[:, 0]
    return (c,))"},
};

QString shown(const Result<std::vector<Tensor>>& results) {
    if (!results) return QString::fromStdString(results.error().text());
    QString text;
    for (const Tensor& tensor : *results) {
        if (!tensor.defined()) {
            text += "None\n";
            continue;
        }
        const Tensor packed = tensor.contiguous();
        const QByteArray bytes(static_cast<const char*>(packed.data()), static_cast<qsizetype>(packed.bytes()));
        text += QString::fromStdString(TensorType::contiguous(tensor.dtype(), toSymDims(tensor.sizes())).text()) + " " +
                bytes.toHex(' ') + "\n";
    }
    return text;
}
Result<std::vector<Tensor>> inWorker(const Module& module, const std::vector<Tensor>& inputs) {
    CT_TRY(ReferenceRun run, runReference(module, inputs));
    return std::move(run.outputs);
}

/// Values for the graph's inputs, at the strides it wants.
std::vector<Tensor> inputsFor(const Module& module) {
    const auto placeholders = module.graph().placeholders();
    if (std::all_of(placeholders.begin(), placeholders.end(),
                    [](const Node* node) { return allInts(node->tensor().sizes); }))
        return drawnInputs(module, 5);
    return {Tensor::full(DType::F32, {3, 4}, 0.5), Tensor::full(DType::F32, {3}, 0.25)};
}

}  // namespace

namespace {

long residentPages() {
    long all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
}

}  // namespace

class WorkerTest : public QObject {
    Q_OBJECT

  private slots:
    void boardsSayWhatRuns() {
        StatusPage board;
        QCOMPARE(board.where(), std::string(StatusPage::kNotBegun));
        board.inPass("joint/decompose");
        QCOMPARE(board.where(), std::string("pass joint/decompose"));
        QCOMPARE(board.pass(), std::string("joint/decompose"));
        board.at("pass 3 of 9, decompose");
        QCOMPARE(board.pass(), std::string());
        QVERIFY(!board.lastRewrite());
        board.rewrites(3, LastRewrite{"decompose", "a\trule", 2, "relu", "body", 7});
        const auto last = board.lastRewrite();
        QVERIFY(last && last->pass == "decompose" && last->rule == "a\trule" && last->index == 2);
        QVERIFY(last->node == "relu" && last->body == "body" && last->nodeId == 7);
        board.rewrites(4, LastRewrite{"decompose", std::string(5000, 'r'), 3, "relu", "", 8});
        QVERIFY(!board.lastRewrite() && board.rewrites() == 4);
    }

    void sameNumbers_data() {
        QTest::addColumn<QString>("text");
        for (const Case& test : kCases) QTest::newRow(test.name) << test.text;
    }
    void sameNumbers() {
        QFETCH(QString, text);
        const auto module = moduleOf(text.toStdString());
        const auto inputs = inputsFor(*module);
        const auto expected = interpret(*module, inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        QCOMPARE(shown(inWorker(*module, inputs)), shown(expected));
    }
    void modelsGoOverWhole_data() {
        QTest::addColumn<QString>("file");
        for (const char* file : {"mlp", "tiny_resnet", "tiny_transformer"})
            QTest::newRow(file) << QString(CUTAWAY_SOURCE_DIR "/resources/models/%1.pt2").arg(file);
    }
    void modelsGoOverWhole() {
        QFETCH(QString, file);
        const auto opened = openFile(file.toStdString());
        QVERIFY(opened.has_value());
        const Module& module = *opened->graphs.front().module;
        ByteWriter out;
        std::vector<Tensor> tensors;
        writeModule(out, module, tensors);
        ByteReader in(out.bytes);
        size_t next = 0;
        const auto copy = readModule(in, tensors, next);
        QVERIFY(!in.failed());
        QCOMPARE(next, tensors.size());
        auto left = module.graph().nodes().begin(), right = copy->graph().nodes().begin();
        for (; left != Graph::Iterator() && right != Graph::Iterator(); ++left, ++right) {
            QCOMPARE((*right).name(), (*left).name());
            QVERIFY((*left).isOutput() || sameType((*left).type(), (*right).type()));
        }
        QCOMPARE(copy->graph().size(), module.graph().size());
    }
    void aDamagedModuleIsAnError() {
        const auto module = moduleOf(kCases[0].text);
        ByteWriter out;
        std::vector<Tensor> tensors;
        writeModule(out, *module, tensors);
        for (size_t size = 0; size < out.bytes.size(); size += 7) {
            ByteReader in(std::string_view(out.bytes).substr(0, size));
            size_t next = 0;
            static_cast<void>(readModule(in, tensors, next));
            QVERIFY2(in.failed(), qPrintable(QString("cut to %1 bytes").arg(size)));
        }
    }
    void sharedMemoryStaysShared() {
        // Two views of one storage: what is written through one is read through the other.
        const auto module = moduleOf(R"(def forward(x: "f32[4]", y: "f32[4]"):
    a = aten.add_.Scalar(x, 1)
    b = aten.mul.Tensor(y, 2)
    return (b,))");
        const Tensor base = Tensor::full(DType::F32, {6}, 1.0);
        const std::vector<Tensor> inputs = {base.view({4}, {1}, 0), base.view({4}, {1}, 2)};
        QCOMPARE(shown(inWorker(*module, inputs)), shown(interpret(*module, inputs)));
    }
    void everyRunIsTimed() {
        const auto module = moduleOf(kCases[0].text);
        const auto run = runReference(*module, inputsFor(*module), {.repeat = 5});
        QVERIFY(run.has_value());
        QCOMPARE(run->milliseconds.size(), size_t{5});
    }

    void errorsNameTheNode() {
        const auto module = moduleOf(R"(def forward(x: "i64[2]"):
    w = aten.full.default([3, 4], 1, dtype=torch.float32, device=device(type='cpu'), pin_memory=False)
    e = aten.embedding.default(w, x)
    return (e,))");
        const auto run = runReference(*module, {Tensor::full(DType::I64, {2}, int64_t{7})});
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().where, std::string("e"));
    }
    void outOfMemoryNamesNodeAndSize() {
        if (kSanitized) QSKIP("sanitizers reserve more address space than the limit lets them");
        const auto module = moduleOf(R"(def forward(x: "f32[1]"):
    e = aten.expand.default(x, [1000, 250000])
    big = aten.add.Tensor(e, 1)
    s = aten.sum.default(big)
    return (s,))");
        const auto run = runReference(*module, {Tensor::full(DType::F32, {1}, 1.0)}, {.memoryBytes = 1'000'000'000});
        QVERIFY(!run.has_value());
        QCOMPARE(static_cast<int>(run.error().code), static_cast<int>(ErrorCode::Limit));
        QCOMPARE(run.error().where, std::string("big"));
        QVERIFY2(run.error().message.find("954 MiB") != std::string::npos, run.error().text().c_str());
    }
    /// Random inputs are drawn when they are read, so a run that is refused has drawn none.
    void whatIsRefusedIsNotDrawn_data() {
        QTest::addColumn<bool>("compiled");
        QTest::newRow("compiled") << true;
        QTest::newRow("reference") << false;
    }
    void whatIsRefusedIsNotDrawn() {
        if (kSanitized) QSKIP("sanitizers reserve more address space than the limit lets them");
        QFETCH(bool, compiled);
        const auto module = moduleOf(R"(def forward(x: "f32[200000000]", y: "f32[4]"):
    a = aten.sort.default(x)
    b = operator.getitem(a, 0)
    c = aten.mul.Tensor(b, x)
    return (c, y))");
        const long pagesBefore = residentPages();
        const auto inputs = cutaway::randomInputs(*module, 1);
        QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY(program.has_value());
        rlimit before{};
        QVERIFY(::getrlimit(RLIMIT_AS, &before) == 0);
        const rlimit limit{rlim_t{3} << 30, before.rlim_max};
        QVERIFY(::setrlimit(RLIMIT_AS, &limit) == 0);
        Result<void> ran;
        const auto bound = bindInputs(*module, *inputs);
        if (!bound) ran = bound.error();
        else if (compiled) {
            if (auto run = runCpu(*program, *bound); !run) ran = run.error();
        } else if (auto run = runReference(*module, *bound); !run) ran = run.error();
        QVERIFY(::setrlimit(RLIMIT_AS, &before) == 0);
        QVERIFY(!ran);
        QVERIFY2(ran.error().message.find("needs about") != std::string::npos, ran.error().text().c_str());
        constexpr long kMost = 100'000'000;  // a part of the 800 MB that the inputs are
        QVERIFY((residentPages() - pagesBefore) * ::sysconf(_SC_PAGESIZE) < kMost);
    }

    void tooLargeIsRefusedBeforeItStarts_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("backend");
        QTest::addColumn<QString>("needs");
        const auto row = [](const char* name, Backend backend, const char* text, const char* needs) {
            QTest::newRow(name) << text << static_cast<int>(backend) << needs;
        };
        const char* input =
            "def forward(x: \"f32[20000000, 2000000]\"):\n    a = aten.relu.default(x)\n    return (a,)\n";
        row("input", Backend::Reference, input, "inputs and weights 146 TiB");
        row("input, compiled", Backend::Cpu, input, "inputs and weights 146 TiB");
        const char* value =
            "def forward(x: \"f32[1]\"):\n    e = aten.expand.default(x, [2000000, 2000000])\n    a = aten.exp.default(e)\n    b = aten.mm.default(a, a)\n"
            "    c = aten.sum.default(b)\n    return (c,)\n";
        row("values", Backend::Reference, value, "29.1 TiB of memory");
        row("values, compiled", Backend::Cpu, value, "29.1 TiB of memory");
        row("weights of its own", Backend::Reference,
            "def forward(x: \"f32[1]\"):\n    a = aten.full.default([20000000, 2000000], 1, dtype=torch.float32, device=device(type='cpu'), pin_memory=False)\n"
            "    c = aten.sum.default(a)\n    return (c,)\n",
            "146 TiB of memory");
    }
    void tooLargeIsRefusedBeforeItStarts() {
        QFETCH(QString, text);
        QFETCH(int, backend);
        QFETCH(QString, needs);
        const auto folder = TempDir::create();
        QVERIFY(folder.has_value());
        std::ofstream(folder->file("large.py")) << text.toStdString();
        Session session;
        QVERIFY(session.open(folder->file("large.py")).has_value());
        const auto run = session.compile({.disabledPasses = {"constant_fold_uniform_value"}});
        QVERIFY(run.has_value());
        RunOptions options;
        options.backend = static_cast<Backend>(backend);
        const auto refused = session.run(*run, options);
        QVERIFY(!refused.has_value());
        const std::string words = refused.error().text();
        QVERIFY2(QString::fromStdString(words).contains(needs) && words.find(" leaves ") != std::string::npos &&
                     words.find("smaller") != std::string::npos,
                 words.c_str());
    }
    void peakIsWhatIsAliveAtOnce_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<double>("bytes");
        const auto row = [](const char* name, const char* body, double bytes) { QTest::newRow(name) << body << bytes; };
        row("chain",
            "    a = aten.exp.default(x)\n    b = aten.exp.default(a)\n    c = aten.exp.default(b)\n    return (c,)",
            8000);
        row("kept to the end",
            "    a = aten.exp.default(x)\n    b = aten.exp.default(a)\n    c = aten.exp.default(b)\n    return (a, c)",
            12000);
        row("views are free",
            "    a = aten.exp.default(x)\n    b = aten.view.default(a, [10, 100])\n    c = aten.permute.default(b, [1, 0])\n    return (c,)",
            4000);
        row("a view keeps its base",
            "    a = aten.exp.default(x)\n    b = aten.slice.Tensor(a, 0, 0, 10)\n    c = aten.exp.default(x)\n    d = aten.exp.default(c)\n    return (b, d)",
            12000);
        row("several results", "    t = aten.sort.default(x)\n    v = t[0]\n    return (v,)", 12000);
        row("inputs of graphs that mutate are copied", "    a = aten.add_.Scalar(x, 1)\n    return (a,)", 4000);
        row("nothing", "    return (x,)", 0);
    }
    void peakIsWhatIsAliveAtOnce() {
        QFETCH(QString, body);
        QFETCH(double, bytes);
        const auto module = moduleOf(("def forward(x: \"f32[1000]\"):\n" + body + "\n").toStdString());
        QCOMPARE(peakBytes(*module), bytes);
    }
    static std::shared_ptr<const Module> endless() {
        return moduleOf(R"(def forward(x: "f32[2]"):
    w = higher_order.while_loop(more, step, (x,), ())
    r: "f32[2]" = w[0]
    return (r,)

def more(a: "f32[2]"):
    s: "f32[]" = aten.sum.default(a)
    t: "b8[]" = aten.eq.Tensor(s, s)
    return (t,)

def step(a: "f32[2]"):
    b: "f32[2]" = aten.clone.default(a)
    return (b,)
)");
    }
    void timeLimit() {
        const auto run = runReference(*endless(), {Tensor::full(DType::F32, {2}, 1.0)}, {.timeoutSeconds = 1});
        QVERIFY(!run.has_value());
        QVERIFY2(run.error().message.find("ran longer than 1 s") != std::string::npos, run.error().text().c_str());
    }
    void cancelling() {
        const Progress progress;
        std::thread hand([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            progress.cancel->cancel();
        });
        const auto run = runReference(*endless(), {Tensor::full(DType::F32, {2}, 1.0)}, {}, progress);
        hand.join();
        QVERIFY(!run.has_value());
        QCOMPARE(static_cast<int>(run.error().code), static_cast<int>(ErrorCode::Cancelled));
    }
    /// Reference runs use one worker and the weights that it holds, until the weights change.
    void weightsAreSentOnce() {
        const auto module = moduleOf(R"(def forward(x: "f32[2, 256]", w: "f32[256, 256]", t: "f32[256, 256][1, 256]"):
    a = aten.mm.default(x, w)
    b = aten.mm.default(a, t)
    return (b,))");
        constexpr size_t kCount = 256 * 256;
        int process = 0;
        for (int i = 0; i < 6; ++i) {
            // Probably at the address of the weights of the round before, which must not be taken for these.
            const auto numbers = std::make_shared<std::vector<float>>(kCount);
            for (size_t k = 0; k < kCount; ++k)
                (*numbers)[k] = static_cast<float>((k * 7 + static_cast<size_t>(i)) % 11);
            const auto storage = Storage::view(numbers->data(), kCount * sizeof(float), numbers);
            for (int again = 0; again < 2; ++again) {
                const std::vector<Tensor> inputs = {Tensor::full(DType::F32, {2, 256}, 0.5 + again),
                                                    Tensor(storage, DType::F32, {256, 256}, {256, 1}),
                                                    Tensor(storage, DType::F32, {256, 256}, {1, 256})};
                QCOMPARE(shown(inWorker(*module, inputs)), shown(interpret(*module, inputs)));
                const std::vector<int> idle = idleWorkers();
                QCOMPARE(idle.size(), size_t(1));
                if (process == 0) process = idle[0];
                QCOMPARE(idle[0], process);
            }
        }
        // One that hangs is gone, and the next run gets another.
        const auto late = runReference(*endless(), {Tensor::full(DType::F32, {2}, 1.0)}, {.timeoutSeconds = 0.5});
        QVERIFY(!late && late.error().code == ErrorCode::Limit);
        QVERIFY(idleWorkers().empty());
        const std::vector<Tensor> inputs = inputsFor(*module);
        QCOMPARE(shown(inWorker(*module, inputs)), shown(interpret(*module, inputs)));
        QVERIFY(idleWorkers() != std::vector<int>{process});
    }
    /// A worker that waits for its next request holds no results of the last.
    void resultsGoWhenTheyHaveBeenRead() {
        if (kSanitized) QSKIP("sanitizers keep what is freed");
        const auto module = moduleOf(R"(def forward(x: "f32[1, 4096]"):
    a = aten.expand.default(x, [4096, 4096])
    b = aten.neg.default(a)
    return (b,))");
        const auto inputs = randomInputs(*module, 1);
        const auto run = runReference(*module, *inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->outputs[0].bytes() >= size_t{1} << 26);
        int64_t most = 0;
        const auto held = [&] {
            most = 0;
            int workers = 0;
            for (const QString& pid : QDir("/proc").entryList(QDir::Dirs)) {
                QFile stat("/proc/" + pid + "/stat"), statm("/proc/" + pid + "/statm");
                if (!stat.open(QIODevice::ReadOnly) || !statm.open(QIODevice::ReadOnly)) continue;
                const QByteArrayList fields = stat.readAll().split(' '), pages = statm.readAll().split(' ');
                if (fields.size() < 4 || fields[1] != "(cutaway-worker)" || fields[3].toInt() != ::getpid()) continue;
                ++workers;
                most = std::max<int64_t>(most, pages[1].toLongLong() * ::sysconf(_SC_PAGESIZE));
            }
            return workers > 0 && most < int64_t{1} << 26;
        };
        QTRY_VERIFY2(held(), qPrintable(QString::number(most)));
    }

    void aWorkerThatDies_data() {
        QTest::addColumn<QString>("script");
        QTest::addColumn<QString>("says");
        QTest::newRow("crash") << "kill -SEGV $$"
                               << "was killed by signal 11";
        QTest::newRow("kill") << "kill -KILL $$"
                              << "the system may have run out of memory";
        QTest::newRow("failure") << "echo no luck >&2; exit 3"
                                 << "its last words: no luck";
        QTest::newRow("success without a word") << "exit 0"
                                                << "exited with status 0";
    }
    void aWorkerThatDies() {
        QFETCH(QString, script);
        QFETCH(QString, says);
        Session session;
        const auto opened = session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2");
        const auto run = session.compile({});
        const auto failed = [&] {
            const FakeWorker dies(script.toStdString());
            return session.run(*run, {});
        }();
        QVERIFY(opened && run && !failed);
        QVERIFY2(QString::fromStdString(failed.error().text()).contains(says), failed.error().text().c_str());
        QVERIFY(session.run(*run, {}).has_value());  // the session lives
    }
    void theMachineSaysWhatItHasLeft() {
        const auto memory = availableMemory();
        QVERIFY(memory && memory->bytes > 0 && !memory->limitedBy.empty());
    }
};

CUTAWAY_SUITE(WorkerTest)
#include "worker_test.moc"
