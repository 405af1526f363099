// Holds a plugin to its contract, on graphs of every kind and on what is not a graph.
#include <filesystem>
#include <map>
#include <sstream>

#include "cutaway/guarded.h"
#include "cutaway/words.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/plugins/plugin_calls.h"
#include "engine/plugins/plugin_libraries.h"
#include "engine/plugins/plugin_passes.h"
#include "engine/plugins/plugin_registry.h"
#include "engine/plugins/text_rewrites.h"
#include "engine/support/elapsed.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

struct CheckGraph {
    const char* name;
    std::string text;
};

/// A chain as long as a large model's graph.
std::string longChain(int calls) {
    std::string text = "def forward(x: \"f32[4, 8]\", y: \"f32[4, 8]\"):\n";
    std::string last = "x";
    for (int i = 0; i < calls; ++i) {
        const std::string name = "v" + std::to_string(i);
        const char* const ops[] = {"mul.Tensor(", "add.Tensor(", "relu.default(", "tanh.default("};
        const bool two = i % 4 < 2;
        text += "    " + name + ": \"f32[4, 8]\" = aten." + ops[i % 4] + last + (two ? ", y)\n" : ")\n");
        last = name;
    }
    return text + "    return (" + last + ",)\n";
}

const std::vector<CheckGraph>& checkGraphs() {
    static const std::vector<CheckGraph> all = {
        {"a graph without calls", "def forward(x: \"f32[4]\"):\n    return (x,)\n"},
        {"sums, products and negations",
         "def forward(x: \"f32[4, 8]\", y: \"f32[4, 8]\", z: \"f32[8]\"):\n"
         "    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n    add: \"f32[4, 8]\" = aten.add.Tensor(mul, z)\n"
         "    neg: \"f32[4, 8]\" = aten.neg.default(add)\n    neg_1: \"f32[4, 8]\" = aten.neg.default(neg)\n"
         "    mul_1: \"f32[4, 8]\" = aten.mul.Tensor(neg_1, z)\n    add_1: \"f32[4, 8]\" = aten.add.Tensor(x, mul_1)\n"
         "    sigmoid: \"f32[4, 8]\" = aten.sigmoid.default(add_1)\n"
         "    mul_2: \"f32[4, 8]\" = aten.mul.Tensor(add_1, sigmoid)\n    return (mul_2, neg_1)\n"},
        {"several readers and a value that nobody reads",
         "def forward(x: \"f32[4]\"):\n    mul: \"f32[4]\" = aten.mul.Tensor(x, x)\n"
         "    add: \"f32[4]\" = aten.add.Tensor(mul, x)\n    add_1: \"f32[4]\" = aten.add.Tensor(mul, add)\n"
         "    exp: \"f32[4]\" = aten.exp.default(mul)\n    return (add_1, add)\n"},
        {"products, views and a reduction",
         "def forward(x: \"f32[4, 8]\", w: \"f32[16, 8]\", b: \"f32[16]\"):\n"
         "    permute: \"f32[8, 16]\" = aten.permute.default(w, [1, 0])\n"
         "    addmm: \"f32[4, 16]\" = aten.addmm.default(b, x, permute)\n"
         "    view: \"f32[2, 2, 16]\" = aten.view.default(addmm, [2, 2, 16])\n"
         "    sum_1: \"f32[2, 2]\" = aten.sum.dim_IntList(view, [2])\n    return (sum_1,)\n"},
        {"numbers, lists and several results",
         "def forward(x: \"f32[6, 4]\"):\n    split = aten.split.Tensor(x, 3)\n    getitem: \"f32[3, 4]\" = split[0]\n"
         "    getitem_1: \"f32[3, 4]\" = split[1]\n    mul: \"f32[3, 4]\" = aten.mul.Tensor(getitem, 2.0)\n"
         "    add: \"f32[3, 4]\" = aten.add.Tensor(mul, getitem_1, alpha = 2)\n"
         "    cat: \"f32[6, 4]\" = aten.cat.default([add, getitem])\n    return (cat,)\n"},
        {"integers and mixed dtypes",
         "def forward(i: \"i64[4]\", x: \"f16[4]\", y: \"f32[4]\"):\n    mul: \"i64[4]\" = aten.mul.Tensor(i, i)\n"
         "    add: \"i64[4]\" = aten.add.Tensor(mul, i)\n    mul_1: \"f32[4]\" = aten.mul.Tensor(x, y)\n"
         "    add_1: \"f32[4]\" = aten.add.Tensor(mul_1, y)\n    return (add, add_1)\n"},
        {"symbolic sizes",
         "# symbol s0: lower=2, upper=64, hint=6\ndef forward(x: \"f32[s0, 8]\", y: \"f32[s0, 8]\"):\n"
         "    mul: \"f32[s0, 8]\" = aten.mul.Tensor(x, y)\n    add: \"f32[s0, 8]\" = aten.add.Tensor(mul, x)\n"
         "    return (add,)\n"},
        {"a write to an input",
         "def forward(x: \"f32[4]\", y: \"f32[4]\"):\n    mul: \"f32[4]\" = aten.mul.Tensor(x, y)\n"
         "    add: \"f32[4]\" = aten.add.Tensor(mul, y)\n    copy_: \"f32[4]\" = aten.copy_.default(x, add)\n"
         "    return (add,)\n"},
        {"3000 calls", longChain(3000)},
    };
    return all;
}

