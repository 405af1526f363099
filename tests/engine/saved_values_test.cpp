// What a compiled forward saves for its backward stays in the process that runs both.
#include <signal.h>
#include <unistd.h>

#include <QtTest>

#include "cutaway/session.h"
#include "engine/interpret/interpret.h"
#include "engine/session/halves.h"
#include "engine/support/process_memory.h"
#include "tests/support/suites.h"

using namespace cutaway;

class SavedValuesTest : public QObject {
    Q_OBJECT

  private slots:
    /// Whatever happens between forward and backward, gradients are right or there is an error.
    void theyStayWhereTheyAre_data() {
        QTest::addColumn<QString>("between");
        QTest::addColumn<bool>("right");
        QTest::newRow("nothing") << "" << true;
        QTest::newRow("somebody reads them") << "read" << true;
        QTest::newRow("the backward is refused first") << "refused" << true;
        QTest::newRow("the backward runs on another number of threads") << "threads" << true;
        QTest::newRow("the backward runs in a process of its own") << "apart" << true;
        QTest::newRow("another forward") << "forward" << false;
        QTest::newRow("another backward, which is given its own") << "backward" << false;
        QTest::newRow("the process is killed") << "killed" << false;
    }
    void theyStayWhereTheyAre() {
        QFETCH(const QString, between);
        QFETCH(const bool, right);
        if (!mayReadProcess(::getpid())) QSKIP("this system lets no process read another one's memory");
        QString text = "def forward(x0: \"f32[128, 256]\", w: \"f32[256, 256]\"):\n";
        for (int i = 0; i < 3; ++i)
            text += QString("    m%1 = aten.mm.default(x%1, w)\n    x%2 = aten.tanh.default(m%1)\n").arg(i).arg(i + 1);
        QTemporaryDir folder;
        QFile file(folder.filePath("graph.py"));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write((text + "    return (x3,)\n").toUtf8()) > 0);
        file.close();
        Session session;
        QVERIFY(session.open(file.fileName().toStdString()).has_value());
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = {"w"};
        const auto id = session.compile(request);
        RunOptions options;
        options.backend = Backend::Cpu;
        QVERIFY(session.run(*id, options).has_value());
        Session::State::Run& run = **session.state().run(*id);
        const CpuProgram &forward = run.cpu.at("forward"), &backward = run.cpu.at("backward");
        const Snapshot first = run.trace.resultOf("forward"), second = run.trace.resultOf("backward");
        const auto saved = savedResults(*first, *second);
        const std::vector<Tensor> inputs = *randomInputs(*first, 1);
        const auto given = [&](std::vector<Tensor> outputs) {
            keepInputs(*first, inputs, outputs);
            std::vector<Tensor> all = *randomInputs(*second, 2);
            for (size_t i = 0; i < all.size(); ++i)
                if ((*saved)[i] >= 0) all[i] = outputs[static_cast<size_t>((*saved)[i])];
            return all;
        };
        const CpuRunOptions leaving{.leaveSaved = true};
        const auto plain = runCpu(forward, inputs);
        QVERIFY(plain.has_value());
        const auto expected = runCpu(backward, given(plain->outputs));
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());

        const auto ahead = runCpu(forward, inputs, leaving);
        QVERIFY(ahead.has_value());
        const std::vector<Tensor> handed = given(ahead->outputs);
        const auto deferred = std::count_if(handed.begin(), handed.end(), [](const Tensor& tensor) {
            return tensor.storage()->readOnly() && tensor.storage()->size() >= 1 << 16;
        });
        QVERIFY2(deferred >= 2, qPrintable(QString::number(deferred)));
        CpuRunOptions how;
        if (between == "read") QVERIFY(handed[0].storage()->load().has_value());
        if (between == "threads") how.threads = 1;
        if (between == "apart") how.apart = true;
        if (between == "forward") QVERIFY(runCpu(forward, inputs).has_value());
        if (between == "backward") QVERIFY(runCpu(backward, given(plain->outputs)).has_value());
        if (between == "killed") ::kill(forward.process(), SIGKILL);
        if (between == "refused") {
            std::vector<Tensor> misfits = handed;
            misfits.back() = Tensor::zeros(DType::F32, {1});
            QVERIFY(!runCpu(backward, misfits));
        }
        const auto back = runCpu(backward, handed, how);
        QCOMPARE(back.has_value(), right);
        if (!right) {
            QVERIFY2(back.error().message.find("is gone") != std::string::npos, back.error().message.c_str());
            QVERIFY(runCpu(backward, given(plain->outputs)).has_value());
            return;
        }
        for (size_t i = 0; i < expected->outputs.size(); ++i)
            if (expected->outputs[i].defined())
                QVERIFY2(compare(back->outputs[i], expected->outputs[i], {1e-5, 1e-6}).within,
                         qPrintable(QString::number(i)));
    }
};

CUTAWAY_SUITE(SavedValuesTest)
#include "saved_values_test.moc"
