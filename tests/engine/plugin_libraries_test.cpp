// Libraries that plugins give: chosen call by call, run in their own process, and what it costs when one misbehaves.
#include <QtTest>

#include "cutaway/export.h"
#include "cutaway/numerics.h"
#include "cutaway/plugins.h"
#include "cutaway/session.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::PluginsFolder;

namespace {

constexpr const char* kRelus = R"(def forward(x: "f32[4, 8]", w: "f32[16, 8]"):
    relu: "f32[4, 8]" = aten.relu.default(x)
    p: "f32[8, 16]" = aten.permute.default(w, [1, 0])
    mm: "f32[4, 16]" = aten.mm.default(relu, p)
    relu_1: "f32[4, 16]" = aten.relu.default(mm)
    t: "f32[16, 4]" = aten.permute.default(relu_1, [1, 0])
    relu_2: "f32[16, 4]" = aten.relu.default(t)
    return (relu_1, relu_2)
)";

constexpr const char* kSymbols = R"(# symbol s0: lower=2, upper=64, hint=6
def forward(x: "f32[s0, 8]", w: "f32[8, 4]"):
    mm: "f32[s0, 4]" = aten.mm.default(x, w)
    relu: "f32[s0, 4]" = aten.relu.default(mm)
    return (relu,)
)";

}  // namespace

class PluginLibrariesTest : public QObject {
    Q_OBJECT

    PluginsFolder m_folder;
    Session m_session;

    void open(const QByteArray& text) { QCOMPARE(testing::openText(m_session, text), QString()); }
    Result<RunReport> runWith(const std::string& words, int repeat = 1) {
        const auto request = parseRequest(words);
        if (!request) return request.error();
        const auto run = m_session.compile(*request);
        if (!run) return run.error();
        m_run = *run;
        RunOptions options;
        options.backend = Backend::Cpu;
        options.repeat = repeat;
        return m_session.run(*run, options);
    }
    std::optional<StepInfo> stepOf(const std::string& name) {
        const auto steps = m_session.steps(m_run);
        for (const StepInfo& step : *steps)
            if (step.name == name) return step;
        return std::nullopt;
    }
    RunId m_run{};

  private slots:
    void initTestCase() {
        QCOMPARE(m_folder.build(PluginsFolder::data("libraries.c"), "libs.so", {"-lm"}), QString());
        QCOMPARE(m_folder.build(PluginsFolder::sample("blas_product.c"), "blas_product.so", {"-lblas"}), QString());
        QVERIFY(m_folder.copy(PluginsFolder::sample("running_sum.py"), "running_sum.py"));
    }
    void init() { setPluginLimits({}); }

