// Every sample of every op row once more with symbols for its sizes: types, expansion and derivative as for numbers.
// Once the sizes are put in, the graphs compute what they compute for the sample itself.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/pipeline.h"
#include "engine/support/check.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"
#include "tests/support/symbolic_samples.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

Result<std::vector<Tensor>> results(const Snapshot& module, std::vector<Tensor> inputs, const SymbolValues& values) {
    auto numbers = std::make_shared<Module>(*module);
    CT_TRY_VOID(specialize(*numbers, values));
    const std::vector<Node*> placeholders = numbers->graph().placeholders();
    for (size_t i = inputs.size(); i < placeholders.size(); ++i) {
        const TensorType* type = placeholders[i]->type().tensor();
        inputs.push_back(type ? tangentOf(type->dtype, toInts(type->sizes), i).clone(toInts(type->strides)) : Tensor());
    }
    return interpret(*numbers, inputs);
}

/// What a form does otherwise than the sample: "" if nothing.
std::string wrongIn(const SymbolicSample& form, const SampleCall& sample, const Op& op) {
    auto numbers = std::make_shared<Module>(*form.module);
    if (auto put = specialize(*numbers, form.values); !put) return "types: " + put.error().text();
    const auto expected = interpret(*numbers, sample.inputs);
    if (!expected) return {};  // the sample itself is for tracing only
    for (const Mode mode : kModes) {
        const std::string stage(modeName(mode));
        const auto plain = afterPasses(numbers, mode);
        if (!plain) continue;
        const auto symbolic = afterPasses(form.module, mode);
        // An operator whose expansion needs numbers may have no tangent without it, and says so.
        const bool noTangent =
            !symbolic && symbolic.error().message.find("Trying to use forward AD") != std::string::npos;
        if (mode == Mode::Jvp && noTangent) continue;
        if (!symbolic) return stage + ": " + symbolic.error().text();
        const auto want = results(*plain, sample.inputs, {});
        if (!want) continue;
        const auto have = results(*symbolic, sample.inputs, form.values);
        if (!have) return stage + ": " + have.error().text();
        if (drawsNumbers(op)) continue;
        if (const std::string wrong = differing(*have, *want); !wrong.empty()) return stage + ": " + wrong;
    }
    return {};
}

/// Refusals that are right or not mended yet: "OP SAMPLE SYMBOLS", each with its reason above.
const std::map<std::string, std::string>& open() {
    static const auto loaded = readOpenList("open_symbolic.txt");
    return loaded;
}

}  // namespace

class SymbolicTest : public QObject {
    Q_OBJECT

  private slots:
    void sampleAgrees_data() {
        QTest::addColumn<QString>("op");
        for (const Op* op : allOps())
            if (op->functional() == nullptr && !samplesOf(*op).empty())
                QTest::newRow(op->name().c_str()) << QString::fromStdString(op->name());
    }
    void sampleAgrees() {
        QFETCH(QString, op);
        const Op& row = requireOp(op.toStdString());
        for (const OpSample& text : samplesOf(row)) {
            auto sample = buildSample(row, text.text);
            QVERIFY2(sample.has_value(), text.text.c_str());
            std::vector<SymbolicRefusal> refusals;
            for (const SymbolicSample& form : symbolicForms(**sample, refusals)) {
                std::string wrong;
                try {
                    wrong = wrongIn(form, **sample, row);
                } catch (const std::exception& bug) {
                    wrong = bug.what();
                }
                ++m_forms;
                judge(row.name() + " " + text.text + " " + form.name, wrong);
            }
            for (const SymbolicRefusal& refusal : refusals) {
                ++m_refused;
                judge(row.name() + " " + text.text + " " + refusal.symbols, "types: " + refusal.why);
            }
        }
    }
    void cleanupTestCase() { qInfo("%d symbolic forms, %d refused by types", m_forms, m_refused); }

  private:
    static void judge(const std::string& name, const std::string& wrong) {
        const bool known = open().contains(name);
        if (!wrong.empty() && !known) QTest::qFail(("\n" + name + "\n    " + wrong).c_str(), __FILE__, __LINE__);
        if (wrong.empty() && known)
            QTest::qFail((name + " agrees now: take it off tests/data/ops/open_symbolic.txt").c_str(), __FILE__,
                         __LINE__);
    }
    int m_forms = 0, m_refused = 0;
};

CUTAWAY_SUITE(SymbolicTest)
#include "symbolic_test.moc"
