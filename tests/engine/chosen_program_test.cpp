// For which sizes a program is, and that whoever shows, builds and runs has the same one.
#include "engine/session/chosen_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/loops.h"
#include "cutaway/memory.h"
#include "engine/session/execution.h"
#include "engine/session/session_state.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr const char* kFixed = "def forward(x: \"f32[6, 4]\"):\n    y = aten.exp.default(x)\n    return (y,)\n";
constexpr const char* kHinted =
    "# symbol s0: hint=6\ndef forward(x: \"f32[s0, 4]\"):\n    y = aten.exp.default(x)\n    return (y,)\n";
constexpr const char* kUnknown = "def forward(x: \"f32[s0, 4]\"):\n    y = aten.exp.default(x)\n    return (y,)\n";

/// How a plan of a graph with symbols ends.
enum class Symbols { Planned, Refused, WithoutHost, Failed };

struct Choice {
    const char *name, *graph;
    Symbols symbols;
    int plans;            // how often a plan is made
    const char* outcome;  // "all sizes", "s0=6: why", "kernels only: why", "error: why"
};
constexpr Choice kChoices[] = {
    {"without symbols", kFixed, Symbols::Failed, 1, "all sizes"},
    {"for all sizes", kHinted, Symbols::Planned, 1, "all sizes"},
    {"for the example's", kHinted, Symbols::Refused, 2, "s0=6: no symbols here"},
    {"for the example's, since no program runs", kHinted, Symbols::WithoutHost, 2, "s0=6: no symbols here"},
    {"without numbers", kUnknown, Symbols::WithoutHost, 1,
     "kernels only: compiling needs a value for every size, and size symbol 's0' has none"},
    {"refused without numbers", kUnknown, Symbols::Refused, 1,
     "error: compiling needs a value for every size, and size symbol 's0' has none"},
    {"what is not a refusal is an error", kHinted, Symbols::Failed, 1, "error: broken"},
};

QString outcomeOf(const Result<ChosenProgram>& chosen) {
    if (!chosen) return "error: " + QString::fromStdString(chosen.error().message);
    if (chosen->program->whyNoHost)
        return "kernels only: " + QString::fromStdString(chosen->program->whyNoHost->message);
    if (chosen->allSizes) return "all sizes";
    QStringList sizes;
    for (const auto& [symbol, number] : chosen->sizes)
        sizes << QString("%1=%2").arg(QString::fromStdString(symbol)).arg(number);
    return sizes.join(", ") + ": " + QString::fromStdString(chosen->whyFixed);
}

}  // namespace

class ChosenProgramTest : public QObject {
    Q_OBJECT

  private slots:
    void sizes_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kChoices); ++i) QTest::newRow(kChoices[i].name) << static_cast<int>(i);
    }
    void sizes() {
        QFETCH(int, number);
        const Choice& choice = kChoices[number];
        int plans = 0;
        const auto plan = [&](const std::vector<Snapshot>& graphs) -> Result<PlannedProgram> {
            ++plans;
            const bool symbols = !freeSymbols(*graphs[0]).empty();
            if (symbols && choice.symbols == Symbols::Refused) return unsupported("no symbols here");
            if (symbols && choice.symbols == Symbols::Failed) return Error{ErrorCode::Internal, "broken", {}, {}};
            CT_TRY(PlannedProgram program, planProgram(graphs, {}, kCpuTarget));
            if (symbols && choice.symbols == Symbols::WithoutHost) program.whyNoHost = unsupported("no symbols here");
            return program;
        };
        const auto chosen = chooseSizes({moduleOf(choice.graph)}, plan, {});
        QCOMPARE(outcomeOf(chosen), QString(choice.outcome));
        QCOMPARE(plans, choice.plans);
    }
    /// What is known to be refused is not tried again.
    void whyFixedIsTaken() {
        int plans = 0;
        const auto plan = [&](const std::vector<Snapshot>& graphs) {
            ++plans;
            return planProgram(graphs, {}, kCpuTarget);
        };
        const auto chosen = chooseSizes({moduleOf(kHinted)}, plan, {}, "as before");
        QCOMPARE(outcomeOf(chosen), QString("s0=6: as before"));
        QCOMPARE(plans, 1);
    }

    void oneProgramForAll_data() {
        QTest::addColumn<bool>("training");
        QTest::addColumn<bool>("lookFirst");
        for (const bool training : {false, true})
            for (const bool lookFirst : {false, true})
                QTest::addRow("%s, %s", training ? "training" : "inference",
                              lookFirst ? "looked at first" : "run first")
                    << training << lookFirst;
    }
    void oneProgramForAll() {
        QFETCH(bool, training);
        QFETCH(bool, lookFirst);
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2").has_value());
        CompileRequest request;
        request.mode = training ? Mode::Training : Mode::Inference;
        const auto id = session.compile(request);
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());
        Session::State::Run& run = **session.state().run(*id);
        std::shared_ptr<const ChosenProgram> shown;
        const auto look = [&] {
            QVERIFY(bool(loopKernels(session, *id)) && bool(memoryPlans(session, *id)));
            if (!shown) shown = run.chosen;
        };
        if (lookFirst) look();
        QVERIFY(session.build(*id, Target::Cpu).has_value());
        look();
        QVERIFY(shown && run.built == shown && run.chosen == shown);
        QCOMPARE(shown->program->graphs.size(), training ? size_t{2} : size_t{1});
        QCOMPARE(run.cpu.size(), shown->program->graphs.size());
    }
};

CUTAWAY_SUITE(ChosenProgramTest)
#include "chosen_program_test.moc"
