// Samples of op rows with symbols for their sizes, compiled: kernels, schedule and memory plan keep the symbols, one
// library computes many forms, and with numbers put in it gives what the interpreter gives. Where the form takes larger
// sizes as well, the same library runs a second time with those.
// By default some forms of each run, by seed: CUTAWAY_SEED starts elsewhere, CUTAWAY_FORMS=N takes more,
// CUTAWAY_FORMS=all every one, with the counts per op; CUTAWAY_OPS=TEXT takes only ops whose names hold it.
#include <QtTest>
#include <map>

#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/support/random.h"
#include "tests/support/compiled_calls.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"
#include "tests/support/symbolic_samples.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr size_t kUsualForms = 300, kBatch = 60;

struct Form {
    const Op* op;
    std::string sample, name;  // "OP SAMPLE SYMBOLS"
    SymbolicSample symbolic;
};
/// What one library is asked for at some sizes.
struct Sizes {
    std::vector<Tensor> inputs, expected;
};
struct Judged {
    std::string why;                   // it cannot be compiled; empty: it can
    std::vector<Sizes> runs;           // none: nothing to compare with
    std::map<std::string, int> calls;  // "kernel", "library", "left"
};

std::map<std::string, int> callsOf(const BuildInfo& info) {
    std::map<std::string, int> calls;
    for (const KernelInfo& kernel : info.kernels)
        ++calls[isLeft(kernel) ? "left" : kernel.kind.starts_with("library") ? "library" : "kernel"];
    return calls;
}
/// Why the calls that have no kernel have none.
std::string reasonsOf(const BuildInfo& info) {
    std::string reasons;
    for (const KernelInfo& kernel : info.kernels)
        if (isLeft(kernel))
            for (const std::string& reason : kernel.reasons) reasons += (reasons.empty() ? "" : "; ") + reason;
    return reasons;
}

Result<BuildInfo> buildInfoOf(const Snapshot& module) {
    CT_TRY(const Snapshot passed, afterPasses(module, Mode::Inference));
    return previewCpu(passed);
}

/// The form's inputs at these sizes and what the interpreter makes of them; nothing where the call does not take them.
std::optional<Sizes> at(const Form& form, const SampleCall& sample, const SymbolValues& values) {
    auto numbers = std::make_shared<Module>(*form.symbolic.module);
    if (!specialize(*numbers, values) || !checkCalls(*numbers, Calls::Computable)) return std::nullopt;
    Sizes out;
    const std::vector<Node*> placeholders = numbers->graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        TensorSpec spec = sample.specs[i];
        if (spec.draw == TensorSpec::Draw::Distinct && numel(toInts(placeholders[i]->tensor().sizes)) > 512)
            return std::nullopt;
        spec.sizes = toInts(placeholders[i]->tensor().sizes);
        spec.strides = toInts(placeholders[i]->tensor().strides);
        out.inputs.push_back(makeInput(spec, i));
    }
    auto expected = interpret(*numbers, out.inputs);
    if (!expected) return std::nullopt;
    out.expected = std::move(*expected);
    return out;
}

Judged judgedForm(const Form& form) {
    Judged out;
    const auto sample = buildSample(*form.op, form.sample);
    auto numbers = std::make_shared<Module>(*form.symbolic.module);
    if (!sample || !specialize(*numbers, form.symbolic.values)) return out;
    const auto plain = buildInfoOf(numbers);
    const auto own = plain ? at(form, **sample, form.symbolic.values) : std::nullopt;
    if (!own) return out;
    const auto symbolic = buildInfoOf(form.symbolic.module);
    if (!symbolic) {
        out.why = symbolic.error().text();
        return out;
    }
    out.calls = callsOf(*symbolic);
    if (out.calls["left"] > callsOf(*plain)["left"]) out.why = "without a kernel: " + reasonsOf(*symbolic);
    out.runs.push_back(std::move(*own));
    SymbolValues larger = form.symbolic.values;
    for (auto& [symbol, value] : larger) ++value;
    if (auto other = at(form, **sample, larger)) out.runs.push_back(std::move(*other));
    return out;
}