    /// A step of the run, a rewrite for each call, a library in the list of calls, in the request by name and hash.
    void passOfARun() {
        open(kRelus);
        const auto plain = runWith("");
        QVERIFY2(plain.has_value(), plain ? "" : plain.error().text().c_str());
        const auto report = runWith("--plugin libs.good --plugin blas_product", 3);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->refused.empty());
        QCOMPARE(stepOf("library.libs.good")->rewrites, 3);
        QCOMPARE(stepOf("library.blas_product.product")->rewrites, 1);
        for (size_t i = 0; i < report->outputs.size(); ++i) {
            QCOMPARE(report->outputs[i].minimum, plain->outputs[i].minimum);
            QVERIFY(std::abs(report->outputs[i].maximum - plain->outputs[i].maximum) < 1e-5);
        }
        const auto request = m_session.requestOf(m_run);
        QCOMPARE(static_cast<int>(request->plugins.size()), 2);
        QCOMPARE(request->plugins[0].place, std::string("library"));
        QCOMPARE(request->plugins[0].name, std::string("libs.good"));
        QCOMPARE(static_cast<int>(request->plugins[0].hash.size()), 32);
        const auto again = m_session.compile(*parseRequest(request->text()));
        QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
        const auto less = runWith("--plugin libs.good --disable library.libs.good");
        QVERIFY2(less.has_value(), less ? "" : less.error().text().c_str());
        QCOMPARE(stepOf("library.libs.good")->state, StepState::Disabled);
    }

    void misbehaves_data() {
        QTest::addColumn<QString>("library");
        QTest::addColumn<QString>("problem");  // of the run
        QTest::addColumn<QString>("refused");
        const auto row = [](const char* library, const char* problem, const char* refused = "") {
            QTest::newRow(library) << library << problem << refused;
        };
        row("crashes", "its process was killed by signal 11");
        row("hangs", "did not answer within 1 s and was ended");
        row("ends", "its process exited with status 3");
        row("fails", "failed: its licence has ended");
        row("writes_behind", "it wrote behind the end of result 0");
        row("writes_far", "its process was killed by signal");
        row("writes_operand", "its process was killed by signal 11");
        row("returns", "it returned 4711 and did not say why");
        row("no_function", "it has no such function");
        row("refuses_later", "", "it has changed its mind");
    }
    /// The message names plugin, library and call, and the next run has another process.
    void misbehaves() {
        QFETCH(QString, library);
        QFETCH(QString, problem);
        QFETCH(QString, refused);
        open(kRelus);
        setPluginLimits({1, int64_t{256} << 20, 1 << 20, 20 << 20});
        const auto report = runWith("--plugin libs." + library.toStdString());
        if (problem.isEmpty()) {
            qputenv("CUTAWAY_TEST_LATER", "1");
            const auto later = runWith("--plugin libs." + library.toStdString());
            qunsetenv("CUTAWAY_TEST_LATER");
            QVERIFY2(later.has_value(), later ? "" : later.error().text().c_str());
        } else {
            QVERIFY(!report.has_value());
            const QString error = QString::fromStdString(report.error().text());
            QVERIFY2(error.contains("plugin libs 1, library " + library + ":"), qPrintable(error));
            QVERIFY2(error.contains(problem), qPrintable(error));
            QVERIFY2(error.contains("aten.relu.default") && error.contains("--disable library.libs." + library),
                     qPrintable(error));
        }
        const auto good = runWith("--plugin libs.good");
        QVERIFY2(good.has_value(), good ? "" : good.error().text().c_str());
    }

    void steps_data() {
        QTest::addColumn<QString>("library");
        QTest::addColumn<QString>("error");  // of the step
        const auto row = [](const char* library, const char* error) { QTest::newRow(library) << library << error; };
        row("refuses", "");
        row("silent", "");
        row("crashes_asked", "its process was killed by signal 11");
        row("hangs_asked", "did not answer within 1 s and was ended");
    }
    void steps() {
        QFETCH(QString, library);
        QFETCH(QString, error);
        open(kRelus);
        setPluginLimits({1, int64_t{256} << 20, 1 << 20, 20 << 20});
        const auto run = m_session.compile(*parseRequest("--plugin libs." + library.toStdString()));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        m_run = *run;
        const auto step = stepOf("library.libs." + library.toStdString());
        QVERIFY(step.has_value());
        QCOMPARE(step->state, error.isEmpty() ? StepState::Unchanged : StepState::Failed);
        QVERIFY2(QString::fromStdString(step->error).contains(error), step->error.c_str());
    }

    /// A checked run computes the calls as compiled code does, and finds the library that is wrong.
    void checked_data() {
        QTest::addColumn<QString>("library");
        QTest::addColumn<QString>("summary");
        const auto row = [](const char* library, const char* summary) { QTest::newRow(library) << library << summary; };
        row("good", "no value diverges");
        row("wrong", "the first value that diverges is 'relu' (aten.relu.default): its distance to the f64 run is 1");
        row("nans", "'relu' (aten.relu.default): 32 elements are not finite");
        row("crashes", "plugin libs 1, library crashes: its process was killed by signal 11");
        row("hangs", "plugin libs 1, library hangs: did not answer within 1 s");
        row("writes_behind", "plugin libs 1, library writes_behind: it wrote behind the end of result 0");
    }
    void checked() {
        QFETCH(QString, library);
        QFETCH(QString, summary);
        open(kRelus);
        setPluginLimits({1, int64_t{256} << 20, 1 << 20, 20 << 20});
        const auto run = m_session.compile(*parseRequest("--plugin libs." + library.toStdString()));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto found = firstDivergence(m_session, *run);
        QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
        QVERIFY2(QString::fromStdString(found->summary + found->checked.summary).contains(summary),
                 (found->summary + found->checked.summary).c_str());
        if (found->found) QCOMPARE(found->step.name, "library.libs." + library.toStdString());
    }
    /// What a library does not take with the numbers of a run is left to the reference, and remarked on.
    void checkedRefusal() {
        open(kSymbols);
        const auto run = m_session.compile(*parseRequest("--plugin libs.refuses_known"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        m_run = *run;
        QCOMPARE(stepOf("library.libs.refuses_known")->rewrites, 1);
        const auto found = checkedRun(m_session, {*run, stepOf("library.libs.refuses_known")->index, -1});
        QVERIFY2(found.has_value() && !found->firstDivergent, found ? "" : found.error().text().c_str());
        QCOMPARE(found->remarks.back(),
                 std::string("plugin libs 1, library refuses_known did not take a call of aten.relu.default, which the "
                             "reference computed: it has seen the size"));
    }
    void checkedValue() {
        open(kRelus);
        const auto run = m_session.compile(*parseRequest("--plugin libs.wrong"));
        m_run = *run;
        const Place place{*run, stepOf("library.libs.wrong")->index, -1};
        const auto text = m_session.text(place);
        for (const NodeKey key : text->lineNodes) {
            const auto node = key == NodeKey::None ? Result<NodeDetails>(Error{}) : m_session.node(place, key);
            if (!node || node->node.name != "relu") continue;
            const auto value = valueAt(m_session, place, key, ValueSide::Difference);
            QVERIFY2(value.has_value(), value ? "" : value.error().text().c_str());
            const ValueSlice slice = (*value)->slice({}, 4, 8);
            QVERIFY(slice.numbers.size() == 32 && slice.least > 0.999 && slice.most < 1.001);
            return;
        }
        QFAIL("no line of the text is relu's");
    }

    /// Forward and backward: compiled beside a run without the library, and checked value by value.
    void training() {
        m_folder.write("sevens.py", R"py(from cutaway_plugin import plugin
mine = plugin("sevens", "1", "Products that are sevens")
@mine.library("mm", "Sevens", "aten.mm.default", lambda call, host: None)
def mm(call, host):
    call.results[0].fill([7.0] * (call.results[0].sizes[0] * call.results[0].sizes[1]))
)py");
        QVERIFY(m_session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2").has_value());
        QTemporaryDir folder;
        const auto step = [&](const std::string& words, const RunOptions& options) -> Result<RunReport> {
            const auto run = m_session.compile(*parseRequest("--mode training" + words));
            if (!run) return run.error();
            m_run = *run;
            return m_session.run(*run, options);
        };
        RunOptions options;
        options.backend = Backend::Cpu;
        options.gradientsFile = folder.filePath("gradients.safetensors").toStdString();
        QVERIFY(step("", options).has_value());
        std::swap(options.gradientsFile, options.expectGradientsFile);
        const auto good = step(" --plugin blas_product", options);
        QVERIFY2(good.has_value() && good->matches && good->refused.empty(), good ? "" : good.error().text().c_str());
        const auto steps = m_session.steps(m_run);
        for (const char* graphName : {"forward", "backward"})
            QVERIFY(std::any_of(steps->begin(), steps->end(), [&](const StepInfo& each) {
                return each.name == "library.blas_product.product" && each.graphName == graphName && each.rewrites > 0;
            }));
        const auto right = firstDivergence(m_session, m_run);
        QVERIFY2(right.has_value() && !right->found, right ? right->summary.c_str() : right.error().text().c_str());
        // The forward calls addmm alone.
        const auto bad = step(" --plugin sevens", options);
        QVERIFY2(bad.has_value() && !bad->matches, bad ? "" : bad.error().text().c_str());
        QVERIFY(bad->outputs[0].within);
        const auto wrong = firstDivergence(m_session, m_run);
        QVERIFY2(wrong.has_value() && wrong->found, wrong ? "" : wrong.error().text().c_str());
        QCOMPARE(wrong->step.name, std::string("library.sevens.mm"));
        QCOMPARE(wrong->step.graphName, std::string("backward"));
        QCOMPARE(wrong->checked.nodes[*wrong->checked.firstDivergent].op, std::string("aten.mm.default"));
    }

    /// What is not written is not a number, so that it is seen.
    void wrongNumbers_data() {
        QTest::addColumn<QString>("library");
        QTest::newRow("nans") << "nans";
        QTest::newRow("writes_nothing") << "writes_nothing";
    }
    void wrongNumbers() {
        QFETCH(QString, library);
        open(kRelus);
        const auto report = runWith("--plugin libs." + library.toStdString());
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->outputs[1].nonFinite == 64);
    }

    /// A size symbol: asked with what is known, and again in the run.
    void symbols() {
        open(kSymbols);
        const auto report = runWith("--plugin libs.good --plugin blas_product", 2);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(report->refused.empty());
        QCOMPARE(stepOf("library.libs.good")->rewrites, 1);
        QCOMPARE(stepOf("library.blas_product.product")->rewrites, 1);
    }

    void exported() {
        open(kRelus);
        QVERIFY(runWith("--plugin libs.good").has_value());
        QTemporaryDir folder;
        ExportOptions options;
        options.folder = folder.filePath("out").toStdString();
        const auto refused = exportProgram(m_session, m_run, options);
        QVERIFY(!refused.has_value());
        QVERIFY2(refused.error().text().find("aten.relu.default is computed by plugin libs 1, library good") !=
                     std::string::npos,
                 refused.error().text().c_str());
    }

    void python() {
        open("def forward(x: \"f64[3, 5]\"):\n    c: \"f64[3, 5]\" = aten.cumsum.default(x, 1)\n    return (c,)\n");
        const auto plain = runWith("");
        const auto report = runWith("--plugin running_sum");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QCOMPARE(stepOf("library.running_sum.cumsum")->rewrites, 1);
        QVERIFY(std::abs(report->outputs[0].maximum - plain->outputs[0].maximum) < 1e-12);
    }
};

CUTAWAY_SUITE(PluginLibrariesTest)
#include "plugin_libraries_test.moc"
