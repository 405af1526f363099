// How padding of products is decided (spec: passes §3): what is possible, what is decided by rules, files and times,
// and the keys that decisions have. The padded graphs themselves are tests/cases/joint_passes/pad_mm.txt.
#include <QTemporaryDir>
#include <QtTest>

#include "engine/passes/joint/pad_mm.h"
#include "engine/passes/joint/padding_decision.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/worker_pool.h"
#include "engine/session/measuring.h"
#include "engine/session/time_graph.h"
#include "engine/text/parse.h"
#include "tests/support/case_files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// One product of these types; the sizes of some of them are looked up by the tests below, so they differ.
std::string product(const std::string& first, const std::string& second, const std::string& result) {
    return "def forward(a: \"" + first + "\", b: \"" + second + "\"):\n    y: \"" + result +
           "\" = aten.mm.default(a, b)\n    return (y,)\n";
}

struct Outcome {
    bool padded = false;
    QString why;  // of the rewrite, or why there was none
};
Outcome decide(const std::string& text, const CompileRequest& options, const CompileHooks& hooks = {}) {
    auto parsed = parseText(text);
    if (!parsed) return {false, QString::fromStdString(parsed.error().text())};
    const Snapshot module = std::move(*parsed);
    const PassContext context(options, &hooks);
    for (const RewriteInfo& rewrite : runPass(*testing::findPass("pass_pattern_0"), module, context).rewrites)
        if (rewrite.rule.starts_with("pad_")) return {true, QString::fromStdString(rewrite.why)};
    for (Node& node : module->graph().nodes())
        for (const Rule& rule : padProductRules())
            if (node.isCall() && rule.find.find(node.op().name()) != std::string_view::npos)
                return {false, QString::fromStdString(explainRule(rule, node, withSizeHints(context, *module)).reason)};
    return {};
}

CompileRequest withPasses(const char* settings) {
    CompileRequest options;
    options.target = Target::Cuda;
    for (const QString& one : QString(settings).split(' ', Qt::SkipEmptyParts))
        options.enabledPasses.push_back(*parseOptionalPass(one.toStdString()));
    return options;
}

}  // namespace

class PaddingTest : public QObject {
    Q_OBJECT

  private slots:
    void lengths_data() {
        QTest::addColumn<int>("size");
        QTest::addColumn<int>("alignment");
        QTest::addColumn<int>("padding");
        QTest::newRow("to the next multiple") << 1023 << 8 << 1;
        QTest::newRow("one stays") << 1 << 8 << 0;
        QTest::newRow("half way") << 12 << 8 << 4;
        QTest::newRow("no alignment") << 7 << 0 << 0;
        QTest::newRow("a multiple") << 16 << 8 << 0;
    }
    void lengths() {
        QFETCH(int, size);
        QFETCH(int, alignment);
        QFETCH(int, padding);
        QCOMPARE(paddedLength(SymInt(size), alignment), int64_t{padding});
    }
    void symbolicSizesAreNotPadded() { QCOMPARE(paddedLength(SymInt(Expr::symbol("s0")), 8), int64_t{0}); }

