// Graphs as Dynamo writes them, against the ATen graphs that make_fx makes of them: tests/cases/torch_calls/*.txt,
// recorded by tests/scripts/record_dynamo.py. Each file is held to: the lowered graph has the recorded operators in the
// recorded order; both compute equal numbers; types are found without annotations too; the whole compiler takes it.
#include "engine/ops/torch/torch_calls.h"

#include <QDirIterator>
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/passes/pipeline.h"
#include "engine/rewrite/dead_code.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/case_files.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct Recording {
    QString name, differs, dynamo, aten;
    QStringList results;  // dtype, sizes, mean, weighted mean
};

Recording readRecording(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
    const QString text = QString::fromUtf8(file.readAll());
    const qsizetype dynamo = text.indexOf("# dynamo\n"), aten = text.indexOf("# aten\n");
    Recording out;
    out.name = QFileInfo(path).completeBaseName();
    const auto differs = QRegularExpression("^# differs: (.*)$", QRegularExpression::MultilineOption).match(text);
    if (differs.hasMatch()) out.differs = differs.captured(1);
    out.dynamo = text.mid(dynamo + 9, aten < 0 ? -1 : aten - dynamo - 9);
    if (aten >= 0) {
        const qsizetype results = text.indexOf("# results\n");
        out.aten = text.mid(aten + 7, results - aten - 7);
        out.results = text.mid(results + 10).split('\n', Qt::SkipEmptyParts);
    }
    return out;
}

Result<Snapshot> parsed(const QString& text) {
    CT_TRY(auto module, parseText(text.toStdString()));
    return Snapshot(std::move(module));
}

/// The lowered graph without what nobody reads.
Result<std::shared_ptr<Module>> lowered(const Snapshot& dynamo) {
    auto module = std::make_shared<Module>(*dynamo);
    CT_TRY_VOID(lowerTorchCalls(*module));
    const CompileRequest options;
    Rewriter rewriter("eliminate_dead_code", options);
    CT_TRY_VOID(eliminateDeadCode(*module, rewriter));
    CT_TRY_VOID(verify(*module, {.types = true}));
    return module;
}

QStringList calls(const Module& module) {
    QStringList out;
    for (const Node& node : module.graph().nodes())
        if (node.isCall()) out << QString::fromStdString(node.op().name());
    return out;
}

QString outputTypes(const Module& module) {
    QStringList out;
    for (const Argument& value : module.graph().outputs())
        out << (value.node() ? QString::fromStdString(
                                   value.node()->type().tensor() ? value.node()->type().tensor()->text() : "?")
                             : "-");
    return out.join("; ");
}

/// Values as record_dynamo.py makes them.
Tensor filled(const Node& node, int64_t number) {
    const TensorType& type = node.tensor();
    Tensor out = Tensor::empty(type.dtype, toInts(type.sizes));
    std::vector<double> values(static_cast<size_t>(out.numel()));
    for (int64_t k = 0; k < out.numel(); ++k) {
        double value = static_cast<double>((k * 7 + number * 3) % 4);
        if (isFloating(type.dtype)) value = static_cast<double>((k * 37 + number * 11) % 101 - 50) / 25;
        if (isFloating(type.dtype) && node.target().find("var") != std::string::npos) value = std::fabs(value) + 0.5;
        values[static_cast<size_t>(k)] = value;
    }
    storeElements(type.dtype, out.data(), 1, out.numel(), values.data());
    return out;
}

