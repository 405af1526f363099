// Memory plans through the public API: nothing overlaps, the arena is the compiled program's, the peak is the peak.
#include <QTemporaryDir>
#include <QtTest>
#include <functional>

#include "cutaway/memory.h"
#include "engine/interpret/interpret.h"
#include "engine/session/execution.h"
#include "engine/session/run_inputs.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct Sample {
    const char *name, *graph;
    std::function<bool(const MemoryValue&)> holds;  // of some value
};
const Sample kSamples[] = {
    {"kernels and a library", R"(def forward(x: "f32[120, 100]", y: "f32[100, 80]"):
    a = aten.relu.default(x)
    s = aten.softmax.int(a, 1)
    m = aten.mm.default(s, y)
    c = aten.cos.default(m)
    d = aten.permute.default(c, [1, 0])
    n = aten.mm.default(c, d)
    return (n,)
)",
     [](const MemoryValue& v) { return v.output && v.place == MemoryValue::Place::Arena; }},
    {"a reduction cut into parts", R"(def forward(x: "f32[2, 3000000]"):
    s = aten.sum.dim_IntList(x, [1])
    return (s,)
)",
     [](const MemoryValue& v) { return v.workspace && v.first == v.last; }},
    {"a reference call", R"(def forward(x: "f32[64]"):
    y = aten.complex.default(x, x)
    z = aten.mul.Scalar(y, 2j)
    return (z,)
)",
     [](const MemoryValue& v) { return v.place == MemoryValue::Place::Heap && v.bytes == 512; }},
    {"items of a tuple", R"(def forward(x: "f32[64, 30]"):
    t = aten.sort.default(x, 1)
    a = operator.getitem(t, 0)
    b = operator.getitem(t, 1)
    c = aten.cos.default(a)
    return (c, b)
)",
     [](const MemoryValue& v) { return v.name.find('[') != std::string::npos || v.name == "b"; }},
    {"example sizes", R"(# symbol s0: hint=48
def forward(x: "f32[s0, 10]"):
    a = aten.sin.default(x)
    s = aten.sum.dim_IntList(a, [1])
    c = aten.cumsum.default(a, 0)
    d = aten.cumsum.default(c, 0)
    e = aten.cumsum.default(d, 0)
    return (a, s, e)
)",
     [](const MemoryValue& v) { return v.type == "f32[s0, 10]" && v.bytes == 1920; }},
};

int64_t inBlocks(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + 63) / 64 * 64; }

/// What is wrong with a plan; empty if nothing is.
QString problemOf(const MemoryPlan& plan) {
    std::vector<int64_t> live(plan.calls.size());
    for (size_t i = 0; i < plan.values.size(); ++i) {
        const MemoryValue& a = plan.values[i];
        const QString name = QString::fromStdString(a.name);
        if (a.first < 0 || a.last < a.first || a.last >= static_cast<int>(plan.calls.size()))
            return name + " lives never";
        if (a.output && a.last + 1 != static_cast<int>(plan.calls.size())) return name + " is returned, and dies";
        const int64_t height = a.place == MemoryValue::Place::Heap ? plan.own : plan.arena;
        if (a.offset % 64 != 0 || a.offset + inBlocks(a.bytes) > height) return name + " lies outside";
        if (i > 0 && plan.values[i - 1].first > a.first) return name + " is out of order";
        for (int at = a.first; at <= a.last; ++at) live[static_cast<size_t>(at)] += inBlocks(a.bytes);
        for (size_t j = 0; j < i; ++j) {
            const MemoryValue& b = plan.values[j];
            const bool together = a.place == b.place && a.first <= b.last && b.first <= a.last;
            if (together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
                return name + " lies on " + QString::fromStdString(b.name);
        }
    }
    if (live != plan.live) return "other bytes live";
    const auto peak = std::max_element(live.begin(), live.end());
    if (peak != live.end() && peak - live.begin() != plan.peak) return "the peak is elsewhere";
    if (plan.calls.empty() != (plan.peak < 0)) return "a peak without calls";
    if (plan.own == 0 && plan.arena < plan.largestLive()) return "the arena is too small";
    return {};
}

}  // namespace

class SessionMemoryTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString file(const char* graph) const {
        QFile out(m_folder.filePath("graph.py"));
        if (!out.open(QIODevice::WriteOnly) || out.write(graph) < 0) qFatal("cannot write the graph");
        return out.fileName();
    }

  private slots:
    void plansAreTheCompiledPrograms_data() {
        QTest::addColumn<int>("index");
        for (int i = 0; i < static_cast<int>(std::size(kSamples)); ++i) QTest::newRow(kSamples[i].name) << i;
    }
    void plansAreTheCompiledPrograms() {
        QFETCH(int, index);
        Session session;
        const auto opened = session.open(file(kSamples[index].graph).toStdString());
        QVERIFY2(bool(opened), opened ? "" : opened.error().text().c_str());
        const auto id = session.compile({});
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());
        const auto plans = memoryPlans(session, *id);
        QVERIFY2(bool(plans), plans ? "" : plans.error().text().c_str());
        QCOMPARE(plans->size(), size_t{1});
        const MemoryPlan& plan = plans->front();
        QVERIFY(plan.graphName.empty() && !plan.calls.empty());
        QCOMPARE(problemOf(plan), QString());
        QVERIFY(std::any_of(plan.values.begin(), plan.values.end(), kSamples[index].holds));
        // As large as the program for these sizes makes it.
        const auto run = session.state().run(*id);
        QVERIFY(bool(run));
        const Snapshot last = (*run)->trace.result();
        SymbolValues sizes;
        const auto numbers = withNumbers(last, nullptr, sizes);
        QVERIFY2(bool(numbers), numbers ? "" : numbers.error().text().c_str());
        const auto inputs = chooseInputs(*session.state().input, session.state().sampleInputs, "",
                                         session.state().noSamples, last.get());
        QVERIFY2(bool(inputs), inputs ? "" : inputs.error().text().c_str());
        const auto bound = bindInputs(*last, inputs->user);
        QVERIFY2(bool(bound), bound ? "" : bound.error().text().c_str());
        const auto program = programOf(**run, "", &*bound, {});
        QVERIFY2(bool(program), program ? "" : program.error().text().c_str());
        const auto arena = (*program)->arenaBytes(*bound);
        QVERIFY2(bool(arena), arena ? "" : arena.error().text().c_str());
        QCOMPARE(plan.arena, *arena);
        QCOMPARE(plan.sizes, sizes);
        QCOMPARE(sizes.size(), size_t(index == 4));
    }

    void whoLivesIsSorted() {
        Session session;
        QVERIFY(session.open(testing::testFile("../resources/models/tiny_transformer.pt2").toStdString()));
        const auto id = session.compile({});
        const auto plans = memoryPlans(session, *id);
        QVERIFY2(bool(plans), plans ? "" : plans.error().text().c_str());
        const MemoryPlan& plan = plans->front();
        QCOMPARE(problemOf(plan), QString());
        QVERIFY(plan.inputs.count > 0 && plan.inputs.bytes > 0);
        for (int call = 0; call < static_cast<int>(plan.calls.size()); ++call) {
            const std::vector<size_t> living = livingAt(plan, call);
            int64_t bytes = 0;
            for (size_t i = 0; i < living.size(); ++i) {
                bytes += inBlocks(plan.values[living[i]].bytes);
                QVERIFY(i == 0 || plan.values[living[i - 1]].bytes >= plan.values[living[i]].bytes);
            }
            QCOMPARE(bytes, plan.live[static_cast<size_t>(call)]);
        }
        // Each value's node is one of its call's.
        for (const MemoryValue& value : plan.values) {
            const auto& nodes = plan.calls[static_cast<size_t>(value.first)].nodes;
            QVERIFY2(std::find(nodes.begin(), nodes.end(), value.node) != nodes.end(), value.name.c_str());
        }
    }

    void trainingHasTwoPlans() {
        Session session;
        QVERIFY(session.open(testing::testFile("../resources/models/mlp.pt2").toStdString()));
        CompileRequest request;
        request.mode = Mode::Training;
        const auto id = session.compile(request);
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());
        const auto plans = memoryPlans(session, *id);
        QVERIFY2(bool(plans), plans ? "" : plans.error().text().c_str());
        QCOMPARE(plans->size(), size_t{2});
        QCOMPARE((*plans)[0].graphName, std::string("forward"));
        QCOMPARE((*plans)[1].graphName, std::string("backward"));
        for (const MemoryPlan& plan : *plans) {
            QCOMPARE(problemOf(plan), QString());
            QVERIFY(!plan.values.empty());
        }
    }

    /// Sizes from data are assumed at their largest. Values after a size is found lie behind those before it.
    void sizesThatDataDecideAreAssumed() {
        Session session;
        const auto opened = session.open(file(R"(def forward(x: "f32[8, 5]"):
    g = aten.gt.Scalar(x, 0.5)
    n: "i64[u0, 2]" = aten.nonzero.default(g)
    a: "i64[u0, 2]" = aten.add.Tensor(n, 1)
    e = aten.eq.Scalar(a, 2)
    m: "i64[u1]" = aten.masked_select.default(a, e)
    c: "f32[u1]" = aten.cos.default(m)
    s: "f32[u0, 2]" = aten.sin.default(a)
    return (c, s)
)")
                                             .toStdString());
        QVERIFY2(bool(opened), opened ? "" : opened.error().text().c_str());
        const auto id = session.compile({});
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());
        const auto plans = memoryPlans(session, *id);
        QVERIFY2(bool(plans), plans ? "" : plans.error().text().c_str());
        const MemoryPlan& plan = plans->front();
        QCOMPARE(problemOf(plan), QString());
        QCOMPARE(plan.sizes, (std::map<std::string, int64_t>{{"u0", 40}, {"u1", 80}}));
        QCOMPARE(plan.assumed, (std::set<std::string>{"u0", "u1"}));
        const auto value = [&](const std::string& name) {
            return *std::find_if(plan.values.begin(), plan.values.end(), [&](const auto& v) { return v.name == name; });
        };
        QCOMPARE(value("a").bytes, int64_t{40 * 2 * 8});
        QCOMPARE(value("c").bytes, int64_t{80 * 4});
        QVERIFY(value("a").offset >= value("g").offset + 64);
    }

    void whatCannotBePlannedIsNamed() {
        Session session;
        const auto opened = session.open(file(R"(def forward(x: "f32[s0, 8]"):
    c = aten.cos.default(x)
    return (c,)
)")
                                             .toStdString());
        QVERIFY2(bool(opened), opened ? "" : opened.error().text().c_str());
        const auto id = session.compile({});
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());
        const auto plans = memoryPlans(session, *id);
        QVERIFY(!plans);
        QVERIFY2(plans.error().message.find("size symbol") != std::string::npos, plans.error().text().c_str());
        QVERIFY(!memoryPlans(session, 99));
    }
    /// A packed weight and the plain one are views of one computed value.
    void constantsOfOneMemoryCountOnce() {
        QTemporaryDir folder;
        QFile file(folder.filePath("packed.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            "def forward(\n    w: \"f32[32, 64]\",  # ParamAOTInput(target='w')\n"
            "    x: \"f32[8, 64]\",  # PlainAOTInput(idx=0)\n):\n"
            "    d: \"f32[32, 64]\" = aten.mul.Tensor(w, 2.0)\n"
            "    t: \"f32[64, 32][1, 64]\" = aten.permute.default(d, [1, 0])\n"
            "    y: \"f32[8, 32]\" = aten.mm.default(x, t)\n    return (y,)\n");
        file.close();
        Session session;
        QVERIFY(session.open(file.fileName().toStdString()));
        CompileRequest request;
        request.freeze = true;
        QVERIFY(session.compile(request));
        const auto plans = memoryPlans(session, 0);
        QVERIFY(plans.has_value());
        QCOMPARE(plans->at(0).constants.count, 2);
        QCOMPARE(plans->at(0).constants.bytes, int64_t{32 * 64 * 4});
    }

    void aGraphWithoutCallsHasNoPeak() {
        Session session;
        QVERIFY(session.open(file("def forward(x: \"f32[8]\"):\n    return (x,)\n").toStdString()));
        const auto plans = memoryPlans(session, *session.compile({}));
        QVERIFY2(bool(plans), plans ? "" : plans.error().text().c_str());
        QCOMPARE(plans->front().peak, -1);
        QCOMPARE(problemOf(plans->front()), QString());
        QCOMPARE(plans->front().inputs.bytes, int64_t{32});
    }
};

CUTAWAY_SUITE(SessionMemoryTest)
#include "session_memory_test.moc"
