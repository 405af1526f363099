// How windows look and ask, on a source of hand-made structs: sizes, names in narrow windows, dialogs, contrast,
// pictures; and that they never freeze.
#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTreeView>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/contrast.h"
#include "tests/ui/main_window_fixture.h"
#include "ui/graph/graph_colors.h"
#include "ui/models/text_model.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/minify_settings.h"
#include "ui/windows/rules_page.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/theme.h"
#include "ui/windows/window_table.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::contrast;
using testing::kPatience;

class WindowLooksTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    /// Milliseconds that this thread was ready and others had the processor: on a busy machine that is most of a pause,
    /// and none of ours.
    static qint64 kept() {
        QFile file(QStringLiteral("/proc/thread-self/schedstat"));
        const QList<QByteArray> fields =
            file.open(QIODevice::ReadOnly) ? file.readAll().split(' ') : QList<QByteArray>();
        return fields.size() > 1 ? fields[1].toLongLong() / 1'000'000 : 0;
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void shortcutsAreUnique() {
        QMap<QString, QStringList> users;
        for (const QAction* action : m_main->findChildren<QAction*>())
            for (const QKeySequence& key : action->shortcuts()) users[key.toString()] << action->text();
        for (auto at = users.constBegin(); at != users.constEnd(); ++at)
            QVERIFY2(at->size() == 1, qPrintable(at.key() + ": " + at->join(", ")));
    }

    void nothingIsCutOffAtItsMinimumSize_data() {
        QTest::addColumn<QString>("name");
        for (const QString& name : windowNames()) QTest::newRow(qPrintable(name)) << name;
    }
    void nothingIsCutOffAtItsMinimumSize() {
        QFETCH(QString, name);
        openAndCompile();
        QDockWidget* dock = m_main->window(name);
        dock->setFloating(true);
        dock->show();
        dock->resize(dock->minimumSizeHint());
        QCoreApplication::processEvents();
        for (const QWidget* widget : dock->findChildren<QWidget*>()) {
            if (!widget->isVisible() ||
                !(qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget) ||
                  qobject_cast<const QAbstractSpinBox*>(widget)))
                continue;
            if (widget->objectName().startsWith("qt_") || qobject_cast<const QTabBar*>(widget->parentWidget()))
                continue;
            const QSize needed = widget->minimumSizeHint();
            QVERIFY2(widget->width() >= needed.width() && widget->height() >= needed.height(),
                     qPrintable(QString("%1 %2 has %3x%4, needs %5x%6")
                                    .arg(widget->metaObject()->className(), widget->accessibleName())
                                    .arg(widget->width())
                                    .arg(widget->height())
                                    .arg(needed.width())
                                    .arg(needed.height())));
        }
    }

    void inANarrowWindowTheNamesStay() {
        openAndCompile();
        QDockWidget* steps = m_main->window("steps");
        steps->setFloating(true);
        auto* tree = steps->findChild<QTreeView*>();
        const int letter = tree->fontMetrics().averageCharWidth();
        steps->resize(80 * letter, 400);
        QVERIFY(!tree->isColumnHidden(StepsModel::Nodes) && !tree->isColumnHidden(StepsModel::Time));
        for (int letters = 79; letters > 40; letters -= 3) {
            steps->resize(letters * letter, 400);
            QVERIFY2(tree->columnWidth(StepsModel::Name) >= 20 * letter,
                     qPrintable(QString("%1 letters: %2").arg(letters).arg(tree->columnWidth(StepsModel::Name))));
        }
        steps->resize(34 * letter, 400);
        QVERIFY(tree->isColumnHidden(StepsModel::Nodes) && tree->isColumnHidden(StepsModel::Time) &&
                !tree->isColumnHidden(StepsModel::Changes));
        QVERIFY2(tree->columnWidth(StepsModel::Name) > 14 * letter,
                 qPrintable(QString::number(tree->columnWidth(StepsModel::Name))));
    }

    void compilingIsAskedFor() {
        openAndCompile();
        const CompileDialog::Passes passes = [this](const CompileRequest& kind) {
            return m_main->controller().passes(kind);
        };
        QTemporaryDir folder;
        QFile rules(folder.filePath("mine.txt"));
        QVERIFY(rules.open(QIODevice::WriteOnly));
        rules.write("rule a\n");
        rules.close();
        CompileDialog dialog(passes, {});
        auto *mode = dialog.findChild<QComboBox*>("mode"), *stages = dialog.findChild<QComboBox*>("only"),
             *device = dialog.findChild<QComboBox*>("device"), *tf32 = dialog.findChild<QComboBox*>("tf32");
        QCOMPARE(stages->count(), 3);  // all stages, and either
        QVERIFY(!tf32->isVisibleTo(&dialog));
        device->setCurrentText("cuda");
        QVERIFY(tf32->isVisibleTo(&dialog));
        device->setCurrentText("cpu");
        const auto passList = [](const CompileDialog& in) {
            for (auto* found : in.findChildren<QListWidget*>())
                if (found->accessibleName() == "Passes in running order") return found;
            return static_cast<QListWidget*>(nullptr);
        };
        auto* list = passList(dialog);
        QCOMPARE(list->count(), 4);
        mode->setCurrentIndex(1);
        QCOMPARE(list->count(), 5);  // training has passes of its own
        QCOMPARE(list->item(4)->text(), "partition");
        QCOMPARE(stages->count(), 4);
        QCOMPARE(list->item(3)->checkState(), Qt::Unchecked);  // optional
        list->item(3)->setCheckState(Qt::Checked);
        list->setCurrentRow(1);
        dialog.movePass(true);
        dialog.movePass(true);  // stays: it is the first
        list->item(1)->setCheckState(Qt::Unchecked);
        dialog.addRuleFile(rules.fileName(), true);
        dialog.addRuleFile(folder.filePath("other.txt"), false);
        dialog.findChild<QSpinBox*>()->setValue(7);
        dialog.accept();
        QCOMPARE(dialog.result(), int(QDialog::Accepted));
        const CompileRequest& asked = dialog.options();
        QVERIFY(asked.mode == Mode::Training && asked.enabled("batch_tanh"));
        QCOMPARE(asked.disabledPasses, std::vector<std::string>{"normalize"});
        QCOMPARE(asked.moves.size(), size_t(1));
        QCOMPARE(asked.moves[0].pass + (asked.moves[0].before ? " before " : " after ") + asked.moves[0].anchor,
                 std::string("remove_noop_ops before normalize"));
        QCOMPARE(asked.userRules.size(), size_t(1));
        QCOMPARE(asked.userRules[0].name + ": " + asked.userRules[0].text, std::string("mine: rule a\n"));
        QCOMPARE(*asked.fuel, 7);
        m_main->controller().compile(asked);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 2 && m_main->isSettled(), kPatience);
        QCOMPARE(m_main->controller().runs()[1].title(),
                 "Run 2: training, CPU, with mine, 1 optional pass on, 1 pass moved, fuel 7, 1 pass off");
        // The next time it starts from there.
        CompileDialog again(passes, asked);
        list = passList(again);
        QCOMPARE(list->item(0)->text(), "remove_noop_ops");
        QCOMPARE(list->item(1)->checkState(), Qt::Unchecked);
        again.accept();
        QCOMPARE(again.options().userRules.size(), size_t(1));
        QCOMPARE(again.options().moves.size(), size_t(1));
        QVERIFY(again.options().mode == Mode::Training);
    }

    /// Files of one name are told apart, and a file is known by another path to it.
    void filesWithRulesAreKnownByTheirPaths() {
        QTemporaryDir folder;
        const QDir inside(folder.path());
        for (const char* name : {"a", "b"}) {
            QVERIFY(inside.mkdir(name));
            QFile file(folder.filePath(name + QString("/x.txt")));
            QVERIFY(file.open(QIODevice::WriteOnly));
        }
        QVERIFY(QFile::link(folder.filePath("a"), folder.filePath("link")));
        RulesPage page({}, {});
        page.addFile(folder.filePath("a/x.txt"), true);
        page.addFile(folder.filePath("b/x.txt"), false);
        page.remember();
        CompileRequest asked;
        QCOMPARE(page.addTo(asked), "");
        for (const char* used : {"a/x.txt", "link/x.txt"}) {
            asked.userRules[0].path = folder.filePath(used).toStdString();
            const RulesPage again({}, asked);
            const auto* list = again.findChild<QListWidget*>();
            QCOMPARE(list->count(), 2);
            QCOMPARE(list->item(0)->checkState(), Qt::Checked);
            QCOMPARE(list->item(1)->checkState(), Qt::Unchecked);
        }
    }

    void filesWithRulesThatCannotBeRead_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("shown");
        QTest::newRow("missing") << "none.txt"
                                 << "# This file cannot be read. It does not exist.";
        QTest::newRow("a folder") << "folder.txt"
                                  << "# This file cannot be read. It is not a regular file.";
        QTest::newRow("one that can") << "rules.txt"
                                      << "rule a";
    }
    void filesWithRulesThatCannotBeRead() {
        QFETCH(QString, file);
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkdir("folder.txt"));
        QFile rules(folder.filePath("rules.txt"));
        QVERIFY(rules.open(QIODevice::WriteOnly) && rules.write("rule a") > 0);
        rules.close();
        RulesPage page({}, {});
        page.addFile(folder.filePath(file), false);
        page.findChild<QListWidget*>()->setCurrentRow(0);
        QTEST(page.findChild<QPlainTextEdit*>()->toPlainText(), "shown");
    }

    /// With a point or as the locale has it, in both places.
    void tolerancesAreTyped_data() {
        QTest::addColumn<QString>("typed");
        QTest::newRow("point") << "0.001";
        QTest::newRow("comma") << "0,001";
    }
    void tolerancesAreTyped() {
        QFETCH(QString, typed);
        const QLocale before;
        QLocale::setDefault(QLocale(QStringLiteral("de_DE")));
        BisectDialog bisect;
        MinifySettings minify;
        minify.follow(MinifyCheck::Numbers);
        for (auto* field : bisect.findChildren<QLineEdit*>())
            if (field->text() == "1e-4") field->setText(typed);
        for (auto* field : minify.findChildren<QLineEdit*>())
            if (field->placeholderText() == "0.0001") field->setText(typed);
        MinifyOptions options;
        minify.fill(options, {});
        const double found = bisect.options().tolerance;
        const QString problem = minify.problem() + bisect.findChild<QLabel*>("problem")->text();
        QLocale::setDefault(before);
        QCOMPARE(problem, "");
        QCOMPARE(found, 0.001);
        QCOMPARE(options.tolerance, 0.001);
    }

    /// Nothing is offered that cannot be done, and the tips say why.
    void whatARunCannotDoIsGrey_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<bool>("can");
        QTest::newRow("execute") << "F5" << false;
        QTest::newRow("time") << "F6" << false;
        QTest::newRow("generate") << "F7" << true;
    }
    void whatARunCannotDoIsGrey() {
        QFETCH(QString, key);
        QFETCH(bool, can);
        const QAction* action = actionNamed(*m_main, key.toLatin1().constData());
        QVERIFY(!action->isEnabled());  // nothing is open
        openAndCompile();
        QVERIFY(action->isEnabled());
        const QString tip = action->toolTip();
        QVERIFY2(tip.endsWith(QStringLiteral("(%1)").arg(key)), qPrintable(tip));
        CompileRequest training;
        training.mode = Mode::Training;
        m_main->controller().compile(training);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 2 && m_main->isSettled(), kPatience);
        QCOMPARE(action->isEnabled(), can);
        QCOMPARE(action->toolTip(), can ? tip : tip + "\nnot for training");
        QCOMPARE(action->statusTip(), can ? QString() : QStringLiteral("not for training"));
        // Whoever looks at the run before can do it with that.
        m_main->selection().setPlace({m_main->controller().runs()[0].id, 4, -1});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        QVERIFY(action->isEnabled());
        QCOMPARE(action->toolTip(), tip);
    }

    void compilingIsNotStartedOnBadAnswers() {
        const CompileDialog::Passes passes = [this](const CompileRequest& kind) {
            return m_main->controller().passes(kind);
        };
        CompileDialog dialog(passes, {});
        dialog.addRuleFile("/nowhere/rules.txt", true);
        dialog.accept();
        QCOMPARE(dialog.result(), int(QDialog::Rejected));
        QVERIFY(dialog.findChild<QLabel*>("problem")->text().contains("/nowhere/rules.txt: cannot read"));
        CompileDialog other(passes, {});
        for (auto* field : other.findChildren<QLineEdit*>())
            if (field->accessibleName() == "Settings of optional passes") field->setText("good=key:1 =bad");
        other.accept();
        QVERIFY2(other.findChild<QLabel*>("problem")->text().contains("\"=bad\""),
                 qPrintable(other.findChild<QLabel*>("problem")->text()));
    }

    void dialogsOfferWhatTheCompilerHas() {
        ExecuteDialog execute("/models/a.pt2");
        QCOMPARE(execute.options().repeat, 1);
        BisectDialog bisect;
        QCOMPARE(bisect.options().tolerance, 1e-4);
        auto* find = bisect.findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
        QVERIFY(find->isEnabled());
        bisect.findChild<QComboBox*>()->setCurrentIndex(2);
        QVERIFY(bisect.options().check == BisectCheck::Command);
        QVERIFY2(!find->isEnabled(), "a command is needed");
    }

    void darkAndLightBothHaveContrast() {
        for (Theme theme : {Theme::Light, Theme::Dark}) {
            applyTheme(theme);
            const QPalette palette = QApplication::palette();
            const GraphColors colors = GraphColors::of(palette);
            for (const ChangeColors& state : colors.states) {
                QVERIFY(contrast(state.text, state.fill) >= 4.5);
                QVERIFY(contrast(colors.detail, state.fill) >= 4.5);
                QVERIFY(contrast(state.line, colors.canvas) >= 2.0);
            }
            QVERIFY(contrast(colors.chipText, colors.chip) >= 4.5);
            QVERIFY(contrast(palette.color(QPalette::Text), palette.color(QPalette::Base)) >= 7);
            QVERIFY(contrast(palette.color(QPalette::PlaceholderText), palette.color(QPalette::Base)) >= 4.5);
            QVERIFY(contrast(palette.color(QPalette::PlaceholderText), palette.color(QPalette::AlternateBase)) >= 4.5);
            QVERIFY(contrast(palette.color(QPalette::HighlightedText), palette.color(QPalette::Highlight)) >= 4.5);
        }
        applyTheme(Theme::Light);
    }

    void anUntickedBoxCanBeSeen() {
        for (Theme theme : {Theme::Light, Theme::Dark}) {
            applyTheme(theme);
            QStyleOptionViewItem option;
            option.rect = QRect(2, 2, 16, 16);
            option.palette = QApplication::palette();
            option.state = QStyle::State_Enabled | QStyle::State_Off;
            QImage image(20, 20, QImage::Format_RGB32);
            const QColor ground = option.palette.color(QPalette::Base);
            image.fill(ground);
            QPainter painter(&image);
            QApplication::style()->drawPrimitive(QStyle::PE_IndicatorItemViewItemCheck, &option, &painter);
            painter.end();
            int most = 0;
            for (int x = 0; x < image.width(); ++x)
                most = std::max(most, std::abs(qGray(image.pixel(x, 10)) - qGray(ground.rgb())));
            QVERIFY2(most >= 50, qPrintable(QString::number(most)));
        }
        applyTheme(Theme::Light);
    }

    /// The current line keeps its text's colours, so its background must not become the style's selection.
    void theCurrentLineOfTheTextCanBeRead_data() {
        QTest::addColumn<int>("theme");
        QTest::newRow("light") << static_cast<int>(Theme::Light);
        QTest::newRow("dark") << static_cast<int>(Theme::Dark);
    }
    void theCurrentLineOfTheTextCanBeRead() {
        QFETCH(int, theme);
        applyTheme(static_cast<Theme>(theme));
        openAndCompile();
        m_main->window("text")->raise();
        auto& table = *m_main->window("text")->findChild<QTableView*>();
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            table.selectRow(row);
            QCoreApplication::processEvents();
            const QRect line = table.visualRect(table.model()->index(row, TextModel::Third));
            const QColor ground = table.viewport()->grab().toImage().pixelColor(line.left() + 1, line.center().y());
            const QPalette palette = table.palette();
            QVERIFY2(std::abs(ground.lightness() - palette.color(QPalette::Base).lightness()) < 70,
                     qPrintable(QString("row %1: %2").arg(row).arg(ground.name())));
            QVERIFY2(std::abs(ground.lightness() - palette.color(QPalette::Text).lightness()) > 110,
                     qPrintable(QString("row %1: %2").arg(row).arg(ground.name())));
        }
        applyTheme(Theme::Light);
    }

    /// With CUTAWAY_PICTURES=FOLDER in the environment they stay there, to be looked at.
    void picturesOfEveryWindow_data() {
        QTest::addColumn<int>("theme");
        QTest::newRow("light") << static_cast<int>(Theme::Light);
        QTest::newRow("dark") << static_cast<int>(Theme::Dark);
    }
    void picturesOfEveryWindow() {
        QFETCH(int, theme);
        applyTheme(static_cast<Theme>(theme));
        m_control->tail = 90;
        m_main->resize(1440, 900);
        openAndCompile();
        m_main->selection().setNode(static_cast<NodeKey>(16));
        m_main->controller().build(1, Target::Cpu);
        m_main->controller().run(1, {});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        const QString folder = qEnvironmentVariable("CUTAWAY_PICTURES");
        const auto save = [&](const QString& name, QWidget* widget) {
            QCoreApplication::processEvents();
            const QPixmap picture = widget->grab();
            if (!folder.isEmpty())
                QVERIFY(
                    picture.save(QStringLiteral("%1/%2-%3.png").arg(folder, name, nameOf(static_cast<Theme>(theme)))));
            QSet<QRgb> colors;
            const QImage image = picture.toImage();
            for (int y = 0; y < image.height(); y += 3)
                for (int x = 0; x < image.width(); x += 3) colors.insert(image.pixel(x, y));
            QVERIFY2(colors.size() > 8, qPrintable(name + " is blank"));
        };
        for (const QString& name : windowNames()) {
            m_main->window(name)->raise();
            save(name, m_main->window(name));
        }
        m_main->window("graph")->raise();
        m_main->window("log")->raise();
        save("main", m_main.get());
        m_main->get<GraphWindow>().setMode(GraphMode::SideBySide);
        save("side-by-side", m_main.get());
        CompileDialog dialog([this](const CompileRequest& kind) { return m_main->controller().passes(kind); }, {});
        dialog.addRuleFile("/models/rules of my own.txt", true);
        dialog.show();
        auto* tabs = dialog.findChild<QTabWidget*>();
        for (int page = 0; page < tabs->count(); ++page) {
            tabs->setCurrentIndex(page);
            save(QStringLiteral("compile-%1").arg(page), &dialog);
        }
        applyTheme(Theme::Light);
    }

    /// The one measure of time: the window must not freeze, whatever is opened, stepped through or laid out.
    void theEventLoopNeverBlocks() {
        m_control->tail = 3000;
        QElapsedTimer clock;
        clock.start();
        qint64 last = 0, worst = 0;
        QTimer heart;
        heart.setTimerType(Qt::PreciseTimer);
        connect(&heart, &QTimer::timeout, this, [&] {
            const qint64 now = clock.elapsed() - kept();
            worst = std::max(worst, now - last);
            last = now;
        });
        heart.start(5);
        last = clock.elapsed() - kept();
        openAndCompile();
        m_main->get<GraphWindow>().setMode(GraphMode::SideBySide);
        press(Qt::Key_F10);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        m_main->get<GraphWindow>().view().setFolding(false, 2);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        press(Qt::Key_0, Qt::ControlModifier);
        QTest::qWait(50);
        qInfo("longest pause of the event loop: %lld ms", worst);
        QVERIFY2(worst <= 100, qPrintable(QString("%1 ms").arg(worst)));
    }
};

CUTAWAY_SUITE(WindowLooksTest)
#include "window_looks_test.moc"
