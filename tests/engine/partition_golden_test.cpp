// Partitions of small functions as PyTorch 2.11 makes them (tests/data/partition, written by
// tests/scripts/partition_cases.py): what is saved, and both graphs, under varying options.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "engine/partition/partition.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QByteArray readData(const QString& name) {
    QFile file(testFile("data/partition/" + name));
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(file.fileName()));
    return file.readAll();
}
const QJsonArray& runs() {
    static const QJsonArray all = QJsonDocument::fromJson(readData("runs.json")).array();
    return all;
}

QString valueText(const QJsonValue& value) {
    if (value.isBool()) return value.toBool() ? "true" : "false";
    if (!value.isArray()) return value.toVariant().toString();
    QStringList out;
    for (const QJsonValue& item : value.toArray()) out << item.toVariant().toString();
    return out.join(' ');
}

/// Parity: PyTorch draws random numbers again in the backward where it is told to compute everything again.
CompileRequest requestOf(const QJsonObject& options) {
    CompileRequest request;
    request.pytorch = Release::V2_11;  // which recorded them
    request.mode = Mode::Training;
    request.parity = true;
    OptionalPass partition{"partition", {}};
    for (auto option = options.begin(); option != options.end(); ++option) {
        const std::string key = option.key().toStdString(), value = valueText(option.value()).toStdString();
        if (key == "activation_memory_budget") request.memoryBudget = option.value().toDouble();
        else if (key == "activation_memory_budget_solver") request.solver = value;
        else partition.settings.emplace_back(key == "static" ? "static_lifetime_input_indices" : key, value);
    }
    if (!partition.settings.empty()) request.enabledPasses.push_back(partition);
    return request;
}

Snapshot graphOf(const QString& name) {
    auto parsed = parseText(readData(name + ".py").toStdString());
    if (!parsed) qFatal("%s", parsed.error().text().c_str());
    return std::move(*parsed);
}

QString names(const std::vector<const Node*>& nodes) {
    QStringList out;
    for (const Node* node : nodes) out << QString::fromStdString(node->name());
    return out.join(' ');
}
QString inputNames(const Graph& graph) {
    std::vector<const Node*> out;
    for (const Node* node : graph.placeholders()) out.push_back(node);
    return names(out);
}
QString callNames(const Graph& graph) {
    std::vector<const Node*> out;
    for (const Node& node : graph.nodes())
        if (node.isCall()) out.push_back(&node);
    return names(out);
}
QString outputsOf(const Graph& graph) {
    std::vector<const Node*> out;
    for (const Argument& value : graph.outputs())
        if (value.node()) out.push_back(value.node());
    return names(out);
}

/// The joint graph as it is when it is split.
Snapshot merged(const Snapshot& joint, const CompileRequest& request) {
    Snapshot current = joint;
    for (const StagePass& one : pipeline())
        if (one.stage == &kPartition && !one.pass->split && (!one.pass->when || one.pass->when(request))) {
            const Step step = runPass(*one.pass, current, PassContext(request));
            if (step.info.state == StepState::Failed) qFatal("%s", step.info.error.c_str());
            current = step.after;
        }
    return current;
}

class PartitionGoldenTest : public QObject {
    Q_OBJECT
  private slots:
    void partitions_data() {
        QTest::addColumn<int>("row");
        std::map<QString, int> count;
        for (int i = 0; i < runs().size(); ++i) {
            const QString graph = runs()[i]["graph"].toString();
            QTest::addRow("%s-%d", qPrintable(graph), ++count[graph]) << i;
        }
        QCOMPARE(runs().size(), 138);
    }
    void partitions() {
        QFETCH(int, row);
        const QJsonObject recorded = runs()[row].toObject();
        const CompileRequest request = requestOf(recorded["options"].toObject());
        const Snapshot joint = merged(graphOf(recorded["graph"].toString()), request);
        const auto partitioner = Partitioner::make(*joint, PassContext(request));
        QVERIFY2(partitioner, partitioner ? "" : partitioner.error().text().c_str());
        const auto saved = (*partitioner)->choose(request.memoryBudget);
        if (recorded.contains("error")) {
            QVERIFY(!saved);
            QVERIFY(saved.error().message.find("from 0 to 1") != std::string::npos);
            return;
        }
        QVERIFY2(saved, saved ? "" : saved.error().text().c_str());
        const auto split = (*partitioner)->split(*saved);
        QVERIFY2(split, split ? "" : split.error().text().c_str());
        const JointFacts& facts = (*partitioner)->facts();

        QStringList actual, expected;
        int64_t bytes = 0, expectedBytes = 0;
        for (const int value : split->saved.values) {
            actual << QString::fromStdString(facts[value].node->name()) + ' ' + QString::number(facts[value].bytes);
            bytes += facts[value].bytes;
        }
        for (const QJsonValue& value : recorded["saved"].toArray()) {
            expected << value.toString();
            expectedBytes += expected.back().section(' ', 1).toLongLong();
        }
        // Several sets are best for an integer program, and each solver finds its own.
        if (request.solver == "ilp") {
            QCOMPARE(bytes, expectedBytes);
            return;
        }
        QCOMPARE(actual.join(", "), expected.join(", "));
        QCOMPARE(outputsOf(split->forward->graph()), recorded["forward"].toString());
        QCOMPARE(inputNames(split->backward->graph()) + " | " + callNames(split->backward->graph()),
                 recorded["backward"].toString());
        if (recorded.contains("edges")) compareEdges(facts, *saved, recorded);
    }

