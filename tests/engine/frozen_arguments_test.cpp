// Frozen graphs whose arguments became constants: they are called with all arguments of the graph as opened.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "tests/support/frozen.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

// Nothing says which of these are weights.
constexpr const char* kPlain =
    R"(def forward(w: "f32[4, 3, 3, 3]", unused: "f32[5]", s: "f32[1, 4, 1, 1]", x: "f32[2, 3, 6, 6]"):
    c: "f32[2, 4, 4, 4]" = aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    y: "f32[2, 4, 4, 4]" = aten.mul.Tensor(c, s)
    return (y,)
)";

/// Numbers that do not repeat.
Tensor counted(Dims sizes, float from) {
    Tensor made = Tensor::empty(DType::F32, std::move(sizes));
    for (int64_t i = 0; i < made.numel(); ++i) made.as<float>()[i] = from + 0.25f * static_cast<float>(i % 13);
    return made;
}

}  // namespace

class FrozenArgumentsTest : public QObject {
    Q_OBJECT

  private slots:
    /// A frozen graph that is called with all arguments of the graph as opened computes the same.
    void argumentsThatAreFrozen_data() {
        QTest::addColumn<bool>("file");
        QTest::addColumn<int>("backend");
        QTest::newRow("random, interpreted") << false << static_cast<int>(Backend::Reference);
        QTest::newRow("random, compiled") << false << static_cast<int>(Backend::Cpu);
        QTest::newRow("given, interpreted") << true << static_cast<int>(Backend::Reference);
        QTest::newRow("given, compiled") << true << static_cast<int>(Backend::Cpu);
    }
    void argumentsThatAreFrozen() {
        QFETCH(bool, file);
        QFETCH(int, backend);
        QTemporaryDir folder;
        Session session;
        QVERIFY(session.open(written(folder, "plain.py", kPlain)));
        RunOptions how;
        how.backend = static_cast<Backend>(backend);
        if (file) {
            how.inputsFile = folder.filePath("in.safetensors").toStdString();
            QVERIFY(writeSafeTensors(how.inputsFile, {.tensors = {{"w", counted({4, 3, 3, 3}, -1)},
                                                                  {"unused", counted({5}, 0)},
                                                                  {"s", counted({1, 4, 1, 1}, 3)},
                                                                  {"x", counted({2, 3, 6, 6}, 0.5f)}}}));
        }
        QVERIFY(session.compile({}));
        CompileRequest request;
        request.freeze = true;
        QVERIFY(session.compile(request));
        QCOMPARE(session.graphInfo({0, -1, -1})->preservedArguments, (std::vector<size_t>{0, 1, 2, 3}));
        const Place last{1, static_cast<int>(session.steps(1)->size()) - 1, -1};
        QCOMPARE(session.graphInfo(last)->preservedArguments, std::vector<size_t>{3});
        const auto plain = session.run(0, how), constant = session.run(1, how);
        QVERIFY2(plain.has_value(), plain ? "" : plain.error().text().c_str());
        QVERIFY2(constant.has_value(), constant ? "" : constant.error().text().c_str());
        for (const auto& [was, is] : {std::pair{plain->outputs[0].minimum, constant->outputs[0].minimum},
                                      std::pair{plain->outputs[0].maximum, constant->outputs[0].maximum},
                                      std::pair{plain->outputs[0].mean, constant->outputs[0].mean}})
            QVERIFY2(std::abs(was - is) < 1e-4, qPrintable(QString("%1 became %2").arg(was).arg(is)));
        QVERIFY2(constant->inputsFrom.find("3 of 4 are constants") != std::string::npos, constant->inputsFrom.c_str());
        const auto checked = session.checkNumbers(1, {.inputsFile = how.inputsFile});
        QVERIFY(checked.has_value());
        for (const auto& step : checked->steps) QVERIFY2(step.kept, step.detail.c_str());
    }

    void wrongArgumentsAreNamed() {
        QTemporaryDir folder;
        Session session;
        QVERIFY(session.open(written(folder, "plain.py", kPlain)));
        RunOptions how;
        how.inputsFile = folder.filePath("in.safetensors").toStdString();
        QVERIFY(writeSafeTensors(how.inputsFile, {.tensors = {{"w", counted({4, 3, 3}, -1)},
                                                              {"unused", counted({5}, 0)},
                                                              {"s", counted({1, 4, 1, 1}, 3)},
                                                              {"x", counted({2, 3, 6, 6}, 0.5f)}}}));
        CompileRequest request;
        request.freeze = true;
        QVERIFY(session.compile(request));
        const auto ran = session.run(0, how);
        QVERIFY(!ran);
        QVERIFY2(ran.error().text().find("input 'w'") != std::string::npos, ran.error().text().c_str());
    }
};

CUTAWAY_SUITE(FrozenArgumentsTest)
#include "frozen_arguments_test.moc"
