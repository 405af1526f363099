// Every op that expands, expanded until nothing more does: the sequence of ops against the one that PyTorch's compiler
// makes of the same call (tests/data/ops/expansions.txt, by tests/scripts/record_ops.py). Samples that were added since
// are skipped until the script is run again.
#include <QtTest>
#include <fstream>
#include <map>
#include <set>

#include "engine/ops/op_registry.h"
#include "engine/rewrite/rewriter.h"
#include "tests/support/op_samples.h"
#include "tests/support/paths.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Expands every call of the graph in place until no row does; keeps what `results` name alive.
Result<void> expandFully(Graph& graph) {
    CompileOptions options;
    Rewriter rewriter("decompose", options);
    for (Node* node = graph.first(); node != nullptr;) {
        Node* const next = node->next();
        Node* const previous = node->previous();
        const OpDef* def = node->isCall() ? node->op().def() : nullptr;
        if (def == nullptr || def->expand == Expand::Never || !def->decompose) {
            node = next;
            continue;
        }
        GraphBuilder builder(graph, node);
        Decomposition call(*node, builder);
        const Values values = def->decompose(call);
        if (builder.error()) return *builder.error();
        if (!values.handled()) {
            node = next;
            continue;
        }
        if (values.isTuple()) {
            std::vector<Node*> nodes;
            for (const Value& value : values.values()) nodes.push_back(value.node());
            CT_TRY_VOID(rewriter.replaceTuple(*node, nodes));
        } else {
            rewriter.replace(*node, *values.values()[0].node());
        }
        node = previous ? previous->next() : graph.first();
    }
    for (Node* node = graph.last(); node != nullptr;) {
        Node* const previous = node->previous();
        if (isPure(*node) && !node->hasUsers()) graph.erase(*node);
        node = previous;
    }
    return {};
}

}  // namespace

class OpsExpansionTest : public QObject {
    Q_OBJECT

    std::map<std::string, QStringList> m_recorded;  // by op and text of the sample, a line each

    /// "## OP", then for each sample "# TEXT" and its graph. In-place ops count as functionalization leaves them.
    void load() {
        std::ifstream file(testFile("data/ops/expansions.txt").toStdString());
        std::string line, op;
        QStringList* current = nullptr;
        while (std::getline(file, line)) {
            if (line.starts_with("## ")) {
                op = line.substr(3);
            } else if (line.starts_with("# ")) {
                current = &m_recorded[op + "\n" + line.substr(2)];
            } else if (const size_t equals = line.find(" = "); current != nullptr && equals != std::string::npos && line.starts_with("    ")) {
                const std::string call = line.substr(equals + 3);
                if (!call.starts_with("aten.") && !call.starts_with("prims.")) continue;
                QString name = QString::fromStdString(call.substr(0, call.find('(')));
                if (name != "aten.copy_.default") *current << name.replace("_.", ".");
            }
        }
    }

