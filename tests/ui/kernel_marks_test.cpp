// Kernels on the graph: which nodes are ringed in which step, what the Node window says of them, and the way on to a
// line of C++ and back.
#include <QDirIterator>
#include <QPlainTextEdit>
#include <QTreeView>
#include <QtTest>

#include "cutaway/loops.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/models/kernel_lines.h"
#include "ui/windows/filmstrip_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/loops_window.h"
#include "ui/windows/node_window.h"

using namespace cutaway;
using namespace cutaway::ui;

class KernelMarksTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    GraphView& view() { return m_main->get<GraphWindow>().view(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience); }
    void openAndCompile() {
        QFile file(m_folder.filePath("softmax.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"(def forward(self, x: "f32[12, 100]", y: "f32[100, 8]"):
    a = aten.relu.default(x)
    s = aten.softmax.int(a, 1)
    m = aten.mm.default(s, y)
    c = aten.cos.default(m)
    return (c,)
)");
        file.close();
        m_main->open(file.fileName());
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
    }
    void goTo(int step) {
        m_main->selection().setPlace({controller().runs().front().id, step, -1});
        settle();
    }
    void goToLast() { goTo(static_cast<int>(controller().runs().front().steps.size()) - 1); }
    void choose(const std::string& op) {
        for (const auto& node : view().graph()->nodes)
            if (node.info.op == op) m_main->selection().setNode(node.info.id);
        settle();
        QTRY_VERIFY_WITH_TIMEOUT(controller().kernelQuery().marks(controller().runs().front().id),
                                 testing::kEnginePatience);
    }
    /// Operators of the nodes on show that are ringed.
    QString ringed() {
        QStringList ops;
        for (const auto& node : view().graph()->nodes)
            if (view().canvas().ringed().contains(packed(node.info.id)))
                ops << QString::fromStdString(node.info.op).section('.', 1, 1);
        ops.sort();
        return ops.join(' ');
    }
    QString nodeText() { return testing::treeText(*m_main->get<NodeWindow>().findChild<QTreeView*>()->model()); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    void linesOfBuffers() {
        // Line 0 is the head, 1 reads b1 and b3, 2 writes b0 of b1, 3 writes b0 again.
        const std::vector<CodeLine> lines{{}, {-1, {1, 3}}, {0, {1}}, {0, {}}};
        QCOMPARE(lineOfBuffer(lines, 0), 2);
        QCOMPARE(lineOfBuffer(lines, 1), 1);
        QCOMPARE(lineOfBuffer(lines, 2), -1);
        const auto buffer = [&](int line) { return static_cast<int>(bufferOfLine(lines, line).value_or(99)); };
        QCOMPARE(buffer(0), 99);
        QCOMPARE(buffer(1), 3);
        QCOMPARE(buffer(2), 0);
        QCOMPARE(buffer(-1), 99);
        QCOMPARE(buffer(4), 99);
    }

    /// Node to kernel to line and back, of all recorded models: each buffer of a kernel's code is a value that the
    /// graph has, and a line that writes or reads it leads there.
    void linesLeadToNodesAndBack_data() {
        QTest::addColumn<QString>("path");
        QTest::newRow("mlp") << testing::testFile("../resources/models/mlp.pt2");
        const QString folder = testing::referenceFolder("models");
        if (folder.isEmpty()) return;
        for (QDirIterator models(folder, {"model.pt2"}, QDir::Files, QDirIterator::Subdirectories); models.hasNext();) {
            const QString path = models.next();
            QTest::newRow(qPrintable(path.section('/', -2, -2))) << path;
        }
    }
    void linesLeadToNodesAndBack() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        const auto run = session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const Place last{*run, static_cast<int>(session.steps(*run)->size()) - 1, -1};
        const auto graph = session.diff(last, last);
        const auto calls = kernelCalls(session, *run);
        QVERIFY2(calls, calls ? "" : calls.error().text().c_str());
        const NodeIndex nodes(std::make_shared<const UnionGraph>(*graph));
        int lines = 0, libraries = 0;
        for (const KernelCall& call : *calls) {
            for (const NodeKey node : call.nodes) QVERIFY(nodes.find(node));
            libraries += call.kernel.empty();
            if (call.kernel.empty()) continue;
            const auto loops = kernelLoops(session, *run, call.kernel);
            QVERIFY(loops);
            QCOMPARE(static_cast<qsizetype>(loops->lines.size()),
                     QString::fromStdString(loops->source).count(QChar('\n')));
            const QStringList text = QString::fromStdString(loops->source).split(QChar('\n'));
            for (size_t line = 0; line < loops->lines.size(); ++line) {
                std::vector<int> all = loops->lines[line].reads;
                if (loops->lines[line].writes >= 0) all.push_back(loops->lines[line].writes);
                for (const int buffer : all)
                    QVERIFY2(text[static_cast<qsizetype>(line)].contains("b" + QString::number(buffer)),
                             qPrintable(text[static_cast<qsizetype>(line)]));
            }
            bool written = false;
            for (size_t buffer = 0; buffer < call.buffers.size(); ++buffer) {
                const int line = lineOfBuffer(loops->lines, buffer);
                // Memory that a kernel only works in has no node; a value that is not used has no line.
                if (call.buffers[buffer] == NodeKey::None || line < 0) continue;
                QVERIFY(nodes.find(call.buffers[buffer]));
                const auto back = bufferOfLine(loops->lines, line);
                QVERIFY(back.has_value());
                ++lines;
                const auto& own = call.nodes;
                written |= back == buffer && std::find(own.begin(), own.end(), call.buffers[buffer]) != own.end();
            }
            QVERIFY2(written, call.kernel.c_str());
        }
        QVERIFY(lines + libraries > 0);
    }

    /// Time and share of the last run, once there was one.
    void theNodeWindowTellsTimes() {
        NodeFacts facts;
        facts.after.emplace();
        facts.after->node.id = static_cast<NodeKey>(7);
        KernelCall call, other;
        call.kernel = "backward/kernel3";
        call.kind = "reduction";
        call.nodes = {static_cast<NodeKey>(7)};
        call.microseconds = 250;
        other.kind = "library: mm (oneDNN)";
        other.nodes = {static_cast<NodeKey>(8)};
        other.replaced = {static_cast<NodeKey>(7)};
        other.microseconds = 750;
        facts.kernels = std::make_shared<const KernelMarks>(std::vector<KernelCall>{call, other});
        NodeModel model;
        model.setFacts(facts);
        const QString text = testing::treeText(model);
        QVERIFY2(
            text.contains("Kernel | 2 calls later\n  backward/kernel3 | reduction · 250 µs · 25.0 % of the last run\n"
                          "  Library | library: mm (oneDNN) · 750 µs · 75.0 % of the last run\n"),
            qPrintable(text));
        QVERIFY2(text.contains("code | computed by backward/kernel3\n  code | computed by mm (oneDNN)"),
                 qPrintable(text));
    }

    /// Also in the graph as it was opened, where one call stands for what is a kernel later.
    void aKernelIsRingedInEveryStep() {
        openAndCompile();
        goTo(-1);
        choose("aten.softmax.int");
        QTRY_COMPARE(ringed(), "relu softmax");
        goToLast();
        const QString all = ringed();
        QVERIFY2(all.contains("exp") && all.contains("relu") && all.contains("sum"), qPrintable(all));
        QVERIFY(!all.contains("cos") && !all.contains("mm"));
        choose("aten.exp.default");
        QCOMPARE(ringed(), all);
        goTo(-1);
        QCOMPARE(ringed(), "relu softmax");
        goToLast();
        choose("aten.cos.default");
        QCOMPARE(ringed(), "cos");
    }

    /// A state that does not have the current node shows what it was there.
    void aFilmstripRingsWhatTheNodeWas() {
        openAndCompile();
        goToLast();
        choose("aten.exp.default");
        auto& strip = m_main->get<FilmstripWindow>();
        m_main->raiseWindow(&strip);
        const RunId run = controller().runs().front().id;
        strip.showStates({{run, -1, -1}, {run, 12, -1}, m_main->selection().place()});
        QTRY_COMPARE_WITH_TIMEOUT(strip.views().size(), size_t(3), testing::kEnginePatience);
        settle();
        const GraphCanvas& opened = strip.views().front()->canvas();
        QCOMPARE(opened.currentIndex(), -1);
        QStringList ops;
        for (const auto& node : strip.views().front()->graph()->nodes)
            if (opened.ringed().contains(packed(node.info.id))) ops << QString::fromStdString(node.info.op);
        QCOMPARE(ops, (QStringList{"aten.relu.default", "aten.softmax.int"}));
    }

    void boxesHaveTheNamesOfTheirKernels() {
        openAndCompile();
        goToLast();
        choose("aten.cos.default");
        const auto marks = controller().kernelQuery().marks(controller().runs().front().id);
        QStringList names;
        for (const auto& node : view().graph()->nodes) names << marks->shortName(node.info.id, {});
        names.removeDuplicates();
        names.removeAll(QString());
        names.sort();
        QVERIFY2(names.contains("k0") && names.contains("k1"), qPrintable(names.join(' ')));
        picture("kernel-names", 300);
        QCOMPARE(marks->shortName(m_main->selection().node(), "backward"), "");
    }

    /// From the node to its line, by the Node window, and from a line to its node.
    void theHistoryLeadsToCodeAndBack() {
        openAndCompile();
        goToLast();
        choose("aten.cos.default");
        const NodeKey cos = m_main->selection().node();
        auto* tree = m_main->get<NodeWindow>().findChild<QTreeView*>();
        QTRY_VERIFY2(nodeText().contains("code | computed by kernel1"), qPrintable(nodeText()));
        QVERIFY2(nodeText().contains("Kernel | of its own\n  kernel1 | pointwise"), qPrintable(nodeText()));
        const auto rows = tree->model()->match(tree->model()->index(0, 0), NodeModel::KernelRole, "kernel1", 1,
                                               Qt::MatchRecursive | Qt::MatchExactly);
        QVERIFY(!rows.isEmpty());
        emit tree->activated(rows.first());
        QPlainTextEdit* code = nullptr;
        for (auto* found : m_main->get<LoopsWindow>().findChildren<QPlainTextEdit*>())
            if (found->accessibleName() == "C++") code = found;
        QTRY_VERIFY_WITH_TIMEOUT(!code->extraSelections().isEmpty(), testing::kEnginePatience);
        QVERIFY(code->isVisible());
        const QString marked = code->textCursor().block().text();
        QVERIFY2(marked.contains("st_f32(b0") || marked.contains("b0["), qPrintable(marked));
        picture("kernel-line", 300);
        // Back: a line leads to the node whose value it writes or reads, and one that does neither to none.
        choose("aten.exp.default");
        QTRY_VERIFY_WITH_TIMEOUT(code->toPlainText().startsWith("// kernel0"), testing::kEnginePatience);
        const auto choice = [&](int line) {
            code->setTextCursor(QTextCursor(code->document()->findBlockByNumber(line)));
            QTest::keyClick(code, Qt::Key_Return);
            const UnionGraph::Node* node = NodeIndex(view().graph()).find(m_main->selection().node());
            return node ? QString::fromStdString(node->info.name) : QString();
        };
        const NodeKey exp = m_main->selection().node();
        const auto lineWith = [&](const QString& text) {
            return code->document()->find(QRegularExpression(text)).blockNumber();
        };
        const int reads = lineWith("(ld_f32\\(b1|= b1\\[)");
        QVERIFY(reads > 0);
        QVERIFY(choice(0).startsWith("exp"));
        QCOMPARE(m_main->selection().node(), exp);
        QCOMPARE(choice(reads), "x");
        const int writes = lineWith("(st_f32\\(b0|^ *b0\\[)");
        QVERIFY2(choice(writes).startsWith("div"), qPrintable(choice(writes)));
        QVERIFY(code->extraSelections().first().cursor.blockNumber() == writes);
        m_main->selection().setNode(cos);
    }
};

CUTAWAY_SUITE(KernelMarksTest)
#include "kernel_marks_test.moc"