    void decisions_data() {
        QTest::addColumn<QByteArray>("graph");
        QTest::addColumn<QByteArray>("settings");
        QTest::addColumn<bool>("padded");
        QTest::addColumn<QString>("why");
        const auto row = [](const char* name, const std::string& graph, const char* settings, bool padded,
                            const char* why) {
            QTest::newRow(name) << QByteArray::fromStdString(graph) << QByteArray(settings) << padded << QString(why);
        };
        const std::string halves = product("f16[512, 1023]cuda:0", "f16[1023, 512]cuda:0", "f16[512, 512]cuda:0");
        const std::string bfloats = product("bf16[16, 101]cuda:0", "bf16[101, 15]cuda:0", "bf16[16, 15]cuda:0");
        row("forced", halves, "pad_mm=force_shape_pad:1", true, "force_shape_pad");
        row("forced, but switched off", halves, "pad_mm=force_shape_pad:1,shape_padding:0", false, "switched off");
        row("nothing is known", halves, "", false, "is not known");
        row("must not be measured", halves, "pad_mm=deterministic:1", false, "deterministic");
        row("must not be measured, but is forced", halves, "pad_mm=deterministic:1,force_shape_pad:1", true,
            "force_shape_pad");
        // 512 * 512 * 1023 / (2 * 512 * 1023 + 512 * 512) = 204.7 operations per element.
        row("waits for memory", halves, "pad_mm=tflops:1000,dram_gbps:2000", false, "waits for memory");
        row("waits for arithmetic", halves, "pad_mm=tflops:1000,dram_gbps:2500", false, "is not known");
        row("long bf16 on an old device counts as waiting for arithmetic", bfloats,
            "pad_mm=tflops:1000,dram_gbps:2000,capability:8.0", false, "is not known");
        row("long bf16 on a new device does not", bfloats, "pad_mm=tflops:1000,dram_gbps:2000,capability:9.0", false,
            "waits for memory");
        row("long bf16, by option", bfloats, "pad_mm=capability:8.0 pad_aten_mm_pass=k_threshold_to_pad:100", true,
            "shared dim is long");
        row("long bf16, by option, but not long enough", bfloats,
            "pad_mm=capability:8.0 pad_aten_mm_pass=k_threshold_to_pad:102", false, "is not known");
        row("long bf16, by option, on a new device", bfloats,
            "pad_mm=capability:9.0 pad_aten_mm_pass=k_threshold_to_pad:100", false, "is not known");
        row("whole numbers", product("i32[3, 5]cuda:0", "i32[5, 3]cuda:0", "i32[3, 3]cuda:0"),
            "pad_mm=force_shape_pad:1", false, "floating-point");
        row("empty", product("f32[0, 5]cuda:0", "f32[5, 3]cuda:0", "f32[0, 3]cuda:0"), "pad_mm=force_shape_pad:1",
            false, "empty");
        row("on the CPU", product("f32[3, 5]", "f32[5, 3]", "f32[3, 3]"), "pad_mm=force_shape_pad:1", false,
            "on the GPU only");
        row("a file that is not there", halves, "pad_mm=decisions:/nowhere/decisions.json", false, "cannot read");
    }
    void decisions() {
        QFETCH(QByteArray, graph);
        QFETCH(QByteArray, settings);
        QFETCH(bool, padded);
        QFETCH(QString, why);
        const Outcome outcome = decide(graph.toStdString(), withPasses(settings.constData()));
        QVERIFY2(outcome.why.contains(why), qPrintable(outcome.why));
        QCOMPARE(outcome.padded, padded);
    }