  private slots:
    void matchesRecord_data() {
        load();
        QVERIFY(!m_recorded.empty());
        QTest::addColumn<QString>("op");
        QTest::addColumn<QString>("text");
        for (const Op* op : allOps()) {
            if (op->functional() != nullptr) continue;
            for (const OpSample& sample : samplesOf(*op))
                if (m_recorded.contains(op->name() + "\n" + sample.text))
                    QTest::newRow(sample.name().c_str()) << QString::fromStdString(op->name()) << QString::fromStdString(sample.text);
        }
    }
    void matchesRecord() {
        QFETCH(QString, op);
        QFETCH(QString, text);
        static constexpr const char* kWrites = "PyTorch copies into slices in place, which functionalization turns into slice_scatter";
        static constexpr const char* kConstant = "PyTorch keeps the number as a constant tensor of the module";
        static const std::map<std::string, const char*> kOtherwise = {
            {"aten.dropout.default#0", "PyTorch's trace of one call returns the operand itself; a program's graph holds a clone"},
            {"aten.dropout.default#1", "PyTorch's trace of one call returns the operand itself; a program's graph holds a clone"},
            {"aten.lerp.Scalar#1", "PyTorch copies back into the operand's layout by an op of its prims"},
            {"aten.index_fill.int_Scalar#2", "PyTorch copies back into the operand's layout"},
            {"aten.cosine_similarity.default#3", "PyTorch clamps the norms in place"},
            {"aten.cosine_embedding_loss.default#0", "PyTorch fills and subtracts in place"},
            {"aten.cosine_embedding_loss.default#1", "PyTorch fills and subtracts in place"},
            {"aten.cosine_embedding_loss.default#2", "PyTorch fills and subtracts in place"},
            {"aten.hinge_embedding_loss.default#0", "PyTorch fills and subtracts in place"},
            {"aten.hinge_embedding_loss.default#1", "PyTorch fills and subtracts in place"},
            {"aten.where.ScalarOther#2", "open"}, {"aten.frac.default#2", "open"}, {"aten.sgn.default#2", "open"},
            {"aten.logaddexp.default#0", "open"}, {"aten.threshold.default#1", "open"}, {"aten.hardtanh_backward.default#1", "open"},
            {"aten.elu_backward.default#0", "open"}, {"aten.elu_backward.default#2", "open"}, {"aten.softplus_backward.default#0", "open"},
            {"aten.softplus_backward.default#1", "open"}, {"aten._prelu_kernel_backward.default#0", "open"},
            {"aten.binary_cross_entropy_with_logits.default#2", "open"},
            {"aten._pad_circular.default#0", kWrites}, {"aten._pad_circular.default#1", kWrites}, {"aten._pad_circular.default#2", kWrites},
            {"aten._pad_circular.default#3", kWrites}, {"aten.pad.default#4", kWrites}, {"aten.pad.default#6", kWrites}, {"aten.pad.default#7", kWrites},
            {"aten.bucketize.Scalar#0", kConstant}, {"aten.bucketize.Scalar#1", kConstant}, {"aten.searchsorted.Scalar#0", kConstant},
            {"aten.searchsorted.Scalar#1", kConstant},
            {"aten.index_fill.int_Tensor#2", "PyTorch copies back into the operand's layout"},
            {"aten.tril_indices.default#6", "PyTorch divides the empty range by 0 columns"}, {"aten.triu_indices.default#6", "PyTorch divides the empty range by 0 columns"}};
        if (const auto found = kOtherwise.find(QTest::currentDataTag()); found != kOtherwise.end()) QSKIP(found->second);
        auto sample = buildSample(requireOp(op.toStdString()), text.toStdString());
        QVERIFY2(sample, sample ? "" : sample.error().message.c_str());
        Graph& graph = (*sample)->graph;
        std::vector<Argument> results;
        GraphBuilder builder(graph);
        if (const TupleType* tuple = (*sample)->call->type().tuple())
            for (size_t i = 0; i < tuple->size(); ++i) {
                if ((*tuple)[i].tensor()) results.emplace_back(builder.value(*(*sample)->call)[static_cast<int64_t>(i)]);
            }
        else results.emplace_back((*sample)->call);
        graph.output(Argument(std::move(results)));
        const auto expanded = expandFully(graph);
        QVERIFY2(expanded.has_value(), expanded ? "" : expanded.error().text().c_str());
        QStringList ops;
        for (const Node& node : graph.nodes())
            if (node.isCall() && node.op().name() != "operator.getitem") ops << QString::fromStdString(node.op().name());
        const QString actual = ops.join(" "), expected = m_recorded[(op + "\n" + text).toStdString()].join(" ");
        QVERIFY2(actual == expected, qPrintable("\n  ours    " + actual + "\n  PyTorch " + expected));
    }
};

QTEST_GUILESS_MAIN(OpsExpansionTest)
#include "ops_expansion_test.moc"
