// Any graph beside the open one: another of the same trace, a file, PyTorch's post-grad graph beside ours, and two
// runs.
#include <QTreeWidget>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/windows/commands.h"
#include "ui/windows/differences_window.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"

using namespace cutaway;
using namespace cutaway::ui;

class ComparedGraphsTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    GraphWindow& graph() { return m_main->get<GraphWindow>(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience); }
    void write(const QString& name, const QByteArray& body) {
        QFile file(m_folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("def forward(self, x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n    m = aten.mm.default(x, w)\n" + body);
    }
    void open(const QString& path) {
        m_main->open(path);
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        // The list of graphs, which a file with several asks with.
        for (auto* dialog : m_main->findChildren<GraphDialog*>()) dialog->reject();
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    /// The open graph and its runs stay; the node that both have shows both sides.
    void anotherFile() {
        write("one.py", "    r = aten.relu.default(m)\n    return (r,)\n");
        write("other.py", "    n = aten.neg.default(m)\n    r = aten.relu.default(n)\n    return (r,)\n");
        open(m_folder.filePath("one.py"));
        controller().compareWith(m_folder.filePath("other.py"), {});
        settle();
        QTRY_VERIFY(graph().pictureTitle().contains("other.py against as opened"));
        const auto shown = graph().view().canvas().scene()->picture.graph;
        QCOMPARE(shown->removed, 1);
        QCOMPARE(shown->added, 0);
        const auto relu = std::find_if(shown->nodes.begin(), shown->nodes.end(),
                                       [](const auto& node) { return node.info.op == "aten.relu.default"; });
        QVERIFY(relu->certainty == Certainty::Likely);
        QVERIFY2(graph().pictureTitle().contains("likely the same"), qPrintable(graph().pictureTitle()));
        QCOMPARE(QFileInfo(controller().path()).fileName(), QString("one.py"));
        // The list of what differs names such pairs, too.
        m_main->raiseWindow(&m_main->get<DifferencesWindow>());
        const auto* parts = m_main->get<DifferencesWindow>().findChild<QTreeWidget*>();
        QTRY_COMPARE(parts->topLevelItemCount(), 2);
        QVERIFY(parts->topLevelItem(1)->text(0).startsWith("Pairs that are not sure"));
        QCOMPARE(parts->topLevelItem(1)->child(0)->text(3), QString("likely the same"));
    }

    /// A graph that was opened by its name knows its neighbours, too.
    void openedByItsName() {
        QVERIFY(QDir(m_folder.path()).mkpath("debug"));
        write("debug/fx_graph_readable.py", "    r = aten.relu.default(m)\n    return (r,)\n");
        write("debug/fx_graph_transformed.py", "    r = aten.relu.default(m)\n    return (r,)\n");
        write("debug/other.py", "    r = aten.neg.default(m)\n    return (r,)\n");
        m_main->open(m_folder.filePath("debug"), "fx_graph_transformed.py");
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        QCOMPARE(controller().graph(), QString("fx_graph_transformed.py"));
        QCOMPARE(controller().graphs().size(), size_t(3));
        QVERIFY(controller().recordedPair().has_value());
        QCOMPARE(needsRecorded(*m_main), QString());
        QCOMPARE(m_main->findChildren<GraphDialog*>().size(), 0);
    }

    void anotherGraphOfTheTrace() {
        const QString trace = testing::referenceFolder("formats/trace") + "/dedicated_log_torch_trace_sample.log";
        if (!QFile::exists(trace)) QSKIP(testing::kNoReference);
        open(trace);
        const size_t all = controller().graphs().size();
        m_main->open(trace, "0/0 before_post_grad_graph");
        QTRY_COMPARE_WITH_TIMEOUT(controller().graph(), QString("0/0 before_post_grad_graph"),
                                  testing::kEnginePatience);
        settle();
        QCOMPARE(controller().graphs().size(), all);
        controller().compareWith(trace, "0/0 aot_joint_graph");
        settle();
        QTRY_VERIFY(graph().pictureTitle().contains("0/0 aot_joint_graph against"));
        QVERIFY(controller().recordedPair().has_value());
        controller().compareRecorded({});
        QTRY_VERIFY_WITH_TIMEOUT(graph().pictureTitle().contains("Cutaway's post_grad"), testing::kEnginePatience);
        settle();
        const auto shown = graph().view().canvas().scene()->picture.graph;
        QCOMPARE(shown->added + shown->removed + shown->edited, 0);
        QCOMPARE(controller().graph(), QString("0/0 before_post_grad_graph"));
    }

    /// Without a run the graph is compiled as the release compiles that wrote it: 2.13 merges no root and reciprocal.
    void recordedByAnEarlierRelease() {
        QVERIFY(QDir(m_folder.path()).mkpath("stages"));
        const auto put = [&](const char* name, const QByteArray& text) {
            QFile file(m_folder.filePath(QString("stages/") + name));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text);
        };
        const QByteArray root =
            "def forward(x: \"f32[4, 4]\"):\n    s = aten.sqrt.default(x)\n"
            "    r = aten.reciprocal.default(s)\n    return (r,)\n";
        put("04_post_grad.before.py", root);
        put("04_post_grad.after.py", root);
        put("fx_graph_runnable.py", "# torch version: 2.13.1+cpu\n");
        open(m_folder.filePath("stages"));
        m_main->open(m_folder.filePath("stages"), "04_post_grad.before.py");
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(controller().releaseOfFile() == Release::V2_13);
        QVERIFY(controller().recordedPair().has_value());
        const auto changes = [&] {
            const auto shown = graph().view().canvas().scene()->picture.graph;
            return shown->added + shown->removed + shown->edited;
        };
        compareRecorded(*m_main);
        QTRY_VERIFY_WITH_TIMEOUT(graph().pictureTitle().contains("Cutaway's post_grad"), testing::kEnginePatience);
        settle();
        QCOMPARE(changes(), 0);
        controller().compareRecorded({});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled() && changes() > 0, testing::kEnginePatience);
    }
};

CUTAWAY_SUITE(ComparedGraphsTest)
#include "compared_graphs_test.moc"