/// Many forms in one graph. Sizes of all of them bear the same symbols: s2 is 2.
class Batch {
  public:
    void add(const Form& form, const Judged& judged) {
        std::map<const Node*, Node*> copies;
        Graph& graph = m_module->graph();
        for (const Node& node : form.symbolic.module->graph().nodes()) {
            if (node.isOutput()) continue;
            const auto twin = [&](Node* operand) { return copies.at(operand); };
            std::vector<Argument> args;
            for (const Argument& arg : node.args()) args.push_back(arg.mapNodes(twin));
            copies[&node] = node.isPlaceholder() ? &graph.placeholder("x", node.type())
                                                 : &graph.call(node.op(), std::move(args), node.type());
            if (node.isPlaceholder()) m_module->inputs.emplace_back();
        }
        for (const Argument& output : form.symbolic.module->graph().outputs())
            m_outputs.push_back(output.mapNodes([&](Node* node) { return copies.at(node); }));
        m_judged.push_back(&judged);
        m_forms.push_back(&form);
    }
    /// What each form does wrong, "" for nothing; an error if all of them together cannot be compiled or run.
    Result<std::vector<std::string>> run() {
        m_module->graph().output(ArgumentList{m_outputs, true});
        m_module->outputs.resize(m_outputs.size());
        CT_TRY(const Snapshot passed, afterPasses(m_module, Mode::Inference));
        CT_TRY(const CpuProgram program, buildCpu(passed));
        std::vector<std::string> wrong(m_forms.size());
        for (size_t run = 0; run < m_judged[0]->runs.size(); ++run) {
            std::vector<Tensor> inputs;
            for (const Judged* one : m_judged)
                inputs.insert(inputs.end(), one->runs[run].inputs.begin(), one->runs[run].inputs.end());
            CT_TRY(const CpuRun results, runCpu(program, inputs, {.repeat = 0, .threads = 1}));
            auto next = results.outputs.begin();
            for (size_t i = 0; i < m_forms.size(); ++i) {
                const std::vector<Tensor>& expected = m_judged[i]->runs[run].expected;
                const std::vector<Tensor> actual(next, next + static_cast<std::ptrdiff_t>(expected.size()));
                next += static_cast<std::ptrdiff_t>(expected.size());
                if (wrong[i].empty() && !drawsNumbers(*m_forms[i]->op)) wrong[i] = differing(actual, expected);
                if (!wrong[i].empty() && run > 0 && !wrong[i].starts_with("larger")) wrong[i] = "larger: " + wrong[i];
            }
        }
        return wrong;
    }

  private:
    std::shared_ptr<Module> m_module = std::make_shared<Module>();
    std::vector<Argument> m_outputs;
    std::vector<const Judged*> m_judged;
    std::vector<const Form*> m_forms;
};

using Chosen = std::pair<const Form*, Judged>;

/// Halves what cannot be compiled or run together, down to the form that is to blame.
void check(std::span<Chosen> chosen) {
    if (chosen.empty()) return;
    Batch batch;
    for (const auto& [form, judged] : chosen) batch.add(*form, judged);
    const auto wrong = batch.run();
    for (size_t i = 0; wrong && i < chosen.size(); ++i) chosen[i].second.why = (*wrong)[i];
    if (wrong) return;
    if (chosen.size() == 1) {
        chosen[0].second.why = wrong.error().text();
        return;
    }
    check(chosen.first(chosen.size() / 2));
    check(chosen.subspan(chosen.size() / 2));
}

std::vector<Form> allForms() {
    std::vector<Form> forms;
    const auto refused = readOpenList("open_symbolic.txt");
    const std::string only = qgetenv("CUTAWAY_OPS").toStdString();
    for (const Op* op : allOps()) {
        if (op->functional() != nullptr || op->name().find(only) == std::string::npos) continue;
        for (const OpSample& text : samplesOf(*op)) {
            const auto sample = buildSample(*op, text.text);
            std::vector<SymbolicRefusal> refusals;
            if (!sample) continue;
            for (SymbolicSample& form : symbolicForms(**sample, refusals)) {
                std::string name = op->name() + " " + text.text + " " + form.name;
                if (!refused.contains(name)) forms.push_back({op, text.text, std::move(name), std::move(form)});
            }
        }
    }
    return forms;
}

}  // namespace