void compareResult(const Tensor& value, const QString& line) {
    const auto parts = QRegularExpression("^# (\\w+) \\[([^\\]]*)\\] (\\S+) (\\S+)$").match(line);
    QVERIFY2(parts.hasMatch(), qPrintable(line));
    QCOMPARE(QString::fromUtf8(info(value.dtype()).torchName.data()), parts.captured(1));
    QStringList sizes;
    for (const int64_t size : value.sizes()) sizes << QString::number(size);
    QCOMPARE(sizes.join(", "), parts.captured(2));
    const Tensor dense = value.contiguous();
    std::vector<double> elements(static_cast<size_t>(dense.numel()));
    loadElements(dense.dtype(), dense.data(), 1, dense.numel(), elements.data());
    double mean = 0, weighted = 0;
    for (size_t k = 0; k < elements.size(); ++k) {
        mean += elements[k] / static_cast<double>(elements.size());
        weighted += elements[k] * static_cast<double>(k % 13) / static_cast<double>(elements.size());
    }
    const double tolerance = isHalf(value.dtype()) ? 1e-2 : 1e-4;
    const auto close = [&](double actual, double expected) {
        return actual == expected || std::fabs(actual - expected) <= tolerance * (1 + std::fabs(expected)) ||
               (std::isnan(actual) && std::isnan(expected));
    };
    QVERIFY2(close(mean, parts.captured(3).toDouble()) && close(weighted, parts.captured(4).toDouble()),
             qPrintable(QString("%1 and %2, recorded: %3").arg(mean).arg(weighted).arg(line)));
}

}  // namespace

class TorchCallsTest : public QObject {
    Q_OBJECT

    static void rows() {
        QTest::addColumn<QString>("path");
        QDirIterator files(testing::testFile("cases/torch_calls"), {"*.txt"}, QDir::Files);
        QStringList paths;
        while (files.hasNext()) paths << files.next();
        paths.sort();
        for (const QString& path : paths) QTest::newRow(qPrintable(QFileInfo(path).completeBaseName())) << path;
    }

  private slots:
    void operators_data() { rows(); }
    void operators() {
        QFETCH(QString, path);
        const Recording recording = readRecording(path);
        const auto dynamo = parsed(recording.dynamo);
        QVERIFY2(dynamo.has_value(), dynamo ? "" : dynamo.error().text().c_str());
        const auto module = lowered(*dynamo);
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        QVERIFY(!hasTorchCalls(**module));
        if (recording.aten.isEmpty()) return;
        const auto aten = parsed(recording.aten);
        QVERIFY2(aten.has_value(), aten ? "" : aten.error().text().c_str());
        QCOMPARE(outputTypes(**module), outputTypes(**aten));
        const CompileRequest options;
        Rewriter rewriter("eliminate_dead_code", options);
        auto recorded = std::make_shared<Module>(**aten);
        QVERIFY(eliminateDeadCode(*recorded, rewriter).has_value());
        if (recording.differs.isEmpty()) QCOMPARE(calls(**module).join("\n"), calls(*recorded).join("\n"));
        else
            QVERIFY2(calls(**module) != calls(*recorded),
                     "the recording says that the operators differ, but they do not");
    }

    void numbers_data() { rows(); }
    void numbers() {
        QFETCH(QString, path);
        const Recording recording = readRecording(path);
        if (recording.results.isEmpty()) QSKIP("recorded with dynamic sizes");
        const auto dynamo = parsed(recording.dynamo);
        QVERIFY(dynamo.has_value());
        std::vector<Tensor> inputs;
        for (const Node* node : (*dynamo)->graph().placeholders())
            inputs.push_back(filled(*node, static_cast<int64_t>(inputs.size())));
        const auto results = interpret(**dynamo, inputs);
        QVERIFY2(results.has_value(), results ? "" : results.error().text().c_str());
        QCOMPARE(static_cast<qsizetype>(results->size()), recording.results.size());
        for (size_t i = 0; i < results->size(); ++i)
            compareResult((*results)[i], recording.results[static_cast<qsizetype>(i)]);
    }

    void typesWithoutAnnotations_data() { rows(); }
    void typesWithoutAnnotations() {
        QFETCH(QString, path);
        const Recording recording = readRecording(path);
        const auto annotated = parsed(recording.dynamo);
        QString bare = recording.dynamo;
        bare.replace(QRegularExpression("^( +\\w+): \"[^\"]*\" =", QRegularExpression::MultilineOption), "\\1 =");
        bare.replace(QRegularExpression("; ( *\\w+): \"[^\"]*\" =", QRegularExpression::MultilineOption), "; \\1 =");
        QVERIFY(bare != recording.dynamo);
        const auto plain = parsed(bare);
        QVERIFY2(plain.has_value(), plain ? "" : plain.error().text().c_str());
        for (const Node& node : (*plain)->graph().nodes()) {
            const Node* other = (*annotated)->graph().findByName(node.name());
            if (!node.isCall() || other == nullptr || !other->type().tensor()) continue;
            QVERIFY2(node.type().tensor(), qPrintable(QString("no type for ") + node.name().c_str()));
            QCOMPARE(node.type().tensor()->dtype, other->type().tensor()->dtype);
            QVERIFY2(node.type().tensor()->sizes == other->type().tensor()->sizes, node.name().c_str());
        }
    }