/// What is not a graph. A call may fail on it, and must answer.
const std::vector<CheckGraph>& hostileTexts() {
    static const std::vector<CheckGraph> all = {
        {"nothing", ""},
        {"no graph", "this is not a graph\n"},
        {"bytes", std::string("\0\xff\xfe\x80 def (\"", 9)},
        {"half a graph", "def forward(x: \"f32[4"},
        {"brackets", std::string(100000, '(')},
        {"a line of a megabyte", "def forward(x):\n    a = " + std::string(1 << 20, 'a') + "\n    return (a,)\n"},
        {"names that are not names", "def forward(x: \"f32[4]\"):\n    \": \" = aten.mul.Tensor(, )\n    return (,)\n"},
    };
    return all;
}

constexpr double kMostStartSeconds = 5, kMostCallSeconds = 5, kMostCheckedSeconds = 10, kNumberTolerance = 1e-3;
constexpr int kLeakCalls = 12;
constexpr int64_t kMostGrowth = int64_t{48} << 20;

class PluginCheck {
  public:
    PluginCheck(PluginPointer plugin, const Progress& progress) : m_plugin(std::move(plugin)), m_progress(progress) {}

    std::vector<PluginTrial> run(double startSeconds) {
        note("", "describes itself", m_plugin->info.problem);
        if (!m_plugin->info.problem.empty()) return std::move(m_trials);
        note("", "starts within " + seconds(kMostStartSeconds),
             startSeconds <= kMostStartSeconds ? "" : "it took " + seconds(startSeconds));
        std::map<std::string, size_t> indices;
        for (const PluginItem& item : m_plugin->info.items) {
            const PluginItemRef found{m_plugin, indices[item.kind]++, &item};
            m_title = item.kind + " " + item.name;
            m_hangs = false;
            if (item.kind == "judge") {
                tryJudge(found);
                continue;
            }
            if (item.kind == "library") {
                for (PluginTrial& trial : checkLibrary(found, m_progress)) m_trials.push_back(std::move(trial));
                continue;
            }
            for (const CheckGraph& graph : item.kind == "importer" ? hostileTexts() : checkGraphs()) {
                if (m_progress.cancelled()) return std::move(m_trials);
                if (m_hangs) break;  // each further trial would take as long
                m_progress.say(-1, m_title + ": " + graph.name);
                if (item.kind == "pass") tryPass(found, graph);
                else if (item.kind == "importer") survives(found, graph);
                else tryReader(found, graph);
            }
            if (item.kind == "importer") continue;
            for (const CheckGraph& graph : hostileTexts())
                if (!m_hangs) survives(found, graph);
            if (!m_hangs) tryMemory(found);
        }
        return std::move(m_trials);
    }