class SymbolicCompiledTest : public QObject {
    Q_OBJECT

  private slots:
    void formsAgree_data() {
        QTest::addColumn<size_t>("begin");
        m_forms = allForms();
        const QByteArray wanted = qgetenv("CUTAWAY_FORMS");
        const size_t all = m_forms.size(), count = wanted == "all"    ? all
                                                   : wanted.isEmpty() ? kUsualForms
                                                                      : wanted.toULong();
        const int seed = qEnvironmentVariableIntValue("CUTAWAY_SEED");
        Random random(static_cast<uint64_t>(seed));
        if (count < all)
            for (size_t i = 0; i < count; ++i) std::swap(m_forms[i], m_forms[i + random.below(all - i)]);
        m_forms.resize(std::min(count, all));
        qInfo("%zu of %zu forms, seed %d", m_forms.size(), all, seed);
        for (size_t begin = 0; begin < m_forms.size(); begin += kBatch)
            QTest::addRow("seed %d, from %zu on", seed, begin) << begin;
    }
    void formsAgree() {
        QFETCH(size_t, begin);
        std::vector<Chosen> fixed, growing, others;
        for (size_t i = begin; i < std::min(begin + kBatch, m_forms.size()); ++i) {
            Judged judged = judgedForm(m_forms[i]);
            auto& kind = judged.runs.empty() || !judged.why.empty() ? others : judged.runs.size() > 1 ? growing : fixed;
            kind.emplace_back(&m_forms[i], std::move(judged));
        }
        check(fixed);
        check(growing);
        for (auto* kind : {&fixed, &growing, &others})
            for (const auto& [form, judged] : *kind) note(*form, judged, kind != &others);
    }
    void cleanupTestCase() {
        int compiled = 0, larger = 0, refused = 0, without = 0;
        for (const auto& [op, count] : m_counts) {
            if (qgetenv("CUTAWAY_FORMS") == "all")
                qInfo("%s: %d compiled (%d kernels, %d library, %d reference), %d at larger sizes, too; %d refused",
                      op.c_str(), count.compiled, count.calls.at("kernel"), count.calls.at("library"),
                      count.calls.at("reference"), count.larger, count.refused);
            compiled += count.compiled;
            larger += count.larger;
            refused += count.refused;
            without += count.without;
        }
        qInfo("%d forms of %zu ops compiled, %d at larger sizes, too; %d refused; %d do not lower with numbers",
              compiled, m_counts.size(), larger, refused, without);
    }

  private:
    struct Counts {
        int compiled = 0, larger = 0, refused = 0, without = 0;
        std::map<std::string, int> calls = {{"kernel", 0}, {"library", 0}, {"reference", 0}};
    };
    void note(const Form& form, const Judged& judged, bool ran) {
        static const auto open = readOpenList("open_symbolic_compiled.txt");
        Counts& counts = m_counts[form.op->name()];
        const bool known = open.contains(form.name);
        counts.compiled += ran && judged.why.empty();
        counts.larger += ran && judged.why.empty() && judged.runs.size() > 1;
        counts.refused += !judged.why.empty();
        counts.without += judged.runs.empty() && judged.why.empty();
        if (ran)
            for (const auto& [kind, count] : judged.calls) counts.calls[kind] += count;
        if (!judged.why.empty() && !known)
            QTest::qFail(("\n" + form.name + "\n    " + judged.why).c_str(), __FILE__, __LINE__);
        if (judged.why.empty() && known)
            QTest::qFail((form.name + " agrees now: take it off tests/data/ops/open_symbolic_compiled.txt").c_str(),
                         __FILE__, __LINE__);
    }

    std::vector<Form> m_forms;
    std::map<std::string, Counts> m_counts;
};

CUTAWAY_SUITE(SymbolicCompiledTest)
#include "symbolic_compiled_test.moc"
