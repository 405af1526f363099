// What a click costs in a graph of ten thousand nodes: counted in memory that is asked for, not in time. Nobody copies
// the names of all nodes to tell that of one.
#include <QtTest>
#include <atomic>

#include "tests/support/suites.h"
#include "tests/ui/fake_source.h"
#include "tests/ui/patience.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/search_window.h"
#include "ui/windows/theme.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Not every compiler brings the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
#define CUTAWAY_SANITIZED
#endif

namespace {

std::atomic<int64_t> asked{0};

}  // namespace

#ifndef CUTAWAY_SANITIZED
extern "C" void* __libc_malloc(size_t bytes) noexcept;
extern "C" void* malloc(size_t bytes) noexcept {
    asked += static_cast<int64_t>(bytes);
    return __libc_malloc(bytes);
}
#endif

using namespace cutaway;
using namespace cutaway::ui;

class LargeGraphTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    /// A chain of so many calls, with names that are not a short strings.
    QString write(int nodes) {
        QByteArray text = "def forward(x: \"f32[8]\"):\n", last = "x";
        for (int i = 0; i < nodes; ++i) {
            const QByteArray name = "a_name_that_takes_memory_of_its_own_" + QByteArray::number(i);
            text += "    " + name + " = aten.relu.default(" + last + ")\n";
            last = name;
        }
        QFile file(m_folder.filePath(QString::number(nodes) + ".py"));
        if (!file.open(QIODevice::WriteOnly) || file.write(text + "    return (" + last + ",)\n") < 0) return {};
        return file.fileName();
    }

  private slots:
    void initTestCase() {
#ifdef CUTAWAY_SANITIZED
        __sanitizer_install_malloc_and_free_hooks([](const volatile void*, size_t bytes) { asked += int64_t(bytes); },
                                                  [](const volatile void*) {});
#endif
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        applyTheme(Theme::Light);
    }

    void answersShareOneIndex() {
        Selection selection;
        SessionController controller(
            std::make_unique<testing::FakeSource>(std::make_shared<testing::FakeSource::Control>()), selection);
        std::shared_ptr<const NodeIndex> shown;
        QSet<const NodeIndex*> seen;
        int answers = 0;
        connect(&controller, &SessionController::shown, this, [&](const auto& what) { shown = what->nodes; });
        connect(&controller, &SessionController::nodeShown, this, [&](const auto& facts) {
            if (facts->nodes) {
                seen.insert(facts->nodes.get());
                ++answers;
            }
        });
        connect(&controller, &SessionController::explained, this, [&](const auto& what) {
            seen.insert(what->nodes.get());
            ++answers;
        });
        controller.open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(controller.model() && !controller.isBusy(), testing::kEnginePatience);
        for (const int node : {1, 2, 3}) {
            selection.setNode(static_cast<NodeKey>(node));
            controller.explain();
            QTRY_VERIFY_WITH_TIMEOUT(!controller.isBusy(), testing::kEnginePatience);
        }
        QVERIFY2(answers >= 4, qPrintable(QString::number(answers)));
        QCOMPARE(seen, QSet<const NodeIndex*>{shown.get()});
    }

    /// Bytes asked for while the nth node is clicked and all windows follow.
    void aClickCostsTheSameInAnyGraph() {
        int64_t cost[2] = {};
        const int sizes[] = {300, 10'000};
        for (const int size : {0, 1}) {
            MainWindow main(makeSessionSource());
            main.show();
            QVERIFY(QTest::qWaitForWindowExposed(&main));
            main.open(write(sizes[size]));
            QTRY_VERIFY_WITH_TIMEOUT(main.controller().model() && main.isSettled(), testing::kEnginePatience);
            const auto& nodes = main.get<SearchWindow>().graph()->nodes;
            QVERIFY(nodes.size() > size_t(sizes[size]));
            const auto click = [&](size_t node) {
                main.selection().setNode(nodes[node].info.id);
                QTRY_VERIFY_WITH_TIMEOUT(main.isSettled(), testing::kEnginePatience);
                QCoreApplication::processEvents();
            };
            click(100);
            cost[size] = INT64_MAX;  // the least of some: repainting is now and then more
            for (const size_t node : {101, 102, 103, 104, 105}) {
                const int64_t before = asked;
                click(node);
                cost[size] = std::min(cost[size], asked - before);
            }
            qInfo("%d nodes: %lld bytes", sizes[size], static_cast<long long>(cost[size]));
        }
        QVERIFY(cost[1] < cost[0] * 3 / 2 + 100'000);
    }
};

CUTAWAY_SUITE(LargeGraphTest)
#include "large_graph_test.moc"
