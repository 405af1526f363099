// Passes that hang: Esc gives the window back, and what was stopped is said. Runs end with their time, and kernels are
// listed whatever comes of them.
#include <QAbstractItemView>
#include <QtTest>

#include "engine/support/fault_points.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/windows/problem_bar.h"

using namespace cutaway;
using namespace cutaway::ui;

class StoppingTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(m_main.get(), key, modifiers); }
    bool isIdle() { return m_main->controller().activities().isEmpty() && m_main->isSettled(); }
    void open(const QString& model) {
        m_main->open(testing::testFile("../resources/models/" + model));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && isIdle(), testing::kEnginePatience);
    }
    void compileUntilItHangs() {
        setFault("pass:decompose:hang");
        press(Qt::Key_B, Qt::ControlModifier);
        const auto hangs = [this] {
            const auto all = m_main->controller().activities();
            return !all.isEmpty() && all.first().progress.contains("decompose");
        };
        QTRY_VERIFY_WITH_TIMEOUT(hangs(), testing::kEnginePatience);
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() {
        setFault("");
        m_main.reset();
    }

    void escEndsAPassThatHangs_data() {
        QTest::addColumn<int>("presses");
        QTest::newRow("once, and some seconds") << 1;
        QTest::newRow("twice") << 2;
    }
    void escEndsAPassThatHangs() {
        QFETCH(int, presses);
        open("mlp.pt2");
        compileUntilItHangs();
        for (int i = 0; i < presses; ++i) press(Qt::Key_Escape);
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->findChild<ProblemBar*>()->text().isEmpty(), testing::kPatience);
        const QString said = m_main->findChild<ProblemBar*>()->text();
        QVERIFY2(said.contains("The compile does not end and was left behind at pass"), qPrintable(said));
        QVERIFY2(said.contains("decompose") && said.contains("untick it in Compile With"), qPrintable(said));
        QVERIFY(isIdle());
        QVERIFY(!m_main->controller().compiling() && m_main->controller().runs().empty());
        picture("hung-pass");
        // Still with the fault: without the pass the same window compiles.
        CompileRequest without;
        without.disabledPasses = {"decompose"};
        m_main->controller().compile(without);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 1 && isIdle(), testing::kEnginePatience);
    }

    /// As many repeats as fit.
    void timingEndsWithItsBudget() {
        open("mlp.pt2");
        m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 1 && isIdle(), testing::kEnginePatience);
        std::shared_ptr<const RunReport> report;
        connect(&m_main->controller(), &SessionController::ran, this, [&](RunId, const auto& ran) { report = ran; });
        constexpr int kMost = 100'000'000;
        RunOptions options;
        options.backend = Backend::Cpu;
        options.repeat = kMost;
        options.budgetSeconds = 0.2;
        m_main->controller().run(m_main->controller().runs()[0].id, options);
        QTRY_VERIFY_WITH_TIMEOUT(report && isIdle(), testing::kEnginePatience);
        QVERIFY2(report->repeats >= 1 && report->repeats < kMost, qPrintable(QString::number(report->repeats)));
    }

    void kernelsAreListedThoughTheirRunIsKilled() {
        open("mlp.pt2");
        m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 1 && isIdle(), testing::kEnginePatience);
        setFault("kernel:*:hang");
        RunOptions options;
        options.backend = Backend::Cpu;
        options.timeoutSeconds = 2;
        m_main->controller().run(m_main->controller().runs()[0].id, options);
        auto* bar = m_main->findChild<ProblemBar*>();
        QTRY_VERIFY_WITH_TIMEOUT(!bar->text().isEmpty() && isIdle(), testing::kEnginePatience);
        QVERIFY2(bar->text().contains("ran longer than"), qPrintable(bar->text()));
        QVERIFY(m_main->window("kernels")->findChild<QAbstractItemView*>()->model()->rowCount() > 0);
    }

    void anotherModelIsCompiledBesideAPassThatHangs() {
        open("mlp.pt2");
        compileUntilItHangs();
        setFault("");
        open("tiny_transformer.pt2");
        press(Qt::Key_B, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 1 && isIdle(), testing::kEnginePatience);
    }
};

CUTAWAY_SUITE(StoppingTest)
#include "stopping_test.moc"
