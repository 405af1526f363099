// Every op that expands, expanded until nothing more does: node for node, with all arguments, the graph that PyTorch's
// compiler makes of the same call (tests/data/ops/expansions.txt and, where an older release makes another one,
// expansions-RELEASE.txt, by tests/scripts/record_ops.py).
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
    static const std::map<Release, Graphs> all = [] {
        std::map<Release, Graphs> graphs;
        for (const Release each : kReleaseList) {
            const std::string suffix = each == kNewestRelease ? "" : "-" + std::string(releaseName(each));
            graphs[each] = readGraphs(QString::fromStdString("data/ops/expansions" + suffix + ".txt"));
        }
        return graphs;
    }();
    return all.at(release);
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

/// Why a sample's graph is not PyTorch's: a row "aten.foo.default f32[2]" of open_expansions.txt for the newest
/// release, with ", until 2.14" for all that are older than 2.14. Null if it has to be; a graph that is PyTorch's fails
/// until its row is taken off the list.
const std::string* whyOpen(const std::string& sample, Release release) {
    static const auto loaded = readOpenList("open_expansions.txt");
    if (const auto row = loaded.find(sample); release == kNewestRelease && row != loaded.end()) return &row->second;
    for (const Release until : kReleaseList) {
        if (release >= until) continue;
        if (const auto row = loaded.find(sample + ", until " + std::string(releaseName(until))); row != loaded.end())
            return &row->second;
    }
    return nullptr;
}

}  // namespace

class OpsExpansionTest : public QObject {
    Q_OBJECT

  private slots:
    void matchesRecord_data() {
        QTest::addColumn<QString>("op");
        QTest::addColumn<QString>("text");
        QTest::addColumn<Release>("release");
        for (const Release release : kReleaseList) {
            const std::string suffix = release == kNewestRelease ? "" : ", " + std::string(releaseName(release));
            for (const auto& [op, samples] : expansions(release))
                for (const auto& [text, graph] : samples)
                    QTest::newRow((op + " " + text + suffix).c_str())
                        << QString::fromStdString(op) << QString::fromStdString(text) << release;
        }
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
        if (const std::string* why = whyOpen((op + " " + text).toStdString(), release)) {
            QVERIFY2(got != want, "agrees now: take it off tests/data/ops/open_expansions.txt");
            QSKIP(why->c_str());
        }
        if (got != want) QFAIL(qPrintable("PyTorch:\n" + want + "\nCutaway:\n" + got));
    }
};

CUTAWAY_SUITE(OpsExpansionTest)
#include "ops_expansion_test.moc"
