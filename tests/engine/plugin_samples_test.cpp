// The sample plugins: built by gcc and by clang, run with Debian's Python, held to the contract; fired, bisected and
// minified as users would.
#include <QtTest>

#include "cutaway/bisect.h"
#include "cutaway/minify.h"
#include "cutaway/plugins.h"
#include "cutaway/session.h"
#include "tests/support/paths.h"
#include "tests/support/plugins.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::PluginsFolder;
using cutaway::testing::runShell;

namespace {

constexpr const char* kProducts = R"(def forward(x: "f32[4, 96]", w: "f32[96, 96]", v: "f32[96, 32]"):
    relu: "f32[4, 96]" = aten.relu.default(x)
    mm: "f32[4, 96]" = aten.mm.default(relu, w)
    tanh: "f32[4, 96]" = aten.tanh.default(mm)
    mm_1: "f32[4, 32]" = aten.mm.default(tanh, v)
    sum_1: "f32[4]" = aten.sum.dim_IntList(mm_1, [1])
    return (sum_1, tanh)
)";

bool hasProgram(const QString& name) { return !QStandardPaths::findExecutable(name).isEmpty(); }

}  // namespace

class PluginSamplesTest : public QObject {
    Q_OBJECT

    PluginsFolder m_folder;
    int m_skipped = 0;

    QString buildSample(const QString& sample, const QString& library, const QString& compiler) {
        if (!sample.startsWith("import_onnx"))
            return m_folder.build(PluginsFolder::sample(sample), library,
                                  sample.startsWith("blas") ? QStringList{"-lblas"} : QStringList(), compiler);
        QProcess protoc;
        protoc.start("protoc", {"-I" + PluginsFolder::sample(""), "--cpp_out=" + m_folder.path("build"), "onnx.proto"});
        if (!protoc.waitForStarted() || !protoc.waitForFinished(-1) || protoc.exitCode() != 0) return "protoc failed";
        return m_folder.build(PluginsFolder::sample(sample), library,
                              {m_folder.path("build/onnx.pb.cc"), "-I" + m_folder.path("build"), "-lprotobuf",
                               "-std=c++17", "-Wno-unused-parameter"},
                              compiler == "gcc" ? "g++" : "clang++");
    }

  private slots:
    void initTestCase() {
        QVERIFY(QDir(m_folder.path()).mkdir("build"));
        for (const QString& sample : {QString("fuse_addcmul"), QString("color_flop")})
            QCOMPARE(m_folder.build(PluginsFolder::sample(sample + ".c"), sample + ".so"), QString());
        for (const QString& sample : {QString("ask_product.py"), QString("color_family.py"), QString("import_fx.py")})
            QVERIFY(m_folder.copy(PluginsFolder::sample(sample), sample));
    }
    void cleanupTestCase() {
        if (m_skipped > 0) qInfo("%d builds were left out: a compiler or protoc is not installed", m_skipped);
    }

    void contract_data() {
        QTest::addColumn<QString>("sample");
        QTest::addColumn<QString>("compiler");
        QDirIterator files(PluginsFolder::sample(""), {"*.c", "*.cpp", "*.py", "*.rules"}, QDir::Files);
        while (files.hasNext()) {
            const QString sample = QFileInfo(files.next()).fileName();
            const bool built = sample.endsWith(".c") || sample.endsWith(".cpp");
            for (const char* compiler : {"gcc", "clang"}) {
                if (!built && QString(compiler) == "clang") continue;
                QTest::newRow(qPrintable(sample + (built ? QString(" ") + compiler : QString())))
                    << sample << (built ? compiler : "");
            }
        }
    }
    void contract() {
        QFETCH(QString, sample);
        QFETCH(QString, compiler);
        QString file = m_folder.path(QFileInfo(sample).completeBaseName() + ".so");
        const bool needsProtoc = sample.startsWith("import_onnx");
        if ((!compiler.isEmpty() && !hasProgram(compiler)) || (needsProtoc && !hasProgram("protoc"))) {
            ++m_skipped;
            QSKIP("not installed");
        }
        if (compiler.isEmpty()) {
            file = m_folder.path(sample);
            if (!QFile::exists(file)) QVERIFY(m_folder.copy(PluginsFolder::sample(sample), sample));
        } else {
            QCOMPARE(buildSample(sample, QFileInfo(file).fileName(), compiler), QString());
        }
        const auto trials = checkPlugin(file.toStdString());
        QVERIFY2(trials.has_value(), trials ? "" : trials.error().text().c_str());
        for (const PluginTrial& trial : *trials)
            QVERIFY2(trial.problem.empty(), (trial.item + ": " + trial.what + ": " + trial.problem).c_str());
    }

