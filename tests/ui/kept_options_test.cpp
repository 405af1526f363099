// Options and search words belong to the model; a chip beside Compile says what it takes, and resets it.
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QToolButton>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/session/kept_requests.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/options_chip.h"
#include "ui/windows/search_window.h"

using namespace cutaway;
using namespace cutaway::ui;

class KeptOptionsTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(m_main.get(), key, modifiers); }
    OptionsChip& chip() { return *m_main->findChild<OptionsChip*>(); }
    void open(const QString& model) {
        const QString path = testing::testFile("../resources/models/" + model);
        m_main->open(path);
        QTRY_VERIFY_WITH_TIMEOUT(controller().path().endsWith(model) && m_main->isSettled(), testing::kEnginePatience);
    }
    void compile() {
        const size_t runs = controller().runs().size();
        press(Qt::Key_B, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() > runs && m_main->isSettled(), testing::kEnginePatience);
    }
    const CompileRequest& compiledWith() { return controller().runs().back().options; }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    void theChipSaysWhatCompileTakes() {
        open("mlp.pt2");
        QTRY_VERIFY(!chip().isVisible());
        CompileRequest asked;
        asked.mode = Mode::Training;
        asked.memoryBudget = 0.5;
        rememberRequest(controller().modelKey(), asked);
        m_main->updateCommands();
        QTRY_VERIFY(chip().isVisible());
        QVERIFY2(chip().text().startsWith("training, memory bud"), qPrintable(chip().text()));
        QVERIFY(chip().findChild<QToolButton*>()->toolTip().contains(
            "training, memory budget 0.5 (chosen for this model)"));
        compile();
        QVERIFY(compiledWith() == asked);
        picture("options-chip");
        open("tiny_transformer.pt2");
        QTRY_VERIFY(!chip().isVisible());
        open("mlp.pt2");
        QTRY_VERIFY(chip().isVisible());
        QTest::mouseClick(chip().findChild<QToolButton*>("resetOptions"), Qt::LeftButton);
        QTRY_VERIFY(!chip().isVisible());
        compile();
        QVERIFY(compiledWith() == CompileRequest());
    }

    /// The user's default is for models without options of their own, and can be switched off for one.
    void defaultsAreTheUsers() {
        CompileRequest usual, own;
        usual.parity = true;
        usual.fuel = 3;  // about one compile
        own.mode = Mode::Training;
        setUsualRequest(usual);
        open("mlp.pt2");
        QTRY_COMPARE(chip().text(), "PyTorch parity");
        rememberRequest(controller().modelKey(), own);
        m_main->updateCommands();
        QTRY_COMPARE(chip().text(), "training");
        auto* cross = chip().findChild<QToolButton*>("resetOptions");
        QTest::mouseClick(cross, Qt::LeftButton);
        QTRY_COMPARE(chip().text(), "PyTorch parity");
        QTest::mouseClick(cross, Qt::LeftButton);
        QTRY_VERIFY(!chip().isVisible());
        QVERIFY(rememberedRequest(controller().modelKey()) == CompileRequest());
        open("tiny_transformer.pt2");
        QTRY_COMPARE(chip().text(), "PyTorch parity");
    }

    void theDialogMakesThemTheDefault() {
        open("mlp.pt2");
        const auto asked = parseRequest("--mode training --parity --fuel 3");
        CompileDialog dialog([this](const CompileRequest& kind) { return controller().passes(kind); }, *asked);
        buttonOf(dialog, "Use as Default")->click();
        QVERIFY(dialog.result() != QDialog::Accepted);
        QCOMPARE(QString::fromStdString(usualRequest().text()), "--mode training --parity");
        QVERIFY2(dialog.findChild<QLabel*>("problem")->text().contains("training, PyTorch parity"),
                 qPrintable(dialog.findChild<QLabel*>("problem")->text()));
        m_main->updateCommands();
        QTRY_COMPARE(chip().text(), "training, PyTorch parity");
    }

    void optionsAreNamed_data() {
        QTest::addColumn<QString>("request");
        QTest::addColumn<QString>("words");
        QTest::newRow("none") << ""
                              << "";
        QTest::newRow("release") << "--pytorch 2.12 --freeze"
                                 << "PyTorch 2.12, frozen";
        QTest::newRow("passes") << "--disable a --disable b --disable a/r --enable batch_tanh"
                                << "1 optional pass on, 1 rule off, 2 passes off";
        QTest::newRow("budgets are of training") << "--memory-budget 0.5"
                                                 << "";
        QTest::newRow("one compile") << "--fuel 7 --only post_grad"
                                     << "only post_grad, fuel 7";
    }
    void optionsAreNamed() {
        QFETCH(QString, request);
        QFETCH(QString, words);
        const auto asked = parseRequest(request.toStdString());
        QVERIFY(asked);
        QCOMPARE(optionWords(*asked).join(", "), words);
    }

    void searchWordsBelongToTheModel() {
        auto* field = m_main->get<SearchWindow>().findChild<QLineEdit*>();
        open("mlp.pt2");
        field->setText("op=relu");
        open("tiny_transformer.pt2");
        QCOMPARE(field->text(), "");
        field->setText("softmax");
        open("mlp.pt2");
        QCOMPARE(field->text(), "op=relu");
    }

    /// What files and exported programs call a parameter is found, too.
    void tensorsAreFoundByTheirNames() {
        open("mlp.pt2");
        auto* field = m_main->get<SearchWindow>().findChild<QLineEdit*>();
        std::string tensor;
        for (const auto& node : m_main->get<SearchWindow>().graph()->nodes)
            if (tensor.empty()) tensor = node.info.tensor;
        QVERIFY(!tensor.empty());
        field->setText("tensor=" + QString::fromStdString(tensor));
        QCOMPARE(m_main->get<SearchWindow>().hitCount(), 1);
        field->setText(QString::fromStdString(tensor));
        QVERIFY(m_main->get<SearchWindow>().hitCount() >= 1);
    }

    void codeOfAModelThatIsNotCompiled_data() {
        QTest::addColumn<Qt::Key>("key");
        QTest::newRow("generated") << Qt::Key_F7;
        QTest::newRow("timed") << Qt::Key_F6;
    }
    void codeOfAModelThatIsNotCompiled() {
        QFETCH(Qt::Key, key);
        open("mlp.pt2");
        QSignalSpy built(&controller(), &SessionController::built), timed(&controller(), &SessionController::timed);
        std::shared_ptr<const RunReport> report;
        connect(&controller(), &SessionController::ran, this, [&](RunId, const auto& ran) { report = ran; });
        press(key);
        QTRY_VERIFY_WITH_TIMEOUT(built.size() + timed.size() == 1 && m_main->isSettled(), testing::kEnginePatience);
        QCOMPARE(controller().runs().size(), size_t(1));
        if (key == Qt::Key_F7) return;
        QVERIFY(report && report->repeats > 1);
        QVERIFY(report->firstQuartile <= report->medianMilliseconds &&
                report->medianMilliseconds <= report->thirdQuartile);
    }
};

CUTAWAY_SUITE(KeptOptionsTest)
#include "kept_options_test.moc"
