// Optional post-grad passes against PyTorch's: tests/cases/post_grad_recorded/*.txt, recorded by tests/scripts/record_post_grad.py.
// Each is held to: the graph after the passes is the recorded one (names, and mostly the order of independent calls, aside); before
// and after compute equal numbers; a second run changes nothing. Where PyTorch raises, ours leaves the graph alone.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/graph_text.h"
#include "tests/support/recorded_case.h"

using namespace cutaway;
using testing::RecordedCase;

namespace {

Result<Snapshot> parsed(const QString& text) {
    CT_TRY(auto module, parseText(text.toStdString()));
    return Snapshot(std::move(module));
}

Result<Snapshot> applied(const RecordedCase& one, Snapshot graph, int& rewrites) {
    for (const QString& name : one.passes) {
        const auto passes = pipeline();
        const auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& each) { return each.name == name.toStdString(); });
        if (pass == passes.end()) return invalidInput("no pass '" + name.toStdString() + "'");
        const Step step = runPass(*pass, graph, one.options);
        if (step.info.state == StepState::Failed) return invalidInput(step.info.error, step.info.name);
        rewrites += step.info.rewrites;
        graph = step.after;
    }
    return graph;
}

/// What of a graph is compared.
QString textOf(const RecordedCase& one, const Snapshot& graph) {
    if (!one.ordered) return testing::shapeOf(*graph);
    Module copy(*graph);
    return QString::fromStdString(testing::listing(copy));
}

void compareNumbers(const Snapshot& before, const Snapshot& after) {
    const auto inputs = randomInputs(*before, 1);
    QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
    const auto expected = interpret(*before, *inputs), actual = interpret(*after, *inputs);
    QVERIFY2(expected.has_value(), expected ? "" : ("before: " + expected.error().text()).c_str());
    QVERIFY2(actual.has_value(), actual ? "" : ("after: " + actual.error().text()).c_str());
    QCOMPARE(actual->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) {
        const double tolerance = isHalf((*expected)[i].dtype()) ? 1e-2 : 1e-5;
        const Comparison comparison = compare((*actual)[i], (*expected)[i], Tolerance{tolerance, tolerance});
        QVERIFY2(comparison.sameType && comparison.within, qPrintable(QString("result %1 differs").arg(i)));
    }
}

}  // namespace

class PostGradTest : public QObject {
    Q_OBJECT

  private slots:
    void cases_data() {
        QTest::addColumn<QString>("path");
        for (const QString& path : testing::recordedFiles("post_grad_recorded")) QTest::newRow(qPrintable(QFileInfo(path).completeBaseName())) << path;
    }
    void cases() {
        QFETCH(QString, path);
        const RecordedCase one = testing::readRecordedCase(path);
        const auto before = parsed(one.before);
        QVERIFY2(before.has_value(), before ? "" : before.error().text().c_str());
        int rewrites = 0;
        const auto after = applied(one, *before, rewrites);
        QVERIFY2(after.has_value(), after ? "" : after.error().text().c_str());
        const auto expected = one.after.isEmpty() ? before : parsed(one.after);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        QCOMPARE(textOf(one, *after), textOf(one, *expected));
        QCOMPARE(rewrites > 0, !one.after.isEmpty());
        if (one.idle.isEmpty()) {
            int again = 0;
            const auto twice = applied(one, *after, again);
            QVERIFY2(twice.has_value(), twice ? "" : twice.error().text().c_str());
            QCOMPARE(again, 0);
        }
        if (one.numbers.isEmpty()) compareNumbers(*before, *after);
    }
};

QTEST_GUILESS_MAIN(PostGradTest)
#include "post_grad_test.moc"