    /// In a whole transformer, which compiles and runs to the same numbers.
    void fires() {
        Session session;
        const auto opened = session.open(CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.pt2");
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        const auto run = session.compile(*parseRequest("--plugin fuse_addcmul"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto steps = session.steps(*run);
        int fired = 0;
        for (const StepInfo& step : *steps)
            if (step.name == "post_grad_custom_post_pass.fuse_addcmul.fuse") fired += step.rewrites;
        QVERIFY(fired > 0);
        const auto numbers = session.checkNumbers(*run);
        QVERIFY(numbers.has_value() && numbers->kept);
    }
    void firesInGpt2() {
        const QString folder = testing::referenceFolder("scale/gpt2_small");
        if (folder.isEmpty()) QSKIP("the recorded models are not here");
        const QString model = folder + "/model.pt2";
        Session session;
        QVERIFY(session.open(model.toStdString()).has_value());
        const auto run = session.compile(*parseRequest("--plugin fuse_addcmul --passes-only"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto steps = session.steps(*run);
        int fired = 0;
        for (const StepInfo& step : *steps)
            if (step.name == "post_grad_custom_post_pass.fuse_addcmul.fuse") fired += step.rewrites;
        QVERIFY(fired > 0);
    }

    void oracle() {
        m_folder.write("build/products.py", kProducts);
        Session session;
        QVERIFY(session.open(m_folder.path("build/products.py").toStdString()).has_value());
        MinifyOptions options;
        options.check = MinifyCheck::Command;
        options.command = oracleCommand("ask_product");
        options.folder = m_folder.path("build/minified").toStdString();
        const auto report = minify(session, options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->reproduced);
        QVERIFY2(report->text.find("aten.mm.default") != std::string::npos, report->text.c_str());
        QVERIFY2(report->nodes <= 5, report->text.c_str());
        m_folder.write("build/narrow.py",
                       "def forward(x: \"f32[4]\"):\n    neg: \"f32[4]\" = aten.neg.default(x)\n    return (neg,)\n");
        QVERIFY(session.open(m_folder.path("build/narrow.py").toStdString()).has_value());
        options.folder = m_folder.path("build/narrow").toStdString();
        const auto none = minify(session, options);
        QVERIFY(!none.has_value());
        QVERIFY2(none.error().text().find("the oracle says that it is good") != std::string::npos,
                 none.error().text().c_str());
    }

    /// A pass that is wrong is found by its rewrite, and what it breaks becomes small.
    void wrongPass() {
        m_folder.write("wrong_neg.py", R"(from cutaway_plugin import plugin
mine = plugin("wrong_neg", "1", "Takes sines for cosines")
@mine.transform("wrong", "Takes sines for cosines", place="post_grad_custom_pre_pass")
def wrong(graph, host):
    if "aten.cos.default" in graph:
        return graph.replace("aten.cos.default", "aten.sin.default")
)");
        m_folder.write("build/cosines.py", R"(def forward(x: "f32[4]", y: "f32[4]"):
    exp: "f32[4]" = aten.exp.default(x)
    add: "f32[4]" = aten.add.Tensor(exp, y)
    cos: "f32[4]" = aten.cos.default(add)
    mul: "f32[4]" = aten.mul.Tensor(cos, x)
    tanh: "f32[4]" = aten.tanh.default(mul)
    return (tanh, exp)
)");
        Session session;
        QVERIFY(session.open(m_folder.path("build/cosines.py").toStdString()).has_value());
        const auto run = session.compile(*parseRequest("--plugin wrong_neg"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto found = bisect(session, *run, {});
        QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
        QVERIFY(found->found);
        QCOMPARE(found->step.name, std::string("post_grad_custom_pre_pass.wrong_neg.wrong"));
        QCOMPARE(found->rewrite.node, std::string("cos"));

        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.request = *withPlugins(*parseRequest("--plugin wrong_neg"));
        options.folder = m_folder.path("build/wrong").toStdString();
        const auto report = minify(session, options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->reproduced);
        QVERIFY2(report->nodes <= 4, report->text.c_str());
        QVERIFY2(report->signature.text().find("wrong_neg.wrong") != std::string::npos,
                 report->signature.text().c_str());
    }

    /// The sample in C, made wrong by one argument: found by its rewrite in a whole transformer, and what it breaks
    /// becomes small.
    void wrongSample() {
        QFile sample(PluginsFolder::sample("fuse_addcmul.c"));
        QVERIFY(sample.open(QIODevice::ReadOnly));
        QByteArray text = sample.readAll();
        for (const auto& [from, to] : QList<std::pair<QByteArray, QByteArray>>{
                 {"aten.addcmul.default(%.*s, %.*s, %.*s)", "aten.addcmul.default(%.*s, %.*s, %.*s, value = 2)"},
                 {"CT_ABI, 0, \"fuse_addcmul\"", "CT_ABI, 0, \"wrong_addcmul\""}}) {
            QVERIFY2(text.contains(from), from);
            text.replace(from, to);
        }
        m_folder.write("build/wrong_addcmul.c", text);
        QCOMPARE(m_folder.build(m_folder.path("build/wrong_addcmul.c"), "wrong_addcmul.so"), QString());
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.pt2").has_value());
        const auto run = session.compile(*parseRequest("--plugin wrong_addcmul"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto found = bisect(session, *run, {});
        QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
        QVERIFY(found->found);
        QCOMPARE(found->step.name, std::string("post_grad_custom_post_pass.wrong_addcmul.fuse"));
        QCOMPARE(found->rewrite.rule, std::string("addcmul"));
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.request = *withPlugins(*parseRequest("--plugin wrong_addcmul"));
        options.folder = m_folder.path("build/wrong_sample").toStdString();
        const auto report = minify(session, options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->reproduced);
        QVERIFY2(report->nodes <= 6, report->text.c_str());
        QVERIFY(QFile::remove(m_folder.path("wrong_addcmul.so")));
    }

    /// What is far off in size points the same way: the judge takes it, and refuses another direction.
    void judge() {
        QVERIFY(QFile::exists(m_folder.path("judge_cosine.py")) ||
                m_folder.copy(PluginsFolder::sample("judge_cosine.py"), "judge_cosine.py"));
        m_folder.write("scales.py", R"py(from cutaway_plugin import plugin
mine = plugin("scales", "1", "Doubles, or turns")
@mine.transform("doubles", "Doubles what is added", place="post_grad_custom_pre_pass")
def doubles(graph, host):
    if "alpha" not in graph:
        return graph.replace("aten.add.Tensor(x, x)", "aten.add.Tensor(x, x, alpha = 3)")
@mine.transform("turns", "Takes the sine", place="post_grad_custom_post_pass")
def turns(graph, host):
    return graph.replace("aten.exp.default", "aten.cos.default") if "exp" in graph else None
)py");
        m_folder.write("build/scales.txt", R"(def forward(x: "f32[64]"):
    add: "f32[64]" = aten.add.Tensor(x, x)
    exp: "f32[64]" = aten.exp.default(x)
    return (add, exp)
)");
        const QString line = "cutaway-cli bisect scales.txt --judge judge_cosine --plugin ";
        const auto doubled = runShell(m_folder.path("build"), line + "scales.doubles");
        QCOMPARE(doubled.status, 1);
        QVERIFY2(doubled.err.contains("nothing to find"), (doubled.out + doubled.err).constData());
        const auto turned = runShell(m_folder.path("build"), line + "scales.turns");
        QVERIFY2(turned.status == 0, (turned.out + turned.err).constData());
        QVERIFY2(
            turned.out.contains("scales.turns") && turned.out.contains("the judge refuses output 1: the cosine is"),
            turned.out.constData());
    }

    /// The same judge where a run is compared, a failure is minified, and compiled code is searched.
    void judgeElsewhere() {
        const QString tools = m_folder.path("build");
        for (const char* plugin : {"doubles", "turns"}) {
            const bool good = QString(plugin) == "doubles";
            const QString options = QString(" scales.txt --judge judge_cosine --plugin scales.") + plugin;
            const auto small = runShell(tools, "cutaway-cli minify" + options + " -o small_" + plugin);
            QVERIFY2(small.status == (good ? 1 : 0), (small.out + small.err).constData());
            if (good) QVERIFY2(small.err.contains("does not fail"), small.err.constData());
            else QVERIFY2(small.out.contains("the judge refuses output"), small.out.constData());
            const auto searched = runShell(tools, "cutaway-cli bisect --backend cpu" + options);
            QVERIFY2(searched.status == (good ? 1 : 0), (searched.out + searched.err).constData());
        }
        QCOMPARE(runShell(tools, "cutaway-cli run-repro small_turns/best").status, 0);
        m_folder.write("build/one.txt", "def forward(x: \"f32[2]\"):\n    return (x,)\n");
        const auto file = [&](const char* name, float a, float b) {
            QByteArray bytes(8, 0);
            memcpy(bytes.data(), &a, 4), memcpy(bytes.data() + 4, &b, 4);
            QByteArray head = QByteArray("{\"") + (name[0] == 'i' ? "x" : "output_0") +
                              "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
            while (head.size() % 8 != 0) head += ' ';
            const quint64 size = static_cast<quint64>(head.size());
            m_folder.write(QString("build/") + name,
                           QByteArray(reinterpret_cast<const char*>(&size), 8) + head + bytes);
        };
        file("inputs.safetensors", 1, 2);
        file("longer.safetensors", 2, 4);
        file("turned.safetensors", 2, -4);
        const QString run = "cutaway-cli run one.txt --inputs inputs.safetensors --expect ";
        QCOMPARE(runShell(tools, run + "longer.safetensors").status, 1);
        const auto taken = runShell(tools, run + "longer.safetensors --judge judge_cosine");
        QVERIFY2(taken.status == 0 && taken.out.contains("the judge takes it: the cosine is 1"), taken.out + taken.err);
        const auto refused = runShell(tools, run + "turned.safetensors --judge judge_cosine");
        QVERIFY2(refused.status == 1 && refused.out.contains("the judge refuses it: the cosine is"), refused.out);
        QCOMPARE(runShell(tools, "cutaway-cli run one.txt --judge judge_cosine").status, 1);
    }

    /// Value by value, and of gradients: in place of the tolerance.
    void judgeOfCheckedRunsAndTraining() {
        const QString tools = m_folder.path("build");
        m_folder.write("picky.py", R"py(from cutaway_plugin import plugin
mine = plugin("picky", "1", "Refuses, or fails")
@mine.judge("never", "Takes nothing")
def never(actual, expected, host):
    host.say("never " + actual.dtype)
    return False
@mine.judge("fails", "Has no answer")
def fails(actual, expected, host):
    raise ValueError("no licence")
)py");
        const auto check = [&](const QString& options) {
            return runShell(tools, "cutaway-cli checked-run " + options);
        };
        for (const char* backend : {"reference", "cpu"}) {
            const QString doubled = QString("scales.txt --plugin scales.doubles --backend ") + backend;
            const QString turned = QString("scales.txt --plugin scales.turns --backend ") + backend;
            QCOMPARE(check(doubled).status, 1);
            const auto taken = check(doubled + " --judge judge_cosine");
            QVERIFY2(taken.status == 0, (taken.out + taken.err).constData());
            const auto refused = check(turned + " --judge judge_cosine.cosine");
            QVERIFY2(refused.status == 1 && refused.err.contains("the judge refuses it: the cosine is"), refused.err);
            const auto failed = check(QString("scales.txt --judge picky.fails --backend ") + backend);
            QVERIFY2(failed.status == 1 && failed.err.contains("plugin picky 1, judge fails: failed: ValueError: no"),
                     (failed.out + failed.err).constData());
        }
        const QString train = "cutaway-cli run " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2 --mode training ";
        QCOMPARE(runShell(tools, train + "--gradients mlp.safetensors").status, 0);
        const auto taken = runShell(tools, train + "--expect-gradients mlp.safetensors --judge judge_cosine");
        QVERIFY2(taken.status == 0, (taken.out + taken.err).constData());
        QCOMPARE(taken.out.count("the judge takes it: the cosine is 1.0"), 8);  // output, loss, six gradients
        const auto refused = runShell(tools, train + "--expect-gradients mlp.safetensors --judge picky.never");
        QCOMPARE(refused.status, 1);
        QCOMPARE(refused.out.count("the judge refuses it: never f32"), 8);
        const auto nothing = runShell(tools, train + "--judge picky.never");
        QVERIFY2(nothing.status == 1 && nothing.err.contains("give a file of it"), nothing.err.constData());
    }

    /// A pass that crashes fails the step, and the search for it compiles in other processes.
    void crashingPass() {
        QCOMPARE(m_folder.build(PluginsFolder::data("misbehaves.c"), "misbehaves.so"), QString());
        m_folder.write("build/crash.py", kProducts);
        const auto ended = runShell(m_folder.path("build"), "cutaway-cli compile crash.py --plugin misbehaves.crash");
        QCOMPARE(ended.status, 1);
        QVERIFY2(ended.err.contains("plugin misbehaves 1, pass crash:"), ended.err.constData());
        QVERIFY(QFile::remove(m_folder.path("misbehaves.so")));
    }

    void coloring() {
        const auto coloring = colorGraph("color_flop", kProducts);
        QVERIFY2(coloring.has_value(), coloring ? "" : coloring.error().text().c_str());
        QCOMPARE(coloring->unit, std::string("FLOP"));
        double mm = 0;
        for (const NodeColor& node : coloring->nodes)
            if (node.node == "mm") mm = node.number;
        QCOMPARE(mm, 2.0 * 4 * 96 * 96);
        const auto families = colorGraph("color_family", kProducts);
        QVERIFY2(families.has_value(), families ? "" : families.error().text().c_str());
        QCOMPARE(families->nodes[1].kind, std::string("product"));
    }

    void importer() {
        m_folder.write("build/model.import_fx", QByteArray("!import_fx\n") + kProducts);
        Session session;
        const auto opened = session.open(m_folder.path("build/model.import_fx").toStdString());
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        QVERIFY2(opened->format.find("plugin import_fx 1.0") != std::string::npos, opened->format.c_str());
        m_folder.write("build/bad.import_fx", "nothing\n");
        const auto refused = session.open(m_folder.path("build/bad.import_fx").toStdString());
        QVERIFY(!refused.has_value());
        QVERIFY2(
            refused.error().text().find("plugin import_fx 1.0, importer fx: failed: ValueError") != std::string::npos,
            refused.error().text().c_str());
        QVERIFY(session.isOpen());
    }

    /// A model of ONNX, with its weights, which compiles and runs.
    void onnx() {
        if (!hasProgram("protoc")) QSKIP("protoc is not installed");
        QCOMPARE(buildSample("import_onnx.cpp", "import_onnx.so", "gcc"), QString());
        QProcess protoc;
        protoc.setStandardInputFile(PluginsFolder::data("mlp.onnx.txtpb"));
        protoc.setStandardOutputFile(m_folder.path("build/mlp.onnx"));
        protoc.start("protoc", {"-I" + PluginsFolder::sample(""), "--encode=onnx.ModelProto", "onnx.proto"});
        QVERIFY(protoc.waitForFinished(-1) && protoc.exitCode() == 0);
        Session session;
        const auto opened = session.open(m_folder.path("build/mlp.onnx").toStdString());
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        QCOMPARE(opened->parameters, 3);
        QCOMPARE(opened->inputs, std::vector<std::string>{"x: f32[4, 3]"});
        const auto run = session.compile({});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto report = session.run(*run, {});
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QCOMPARE(report->outputs[0].type, std::string("f32[4, 2]"));
        QCOMPARE(report->outputs[0].minimum, 0.0);  // of a bias of -100, behind a relu
        QVERIFY(report->outputs[0].maximum > 0);
        QVERIFY(QFile::remove(m_folder.path("import_onnx.so")));
    }

    /// What `plugin new` writes builds as it says, and keeps the contract.
    void templates_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("language");
        for (const char* kind : {"pass", "oracle", "coloring"})
            for (const char* language : {"c", "cpp", "python"})
                QTest::newRow(qPrintable(QString(kind) + " " + language)) << kind << language;
        QTest::newRow("judge python") << "judge"
                                      << "python";
        for (const char* language : {"c", "cpp", "python"})
            QTest::newRow(qPrintable(QString("library ") + language)) << "library" << language;
        QTest::newRow("rules") << "rules"
                               << "c";
        QTest::newRow("importer python") << "importer"
                                         << "python";
    }
    void templates() {
        QFETCH(QString, kind);
        QFETCH(QString, language);
        const QString folder = m_folder.path("build"), name = "new_" + kind + "_" + language;
        const auto made =
            runShell(folder, "cutaway-cli plugin new " + name + " --kind " + kind + " --language " + language);
        QVERIFY2(made.status == 0, made.err.constData());
        QString file = name + (kind == "rules" ? ".rules" : ".py");
        if (kind != "rules" && language != "python") {
            file = "build/" + name + ".so";
            const QString source = folder + "/" + name + (language == "c" ? ".c" : ".cpp");
            const QStringList more = kind == "library" ? QStringList{"-lblas"} : QStringList{};
            QCOMPARE(m_folder.build(source, file, more, language == "c" ? "gcc" : "g++"), QString());
            file = name + ".so";
        }
        const auto checked = runShell(folder, "cutaway-cli plugin check " + file);
        QVERIFY2(checked.status == 0, (checked.out + checked.err).constData());
        const auto again =
            runShell(folder, "cutaway-cli plugin new " + name + " --kind " + kind + " --language " + language);
        QCOMPARE(again.status, 1);
        QVERIFY2(again.err.contains("is not written over"), again.err.constData());
    }
};

CUTAWAY_SUITE(PluginSamplesTest)
#include "plugin_samples_test.moc"
