// One session, several threads: what one of them looks at does not depend on what the others compile, run and search.
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <thread>

#include "cutaway/bisect.h"
#include "cutaway/session.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kPlain = R"(
def forward(x: "f32[8, 8]", w: "f32[8, 8]", b: "f32[8]"):
    m: "f32[8, 8]" = aten.mm.default(x, w)
    s: "f32[8, 8]" = aten.add.Tensor(m, b)
    n: "f32[8, 8]" = aten.add.Tensor(s, 0)
    g: "f32[8, 8]" = aten.gelu.default(n)
    total: "f32[8]" = aten.sum.dim_IntList(g, [1])
    return (total, g)
)";
constexpr const char* kWithBodies = R"(
def forward(x: "f32[4]", p: "b8[]"):
    n: "f32[4]" = aten.add.Tensor(x, 0)
    cond = higher_order.cond(p, true_graph_0, false_graph_0, [n])
    getitem: "f32[4]" = cond[0]
    return (getitem,)

def true_graph_0(x: "f32[4]"):
    sin: "f32[4]" = aten.sin.default(x)
    return (sin,)

def false_graph_0(x: "f32[4]"):
    y: "f32[4]" = aten.t.default(x)
    neg: "f32[4]" = aten.neg.default(y)
    sum: "f32[4]" = aten.add.Tensor(neg, x)
    return (sum,)
)";

/// All that can be seen of a run, as text.
std::string seen(Session& session, RunId run) {
    std::string out;
    const auto steps = session.steps(run);
    for (const StepInfo& step : *steps) {
        const Place before{run, step.index - 1, -1}, after{run, step.index, step.rewrites > 0 ? 1 : -1};
        const auto graph = session.diff(before, after);
        const auto text = session.text(after);
        if (!graph || !text) return "cannot be looked at: " + (graph ? text.error().text() : graph.error().text());
        out += step.name + "\n" + text->text;
        if (step.state != StepState::Changed) continue;
        for (const auto& node : graph->nodes) {
            if (const auto details = session.node(after, node.info.id)) out += details->line + "\n";
            if (const auto rules = session.explainAll(before, node.info.id, step.name))
                for (const RuleExplanation& rule : *rules) out += rule.rule + ": " + rule.reason + "\n";
        }
    }
    return out;
}

}  // namespace

class ThreadsTest : public QObject {
    Q_OBJECT

  private slots:
    void lookingDoesNotDependOnWhatElseGoesOn_data() {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<bool>("searches");
        QTest::newRow("one graph") << QByteArray(kPlain) << true;
        QTest::newRow("bodies") << QByteArray(kWithBodies)
                                << false;  // kernels cannot be made of it, so there is nothing to search
    }
    void lookingDoesNotDependOnWhatElseGoesOn() {
        QFETCH(QByteArray, model);
        QFETCH(bool, searches);
        QTemporaryDir folder;
        QFile file(folder.filePath("model.py"));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(model) == model.size());
        file.close();
        Session session;
        const auto opened = session.open(file.fileName().toStdString());
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        const RunId run = session.compile({}).value();
        const std::string alone = seen(session, run);
        QVERIFY2(alone.find("cannot be looked at") == std::string::npos, alone.c_str());
        std::atomic<bool> over = false;
        std::atomic<int> compiled = 0, executed = 0, searched = 0;
        std::string problems[3];
        const auto again = [&over](std::atomic<int>& done, std::string& problem, auto work) {
            return std::thread([&over, &done, &problem, work] {
                do {
                    if (const auto result = work(); !result) problem = result.error().text();
                    ++done;
                } while (!over);
            });
        };
        std::vector<std::thread> threads;
        threads.push_back(again(compiled, problems[0], [&] { return session.compile({}); }));
        threads.push_back(again(executed, problems[1], [&] { return session.run(run, {}); }));
        if (searches) threads.push_back(again(searched, problems[2], [&] { return bisect(session, run, {}); }));
        std::string wrong;
        for (int i = 0; i < 3 || compiled == 0 || executed == 0 || (searches && searched == 0); ++i)
            if (const std::string now = seen(session, run); now != alone) wrong = now;
        over = true;
        for (std::thread& thread : threads) thread.join();
        for (const std::string& problem : problems) QVERIFY2(problem.empty(), problem.c_str());
        QVERIFY2(wrong.empty(), wrong.c_str());
        // Every compile has joined the runs, and is the same.
        QCOMPARE(session.runs().size(), static_cast<size_t>(compiled) + 1);
        QCOMPARE(seen(session, session.runs().back()).size(), alone.size());
    }
};

CUTAWAY_SUITE(ThreadsTest)
#include "threads_test.moc"