    /// Draws, which PyTorch would repeat, and what the user wants saved beside the inputs: in the order of the graph.
    void savedInOrder_data() {
        QTest::addColumn<QString>("calls");
        QTest::addColumn<QString>("saved");
        const QString marked =
            "        # recompute: MUST_SAVE\n"
            "        a: \"f32[4, 4]\" = torch.ops.aten.sin.default(primals_1)\n"
            "        # No stacktrace found for following nodes\n";
        const QString draw = "        b: \"f32[4, 4]\" = torch.ops.aten.rand.default([4, 4])\n";
        QTest::newRow("the draw is first") << draw + marked << "primals_1 b a";
        QTest::newRow("the draw is last") << marked + draw << "primals_1 a b";
    }
    void savedInOrder() {
        QFETCH(QString, calls);
        QFETCH(QString, saved);
        const QString text =
            "class joint(torch.nn.Module):\n    def forward(self, primals, tangents):\n"
            "        primals_1: \"f32[4, 4]\"; tangents_1: \"f32[4, 4]\"; \n\n        primals_1, tangents_1, = "
            "fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n" +
            calls +
            "        y: \"f32[4, 4]\" = torch.ops.aten.mul.Tensor(a, b)\n"
            "        d: \"f32[4, 4]\" = torch.ops.aten.mul.Tensor(tangents_1, b)\n"
            "        g: \"f32[4, 4]\" = torch.ops.aten.mul.Tensor(d, a)\n"
            "        return pytree.tree_unflatten([y, g], self._out_spec)\n";
        const auto joint = parseText(text.toStdString());
        QVERIFY2(joint, joint ? "" : joint.error().text().c_str());
        CompileRequest request;
        request.mode = Mode::Training;
        const auto partitioner = Partitioner::make(**joint, PassContext(request));
        QVERIFY2(partitioner, partitioner ? "" : partitioner.error().text().c_str());
        const auto chosen = (*partitioner)->choose(0.1);
        QVERIFY2(chosen, chosen ? "" : chosen.error().text().c_str());
        std::vector<const Node*> nodes;
        for (const int value : chosen->saved) nodes.push_back((*partitioner)->facts()[value].node);
        QCOMPARE(names(nodes), saved);
    }

  private:
    /// The network edge by edge, with PyTorch's reason for each value that is not computed again.
    void compareEdges(const JointFacts& facts, const SavedValues& saved, const QJsonObject& recorded) {
        if (!saved.network) return;
        const FlowNetwork& network = saved.network->network;
        QStringList actual, expected;
        const auto weight = [](int64_t value) {
            return value >= FlowNetwork::kInfinite ? QString("inf") : QString::number(value);
        };
        for (int i = 0; i + 1 < static_cast<int>(facts.nodes.size()); ++i) {
            const auto& edges = network[i];
            const QString name = QString::fromStdString(facts[i].node->name());
            if (edges.source != EdgeReason::None) actual << "source " + name + "_in inf";
            if (edges.sinkIn != EdgeReason::None) actual << name + "_in sink inf";
            if (edges.sinkOut != EdgeReason::None) actual << name + "_out sink inf";
            if (edges.ends) continue;
            actual << name + "_in " + name + "_out " + weight(edges.weight);
            for (const int user : facts[i].users)
                actual << name + "_out " + QString::fromStdString(facts[user].node->name()) + "_in inf";
        }
        for (const QJsonValue& edge : recorded["edges"].toArray()) expected << edge.toString();
        actual.sort();
        expected.sort();
        QCOMPARE(actual.join('\n'), expected.join('\n'));
        static const std::map<QString, EdgeReason> kReasons = {
            {"cannot recompute: primal input", EdgeReason::Input},
            {"cannot recompute: materialized in backward", EdgeReason::MaterializedBackward},
            {"cannot recompute: not in recomputable allowlist", EdgeReason::NotRecomputable},
            {"cannot recompute: reduction op", EdgeReason::Reduces},
            {"cannot recompute: compute intensive op", EdgeReason::ComputeIntensive}};
        const QJsonObject reasons = recorded["reasons"].toObject();
        for (auto reason = reasons.begin(); reason != reasons.end(); ++reason) {
            const Node* node = facts.output().graph().findByName(reason.key().toStdString());
            QVERIFY2(node, qPrintable(reason.key()));
            QCOMPARE(sentence(network[facts.at(*node)].source), sentence(kReasons.at(reason.value().toString())));
        }
    }
};

}  // namespace

CUTAWAY_SUITE(PartitionGoldenTest)
#include "partition_golden_test.moc"
