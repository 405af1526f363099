// Every op that expands, expanded until nothing more does: node for node, with all arguments, the graph that PyTorch's
// compiler makes of the same call (tests/data/ops/expansions.txt and, of the oldest release, where that makes another
// one, expansions-2.11.txt, by tests/scripts/record_ops.py).
#include <QtTest>
#include <fstream>
#include <map>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/ops/op_registry.h"
#include "engine/rewrite/dead_code.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "tests/support/graph_text.h"
#include "tests/support/op_record.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// By op, then by sample: PyTorch's graph as FX text.
using Graphs = std::map<std::string, std::map<std::string, std::string>>;

Graphs readGraphs(const QString& file) {
    Graphs all;
    std::ifstream stream(testFile(file).toStdString());
    std::string op, *graph = nullptr;
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with("## ")) op = line.substr(3);
        else if (line.starts_with("# ")) graph = &all[op][line.substr(2)];
        else if (graph != nullptr) *graph += line + "\n";
    }
    return all;
}
const Graphs& expansions(Release release) {
    static const Graphs newest = readGraphs("data/ops/expansions.txt"),
                        oldest = readGraphs("data/ops/expansions-2.11.txt");
    return release == kNewestRelease ? newest : oldest;
}

/// What is written to an operand: PyTorch copies it back behind the graph, which the record does not show.
void dropWriteBacks(Module& module, Rewriter& rewriter) {
    std::vector<Node*> writes;
    for (Node& node : module.graph().nodes())
        if (node.isCall("aten.copy_.default") && node.arg(0).node()->isPlaceholder()) writes.push_back(&node);
    for (Node* write : writes) rewriter.replace(*write, *write->arg(1).node());
}

Result<std::string> expanded(const Op& op, const std::string& text, Release release) try {
    Module module;
    CT_TRY_VOID(buildSampleModule(op, text, module));
    // As recorded: nothing asks for a gradient, which some composites look at.
    for (Node* input : module.graph().placeholders()) {
        ValueType type = input->type();
        type.tensor()->requiresGrad = false;
        module.graph().setType(*input, std::move(type));
    }
    CompileRequest options;
    options.pytorch = release;
    Rewriter rewriter("expand", options);
    CT_TRY_VOID(expandComposites(module, rewriter));
    CT_TRY_VOID(functionalize(module, rewriter));
    dropWriteBacks(module, rewriter);
    CT_TRY_VOID(decompose(module, rewriter));
    CT_TRY_VOID(eliminateDeadCode(module, rewriter));
    return listing(module);
} catch (const InternalError& bug) {
    return Error{ErrorCode::Internal, bug.what(), {}, {}};
}

/// "aten.foo.default f32[2]": why the graph is not PyTorch's. One that is, is a failure until it is taken off the list.
const std::map<std::string, std::string>& openExpansions() {
    static const auto loaded = readOpenList("open_expansions.txt");
    return loaded;
}

}  // namespace

class OpsExpansionTest : public QObject {
    Q_OBJECT

  private slots:
    void matchesRecord_data() {
        QTest::addColumn<QString>("op");
        QTest::addColumn<QString>("text");
        QTest::addColumn<Release>("release");
        for (const Release release : {kNewestRelease, kOldestRelease})
            for (const auto& [op, samples] : expansions(release))
                for (const auto& [text, graph] : samples)
                    QTest::newRow((op + " " + text + (release == kNewestRelease ? "" : ", 2.11")).c_str())
                        << QString::fromStdString(op) << QString::fromStdString(text) << release;
    }
    void matchesRecord() {
        QFETCH(QString, op);
        QFETCH(QString, text);
        QFETCH(Release, release);
        auto ours = expanded(requireOp(op.toStdString()), text.toStdString(), release);
        auto theirs = parseText(expansions(release).at(op.toStdString()).at(text.toStdString()));
        QVERIFY2(theirs.has_value(), theirs ? "" : theirs.error().text().c_str());
        const QString want = QString::fromStdString(listing(**theirs)),
                      got = QString::fromStdString(ours ? *ours : ours.error().text());
        if (const auto open = openExpansions().find(QTest::currentDataTag()); open != openExpansions().end()) {
            QVERIFY2(got != want, "agrees now: take it off tests/data/ops/open_expansions.txt");
            QSKIP(open->second.c_str());
        }
        if (got != want) QFAIL(qPrintable("PyTorch:\n" + want + "\nCutaway:\n" + got));
    }
};

CUTAWAY_SUITE(OpsExpansionTest)
#include "ops_expansion_test.moc"