    void compiles_data() { rows(); }
    void compiles() {
        QFETCH(QString, path);
        const Recording recording = readRecording(path);
        const auto dynamo = parsed(recording.dynamo);
        QVERIFY(dynamo.has_value());
        const auto trace = runPipeline(*dynamo, {});
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        if (trace->failed()) QFAIL((trace->steps.back().info.name + ": " + trace->steps.back().info.error).c_str());
        QVERIFY(!hasTorchCalls(*trace->result()));
    }

    void refusals_data() {
        QTest::addColumn<QString>("statement");
        QTest::addColumn<QString>("message");
        QTest::newRow("unknown function") << "torch.nothing(x, 4)"
                                          << "torch.nothing: Cutaway does not know this function";
        QTest::newRow("unknown method") << "x.tolist()"
                                        << "Tensor.tolist: Cutaway does not know this function";
        QTest::newRow("keyword") << "torch.nn.functional.relu(x, inplce=True)"
                                 << "torch.nn.functional.relu: has no parameter named 'inplce'";
        QTest::newRow("missing") << "torch.nn.functional.layer_norm(x)"
                                 << "argument 'normalized_shape' is missing";
        QTest::newRow("too many indices") << "x[0, 0, 0]"
                                          << "too many indices (3) for a tensor with 2 dims";
        QTest::newRow("overload") << "torch.pow(x, 'a')"
                                  << "torch.pow: no overload of aten.pow takes (f32[4, 6], text)";
        QTest::newRow("shape") << "x.view(5, 5)"
                               << "aten.view.default";
        QTest::newRow("attribute") << "x.grad_fn"
                                   << "the attribute 'grad_fn' of a tensor";
        QTest::newRow("autocast") << "torch.amp.autocast_mode._enter_autocast('cpu', None, True, None)"
                                  << "_enter_autocast: Cutaway does not know";
        QTest::newRow("padding mode") << "torch._C._nn.pad(x, (1, 1), mode='wrap')"
                                      << "the mode 'wrap'";
    }
    void refusals() {
        QFETCH(QString, statement);
        QFETCH(QString, message);
        const QString text = "def forward(x: \"f32[4, 6]\"):\n    y: \"f32[4, 6]\" = " + statement + "\n    return y\n";
        const auto module = parsed(text);
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        auto copy = std::make_shared<Module>(**module);
        const auto result = lowerTorchCalls(*copy);
        QVERIFY(!result.has_value());
        QVERIFY2(result.error().text().find(message.toStdString()) != std::string::npos, result.error().text().c_str());
        QVERIFY2(result.error().where == "y", result.error().where.c_str());
    }

    /// Any amount of fuel leaves a graph that verifies and computes the same.
    void fuel() {
        const Recording recording = readRecording(testing::testFile("cases/torch_calls/positions.txt"));
        const auto before = parsed(recording.dynamo);
        QVERIFY(before.has_value());
        const auto inputs = randomInputs(**before, 1);
        const auto expected = interpret(**before, *inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const Pass* pass = testing::findPass("torch_calls_to_aten");
        const CompileRequest request;
        const int all = runPass(*pass, *before, request).info.rewrites;
        QVERIFY(all > 3);
        for (int fuel = 0; fuel <= all; ++fuel) {
            const Step step = runPass(*pass, *before, request, fuel);
            QVERIFY2(step.info.state != StepState::Failed, step.info.error.c_str());
            QCOMPARE(step.info.rewrites, fuel);
            const auto actual = interpret(*step.after, *inputs);
            QVERIFY2(actual.has_value(), actual ? "" : actual.error().text().c_str());
            QVERIFY(compare((*actual)[0], (*expected)[0], Tolerance{0, 0}).within);
        }
    }
};

CUTAWAY_SUITE(TorchCallsTest)
#include "torch_calls_test.moc"
