// The Minify window on the engine itself: a failure that tests ask for becomes a small graph, shown as it shrinks.
#include "ui/windows/minify_window.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QtTest>

#include "engine/support/fault_points.h"
#include "tests/support/paths.h"
#include "ui/graph/graph_view.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/plot_view.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

namespace {

constexpr int kPatience = 60000;

}  // namespace

class MinifyWindowTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::unique_ptr<MainWindow> m_main;

    SessionController& controller() { return m_main->controller(); }
    MinifySearch& search() { return controller().minifySearch(); }
    MinifyWindow& window() { return m_main->get<MinifyWindow>(); }
    QString summary() { return window().findChild<QLabel*>("minifySummary")->text(); }
    QPushButton* button(const QString& start) {
        for (auto* found : window().findChildren<QPushButton*>())
            if (found->text().remove('&').startsWith(start)) return found;
        return nullptr;
    }
    QLineEdit* field(const QString& placeholder) {
        for (auto* found : window().findChildren<QLineEdit*>())
            if (found->placeholderText().startsWith(placeholder)) return found;
        return nullptr;
    }
    QString text() {
        for (auto* found : window().findChildren<QPlainTextEdit*>())
            if (found->accessibleName() == "Smallest graph so far") return found->toPlainText();
        return {};
    }
    void end() { QTRY_VERIFY_WITH_TIMEOUT(!search().isRunning(), kPatience); }
    /// Pictures for a person to look at, with CUTAWAY_PICTURES=FOLDER.
    void picture(const QString& name) {
        const QString folder = qEnvironmentVariable("CUTAWAY_PICTURES");
        QTest::qWait(folder.isEmpty() ? 0 : 500);
        if (!folder.isEmpty()) QVERIFY(m_main->grab().save(folder + '/' + name + ".png"));
    }

  private slots:
    void initTestCase() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        applyTheme(qEnvironmentVariable("CUTAWAY_THEME") == "dark" ? Theme::Dark : Theme::Light);
    }
    void init() {
        QSettings().clear();
        m_main = std::make_unique<MainWindow>(makeSessionSource());
        m_main->resize(1400, 900);
        m_main->show();
        m_main->open(testing::testFile("../resources/models/tiny_transformer.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), kPatience);
        actionNamed(*m_main, "Ctrl+Shift+M")->trigger();
        const auto fields = window().findChildren<QLineEdit*>();
        for (QLineEdit* each : fields)
            if (each->text().endsWith(".minified"))
                each->setText(m_folder.filePath(QString::fromLatin1(QTest::currentTestFunction())));
    }
    void cleanup() {
        setFault({});
        m_main.reset();
    }

    void shrinksAFailureAndOpensTheResult() {
        setFault("pass:remove_noop_ops:logic_error");
        QVERIFY(!button("Open Result")->isEnabled());
        button("Start")->click();
        QVERIFY(search().isRunning());
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        QVERIFY(search().report()->nodes <= 3);
        QVERIFY2(summary().contains("joint/remove_noop_ops"), qPrintable(summary()));
        QVERIFY2(summary().contains("in a fresh process"), qPrintable(summary()));
        QVERIFY(text().startsWith("def forward("));
        QVERIFY(window().findChild<PlotView*>()->plot().points.size() >= 2);
        QTRY_VERIFY(window().findChild<GraphView*>()->graph() != nullptr);
        picture("minified");
        const QString before = controller().path();
        button("Open Result")->click();
        QTRY_VERIFY_WITH_TIMEOUT(controller().path() != before && m_main->isSettled(), kPatience);
        QVERIFY(controller().path().endsWith("graph.py"));
    }

    void saysThatNothingFails() {
        button("Start")->click();
        end();
        QVERIFY2(summary().contains("does not fail"), qPrintable(summary()));
        QVERIFY(!button("Open Result")->isEnabled());
    }

    void stopsAndGoesOn() {
        auto* check = window().findChildren<QComboBox*>().front();
        check->setCurrentIndex(check->findData(static_cast<int>(MinifyCheck::Command)));
        QVERIFY(field("Shell command")->isEnabled());
        field("Shell command")->setText("sleep 0.05; ! grep -q aten.gelu {}");
        button("Start")->click();
        QTRY_VERIFY_WITH_TIMEOUT(search().state().steps.size() >= 2, kPatience);
        const auto activity = window().activity();
        QVERIFY(activity && activity->doing == "Minifying");
        window().stopActivity();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        if (search().report()->stopped) {
            QVERIFY(button("Go On") != nullptr);
            button("Go On")->click();
            end();
        }
        QVERIFY(search().report().has_value());
        QVERIFY(!search().report()->stopped);
        QVERIFY(search().report()->nodes <= 3);
    }

    void anotherModelEndsTheSearch() {
        setFault("pass:remove_noop_ops:hang");
        button("Start")->click();
        QVERIFY(search().isRunning());
        controller().close();
        QTRY_VERIFY(!search().isRunning());
        QVERIFY(text().isEmpty());
    }
};

QTEST_MAIN(MinifyWindowTest)
#include "minify_window_test.moc"