    /// Texts that PyTorch 2.11 prints for the same tensors.
    void keys_data() {
        QTest::addColumn<QByteArray>("graph");
        QTest::addColumn<QString>("key");
        QTest::newRow("inputs")
            << QByteArray::fromStdString(product("f16[16, 7]cuda:0", "f16[7, 24]cuda:0", "f16[16, 24]cuda:0"))
            << "((torch.Size([16, 7]), (7, 1), torch.float16), (torch.Size([7, 24]), (24, 1), torch.float16), 'exclude_pad:False', "
               "'exclude_pad:False', <OpOverloadPacket(op='aten.mm')>, None, None)";
        QTest::newRow("computed, with a bias, in f32")
            << QByteArray(
                   "def forward(c: \"f32[7]cuda:0\", x: \"f32[5, 6]cuda:0\", b: \"f32[6, 7]cuda:0\"):\n    a: \"f32[5, 6]cuda:0\" = aten.exp.default(x)\n"
                   "    y: \"f32[5, 7]cuda:0\" = aten.addmm.default(c, a, b)\n    return (y,)\n")
            << "((torch.Size([5, 6]), (6, 1), torch.float32), (torch.Size([6, 7]), (7, 1), torch.float32), 'exclude_pad:True', 'exclude_pad:False', "
               "<OpOverloadPacket(op='aten.addmm')>, (torch.Size([7]), (1,), torch.float32), False)";
        QTest::newRow("transposed, and a product of a product")
            << QByteArray(
                   "def forward(x: \"f16[16, 7]cuda:0\", b: \"f16[16, 24]cuda:0\"):\n    e: \"f16[16, 7]cuda:0\" = aten.exp.default(x)\n"
                   "    a: \"f16[7, 16][1, 7]cuda:0\" = aten.permute.default(e, [1, 0])\n    y: \"f16[7, 24]cuda:0\" = aten.mm.default(a, b)\n    return (y,)\n")
            << "((torch.Size([7, 16]), (1, 7), torch.float16), (torch.Size([16, 24]), (24, 1), torch.float16), 'exclude_pad:False', 'exclude_pad:False', "
               "<OpOverloadPacket(op='aten.mm')>, None, None)";
    }
    void keys() {
        QFETCH(QByteArray, graph);
        QFETCH(QString, key);
        const Outcome outcome = decide(graph.toStdString(), withPasses(""));
        QVERIFY2(outcome.why.contains(key), qPrintable(outcome.why));
        QTemporaryDir folder;
        QFile file(folder.filePath("decisions.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(("{\"system\": {}, \"cache\": {\"" + key + "\": true}}").toUtf8());
        file.close();
        const Outcome decided =
            decide(graph.toStdString(), withPasses(("pad_mm=decisions:" + file.fileName().toStdString()).c_str()));
        QVERIFY2(decided.padded && decided.why.contains(key), qPrintable(decided.why));
    }

    void timesDecide_data() {
        QTest::addColumn<double>("plain");
        QTest::addColumn<double>("paddedTime");
        QTest::addColumn<QByteArray>("settings");
        QTest::addColumn<bool>("padded");
        QTest::newRow("much faster") << 2.0 << 1.0 << QByteArray() << true;
        QTest::newRow("a little faster") << 1.05 << 1.0 << QByteArray() << false;
        QTest::newRow("a little faster, and that is enough")
            << 1.05 << 1.0 << QByteArray("shape_padding_multiplier=value:1.0") << true;
        QTest::newRow("slower") << 1.0 << 2.0 << QByteArray() << false;
    }
    void timesDecide() {
        QFETCH(double, plain);
        QFETCH(double, paddedTime);
        QFETCH(QByteArray, settings);
        QFETCH(bool, padded);
        static int rows = 0;  // decisions are remembered, so every row has a product of its own
        const std::string inner = std::to_string(101 + 2 * rows++);
        const std::string text =
            product("f32[5, " + inner + "]cuda:0", "f32[" + inner + ", 7]cuda:0", "f32[5, 7]cuda:0");
        const CompileRequest options = withPasses(settings.constData());
        CompileHooks hooks;
        QStringList timed;
        hooks.timeGraph = [&](const std::string& graph) {
            timed << QString::fromStdString(graph);
            return std::optional(graph.find("constant_pad_nd") == std::string::npos ? plain : paddedTime);
        };
        const Outcome first = decide(text, options, hooks);
        QCOMPARE(first.padded, padded);
        QCOMPARE(timed.size(), 2);
        QVERIFY2(timed[0].contains("aten.mm.default") && timed[1].contains("aten.slice.Tensor"),
                 qPrintable(timed.join("\n")));
        for (const QString& graph : timed) QVERIFY(parseText(graph.toStdString()).has_value());
        const Outcome second = decide(text, options, hooks);  // from memory
        QCOMPARE(second.padded, padded);
        QCOMPARE(timed.size(), 2);
        QVERIFY2(second.why.contains("measured before"), qPrintable(second.why));
    }

    /// A symbolic size counts as its example where it is asked whether padding pays, and is never padded itself.
    void symbolicSizes_data() {
        QTest::addColumn<QByteArray>("symbol");
        QTest::addColumn<QByteArray>("first");
        QTest::addColumn<QByteArray>("settings");
        QTest::addColumn<bool>("padded");
        QTest::addColumn<QString>("why");
        QTest::newRow("an example that is large")
            << QByteArray("# symbol s0: hint=512\n") << QByteArray("f16[s0, 1023]cuda:0") << QByteArray() << true
            << "measured";
        QTest::newRow("one that is empty") << QByteArray("# symbol s0: hint=0\n") << QByteArray("f16[s0, 1023]cuda:0")
                                           << QByteArray() << false << "empty";
        QTest::newRow("none") << QByteArray() << QByteArray("f16[s0, 1023]cuda:0") << QByteArray() << false
                              << "gives no example";
        QTest::newRow("none, and it is forced")
            << QByteArray() << QByteArray("f16[s0, 1023]cuda:0") << QByteArray("pad_mm=force_shape_pad:1") << false
            << "gives no example";
        QTest::newRow("an example that waits for memory")
            << QByteArray("# symbol s0: hint=8\n") << QByteArray("f16[s0, 1023]cuda:0")
            << QByteArray("device=tflops:1000,dram_gbps:20000") << false << "waits for memory";
        QTest::newRow("all sizes are symbolic")
            << QByteArray("# symbol s0: hint=512\n") << QByteArray("f16[s0, s0]cuda:0") << QByteArray() << false
            << "all sizes";
    }
    void symbolicSizes() {
        QFETCH(QByteArray, symbol);
        QFETCH(QByteArray, first);
        QFETCH(QByteArray, settings);
        QFETCH(bool, padded);
        QFETCH(QString, why);
        const std::string inner = first.contains("s0, s0") ? "s0" : "1023";
        const std::string text =
            symbol.toStdString() + product(first.toStdString(), "f16[" + inner + ", 513]cuda:0", "f16[s0, 513]cuda:0");
        const CompileRequest options = withPasses(settings.constData());
        CompileHooks hooks;
        QStringList timed;
        hooks.timeGraph = [&](const std::string& graph) {
            timed << QString::fromStdString(graph);
            return std::optional(graph.find("constant_pad_nd") == std::string::npos ? 2.0 : 1.0);
        };
        std::map<std::string, double> kept;
        hooks.recall = [&](const std::string& key) {
            return kept.contains(key) ? std::optional(kept[key]) : std::nullopt;
        };
        hooks.remember = [&](const std::string& key, double value) { kept[key] = value; };
        const Outcome outcome = decide(text, options, hooks);
        QVERIFY2(outcome.why.contains(why), qPrintable(outcome.why));
        QCOMPARE(outcome.padded, padded);
        QCOMPARE(timed.isEmpty(), !padded);
        for (const QString& graph : timed)
            QVERIFY2(!graph.contains("s0") && graph.contains("f16[512, 1023]"), qPrintable(graph));
        if (!padded) return;
        // Keys name the symbol, as in PyTorch; only what is a number is padded: the shared dim by 1, columns by 7.
        QVERIFY2(kept.begin()->first.starts_with("((torch.Size([s0, 1023]), (1023, 1), torch.float16)"),
                 kept.begin()->first.c_str());
        QVERIFY2(timed[1].contains("[0, 1, 0, 0]") && timed[1].contains("[0, 7, 0, 1]"), qPrintable(timed[1]));
    }

    /// Figures of the device itself; PyTorch takes most devices for a thousand times slower than they are.
    void deviceFigures() {
        CompileRequest options = withPasses("");
        CompileHooks hooks;
        hooks.deviceFact = [](const std::string& fact) -> std::optional<double> {
            if (fact == "tflops_f16") return 535.0;
            if (fact == "tflops_f16_parity") return 0.535;
            return fact == "dram_gbps" ? std::optional(3350.0) : std::nullopt;
        };
        const std::string narrow = product("f16[64, 1023]cuda:0", "f16[1023, 64]cuda:0",
                                           "f16[64, 64]cuda:0");  // 31 operations per element, of 80
        const std::string wide = product("f16[512, 1023]cuda:0", "f16[1023, 512]cuda:0", "f16[512, 512]cuda:0");
        QVERIFY(decide(narrow, options, hooks).why.contains("waits for memory"));
        QVERIFY(decide(wide, options, hooks).why.contains("is not known"));
        options.enabledPasses.push_back(*parseOptionalPass("device=tflops:100"));  // what the user says comes first
        QVERIFY(decide(narrow, options, hooks).why.contains("is not known"));
        options.enabledPasses.clear();
        options.parity = true;
        QVERIFY(decide(narrow, options, hooks).why.contains("is not known"));
    }

    void decisionsOutliveTheProgram() {
        QTemporaryDir folder;
        const std::string text = product("f32[5, 222]", "f32[222, 7]", "f32[5, 7]");
        int timed = 0;
        bool lent = true;
        const auto session = [&](const QString& file, const char* settings) {
            CompileRequest options = withPasses(settings);
            options.target = Target::Cpu;
            CompileHooks hooks;
            hooks.cacheFile = file.toStdString();
            hooks.timeGraph = [&](const std::string& graph) {
                ++timed;
                return std::optional(graph.find("constant_pad_nd") == std::string::npos ? 2.0 : 1.0);
            };
            lent &= lendMeasuring(options, hooks).has_value();
            return decide(text, options, hooks);
        };
        const QString file = folder.filePath("a/store.sqlite");
        QVERIFY(session(file, "pad_mm=any_device:1").why.contains("measured 2 ms as it is, 1 ms padded"));
        QCOMPARE(timed, 2);
        QVERIFY(QFile::exists(file));
        const Outcome later = session(file, "pad_mm=any_device:1");
        QVERIFY2(later.padded && later.why.contains("measured before, 2 ms as it is, 1 ms padded"),
                 qPrintable(later.why));
        QCOMPARE(timed, 2);
        // In another file nothing is known; a file that cannot be is done without; and none is asked for.
        QVERIFY(session(folder.filePath("b.sqlite"), "pad_mm=any_device:1").padded);
        QCOMPARE(timed, 4);
        QVERIFY(session(file + "/below.sqlite", "pad_mm=any_device:1").padded);
        QCOMPARE(timed, 6);
        QVERIFY(session("off", "pad_mm=any_device:1").padded);
        QCOMPARE(timed, 8);
        QVERIFY(!QFile::exists("off"));
        QVERIFY(lent);
    }

    /// The worker says why it cannot use the GPU, or uses it.
    void theGpuTimes() {
        const auto found = findCuda();
        QVERIFY(found.has_value());
        const std::string small = product("f16[5, 6]cuda:0", "f16[6, 7]cuda:0", "f16[5, 7]cuda:0");
        if (found->figures.empty()) {
            QVERIFY(!found->whyNoDevice.empty());
            QVERIFY(!timeOn(kH100Target, small));
            QSKIP(found->whyNoDevice.c_str());
        }
        QVERIFY(found->figures.at("capability") >= 5);
        const auto time = timeOn(kH100Target, small);
        QVERIFY(time && *time > 0);
        QVERIFY(!timeOn(kH100Target, "no graph"));
        // The worker waits, and what opened the GPU is asked again.
        const std::vector<int> waiting = idleWorkers();
        QVERIFY(timeOn(kH100Target, product("bf16[64, 33]cuda:0", "bf16[33, 65]cuda:0", "bf16[64, 65]cuda:0")));
        QCOMPARE(idleWorkers(), waiting);
    }

    void theWorkerTimes() {
        const auto time = timeOn(kCpuTarget, product("f32[5, 6]", "f32[6, 7]", "f32[5, 7]"));
        QVERIFY(time && *time > 0);
        QVERIFY(!timeOn(kCpuTarget, "def forward(x):\n    return (torch.nothing(x),)\n"));
        const CompileRequest options = withPasses("pad_mm=any_device:1");
        CompileHooks hooks;
        hooks.timeGraph = [](const std::string& graph) { return timeOn(kCpuTarget, graph); };
        const Outcome outcome = decide(product("f32[5, 62]", "f32[62, 7]", "f32[5, 7]"), options, hooks);
        QVERIFY2(outcome.why.contains("measured"), qPrintable(outcome.why));
    }
};

CUTAWAY_SUITE(PaddingTest)
#include "padding_test.moc"
