// The auto-chunker on joint graphs that PyTorch 2.11 makes, held to the graphs that PyTorch makes of them, and to the
// numbers. tests/data/auto_chunker.txt is recorded by tests/scripts/record_auto_chunker.py.
#include "engine/passes/joint/auto_chunker.h"

#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/passes/joint/chunk_plan.h"
#include "engine/passes/pipeline.h"
#include "engine/rewrite/matcher.h"
#include "engine/text/parse.h"
#include "tests/support/case_files.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct RecordedChunking {
    QString name, settings, main, body, refused;
    std::string graph;
};

std::vector<RecordedChunking> readRecordedChunking() {
    QFile file(testing::testFile("data/auto_chunker.txt"));
    if (!file.open(QIODevice::ReadOnly)) qFatal("tests/data/auto_chunker.txt is missing");
    std::vector<RecordedChunking> out;
    for (const QString& part : QString::fromUtf8(file.readAll()).split("# case: ").mid(1)) {
        const auto property = [&](const char* key) {
            const auto match =
                QRegularExpression(QString("^# %1: (.*)$").arg(key), QRegularExpression::MultilineOption).match(part);
            return match.hasMatch() ? match.captured(1) : QString();
        };
        out.push_back({part.section('\n', 0, 0), property("settings"), property("main"), property("body"),
                       property("refused"), part.mid(part.indexOf("def forward")).toStdString()});
    }
    return out;
}

CompileRequest withChunker(const QString& settings) {
    CompileRequest options;
    options.enabledPasses.push_back(
        *parseOptionalPass("auto_chunker" + (settings.isEmpty() ? std::string() : "=" + settings.toStdString())));
    return options;
}

Step chunked(const Snapshot& graph, const CompileRequest& options) {
    return runPass(*testing::findPass("auto_chunker"), graph, options);
}

/// Calls only, as the recording counts them.
QString callCounts(const Module& module) {
    QStringList out;
    for (const auto& [name, count] : opHistogram(module))
        if (name != "placeholder" && name != "output" && name != "get_attr")
            out << QString("%1 %2").arg(count).arg(QString::fromStdString(name));
    out.sort();
    return out.join("; ");
}
QString sorted(const QString& counts) {
    QStringList out = counts.split("; ");
    out.sort();
    return out.join("; ");
}

void compareChunkedNumbers(const Snapshot& before, const Snapshot& after) {
    const auto inputs = randomInputs(*before, 7);
    QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
    const auto expected = interpret(*before, *inputs), actual = interpret(*after, *inputs);
    QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
    QVERIFY2(actual.has_value(), actual ? "" : actual.error().text().c_str());
    QCOMPARE(actual->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) {
        if (!(*expected)[i].defined()) continue;
        // Sums over rows are kept in bf16, as in PyTorch: eight roundings instead of one.
        const double tolerance = isHalf((*expected)[i].dtype()) ? 5e-2 : 1e-4;
        const Comparison comparison = compare((*actual)[i], (*expected)[i], Tolerance{tolerance, tolerance});
        QVERIFY2(comparison.sameType && comparison.within, qPrintable(QString("result %1 differs").arg(i)));
    }
}

}  // namespace

class AutoChunkerTest : public QObject {
    Q_OBJECT

    std::vector<RecordedChunking> m_recorded = readRecordedChunking();
    const RecordedChunking& named(const QString& name) const {
        return *std::find_if(m_recorded.begin(), m_recorded.end(),
                             [&](const RecordedChunking& one) { return one.name == name; });
    }

  private slots:
    void likePyTorch_data() {
        QTest::addColumn<size_t>("position");
        for (size_t i = 0; i < m_recorded.size(); ++i)
            if (!m_recorded[i].main.isEmpty()) QTest::newRow(qPrintable(m_recorded[i].name)) << i;
    }
    void likePyTorch() {
        QFETCH(size_t, position);
        const RecordedChunking& one = m_recorded[position];
        auto graph = parseText(one.graph);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const Snapshot before = std::move(*graph);
        const Step step = chunked(before, withChunker(one.settings));
        QVERIFY2(
            step.info.state == StepState::Changed,
            qPrintable(
                QString::fromStdString(step.info.error) + " " +
                QString::fromStdString(
                    planChunks(const_cast<Graph&>(before->graph()), ChunkSettings(withChunker(one.settings))).reason)));
        QCOMPARE(step.info.rewrites, 1);
        QCOMPARE(callCounts(*step.after), sorted(one.main));
        QVERIFY(!step.after->subgraphs.empty());
        QCOMPARE(callCounts(*step.after->subgraphs[0].second), sorted(one.body));
        compareChunkedNumbers(before, step.after);
        QCOMPARE(chunked(step.after, withChunker(one.settings)).info.state, StepState::Unchanged);
    }

    void leftAlone_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("reason");
        QTest::newRow("smoothed labels") << "smoothed labels"
                                         << "`expand_1` expands more than one number";
        QTest::newRow("a loss per row") << "a loss per row"
                                        << "no rule says how aten.unsqueeze.default (`unsqueeze_2`)";
        QTest::newRow("not large enough") << "not large enough"
                                          << "its result has 40960 bytes, not more than 1.04858e+06";
        QTest::newRow("a trivial loss") << "a trivial loss"
                                        << "nothing large has to be kept";
        QTest::newRow("squares") << "squares"
                                 << "no rule says how aten.mean.default (`mean`)";
        QTest::newRow("gelu") << "gelu"
                              << "no rule says how aten.erf.default (`erf`)";
        QTest::newRow("exponentials") << "exponentials"
                                      << "the value of every row is returned";
    }
    void leftAlone() {
        QFETCH(QString, name);
        QFETCH(QString, reason);
        const RecordedChunking& one = named(name);
        QVERIFY(!one.refused.isEmpty());  // PyTorch leaves it alone, too
        auto graph = parseText(one.graph);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const Snapshot before = std::move(*graph);
        QCOMPARE(chunked(before, withChunker({})).info.state, StepState::Unchanged);
        QString said;
        for (Node& node : before->graph().nodes())
            for (const Rule& rule : autoChunkerRules())
                if (said.isEmpty() && node.isCall() && rule.find.find(node.op().name()) != std::string_view::npos)
                    said = QString::fromStdString(explainRule(rule, node, withChunker({})).reason);
        QVERIFY2(said.contains(reason), qPrintable(said));
    }

    /// PyTorch's chunker stops the compilation here: a gradient that comes in is read outside of the chunks, too.
    void aGradientReadTwice() {
        const RecordedChunking& one = named("two products");
        QVERIFY(one.refused.startsWith("RuntimeError"));
        auto graph = parseText(one.graph);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const Snapshot before = std::move(*graph);
        const Step first = chunked(before, withChunker({}));
        QVERIFY2(first.info.state == StepState::Changed, first.info.error.c_str());
        QCOMPARE(first.rewrites[0].node, "addmm_1");
        compareChunkedNumbers(before, first.after);
        // The other product is left to a second run of the pass.
        const Step second = chunked(first.after, withChunker({}));
        QVERIFY2(second.info.state == StepState::Changed, second.info.error.c_str());
        QCOMPARE(second.rewrites[0].node, "addmm");
        compareChunkedNumbers(before, second.after);
        QCOMPARE(chunked(second.after, withChunker({})).info.state, StepState::Unchanged);
    }
};

CUTAWAY_SUITE(AutoChunkerTest)
#include "auto_chunker_test.moc"
