// Breakpoints: where a compile stops, and how it goes on.
#include "cutaway/breakpoints.h"

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "engine/support/fault_points.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

const char* const kText =
    "def forward(x: \"f32[3, 4]\", w: \"f32[4, 4]\"):\n"
    "    a: \"f32[3, 4]\" = aten.clone.default(x)\n"
    "    b: \"f32[3, 4]\" = aten.mm.default(a, w)\n"
    "    c: \"f32[3, 4]\" = aten.clone.default(b)\n"
    "    d: \"f32[3, 4]\" = aten.silu.default(c)\n"
    "    return (d,)\n";

Breakpoint breakpoint(const QString& text) {
    const auto made = parseBreakpoint(text.toStdString());
    if (!made) qFatal("%s", made.error().text().c_str());
    return *made;
}

}  // namespace

class BreakpointsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string m_file;

    /// "remove_noop_ops:1, `c` is removed"; "" where the run went on to its end.
    static QString placeOf(Session& session, const Result<StoppedRun>& stopped) {
        if (!stopped) return QString::fromStdString(stopped.error().text());
        if (!stopped->stop) return {};
        const BreakpointStop& stop = *stopped->stop;
        const auto steps = *session.steps(stopped->run);
        const StepInfo& step = steps[static_cast<size_t>(stop.place.step)];
        const QString at = stop.place.rewrites < 0 ? QString() : ":" + QString::number(stop.place.rewrites);
        return QString::fromStdString(step.name) + at + ", " + QString::fromStdString(stop.detail);
    }

  private slots:
    void initTestCase() {
        m_file = m_folder.filePath("graph.py").toStdString();
        std::ofstream(m_file) << kText;
    }
    void cleanup() { setFault(""); }

    void stops_data() {
        QTest::addColumn<QString>("condition");
        QTest::addColumn<QString>("where");
        QTest::newRow("a pass") << "pass=remove_noop_ops"
                                << "remove_noop_ops, the pass has run";
        QTest::newRow("a pass by its key") << "pass=main/joint/remove_noop_ops#1"
                                           << "remove_noop_ops, the pass has run";
        QTest::newRow("a pass of another stage") << "pass=main/post_grad/remove_noop_ops"
                                                 << "";
        QTest::newRow("a node dies in the first rewrite") << "dies=a"
                                                          << "remove_noop_ops:1, `a` is removed";
        QTest::newRow("a node dies in the last rewrite") << "dies=c"
                                                         << "remove_noop_ops, `c` is removed";
        QTest::newRow("by its key") << "dies=2"
                                    << "remove_noop_ops:1, `a` is removed";
        QTest::newRow("an operator appears") << "appears=op=exp"
                                             << "decompose, `exp` is new";
        QTest::newRow("a node is born") << "born=neg"
                                        << "decompose, `neg` is new";
        QTest::newRow("an operator disappears") << "disappears=op=silu"
                                                << "decompose, `d` is removed";
        QTest::newRow("the query of the Search window") << "disappears=op=clone & numel>=12 & users=1"
                                                        << "remove_noop_ops:1, `a` is removed";
        QTest::newRow("never") << "appears=op=softmax"
                               << "";
        QTest::newRow("no second time") << "pass=remove_noop_ops@2"
                                        << "";
        QTest::newRow("the second step with such a node") << "disappears=op=aten@2"
                                                          << "remove_noop_ops:1, `a` is removed";
    }
    void stops() {
        QFETCH(QString, condition);
        QFETCH(QString, where);
        Session session;
        QVERIFY(session.open(m_file));
        const auto stopped = compileToBreakpoint(session, {}, {breakpoint(condition)});
        QCOMPARE(placeOf(session, stopped), where);
        QCOMPARE(*session.wasCancelled(stopped->run), !where.isEmpty());
        const auto steps = *session.steps(stopped->run);
        if (stopped->stop) {
            QCOMPARE(stopped->stop->place.step, steps.back().index);
            // The place can be looked at like any other, and has the node that is named.
            const Place place = stopped->stop->place;
            const auto difference = session.diff({place.run, place.step, 0}, place);
            QVERIFY2(difference, difference ? "" : difference.error().text().c_str());
            const NodeKey node = stopped->stop->node;
            QVERIFY(node == NodeKey::None ||
                    std::any_of(difference->nodes.begin(), difference->nodes.end(),
                                [&](const UnionGraph::Node& each) { return each.info.id == node; }));
        }
    }

    void goesOn() {
        Session session;
        QVERIFY(session.open(m_file));
        std::vector<Breakpoint> all = {breakpoint("dies=a"), breakpoint("dies=c"), breakpoint("pass=decompose")};
        // Of two at one step the earlier counts first.
        const QStringList places = {"decompose, the pass has run", "remove_noop_ops:1, `a` is removed",
                                    "remove_noop_ops, `c` is removed", ""};
        QStringList seen;
        std::optional<Place> past;
        for (int i = 0; i < places.size(); ++i) {
            const auto stopped = compileToBreakpoint(session, {}, all, past);
            seen << placeOf(session, stopped);
            if (stopped && stopped->stop) past = stopped->stop->place;
        }
        QCOMPARE(seen, places);
        for (Breakpoint& one : all) one.enabled = false;
        QVERIFY(!compileToBreakpoint(session, {}, all)->stop);
    }

    void inTraining() {
        Session session;
        QVERIFY(session.open(m_file));
        const auto request = *parseRequest("--mode training --grad x --grad w");
        const auto stopped = compileToBreakpoint(session, request, {breakpoint("pass=backward/joint/remove_noop_ops")});
        const auto found =
            compileToBreakpoint(session, request, {breakpoint("pass=min_cut_rematerialization_partition")});
        QVERIFY(stopped && !stopped->stop && found && found->stop);
        QCOMPARE(QString::fromStdString((*session.steps(found->run)).back().graphName), QString("joint"));
    }

    /// The first rewrite whose graph makes it, not only the pass.
    void firstNonFinite() {
        setFault("rule:remove_noop_ops/aten.clone.default:nan");
        Session session;
        QVERIFY(session.open(m_file));
        const auto stopped = compileToBreakpoint(session, {}, {breakpoint("nonfinite")});
        QCOMPARE(placeOf(session, stopped),
                 QString("remove_noop_ops:1, 12 results are not finite, 0 were before the pass"));
        setFault("");
        QVERIFY(!compileToBreakpoint(session, {}, {breakpoint("nonfinite")})->stop);
    }

    void texts_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("problem");  // empty: it reads back
        QTest::newRow("pass") << "pass=decompose"
                              << "";
        QTest::newRow("times") << "dies=relu_1@3"
                               << "";
        QTest::newRow("query") << "appears=op=mm & numel>1e6"
                               << "";
        QTest::newRow("alone") << "nonfinite"
                               << "";
        QTest::newRow("no kind") << "foo=bar"
                                 << "there are pass=NAME";
        QTest::newRow("no name") << "dies="
                                 << "needs to know which";
        QTest::newRow("a name too many") << "nonfinite=x"
                                         << "stands alone";
        QTest::newRow("no number") << "pass=a@b"
                                   << "is not such a number";
        QTest::newRow("never") << "pass=a@0"
                               << "is not such a number";
        QTest::newRow("bad query") << "appears=colour=red"
                                   << "no field \"colour\"";
    }
    void texts() {
        QFETCH(QString, text);
        QFETCH(QString, problem);
        const auto made = parseBreakpoint(text.toStdString());
        QCOMPARE(bool(made), problem.isEmpty());
        if (made) QCOMPARE(QString::fromStdString(made->text()), text);
        else QVERIFY2(QString::fromStdString(made.error().message).contains(problem), made.error().message.c_str());
    }
};

CUTAWAY_SUITE(BreakpointsTest)
#include "breakpoints_test.moc"
