// Steps that are chosen together: two are compared, more stand beside each other; and the list of what differs.
#include <QPushButton>
#include <QTreeView>
#include <QTreeWidget>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/windows/differences_window.h"
#include "ui/windows/filmstrip_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/steps_window.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class ChosenStepsTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    QTreeView* steps() { return m_main->get<StepsWindow>().findChild<QTreeView*>(); }
    const std::vector<GraphView*>& strip() { return m_main->get<FilmstripWindow>().views(); }
    QTreeWidget* parts() { return m_main->get<DifferencesWindow>().findChild<QTreeWidget*>(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience); }
    void click(const QString& step, Qt::KeyboardModifiers modifiers) {
        const auto rows = steps()->model()->match(steps()->model()->index(0, 0), Qt::DisplayRole, step, 1,
                                                  Qt::MatchRecursive | Qt::MatchExactly);
        QVERIFY2(!rows.isEmpty(), qPrintable(step));
        steps()->scrollTo(rows.first());
        QTest::mouseClick(steps()->viewport(), Qt::LeftButton, modifiers, steps()->visualRect(rows.first()).center());
        settle();
    }
    QStringList chosen() {
        QStringList names;
        for (const QModelIndex& row : steps()->selectionModel()->selectedRows()) names << row.data().toString();
        names.sort();
        return names;
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void twoAreCompared() {
        openAndCompile();
        click("reinplace", {});
        click("As opened", Qt::ControlModifier);
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, -1, -1}, {1, 5, -1}}));  // the earlier one is before
        QCOMPARE(chosen(), (QStringList{"As opened", "reinplace"}));
        // Once more takes it away again.
        click("As opened", Qt::ControlModifier);
        QCOMPARE(m_main->selection().comparison(), comparisonAt({1, 5, -1}));
        QCOMPARE(chosen(), QStringList{"reinplace"});
        // A plain click begins anew.
        click("fuse_bias_add", Qt::ControlModifier);
        click("As opened", {});
        click("fuse_bias_add", Qt::ControlModifier);
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, -1, -1}, {1, 4, -1}}));
    }

    void moreStandBesideEachOther() {
        openAndCompile();
        click("As opened", {});
        click("reinplace", Qt::ControlModifier);
        QVERIFY(strip().empty());
        click("fuse_bias_add", Qt::ControlModifier);
        QTRY_COMPARE(strip().size(), size_t(3));
        settle();
        QCOMPARE(chosen(), (QStringList{"As opened", "fuse_bias_add", "reinplace"}));
        QStringList titles;
        for (GraphView* view : strip()) titles << view->canvas().accessibleName();
        QCOMPARE(titles, (QStringList{"Graph, as opened", "Graph, fuse_bias_add", "Graph, reinplace"}));
        // One node for all of them.
        GraphCanvas& first = strip()[0]->canvas();
        first.setFocus();
        QTest::keyClick(&first, Qt::Key_Home);
        settle();
        const NodeKey node = m_main->selection().node();
        QVERIFY(node != NodeKey::None);
        for (GraphView* view : strip()) QCOMPARE(view->canvas().currentId(), node);
        // Another model has other states.
        m_main->open("/models/b.pt2");
        QTRY_VERIFY(strip().empty());
    }

    void differencesAreListed() {
        openAndCompile();
        m_main->raiseWindow(&m_main->get<DifferencesWindow>());
        QTRY_VERIFY_WITH_TIMEOUT(parts()->topLevelItemCount() > 0, kPatience);
        const QString text = testing::treeText(*parts()->model());
        QVERIFY2(text.contains("  + addmm | addmm.default") && text.contains("  − m | mm.default"), qPrintable(text));
        QTreeWidgetItem* added = nullptr;
        for (QTreeWidgetItemIterator at(parts()); *at; ++at)
            if ((*at)->parent() && (*at)->text(0).startsWith('+')) added = *at;
        QVERIFY(added);
        parts()->setCurrentItem(added);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(16));
        // The current node's row follows.
        m_main->selection().setNode(static_cast<NodeKey>(14));
        QCOMPARE(parts()->currentItem()->text(0), "− m");
        m_main->selection().setNode(static_cast<NodeKey>(10));
        for (auto* button : m_main->get<DifferencesWindow>().findChildren<QPushButton*>())
            if (button->text().contains("Next")) button->click();
        QCOMPARE(parts()->currentItem(), parts()->topLevelItem(0));
        QCOMPARE(m_main->selection().node(),
                 static_cast<NodeKey>(parts()->topLevelItem(0)->data(0, Qt::UserRole).toULongLong()));
        m_main->selection().setPlace({1, -1, -1});
        QTRY_COMPARE_WITH_TIMEOUT(parts()->topLevelItemCount(), 0, kPatience);
    }
};

CUTAWAY_SUITE(ChosenStepsTest)
#include "chosen_steps_test.moc"