  private:
    static std::string seconds(double value) {
        std::ostringstream out;
        out << value << " s";
        return out.str();
    }
    void note(const std::string& item, const std::string& what, const std::string& problem) {
        m_trials.push_back({item, what, problem});
    }
    Result<PluginReply> call(const PluginItemRef& found, std::string_view text, double* took = nullptr) {
        const auto start = std::chrono::steady_clock::now();
        auto reply = callItem(
            found, text, [this] { return m_progress.cancelled(); }, initialSettingsOf(*found.item),
            std::min(kMostCheckedSeconds, pluginLimits().seconds));
        m_hangs = m_hangs || (!reply && reply.error().code == ErrorCode::Limit);
        if (took) *took = millisecondsSince(start) / 1000;
        return reply;
    }
    static std::optional<std::string> graphOf(const PluginReply& reply) {
        const std::vector<std::string>& said = reply.said;
        for (size_t i = 0; i + 2 < said.size();) {
            if (said[i] == "emit") return said[i + 2];
            i += said[i] == "say" ? 2 : said[i] == "color" ? 5 : 4;
        }
        return std::nullopt;
    }

    /// The graph behind the pass; the problem if there is one.
    Result<std::unique_ptr<Module>> behind(const Module& before, const std::string& text, const std::string& after) {
        auto module = std::make_unique<Module>(before);
        CompileRequest request;
        Rewriter rewriter("check", PassContext(request));
        CT_TRY_VOID(rewriteByText(*module, text, after, rewriter, "check", {}, {}));
        CT_TRY_VOID(verify(*module, {.types = true}));
        return module;
    }

    static std::string whyOtherNumbers(const Module& before, const Module& after) {
        const auto inputs = randomInputs(before, 0);
        if (!inputs) return {};
        const auto all = bindInputs(before, *inputs);
        if (!all) return {};
        const auto expected = interpret(before, *all);
        if (!expected) return {};
        const auto actual = interpret(after, *all);
        if (!actual) return "the graph that it returned does not run: " + actual.error().text();
        for (size_t i = 0; i < expected->size(); ++i) {
            if (!(*expected)[i].defined()) continue;
            if (!compare((*actual)[i], (*expected)[i], {kNumberTolerance, kNumberTolerance}).within)
                return "output " + std::to_string(i) + " has other numbers";
        }
        return {};
    }

    struct FirstAnswer {
        std::shared_ptr<const Module> module;
        std::string text;
        PluginReply reply;
        double took = 0;
    };
    /// What the item answers on a graph; none where it fails, which is noted.
    std::optional<FirstAnswer> firstAnswer(const PluginItemRef& found, const CheckGraph& graph,
                                           const std::string& what) {
        const auto fails = [&](const std::string& why) {
            note(m_title, what, why);
            return std::nullopt;
        };
        auto parsed = parseText(graph.text);
        if (!parsed) return fails("the check itself is wrong: " + parsed.error().text());
        FirstAnswer first{std::move(*parsed), {}, {}};
        first.text = pluginText(*first.module);
        auto reply = call(found, first.text, &first.took);
        if (!reply) return fails(reply.error().text());
        first.reply = std::move(*reply);
        return first;
    }

    void tryPass(const PluginItemRef& found, const CheckGraph& graph) {
        const std::string what = "keeps " + std::string(graph.name);
        const auto first = firstAnswer(found, graph, what);
        if (!first) return;
        const auto second = call(found, first->text);
        if (!second) return note(m_title, what, second.error().text());
        if (first->reply.said != second->said) return note(m_title, what, "the same graph gave another answer");
        if (first->took > kMostCallSeconds) return note(m_title, what, "it took " + seconds(first->took));
        const auto made = graphOf(first->reply);
        if (!made) return note(m_title, what, {});
        const auto after = behind(*first->module, first->text, *made);
        if (!after) return note(m_title, what, after.error().text());
        const std::string again = pluginText(**after);
        const auto third = call(found, again);
        if (!third) return note(m_title, what, third.error().text());
        if (const auto last = graphOf(*third)) {
            const auto twice = behind(**after, again, *last);
            if (!twice) return note(m_title, what, twice.error().text());
            if (pluginText(**twice) != again)
                return note(m_title, what, "it changes again what it has returned: a pass is done after one run");
        }
        note(m_title, what, whyOtherNumbers(*first->module, **after));
    }

