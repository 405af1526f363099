// A pass that runs again at once changes nothing more, or its row in the pipeline says why it may (Pass::repeats). Held
// for every pass on every graph of tests/cases, and for every step of the bundled models' compilations. And each says
// of what it makes where it came from.
#include <QDirIterator>
#include <QtTest>
#include <set>

#include "engine/formats/open.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct Sample {
    QString name;
    Snapshot graph;
    CompileRequest options;
};

/// The settings that a case gives to passes, as --enable has them: in its lines "# options:" and "# pass:".
CompileRequest optionsIn(const QString& head, const QString& text) {
    CompileRequest options;
    static const QRegularExpression lines("^# (?:options|pass): *(.*)$", QRegularExpression::MultilineOption);
    for (auto at = lines.globalMatch(head); at.hasNext();)
        for (const QString& word : at.next().captured(1).split(' ', Qt::SkipEmptyParts)) {
            if (!word.contains('=') || word.contains("decisions:")) continue;
            if (auto pass = parseOptionalPass(word.toStdString())) options.enabledPasses.push_back(std::move(*pass));
        }
    if (text.contains("cuda:0")) options.target = Target::Cuda;
    return options;
}

/// Every graph in a file of cases, whatever kind of case it is.
void addGraphs(const QString& path, std::vector<Sample>& samples) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
    const QString text = QString::fromUtf8(file.readAll());
    static const QRegularExpression graphs(
        "^(?:def (?:before|after|forward)\\(|class GraphModule).*\\n(?:[ \\t].*\\n?)+",
        QRegularExpression::MultilineOption);
    for (auto at = graphs.globalMatch(text); at.hasNext();) {
        const auto match = at.next();
        QString body = match.captured();
        body.replace(QRegularExpression("^def (before|after)\\("), "def forward(");
        auto module = parseText(body.toStdString());
        if (!module) continue;  // not a graph of its own, or one that is to be refused
        const qsizetype line = text.left(match.capturedStart()).count('\n') + 1;
        const qsizetype head = std::max<qsizetype>(0, text.lastIndexOf("# case:", match.capturedStart()));
        samples.push_back({QDir(testing::testFile("cases")).relativeFilePath(path) + ":" + QString::number(line),
                           std::move(*module), optionsIn(text.mid(head, match.capturedStart() - head), body)});
    }
}

QString printedText(const Snapshot& graph) {
    return QString::fromStdString(printText(*graph, {.comments = false}).text);
}

}  // namespace

class IdempotentTest : public QObject {
    Q_OBJECT

    std::vector<Sample> m_samples;
    std::set<std::string_view> m_seen;  // sentences of passes that did change something twice

    /// The pass again on what it made: the empty text, or what it changed.
    static QString changedAgain(const Pass& pass, const Step& once, const CompileRequest& options) {
        const Step again = runPass(pass, once.after, options);
        if (again.info.state == StepState::Unchanged) return {};
        if (again.info.state == StepState::Failed)
            return "the second run fails: " + QString::fromStdString(again.info.error);
        return "the second run applies " +
               QString::fromStdString(again.rewrites.empty() ? "?" : again.rewrites[0].rule) + " to\n" +
               printedText(once.after);
    }

  private slots:
    void initTestCase() {
        QDirIterator files(testing::testFile("cases"), {"*.txt"}, QDir::Files, QDirIterator::Subdirectories);
        QStringList paths;
        while (files.hasNext()) paths << files.next();
        paths.sort();
        for (const QString& path : paths) addGraphs(path, m_samples);
        QVERIFY(m_samples.size() > 300);
    }

    static bool has(const Module& module, NodeId id) {
        return module.graph().find(id) || std::any_of(module.subgraphs.begin(), module.subgraphs.end(),
                                                      [&](const auto& body) { return has(*body.second, id); });
    }
    /// A call that the step made, and that does not say which nodes of the graph before it was made of.
    static QString madeOfNothing(const Step& step) {
        for (const Node& node : step.after->graph().nodes()) {
            if (!node.isCall() || step.before->graph().find(node.id())) continue;
            const std::vector<NodeId>& origins = node.provenance().origin;
            if (std::none_of(origins.begin(), origins.end(), [&](NodeId id) { return has(*step.before, id); }))
                return QString::fromStdString(step.info.name + " says not what " + node.name() + " was made of");
        }
        return {};
    }

    void passes_data() {
        QTest::addColumn<size_t>("position");
        for (size_t i = 0; i < pipeline().size(); ++i)
            QTest::newRow(std::string(pipeline()[i].pass->name).c_str()) << i;
    }
    void passes() {
        QFETCH(size_t, position);
        const Pass& pass = *pipeline()[position].pass;
        if (pass.compare) return;  // it only looks
        bool repeated = false;
        for (const Sample& sample : m_samples) {
            const Step once = runPass(pass, sample.graph, sample.options);
            if (once.info.state != StepState::Changed) continue;  // a graph of another stage is refused, or left alone
            QVERIFY2(madeOfNothing(once).isEmpty(), qPrintable(sample.name + ": " + madeOfNothing(once)));
            const QString difference = changedAgain(pass, once, sample.options);
            repeated |= !difference.isEmpty();
            if (pass.repeats.empty()) QVERIFY2(difference.isEmpty(), qPrintable(sample.name + ": " + difference));
        }
        if (repeated) m_seen.insert(pass.repeats);
    }

    void models_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<Mode>("mode");
        QTest::addColumn<bool>("cuda");
        QDirIterator files(QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models"), {"*.pt2"}, QDir::Files);
        while (files.hasNext()) {
            const QString path = files.next(), name = QFileInfo(path).baseName();
            for (const Mode mode : kModes)
                for (const bool cuda : {false, true})
                    QTest::newRow(qPrintable(name + ", " + modeName(mode).data() + (cuda ? ", cuda" : "")))
                        << path << mode << cuda;
        }
    }
    void models() {
        QFETCH(QString, path);
        QFETCH(Mode, mode);
        QFETCH(bool, cuda);
        auto opened = openFile(path.toStdString());
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        CompileRequest options;
        options.mode = mode;
        options.target = cuda ? Target::Cuda : Target::Cpu;
        const auto trace = runPipeline(Snapshot(std::move(opened->graphs.at(0).module)), options);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        for (const Step& step : trace->steps) {
            QVERIFY2(step.info.state != StepState::Failed, step.info.error.c_str());
            if (step.info.state != StepState::Changed) continue;
            QVERIFY2(madeOfNothing(step).isEmpty(), qPrintable(madeOfNothing(step)));
            const QString difference = changedAgain(*step.pass, step, options);
            if (!difference.isEmpty()) m_seen.insert(step.pass->repeats);
            QVERIFY2(!step.pass->repeats.empty() || difference.isEmpty(),
                     qPrintable(QString::fromStdString(step.info.name) + ": " + difference));
        }
    }

    /// A sentence that no pass needs would be an excuse. Passes of one kind share theirs.
    void sentencesAreNeeded() {
        for (const StagePass& one : pipeline())
            if (!one.pass->repeats.empty())
                QVERIFY2(m_seen.contains(one.pass->repeats), std::string(one.pass->name).c_str());
    }
};

CUTAWAY_SUITE(IdempotentTest)
#include "idempotent_test.moc"
