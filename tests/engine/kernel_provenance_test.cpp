// From nodes to the kernels that compute them and back, for all recorded models: which nodes share a kernel, what the
// kernels list, and what pictures outline say the same.
#include <QDirIterator>
#include <QTest>
#include <set>

#include "cutaway/loops.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

class KernelProvenanceTest : public QObject {
    Q_OBJECT

  private slots:
    void recordedModels_data() {
        QTest::addColumn<QString>("path");
        QTest::newRow("mlp") << testing::testFile("../resources/models/mlp.pt2");
        QDirIterator models(testing::referenceFolder("models"), {"model.pt2"}, QDir::Files,
                            QDirIterator::Subdirectories);
        while (!testing::referenceFolder("models").isEmpty() && models.hasNext()) {
            const QString path = models.next();
            QTest::newRow(qPrintable(path.section('/', -2, -2))) << path;
        }
    }
    void recordedModels() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        const auto run = session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const Place last{*run, static_cast<int>(session.steps(*run)->size()) - 1, -1};
        const auto graph = session.diff(last, last);
        const auto kernels = loopKernels(session, *run);
        QVERIFY(graph);
        QVERIFY2(kernels, kernels ? "" : kernels.error().text().c_str());
        std::map<NodeKey, std::set<std::string>> computedBy;
        for (const LoopKernel& kernel : *kernels)
            for (const NodeKey node : kernel.nodes) computedBy[node].insert(kernel.name);
        std::map<int, std::set<NodeKey>> outlined;
        for (const UnionGraph::Node& node : graph->nodes)
            if (node.kernel >= 0) outlined[node.kernel].insert(node.info.id);
        int shared = 0, libraries = 0;
        for (const UnionGraph::Node& node : graph->nodes) {
            const auto details = session.node(last, node.info.id);
            QVERIFY(details);
            QCOMPARE(details->kernel.has_value(), node.info.role == NodeRole::Call);
            if (!details->kernel) continue;
            const std::set<NodeKey> together(details->kernel->nodes.begin(), details->kernel->nodes.end());
            QVERIFY(together.contains(node.info.id));
            QCOMPARE(together.size() > 1, node.kernel >= 0);
            if (node.kernel >= 0) QVERIFY(together == outlined[node.kernel]);
            shared += together.size() > 1;
            libraries += !details->kernel->library.empty();
            // A library's call is nobody else's, and no loops of ours compute it.
            if (!details->kernel->library.empty()) QVERIFY(!computedBy.contains(node.info.id));
            if (together.size() < 2) continue;
            std::set<std::string> common = computedBy[node.info.id];
            for (const NodeKey other : together) {
                std::set<std::string> both;
                for (const std::string& name : computedBy[other])
                    if (common.contains(name)) both.insert(name);
                common = std::move(both);
            }
            QVERIFY2(!common.empty(), node.info.name.c_str());
        }
        for (const LoopKernel& kernel : *kernels)
            for (const NodeKey node : kernel.nodes) QVERIFY(session.node(last, node));
        QVERIFY(shared + libraries > 0);
    }
};

CUTAWAY_SUITE(KernelProvenanceTest)
#include "kernel_provenance_test.moc"