    void tryReader(const PluginItemRef& found, const CheckGraph& graph) {
        const std::string what = "answers on " + std::string(graph.name);
        const auto first = firstAnswer(found, graph, what);
        if (!first) return;
        if (first->took > kMostCallSeconds) return note(m_title, what, "it took " + seconds(first->took));
        const auto second = call(found, first->text);
        if (!second) return note(m_title, what, second.error().text());
        if (first->reply.yes != second->yes || first->reply.said != second->said)
            return note(m_title, what, "the same graph gave another answer");
        for (size_t i = 0; i + 4 < first->reply.said.size() && first->reply.said[i] == "color"; i += 5)
            if (!first->module->graph().findByName(first->reply.said[i + 1]))
                return note(m_title, what,
                            "it colours '" + visibleText(first->reply.said[i + 1]) + "', which is not a node");
        note(m_title, what, {});
    }

    /// Equal tensors stand for each other, of every kind, and the answer is the same twice.
    void tryJudge(const PluginItemRef& found) {
        const PluginJudge judge = judgeOf(found);
        const auto stopped = [&] { return m_progress.cancelled(); };
        const Tensor tensors[] = {Tensor::zeros(DType::F32, {2, 3}), Tensor::zeros(DType::I64, {0}),
                                  Tensor::zeros(DType::F64, {}), Tensor::zeros(DType::F16, {4})};
        for (const Tensor& tensor : tensors) {
            const std::string what = "takes a tensor of " + std::to_string(tensor.numel()) + " elements for itself";
            const auto answer = judge.ask(tensor, tensor, stopped), again = judge.ask(tensor, tensor, stopped);
            if (!answer || !again) note(m_title, what, (answer ? again : answer).error().text());
            else if (!answer->takes) note(m_title, what, "it refuses it: " + answer->sentence);
            else note(m_title, what, again->takes ? std::string() : "the same tensors gave another answer");
        }
        const auto other = judge.ask(tensors[0], tensors[1], stopped);
        note(m_title, "answers on tensors of other types", other ? std::string() : other.error().text());
    }

    /// An answer, even one that says that it failed, and a process that still lives.
    void survives(const PluginItemRef& found, const CheckGraph& graph) {
        const auto reply = call(found, graph.text);
        const bool lives = reply || reply.error().message.find(" failed: ") != std::string::npos;
        note(m_title, "survives " + std::string(graph.name), lives ? std::string() : reply.error().text());
    }

    void tryMemory(const PluginItemRef& found) {
        const auto parsed = parseText(checkGraphs().back().text);
        if (!parsed) return;
        const std::string text = pluginText(**parsed);
        int64_t before = 0, after = 0;
        for (int i = 0; i < kLeakCalls; ++i) {
            if (auto reply = call(found, text); !reply)
                return note(m_title, "takes no more memory from call to call", reply.error().text());
            (i < kLeakCalls / 2 ? before : after) = m_plugin->process->residentBytes();
        }
        note(m_title, "takes no more memory from call to call",
             after - before <= kMostGrowth
                 ? std::string()
                 : "it grew by " + bytesText(after - before) + " in " + std::to_string(kLeakCalls / 2) + " calls");
    }

    PluginPointer m_plugin;
    const Progress& m_progress;
    std::string m_title;
    bool m_hangs = false;  // the item, in one of its trials
    std::vector<PluginTrial> m_trials;
};

}  // namespace

Result<std::vector<PluginTrial>> checkPlugin(const std::string& file, const Progress& progress) {
    return guarded([&]() -> Result<std::vector<PluginTrial>> {
        const auto start = std::chrono::steady_clock::now();
        CT_TRY(const PluginPointer plugin,
               pluginOfFile(std::filesystem::absolute(file).lexically_normal().string(), kFromFile));
        return PluginCheck(plugin, progress).run(millisecondsSince(start) / 1000);
    });
}

}  // namespace cutaway
