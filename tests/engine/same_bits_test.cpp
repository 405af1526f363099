// Whole models give the same bits with any number of threads: parts of work come from the plan, and threads only take
// them.
#include <QtTest>

#include "engine/formats/open.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/tensor/compare.h"
#include "tests/support/models.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class SameBitsTest : public QObject {
    Q_OBJECT

  private slots:
    void threadsChangeNothing_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<bool>("freeze");
        for (const QString& file : modelFiles())
            for (const bool freeze : {false, true})
                QTest::newRow(qPrintable(modelName(file) + (freeze ? " frozen" : ""))) << file << freeze;
    }
    void threadsChangeNothing() {
        QFETCH(QString, file);
        QFETCH(bool, freeze);
        auto opened = openFile(file.toStdString(), {});
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        CompileRequest request;
        request.freeze = freeze;
        const Snapshot input = std::move(opened->graphs[0].module);
        const auto trace = runPipeline(input, request, {.cacheFile = "off"}, {});
        QVERIFY2(trace && !trace->failed(), trace ? trace->steps.back().info.error.c_str() : "");
        auto numbers = std::make_shared<Module>(*trace->result());
        QVERIFY(specialize(*numbers, hintedSymbols(*numbers)).has_value());
        const bool draws = std::any_of(numbers->graph().nodes().begin(), numbers->graph().nodes().end(),
                                       [](const Node& node) { return node.isCall() && node.is(Tag::Random); });
        const auto user = randomInputs(*numbers, 1);
        QVERIFY2(user.has_value(), user ? "" : user.error().text().c_str());
        const auto given = bindInputs(*numbers, *user);
        QVERIFY2(given.has_value(), given ? "" : given.error().text().c_str());
        const auto program = buildCpu(numbers);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        std::vector<Tensor> first;
        for (const int threads : {1, 2, 4}) {
            const auto run = runCpu(*program, *given, {.repeat = 0, .threads = threads, .splitSmall = true});
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            if (first.empty()) first = run->outputs;
            for (size_t i = 0; i < first.size() && !draws; ++i)
                QVERIFY2(sameBits(run->outputs[i], first[i]),
                         qPrintable(QString("result %1 with %2 threads").arg(i).arg(threads)));
        }
    }
};

CUTAWAY_SUITE(SameBitsTest)
#include "same_bits_test.moc"
