// The loops of a run's kernels through the public API: lists, forms, plans of the user, runs by them.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/kernel_calls.h"
#include "cutaway/loops.h"
#include "engine/runtime/cuda/requests.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kGraph = R"(def forward(x: "f32[12, 100]", y: "f32[100, 8]"):
    a = aten.relu.default(x)
    s = aten.softmax.int(a, 1)
    m = aten.mm.default(s, y)
    c = aten.cos.default(m)
    d = aten.relu.default(x)
    return (c, d)
)";

}  // namespace

class SessionLoopsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    Session m_session;
    RunId m_run = 0;

    QString saidOf(const std::string& plan) {
        const auto loops = kernelLoops(m_session, m_run, "kernel0", plan);
        return loops ? QString() : QString::fromStdString(loops.error().text());
    }
    QString file() const { return m_folder.filePath("graph.py"); }

  private slots:
    void initTestCase() {
        QFile out(file());
        QVERIFY(out.open(QIODevice::WriteOnly) && out.write(kGraph) > 0);
        out.close();
        QVERIFY(m_session.open(file().toStdString()));
        const auto run = m_session.compile({});
        QVERIFY(bool(run));
        m_run = *run;
    }

    /// Products are a library's: they have no loops.
    void kernelsAreListed() {
        const auto kernels = loopKernels(m_session, m_run);
        QVERIFY2(bool(kernels), kernels ? "" : kernels.error().text().c_str());
        QVERIFY(kernels->size() >= 2);
        for (const LoopKernel& kernel : *kernels) {
            QVERIFY(kernel.calls >= 1 && !kernel.nodes.empty() && !kernel.kind.empty());
            QCOMPARE(kernel.nodes.size(), kernel.nodeNames.size());
            for (const std::string& name : kernel.nodeNames) QVERIFY(name != "m");
        }
    }
    /// Node, kernel and node again, from every graph of the run on.
    void everyNodeLeadsToItsCall() {
        const auto calls = kernelCalls(m_session, m_run);
        QVERIFY2(bool(calls), calls ? "" : calls.error().text().c_str());
        const auto steps = m_session.steps(m_run);
        const Place last{m_run, static_cast<int>(steps->size()) - 1, -1};
        std::map<NodeKey, int> computed;
        QStringList replaced;
        const auto opened = m_session.diff({m_run, -1, -1}, {m_run, -1, -1});
        for (const KernelCall& call : *calls) {
            for (const NodeKey node : call.nodes) ++computed[node];
            for (const auto& node : opened->nodes)
                if (std::find(call.replaced.begin(), call.replaced.end(), node.info.id) != call.replaced.end())
                    replaced << QString::fromStdString(node.info.name + ":" + call.kind);
            QCOMPARE(call.kernel.empty(), call.kind.starts_with("library"));
            QCOMPARE(call.buffers.empty(), call.kernel.empty());
        }
        for (const auto& node : m_session.diff(last, last)->nodes) {
            if (node.info.role != NodeRole::Call || node.info.opClass == OpClass::View) continue;
            QVERIFY2(computed[node.info.id] == 1, node.info.name.c_str());
        }
        // The softmax was decomposed; nothing stands in another's place else.
        QCOMPARE(replaced, QStringList{"s:reduction"});
        // Each kernel of the list has the nodes of its calls.
        const auto kernels = loopKernels(m_session, m_run);
        for (const LoopKernel& kernel : *kernels) {
            std::vector<NodeKey> nodes;
            for (const KernelCall& call : *calls)
                if (call.kernel == kernel.name) nodes.insert(nodes.end(), call.nodes.begin(), call.nodes.end());
            QVERIFY(nodes == kernel.nodes);
        }
    }
    void aKernelHasForms() {
        const auto loops = kernelLoops(m_session, m_run, "kernel0");
        QVERIFY(bool(loops));
        QVERIFY(loops->kernel.starts_with("kernel0(b0: f32!"));
        QVERIFY(loops->plan.starts_with("order x0"));
        QVERIFY(loops->steps.size() >= 3);
        QCOMPARE(loops->steps.front().name, std::string("build"));
        QVERIFY(loops->source.find("kernel0") != std::string::npos);
        // The plan as it is shown is a plan, and gives the same.
        const auto again = kernelLoops(m_session, m_run, "kernel0", loops->plan);
        QVERIFY(bool(again));
        QCOMPARE(again->source, loops->source);
        QCOMPARE(again->plan, loops->plan);
        const auto none = kernelLoops(m_session, m_run, "kernel99");
        QVERIFY(!none);
        QCOMPARE(none.error().code, ErrorCode::NotFound);
    }
    void kernelsHaveListings() {
        const auto listed = [&](Listing listing, const std::optional<std::string>& plan = {}) {
            const auto text = kernelListing(m_session, m_run, "kernel0", listing, plan);
            return QString::fromStdString(text ? *text : text.error().text());
        };
        const QString assembly = listed(Listing::Assembly);
        QVERIFY2(assembly.startsWith("kernel0") && assembly.contains("ret"), qPrintable(assembly));
        QVERIFY2(!assembly.contains("register_tm_clones") && !assembly.contains("file format"), qPrintable(assembly));
        const auto loops = kernelLoops(m_session, m_run, "kernel0");
        QVERIFY(loops);
        QVERIFY(loops->target == Target::Cpu);
        QCOMPARE(listed(Listing::Assembly, loops->plan), assembly);
        QVERIFY(listed(Listing::Assembly, "nonsense\n").contains("line 1"));
        QCOMPARE(listed(Listing::Ptx), QString("code for the CPU has no listing 'ptx'"));
    }
    /// Of a GPU, down to what this machine has tools for.
    void kernelsOfGpusHaveListings() {
        Session session;
        QVERIFY(session.open(file().toStdString()));
        CompileRequest request;
        request.target = Target::Cuda;
        const auto run = session.compile(request);
        QVERIFY(run);
        const auto loops = kernelLoops(session, *run, "kernel0");
        QVERIFY(loops);
        QVERIFY(loops->target == Target::Cuda);
        QVERIFY2(loops->source.find("__global__") != std::string::npos, loops->source.c_str());
        const auto found = findCuda();
        QVERIFY(found);
        const auto ptx = kernelListing(session, *run, "kernel0", Listing::Ptx),
                   sass = kernelListing(session, *run, "kernel0", Listing::Sass);
        if (found->compiler.empty()) {
            QVERIFY(!ptx && !sass);
            QSKIP(found->whyNoCompiler.c_str());
        }
        QVERIFY2(ptx && ptx->find(".visible .entry kernel0") != std::string::npos,
                 ptx ? "" : ptx.error().text().c_str());
        if (sass) QVERIFY2(sass->find("EXIT") != std::string::npos, sass->c_str());
        else
            QVERIFY2(sass.error().text().find("nvidia-cuda-nvdisasm") != std::string::npos,
                     sass.error().text().c_str());
        QVERIFY(!kernelListing(session, *run, "kernel0", Listing::Assembly));
    }
    /// What was decided for all sizes is looked at with the example's.
    void kernelsOfExampleSizesAreListed() {
        const QString symbolic = m_folder.filePath("symbolic.py");
        QFile out(symbolic);
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write(
            "# symbol s0: hint=48\ndef forward(x: \"f32[s0, 10]\"):\n    a = aten.sin.default(x)\n"
            "    s = aten.sum.dim_IntList(a, [1])\n    return (a, s)\n");
        out.close();
        Session session;
        QVERIFY(session.open(symbolic.toStdString()));
        const auto kernels = loopKernels(session, *session.compile({}));
        QVERIFY2(bool(kernels), kernels ? "" : kernels.error().text().c_str());
        QCOMPARE(kernels->size(), size_t{1});
        QCOMPARE(kernels->front().nodeNames, (std::vector<std::string>{"a", "s"}));
    }
    void plansAreRefusedInWords() {
        QCOMPARE(saidOf("order x0\nsplit many\n"), QStringLiteral("line 2: split is a number: split 8"));
        QCOMPARE(saidOf("order x0\nvectors nothing\nsplit 0\n").section(':', 0, 0),
                 QStringLiteral("the plan of kernel0"));
    }
    /// Every kernel by a plan without vectors: other code, the same meaning.
    void plansAreRun() {
        const auto kernels = loopKernels(m_session, m_run);
        for (const LoopKernel& kernel : *kernels) {
            const auto loops = kernelLoops(m_session, m_run, kernel.name);
            QVERIFY(bool(loops));
            QString plan = QString::fromStdString(loops->plan);
            plan.replace(QRegularExpression("vectors [a-z]+( \\d+)?"), "vectors nothing");
            plan.remove(QRegularExpression("tile [^\n]*\n"));
            const auto other = kernelLoops(m_session, m_run, kernel.name, plan.toStdString());
            QVERIFY2(bool(other), other ? "" : other.error().text().c_str());
            const auto run = runWithPlan(m_session, m_run, kernel.name, plan.toStdString(), {.repeat = 3});
            QVERIFY2(bool(run), run ? "" : run.error().text().c_str());
            QVERIFY2(run->same, run->difference.c_str());
            QVERIFY(run->chosen.kernelMilliseconds > 0 && run->given.kernelMilliseconds > 0);
            QCOMPARE(run->repeats, 3);
        }
        const auto wrong = runWithPlan(m_session, m_run, "kernel0", "order\n");
        QVERIFY(!wrong);
    }
    void trainingHasKernelsOfBothHalves() {
        CompileRequest request;
        request.mode = Mode::Training;
        const auto run = m_session.compile(request);
        QVERIFY(bool(run));
        const auto kernels = loopKernels(m_session, *run);
        QVERIFY2(bool(kernels), kernels ? "" : kernels.error().text().c_str());
        int forward = 0, backward = 0;
        for (const LoopKernel& kernel : *kernels) {
            forward += kernel.name.starts_with("forward/kernel");
            backward += kernel.name.starts_with("backward/kernel");
            QVERIFY(bool(kernelLoops(m_session, *run, kernel.name)));
        }
        QVERIFY(forward > 0);
        QCOMPARE(static_cast<size_t>(forward + backward), kernels->size());
        RunOptions options;
        options.backend = Backend::Cpu;
        const auto report = m_session.run(*run, options);
        QVERIFY2(bool(report), report ? "" : report.error().text().c_str());
        const auto timed = loopKernels(m_session, *run);
        const auto build = m_session.build(*run, Target::Cpu);
        QVERIFY(timed && build);
        for (const LoopKernel& kernel : *timed) QVERIFY2(kernel.microseconds > 0, kernel.name.c_str());
        for (const KernelInfo& kernel : build->kernels) QVERIFY2(kernel.microseconds > 0, kernel.name.c_str());
        const auto tried = runWithPlan(m_session, *run, kernels->front().name, "order x0\n");
        QVERIFY(!tried);
        QVERIFY(tried.error().message.find("training") != std::string::npos);
    }
};

CUTAWAY_SUITE(SessionLoopsTest)
#include "session_loops_test.moc"
