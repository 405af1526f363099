// Every dialog that the menus open, on the engine's own session with a model that is open and compiled: it opens, greys
// nothing without saying why, cuts nothing off, and goes when it is told to.
#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QDesktopServices>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <QtTest>
#include <functional>

#include "engine/support/sanitized.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "ui/windows/commands.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/log_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

constexpr int kExportPatience = cutaway::kSanitized ? 240000 : 180000;  // exporting compiles a library

namespace {

/// What opens, by the command's name as actionNamed takes it.
const QMap<QString, QByteArray> kDialogs = {
    {"Ctrl+O", "QFileDialog"},
    {"Ctrl+Shift+O", "QFileDialog"},
    {"Ctrl+Shift+G", "cutaway::ui::GraphDialog"},
    {"Ctrl+Shift+Y", "QFileDialog"},
    {"Ctrl+Shift+P", "QInputDialog"},
    {"Compare with a File", "QFileDialog"},
    {"Ctrl+Shift+E", "QFileDialog"},
    {"Export Text", "QFileDialog"},
    {"Export Compiled Library", "QFileDialog"},
    {"Ctrl+K", "cutaway::ui::CommandPalette"},
    {"Ctrl+Shift+B", "cutaway::ui::CompileDialog"},
    {"F5", "cutaway::ui::ExecuteDialog"},
    {"Compile One Operator", "cutaway::ui::OperatorDialog"},
    {"Ctrl+G", "QInputDialog"},
    {"Find the Rewrite That Broke the Graph", "cutaway::ui::BisectDialog"},
    {"Debug Compile into a Folder", "QFileDialog"},
    {"F1", "cutaway::ui::KeysDialog"},
    {"Shift+F1", "cutaway::ui::ManualDialog"},
    {"About Cutaway", "QMessageBox"},
};

bool isAsked(const QWidget* widget) {
    return qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget) ||
           qobject_cast<const QAbstractSpinBox*>(widget) || qobject_cast<const QLineEdit*>(widget);
}

/// What is wrong with an open dialog; empty if nothing is.
QString problemOf(const QDialog& dialog) {
    if (dialog.windowTitle().isEmpty() && dialog.windowType() != Qt::Popup) return "it has no title";
    if (dialog.inherits("QFileDialog")) return {};  // inside, Qt's own
    const auto* reason = dialog.findChild<QLabel*>("problem");
    const bool told = reason && reason->isVisible() && !reason->text().isEmpty();
    for (const QWidget* widget : dialog.findChildren<QWidget*>()) {
        if (!widget->isVisible() || !isAsked(widget) || widget->objectName().startsWith("qt_")) continue;
        const QString name = widget->metaObject()->className() + (" " + widget->accessibleName());
        if (!widget->isEnabled() && widget->toolTip().isEmpty() && !told) return name + " is grey and does not say why";
        const QSize needed = widget->minimumSizeHint();
        if (widget->width() < needed.width() || widget->height() < needed.height()) return name + " is cut off";
    }
    return {};
}

}  // namespace

/// Stands for the desktop's.
class FileManager : public QObject {
    Q_OBJECT

  public:
    QString opened;
  public slots:
    void open(const QUrl& url) { opened = url.toLocalFile(); }
};

class MenuDialogsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::unique_ptr<MainWindow> m_main;

    QDialog* openDialog() const {
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (auto* dialog = qobject_cast<QDialog*>(widget); dialog && dialog->isVisible()) return dialog;
        return nullptr;
    }
    /// Chooses a command; its dialog is looked at as soon as it is there, then sent away.
    void lookAt(const QString& command, const std::function<void(QDialog&)>& look) {
        QTimer beat;
        bool seen = false;
        connect(&beat, &QTimer::timeout, this, [&] {
            QDialog* dialog = openDialog();
            if (!dialog || seen) return;
            seen = true;
            look(*dialog);
            dialog->reject();
        });
        beat.start(20);
        QAction* action = actionNamed(*m_main, qPrintable(command));
        QVERIFY2(action && action->isEnabled(), qPrintable(command));
        action->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(seen && !openDialog(), kExportPatience);
    }
    void open(const QString& path) {
        m_main->open(path);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), kExportPatience);
    }

    /// The row that says what was written opens it in the file manager.
    void theLogOpens(const QString& folder) {
        auto* log = m_main->get<LogWindow>().findChild<QTableView*>();
        const auto rowOf = [&] {
            return log->model()->match(log->model()->index(0, LogModel::Next), Qt::DisplayRole,
                                       "Enter opens the folder");
        };
        QTRY_VERIFY_WITH_TIMEOUT(!rowOf().isEmpty(), kExportPatience);
        FileManager manager;
        QDesktopServices::setUrlHandler("file", &manager, "open");
        emit log->activated(rowOf().first());
        QDesktopServices::unsetUrlHandler("file");
        QCOMPARE(manager.opened, folder);
    }

  private slots:
    void initTestCase() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
        applyTheme(Theme::Light);
    }
    void init() {
        QSettings().clear();
        m_main = std::make_unique<MainWindow>(makeSessionSource());
        m_main->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_main.get()));
    }
    void cleanup() { m_main.reset(); }

    void everyDialogIsTriedHere() {
        for (const MenuAction& each : menuActions(*m_main->menuBar())) {
            if (!each.action->text().endsWith(QStringLiteral("…")) || each.made) continue;
            const auto isThis = [&](const QString& name) {
                return actionNamed(*m_main, qPrintable(name)) == each.action;
            };
            const QStringList names = kDialogs.keys();
            QVERIFY2(std::any_of(names.begin(), names.end(), isThis), qPrintable(each.title + " has no row"));
        }
    }

    void opensAndGoes_data() {
        QTest::addColumn<QString>("command");
        QTest::addColumn<QByteArray>("dialog");
        for (auto at = kDialogs.begin(); at != kDialogs.end(); ++at)
            QTest::newRow(qPrintable(at.key())) << at.key() << at.value();
    }
    void opensAndGoes() {
        QFETCH(QString, command);
        QFETCH(QByteArray, dialog);
        if (command == "Ctrl+Shift+G") {  // there must be something to choose from
            for (const char* name : {"one.py", "two.py"}) {
                QFile file(m_folder.filePath(QString("graphs/") + name));
                QVERIFY(QDir(m_folder.path()).mkpath("graphs") && file.open(QIODevice::WriteOnly));
                file.write("def forward(x: \"f32[2]\"):\n    y = aten.neg.default(x)\n    return (y,)\n");
            }
            open(m_folder.filePath("graphs"));
            QTRY_VERIFY_WITH_TIMEOUT(openDialog(), kExportPatience);  // it asks by itself
            openDialog()->reject();
            QTRY_VERIFY_WITH_TIMEOUT(!openDialog(), kExportPatience);
        } else {
            open(testing::testFile("../resources/models/mlp.pt2"));
            m_main->controller().compile({});
            QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().runs().empty() && m_main->isSettled(), kExportPatience);
            // Some commands are about a node.
            m_main->selection().setNode(m_main->get<GraphWindow>().view().graph()->nodes.front().info.id);
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kExportPatience);
        }
        const size_t runs = m_main->controller().runs().size();
        QByteArray seen;
        QString problem;
        lookAt(command, [&](QDialog& there) {
            QTest::qWait(50);  // until it has its size
            seen = there.metaObject()->className();
            problem = problemOf(there);
        });
        QCOMPARE(seen, dialog);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QVERIFY(!m_main->controller().isBusy());  // who sends it away has asked for nothing
        QCOMPARE(m_main->controller().runs().size(), runs);
    }

    void exportsAsChosen_data() {
        QTest::addColumn<QString>("box");
        QTest::addColumn<QStringList>("words");
        const auto row = [](const char* box, std::span<const ExportChoice> choices) {
            QStringList words;
            for (const ExportChoice& choice : choices)
                words << QString::fromUtf8(choice.word.data(), static_cast<qsizetype>(choice.word.size()));
            QTest::newRow(box) << box << words;
        };
        row("target", exportTargets());
        row("weights", exportWeights());
    }
    /// The window offers what the command line does, the default first, and the last is what is made.
    void exportsAsChosen() {
        QFETCH(QString, box);
        QFETCH(QStringList, words);
        open(testing::testFile("../resources/models/mlp.pt2"));
        m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().runs().empty() && m_main->isSettled(), kExportPatience);
        const QString folder = m_folder.filePath("chosen" + box);
        QStringList offered;
        QTimer beat;
        connect(&beat, &QTimer::timeout, this, [&] {
            QDialog* dialog = openDialog();
            if (!dialog) return;
            auto* choices = dialog->findChild<QComboBox*>(box);
            offered.clear();
            for (int i = 0; choices && i < choices->count(); ++i) offered << choices->itemData(i).toString();
            if (choices) choices->setCurrentIndex(choices->count() - 1);
            auto* line = dialog->findChild<QLineEdit*>("fileNameEdit");
            if (line->text() != folder) {
                line->setFocus();
                line->selectAll();
                QTest::keyClicks(line, folder);
            }
            QTest::keyClick(line, Qt::Key_Return);
        });
        beat.start(200);
        actionNamed(*m_main, "Export Compiled Library")->trigger();
        QCOMPARE(offered, words);
        QFile manifest(folder + "/manifest.json");
        QTRY_VERIFY_WITH_TIMEOUT(manifest.exists(), kExportPatience);
        QVERIFY(manifest.open(QIODevice::ReadOnly));
        const QByteArray wanted =
            box == "target" ? "\"target\": \"" + words.last().toUtf8() + '"' : "\"weights\": \"\"";
        QVERIFY(manifest.readAll().contains(wanted));
    }

    void writesIntoFolders_data() {
        QTest::addColumn<QString>("command");
        QTest::addColumn<bool>("made");
        for (const char* command : {"Export Compiled Library", "Debug Compile into a Folder"})
            for (const bool made : {false, true})
                QTest::addRow("%s, %s", command, made ? "empty" : "new") << command << made;
    }
    /// By its name, typed: one that is not there yet, and one that is.
    void writesIntoFolders() {
        QFETCH(QString, command);
        QFETCH(bool, made);
        open(testing::testFile("../resources/models/mlp.pt2"));
        m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().runs().empty() && m_main->isSettled(), kExportPatience);
        const QString folder = m_folder.filePath("to" + QString::number(qHash(command)) + (made ? "made" : "new"));
        if (made) QVERIFY(QDir().mkpath(folder));
        QTimer beat;
        bool typed = false;
        connect(&beat, &QTimer::timeout, this, [&] {
            QDialog* dialog = openDialog();
            if (!dialog) return;
            auto* line = dialog->findChild<QLineEdit*>("fileNameEdit");
            // On a busy machine the dialog still reads its folder when it is shown, and may overwrite what is typed.
            if (!typed || line->text() != folder) {
                line->setFocus();
                line->selectAll();
                QTest::keyClicks(line, folder);
            }
            typed = true;
            QTest::keyClick(line, Qt::Key_Return);
        });
        beat.start(200);
        actionNamed(*m_main, qPrintable(command))->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(typed && !openDialog(), kExportPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().isBusy(), kExportPatience);
        // What the dialog asks for may begin after it has closed.
        const QString last = command.startsWith("Export") ? "libmlp.so" : "module.py";
        const auto files = [&] { return QDir(folder).entryList(QDir::Files); };
        QTRY_VERIFY2_WITH_TIMEOUT(files().contains(last), qPrintable(files().join(' ')), kExportPatience);
        theLogOpens(folder);
    }
};

CUTAWAY_SUITE(MenuDialogsTest)
#include "menu_dialogs_test.moc"
