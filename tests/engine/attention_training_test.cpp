// Attention in training graphs that PyTorch 2.11 makes, on the CPU and on a GPU, with sizes as numbers and as symbols:
// our joint passes leave the same calls as PyTorch's. tests/data/attention_training_*.txt are recorded by
// tests/scripts/record_attention_training.py.
#include <QtTest>

#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct RecordedAttention {
    QString name, calls;
    int fused = 0;
    std::string graph;
};

std::vector<RecordedAttention> readRecordedAttention() {
    std::vector<RecordedAttention> out;
    for (const char* device : {"cpu", "cuda"}) {
        QFile file(testing::testFile((std::string("data/attention_training_") + device + ".txt").c_str()));
        if (!file.open(QIODevice::ReadOnly)) qFatal("a recording is missing");
        for (const QString& part : QString::fromUtf8(file.readAll()).split("# case: ").mid(1)) {
            const auto property = [&](const char* key) {
                return QRegularExpression(QString("^# %1: (.*)$").arg(key), QRegularExpression::MultilineOption)
                    .match(part)
                    .captured(1);
            };
            out.push_back({part.section('\n', 0, 0), property("calls"), property("fused").toInt(),
                           part.mid(part.indexOf("class ")).toStdString()});
        }
    }
    return out;
}

/// Whether calls of that name are compared: not getitem, of which PyTorch leaves unread ones in the graph, and not
/// arithmetic on sizes, which our graphs hold as expressions.
bool counts(const QString& name) {
    return !name.startsWith("operator.") && name != "aten.sym_size.int" && name != "torch.sym_float";
}
QString comparedCalls(const Module& module) {
    QStringList out;
    for (const auto& [name, count] : opHistogram(module))
        if (name != "placeholder" && name != "output" && name != "get_attr" && counts(QString::fromStdString(name)))
            out << QString("%1 %2").arg(count).arg(QString::fromStdString(name));
    out.sort();
    return out.join("; ");
}
QString counted(const QString& recorded) {
    QStringList out;
    for (const QString& one : recorded.split("; "))
        if (counts(one.section(' ', 1))) out << one;
    out.sort();
    return out.join("; ");
}

}  // namespace

class AttentionTrainingTest : public QObject {
    Q_OBJECT

    std::vector<RecordedAttention> m_recorded = readRecordedAttention();

  private slots:
    void likePyTorch_data() {
        QTest::addColumn<size_t>("position");
        for (size_t i = 0; i < m_recorded.size(); ++i) QTest::newRow(qPrintable(m_recorded[i].name)) << i;
        QVERIFY(m_recorded.size() > 40);
    }
    void likePyTorch() {
        QFETCH(size_t, position);
        const RecordedAttention& one = m_recorded[position];
        auto graph = parseText(one.graph);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        CompileRequest options;
        options.pytorch = Release::V2_11;  // which recorded them
        options.mode = Mode::Training;
        options.onlyStage = "joint";
        if (one.name.contains("cuda")) options.target = Target::Cuda;
        // PyTorch 2.11 fuses f32 products though they are not to be rounded (H-2), and takes scaled softmax for finite.
        options.parity = one.name != "5, f32, cpu, symbolic";
        const auto trace = runPipeline(Snapshot(std::move(*graph)), options);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        for (const Step& step : trace->steps)
            QVERIFY2(step.info.state != StepState::Failed, (step.info.name + ": " + step.info.error).c_str());
        bool fused = false;
        for (const Step& step : trace->steps)
            for (const RewriteInfo& rewrite : step.rewrites) fused |= rewrite.rule.starts_with("sfdp_");
        if (qEnvironmentVariableIsSet("SHOW_GRAPHS"))
            qInfo("%s", printText(*trace->result(), {.comments = false}).text.c_str());
        // PyTorch takes any scale for the default one (H-1); a kernel of ours has a number for it, which a symbolic
        // width does not give.
        if (one.name == "5, f32, cpu, symbolic") {
            QVERIFY(one.fused > 0 && !fused);
            return;
        }
        QCOMPARE(fused, one.fused > 0);
        // PyTorch chooses the kernel by the example of the width and guards it; ours, which compiles for every width,
        // takes the math form.
        if (one.name == "13, f16, cuda, symbolic" || one.name == "24, f32, cuda, symbolic") return;
        QCOMPARE(comparedCalls(*trace->result()), counted(one.calls));
    }
};

CUTAWAY_SUITE(AttentionTrainingTest)
#include "attention_training_test.moc"
