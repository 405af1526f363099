// cutaway-cli as scripts see it: exit statuses, what goes to stdout and what to stderr, and the JSON of every command.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::Ended;
using testing::kWrongRule;
using testing::runShell;

namespace {

constexpr const char* kTwo = R"(def forward(x: "f32[2, 3]", y: "f32[2, 3]"):
    a = aten.add.Tensor(x, y)
    b = aten.mul.Tensor(x, y)
    return (a, b)
)";
constexpr const char* kSlicedChain = R"(def forward(x: "f32[4]"):
    a = aten.relu.default(x)
    b = aten.slice.Tensor(a, 0, 0, 9223372036854775807)
    c = aten.cos.default(b)
    d = aten.slice.Tensor(c, 0, 0, 9223372036854775807)
    e = aten.exp.default(d)
    return (e,)
)";

Tensor filled(double value, Dims sizes) { return Tensor::full(DType::F32, sizes, Scalar(value)); }

}  // namespace

class CliTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    Ended shell(const QString& line) const { return runShell(m_folder.path(), line); }
    /// The JSON that the command writes to stdout; what it wrote with --json FILE is the same.
    QJsonDocument json(const QString& line) const {
        const Ended ended = shell(line + " --json -");
        if (ended.status != 0) qWarning("%s", ended.err.constData());
        const Ended again = shell(line + " --json report.json");
        QFile file(m_folder.filePath("report.json"));
        if (again.status != ended.status || !again.out.isEmpty() || !file.open(QIODevice::ReadOnly)) return {};
        const QJsonDocument written = QJsonDocument::fromJson(file.readAll()),
                            printed = QJsonDocument::fromJson(ended.out);
        if (written.isArray() != printed.isArray() || written.isNull()) return {};
        return printed;
    }
    void write(const QString& name, const QByteArray& text) const {
        QFile file(m_folder.filePath(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
            qFatal("cannot write %s", qPrintable(name));
    }
    void write(const QString& name, const std::vector<std::pair<std::string, Tensor>>& tensors) const {
        SafeTensors file;
        file.tensors = tensors;
        const auto written = writeSafeTensors(m_folder.filePath(name).toStdString(), file);
        if (!written) qFatal("%s", written.error().text().c_str());
    }

  private slots:
    void initTestCase() {
        write("two.py", kTwo);
        write("chain.py", kSlicedChain);
        write("wrong.rules", kWrongRule);
        write("deep.py",
              "def forward(x: \"f32[2]\"):\n    y = " + QByteArray("x ** ").repeated(100'000) + "x\n    return (y,)\n");
        write("bad.py", "def forward(x: \"f32[2]\"):\n    y = aten.relu.default(z)\n    return (y,)\n");
        write("escape.py", "def forward(x: \"f32[2]\"):\n    y = getattr(self, 'a\\x1b[31mb')(x)\n    return (y,)\n");
        QDir(m_folder.path()).mkdir("folder");
        write("folder/deep.py", "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        y = " +
                                    QByteArray("x ** ").repeated(100'000) + "x\n        return (y,)\n");
        write("folder/good.py",
              "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        y = "
              "torch.ops.aten.relu.default(x)\n        return (y,)\n");
        write("damaged.pt2", QByteArray::fromStdString(testing::pt2Archive(
                                 testing::reluProgram().json(), {{"data/sample_inputs/model.pt", "no archive"}})));
        const Dims sizes{2, 3};
        Tensor off = filled(5, sizes);
        off.as<float>()[5] = 7;
        write("in.safetensors", {{"y", filled(3, sizes)}, {"x", filled(2, sizes)}});
        write("right.safetensors", {{"a", filled(5, sizes)}, {"b", filled(6, sizes)}});
        write("numbered.safetensors", {{"output_1", filled(6, sizes)}, {"output_0", filled(5, sizes)}});
        write("ordered.safetensors", {{"t10", filled(6, sizes)}, {"t9", filled(5, sizes)}});
        write("first.safetensors", {{"a", off}, {"b", filled(6, sizes)}});
        write("second.safetensors", {{"a", filled(5, sizes)}, {"b", off}});
        write("unknown.safetensors", {{"a", filled(5, sizes)}, {"c", filled(6, sizes)}});
        write("unknown_in.safetensors", {{"x", filled(2, sizes)}, {"z", filled(3, sizes)}});
        std::vector<std::pair<std::string, Tensor>> twelve;
        QByteArray text = "def forward(x: \"f32[2]\"):\n", outputs;
        for (int i = 0; i < 12; ++i) {
            text += "    y" + QByteArray::number(i) + " = aten.mul.Tensor(x, " + QByteArray::number(i) + ")\n";
            outputs += "y" + QByteArray::number(i) + ", ";
            twelve.emplace_back("output_" + std::to_string(i), filled(i, {2}));
        }
        write("twelve.py", text + "    return (" + outputs + ")\n");
        write("one_in.safetensors", {{"x", filled(1, {2})}});
        write("twelve.safetensors", twelve);
    }

    void ends_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<int>("status");
        QTest::addColumn<QString>("out");  // what stdout holds, or stderr where that begins with "!"
        const auto row = [](const QString& line, int status, const QString& out = {}) {
            QTest::newRow(qPrintable(line)) << line << status << out;
        };
        // Results.
        const QString run = "cutaway-cli run two.py --inputs in.safetensors ";
        row(run + "--expect right.safetensors", 0, "ok: max abs error 0 of 5");
        row(run + "--expect right.safetensors --backend cpu", 0, "ok: max abs error 0 of 5");
        row(run + "--expect numbered.safetensors", 0, "expected: numbered.safetensors\n");
        row(run + "--expect ordered.safetensors", 0,
            "expected: ordered.safetensors in the order of its names, none of which is an output's");
        row(run + "--expect first.safetensors", 1, "element [1, 2] is 5 instead of 7");
        row(run + "--expect second.safetensors", 1, "!the results differ from the expected ones");
        row(run + "--expect unknown.safetensors", 1, "!the graph has no output 'c'");
        row(run + "--expect unknown.safetensors", 1, "!its outputs are: a, b");
        row("cutaway-cli run two.py --inputs unknown_in.safetensors", 1, "!the graph has no input 'z'");
        row("cutaway-cli run twelve.py --inputs one_in.safetensors --expect twelve.safetensors", 0, "y11");
        row("cutaway-cli run damaged.pt2", 0, "inputs: random, seed 0; sample inputs cannot be read: ");
        row("cutaway-cli steps chain.py --check-numbers", 0, " same ");
        row("cutaway-cli steps chain.py --check-numbers --rules wrong.rules", 1, "!does not keep the numbers");
        row("cutaway-cli bisect chain.py --rules wrong.rules", 0, "rewrite 1 (wrong)");
        row("cutaway-cli bisect chain.py", 1, "!nothing to find");
        row("cutaway-cli bisect chain.py --check crash", 1, "!nothing to find");
        row("cutaway-cli bisect chain.py --check nan --backend cpu", 1, "!nothing to find");
        row("cutaway-cli bisect chain.py --rules wrong.rules --show-commands", 0, "cutaway-cli run chain.py");
        row("cutaway-cli bisect chain.py --check crash --tolerance 1", 1, "!--tolerance has no meaning");
        row("cutaway-cli steps chain.py --break pass=decompose", 0, "!stopped at pass=decompose: main/");
        row("cutaway-cli steps chain.py --break dies=nosuch", 0, "!no breakpoint was met");
        row("cutaway-cli manual kernel", 1, "!kernels-window");
        row("cutaway-cli steps chain.py --break pass=nosuch@0", 1, "!is not such a number");
        // Files.
        row("cutaway-cli info two.py", 0, "graph main: 5 nodes");
        row("cutaway-cli info nosuch.py", 1, "!nosuch.py");
        row("cutaway-cli info bad.py", 1, "!bad.py:2:27: 'z' is not defined");
        row("cutaway-cli info deep.py", 1, "!deep.py:2:");
        row("cutaway-cli info deep.py", 1, "!nested more than 256 levels deep");
        row("cutaway-cli info folder", 0, "nested more than 256 levels deep");
        row("cutaway-cli info escape.py", 0, "a\\x1b[31mb");
        // Options.
        row("cutaway-cli", 2, "!subcommand is required");
        row("cutaway-cli frobnicate", 2, "!no command named 'frobnicate'");
        row("cutaway-cli step two.py", 2, "!did you mean steps?");
        row("cutaway-cli info", 2, "!MODEL");
        row("cutaway-cli info two.py --frob", 2, "!--frob");
        row("cutaway-cli info two.py --graph nosuch", 1, "!no graph named 'nosuch'");
        row("cutaway-cli info two.py --json ''", 2, "!an empty value means nothing here");
        row("cutaway-cli compile two.py --only ''", 2, "!an empty value means nothing here");
        row("cutaway-cli compile two.py --dump ''", 2, "!an empty value means nothing here");
        row("cutaway-cli compile two.py --only joynt", 1, "!did you mean joint?");
        row("cutaway-cli compile two.py --disable decompos", 1, "!did you mean decompose?");
        row("cutaway-cli compile two.py --enable split_cat_pas", 1, "!did you mean split_cat_pass?");
        row("cutaway-cli compile two.py --enable split_cat_pass=nosuch:3", 1,
            "!'split_cat_pass' has no setting 'nosuch'");
        row("cutaway-cli compile two.py --enable split_cat_pass=", 1, "!takes NAME or NAME=key:value");
        row("cutaway-cli compile two.py --size s0=1 --size s0=2", 1, "!--size gives 's0' twice");
        row("cutaway-cli compile two.py --size s0=1", 1, "!no size symbol 's0'");
        row("cutaway-cli compile two.py --fuel -1", 2, "!takes a whole number from 0 to 9223372036854775807, not '-1'");
        row("cutaway-cli compile two.py --fuel 999999999999999999999", 2, "!takes a whole number from 0");
        row("cutaway-cli compile two.py --mode trainin", 2, "!did you mean training?");
        row("cutaway-cli compile two.py --freeze --mode training", 1, "!--freeze makes parameters constants");
        row("cutaway-cli compile two.py --device cuda", 0, " passes, ");
        row("cutaway-cli compile two.py --json - --stages-json -", 1, "!cannot both go to stdout");
        row("cutaway-cli compile two.py --mode training --grad nosuch", 1, "!cutaway-cli: no input named 'nosuch'");
        for (const char* command :
             {"run two.py", "minify two.py -o out --check numbers", "bisect two.py", "checked-run two.py"})
            row(QStringLiteral("cutaway-cli %1 --device cpu --backend cuda").arg(command), 1,
                "!the backend cuda runs what is compiled for a GPU, and this is compiled for the CPU");
        for (const char* command :
             {"run two.py", "minify two.py -o out --check numbers", "bisect two.py", "checked-run two.py"})
            row(QStringLiteral("cutaway-cli %1 --device cuda --backend cpu").arg(command), 1,
                "!the backend cpu runs what is compiled for the CPU, and this is compiled for a GPU");
        row("cutaway-cli run two.py --device cuda", 0, "");
        for (const char* backend : {"reference", "cpu"})
            row(QStringLiteral("cutaway-cli run " CUTAWAY_SOURCE_DIR
                               "/resources/models/mlp.pt2 --mode training --backend ") +
                    backend,
                0, "loss ");
        row("cutaway-cli run two.py --calls", 1, "!--calls needs --backend cpu");
        row("cutaway-cli run two.py --cold", 1, "!--cold applies to --backend cpu and cuda only");
        row("cutaway-cli run two.py --repeat 0", 2, "!takes a whole number from 1 to 1000000, not '0'");
        row("cutaway-cli steps two.py --check-numbers --tolerance nan", 2,
            "!takes a number that is 0 or more, not 'nan'");
        row("cutaway-cli steps two.py --check-numbers --tolerance inf", 2,
            "!takes a number that is 0 or more, not 'inf'");
        row("cutaway-cli steps two.py --tolerance 1", 2, "!--check-numbers");
        row("cutaway-cli text two.py --mode training", 1, "!nothing is compiled without --step");
        row("cutaway-cli text two.py --step decompos", 1, "!did you mean decompose?");
        row("cutaway-cli diff two.py --step 99", 1, "!no step named '99'");
        row("cutaway-cli rules --pass nosuch", 1, "!no pass named 'nosuch'");
        row("cutaway-cli rules --pass early_pattern", 1, "!did you mean early_patterns?");
        row("cutaway-cli steps two.py --move early_patterns=before:decompos", 1, "!did you mean decompose?");
        row("cutaway-cli rules --rules folder", 1, "!folder");
        row("cutaway-cli explain two.py --rule nosuch", 1, "!no rule named 'nosuch'");
        row("cutaway-cli explain two.py --rule pointles_view", 1, "!did you mean pointless_view?");
        row("cutaway-cli explain two.py --rule nosuch --node a", 1, "!no rule named 'nosuch'");
        row("cutaway-cli explain two.py --step nosuch", 1, "!no step named 'nosuch'");
        row("cutaway-cli explain two.py --node nosuch", 1, "!no node named 'nosuch'");
        row("cutaway-cli explain chain.py --node b", 0, "remove_noop_ops");
        row("cutaway-cli explain chain.py --rule remove_noop_ops/nosuch", 1, "!no rule named");
        row("cutaway-cli bisect two.py --command true --check numbers", 1, "!--command is for --check command");
        row("cutaway-cli bench", 1, "!give a model");
        row("cutaway-cli bench --curve 30 --repeat 1", 0, " nodes opened");
        for (const char* option : {"--graph two", "--size s0=1", "--only joint"})
            row(QStringLiteral("cutaway-cli bench --curve 30 ") + option, 2, "!--curve excludes --");
        // Where output goes.
        row("cutaway-cli --help", 0, "bisect");
        row("cutaway-cli --version", 0, "cutaway-cli ");
        row("cutaway-cli text two.py", 0, "aten.mul.Tensor(x, y)");
        row("cutaway-cli text two.py --runnable", 0, "import torch");
        for (const char* command :
             {"--help", "info two.py", "text two.py", "compile two.py", "steps two.py",
              "diff chain.py --step decompose", "run two.py", "bench two.py --repeat 1", "explain two.py", "rules",
              "bisect chain.py --rules wrong.rules", "info two.py --json -", "compile two.py --stages-json -"}) {
            const QString line = QStringLiteral("cutaway-cli ") + command;
            row(line + " > /dev/full", 1, "!cannot write the output: No space left on device");
            row(line + " >&-", 1, "!cannot write the output: Bad file descriptor");
        }
        row("cutaway-cli compile two.py --json report.json >&-", 0);
        row("cutaway-cli info two.py --json /dev/full", 1, "!cannot write the file: No space left on device");
        row("cutaway-cli compile two.py --stages-json nowhere/stages.json", 1,
            "!cannot write the file: No such file or directory");
        row("cutaway-cli compile two.py --dump two.py/dump", 1, "!cannot make the folder");
        row("{ cutaway-cli rules; echo $? >&2; } | head -1", 0, "!141");
        row("cutaway-cli rules | head -1", 0, "# ");
    }
    void ends() {
        QFETCH(QString, line);
        QFETCH(int, status);
        QFETCH(QString, out);
        const Ended ended = shell(line);
        QVERIFY2(ended.status == status,
                 qPrintable(QString("status %1: ").arg(ended.status) + ended.out.right(2000) + ended.err.right(2000)));
        const bool error = out.startsWith('!');
        const QString where = QString::fromUtf8(error ? ended.err : ended.out);
        QVERIFY2(where.contains(error ? out.mid(1) : out), qPrintable(where.left(4000)));
        if (error && status != 0) QVERIFY2(ended.err.size() < 8000, "a short sentence is enough");
        QVERIFY2(!ended.out.contains('\x1b') && !ended.err.contains('\x1b'), "control characters are escaped");
    }

    /// What the report says is what the engine says; number by number, since each field might hold another one's.
    void stepsInJson() {
        Session session;
        QVERIFY(session.open(m_folder.filePath("chain.py").toStdString()));
        const auto run = session.compile({});
        QVERIFY(run.has_value());
        const auto steps = *session.steps(*run);
        for (const char* command : {"steps", "compile"}) {
            const QJsonArray rows = json(QString("cutaway-cli %1 chain.py").arg(command)).array();
            QCOMPARE(size_t(rows.size()), steps.size());
            bool grew = false, rewrote = false;
            for (size_t i = 0; i < steps.size(); ++i) {
                const QJsonObject row = rows[qsizetype(i)].toObject();
                QCOMPARE(row["index"].toInt(), steps[i].index + 1);
                QCOMPARE(row["name"].toString().toStdString(), steps[i].name);
                QCOMPARE(row["stage"].toString().toStdString(), steps[i].stage);
                QCOMPARE(row["state"].toString(),
                         QString(steps[i].state == StepState::Changed ? "changed" : "unchanged"));
                QCOMPARE(row["nodes_before"].toInt(), steps[i].nodesBefore);
                QCOMPARE(row["nodes_after"].toInt(), steps[i].nodesAfter);
                QCOMPARE(row["added"].toInt(), steps[i].added);
                QCOMPARE(row["removed"].toInt(), steps[i].removed);
                QCOMPARE(row["edited"].toInt(), steps[i].edited);
                QCOMPARE(row["rewrites"].toInt(), steps[i].rewrites);
                QVERIFY(row["milliseconds"].isDouble() && row["error"].toString().isEmpty());
                grew |= steps[i].nodesBefore != steps[i].nodesAfter;
                rewrote |= steps[i].rewrites > 0;
            }
            QVERIFY2(grew && rewrote, "the model must have a step whose numbers differ");
        }
    }
    void rewritesInJson() {
        const QJsonArray rows = json("cutaway-cli steps chain.py --rewrites").array();
        int seen = 0;
        for (const QJsonValue& row : rows) {
            const QJsonArray list = row["list"].toArray();
            QCOMPARE(int(list.size()), row["rewrites"].toInt());
            for (qsizetype i = 0; i < list.size(); ++i, ++seen) {
                QCOMPARE(list[i]["index"].toInt(), int(i) + 1);
                QVERIFY(!list[i]["rule"].toString().isEmpty() && !list[i]["node"].toString().isEmpty());
            }
        }
        QVERIFY(seen > 0);
    }
    void infoInJson() {
        const QJsonObject info = json("cutaway-cli info two.py").object();
        QCOMPARE(info["format"].toString(), QString("FX text"));
        QCOMPARE(info["inputs"].toArray(), (QJsonArray{"x: f32[2, 3]", "y: f32[2, 3]"}));
        QCOMPARE(info["outputs"].toArray().size(), 2);
        const QJsonObject graph = info["graphs"][0].toObject();
        QCOMPARE(graph["inputs"].toInt(), 2);
        QCOMPARE(graph["outputs"].toInt(), 2);
        QCOMPARE(graph["ops"].toArray().size(), 2);
        QCOMPARE(graph["ops"][0]["count"].toInt(), 1);
    }
    void runInJson() {
        const QString run = "cutaway-cli run two.py --inputs in.safetensors --repeat 3 --expect ";
        const QJsonObject right = json(run + "right.safetensors").object();
        QCOMPARE(right["inputs"].toString(), QString("in.safetensors"));
        QCOMPARE(right["expected"].toString(), QString("right.safetensors"));
        QCOMPARE(right["repeats"].toInt(), 3);
        QVERIFY(right["compared"].toBool() && right["matches"].toBool());
        QVERIFY(right["median_ms"].toDouble() >= right["min_ms"].toDouble());
        const QJsonObject b = right["outputs"][1].toObject();
        QCOMPARE(b["name"].toString(), QString("b"));
        QCOMPARE(b["type"].toString(), QString("f32[2, 3]"));
        QCOMPARE(b["min"].toDouble(), 6.0);
        QCOMPARE(b["max"].toDouble(), 6.0);
        QCOMPARE(b["mean"].toDouble(), 6.0);
        QCOMPARE(b["max_expected"].toDouble(), 6.0);
        QVERIFY(!right.contains("peak_bytes"));
        // Of compiled code what it costs, too.
        const QJsonObject compiled =
            json("cutaway-cli run two.py --inputs in.safetensors --backend cpu --expect right.safetensors").object();
        // What fills the caches is memory of the process.
        const QJsonObject cold =
            json("cutaway-cli run two.py --inputs in.safetensors --backend cpu --expect right.safetensors --cold")
                .object();
        QVERIFY(cold["matches"].toBool());
        QVERIFY(cold["peak_bytes"].toDouble() > compiled["peak_bytes"].toDouble() + 1e6);
        QVERIFY(compiled["peak_bytes"].toDouble() > compiled["arena_bytes"].toDouble());
        QVERIFY(compiled["own_peak_bytes"].toDouble() > 0 && compiled["arena_bytes"].toDouble() > 0);
        QCOMPARE(compiled["weights_bytes"].toDouble(), 0.0);
        QVERIFY(compiled["load_ms"].toDouble() > 0 && compiled["start_ms"].toDouble() > 0);
        // The first of two outputs differs, the second does not; then the other way round.
        for (const int wrong : {0, 1}) {
            const Ended ended = shell(run + (wrong == 0 ? "first" : "second") + ".safetensors --json -");
            QCOMPARE(ended.status, 1);
            const QJsonObject report = QJsonDocument::fromJson(ended.out).object();
            QVERIFY(!report["matches"].toBool(true));
            for (const int i : {0, 1}) QCOMPARE(report["outputs"][i]["within"].toBool(), i != wrong);
            const QJsonObject worst = report["outputs"][wrong]["worst"].toObject();
            if (wrong == 0) QCOMPARE(worst["index"].toArray(), (QJsonArray{1, 2}));
            QCOMPARE(worst["actual"].toString(), QString(wrong == 0 ? "5" : "6"));
        }
    }
    void stagesInJson() {
        const Ended ended = shell("cutaway-cli compile chain.py --stages-json -");
        const QJsonArray stages = QJsonDocument::fromJson(ended.out).array();
        QVERIFY(stages.size() >= 4);
        QSet<QString> names;
        for (const QJsonValue& stage : stages) {
            names.insert(stage["stage"].toString());
            if (stage["stage"].toString() != "joint") continue;
            QCOMPARE(stage["before"]["aten.slice.Tensor"].toInt(), 2);
            QVERIFY(stage["after"]["aten.slice.Tensor"].isUndefined());
            QCOMPARE(stage["after"]["aten.cos.default"].toInt(), 1);
        }
        QVERIFY(names.contains("capture") && names.contains("joint") && names.contains("post_grad"));
    }
    void diffInJson() {
        const QJsonObject diff = json("cutaway-cli diff chain.py --step remove_noop_ops").object();
        QCOMPARE(diff["step"].toString(), QString("remove_noop_ops"));
        QCOMPARE(diff["added"].toInt(), 0);
        QCOMPARE(diff["removed"].toInt(), 2);
        int removed = 0;
        for (const QJsonValue& node : diff["nodes"].toArray())
            if (node["change"].toString() == "-")
                removed += node["before"].toString().contains("aten.") && node["after"].toString().isEmpty();
        QCOMPARE(removed, 2);
        // The number that `steps` prints is the number that --step takes.
        for (const QJsonValue& step : json("cutaway-cli steps chain.py").array())
            if (step["name"].toString() == "remove_noop_ops")
                QCOMPARE(json(QString("cutaway-cli diff chain.py --step %1").arg(step["index"].toInt()))
                             .object()["step"]
                             .toString(),
                         QString("remove_noop_ops"));
    }
    void bisectInJson() {
        const QJsonObject report = json("cutaway-cli bisect chain.py --rules wrong.rules").object();
        QVERIFY(report["found"].toBool());
        QCOMPARE(report["rewrite"]["index"].toInt(), 1);
        QCOMPARE(report["rewrite"]["rule"].toString(), QString("wrong"));
        QVERIFY(report["step"]["rewrites"].toInt() >= 1);
        QVERIFY(report["searched"].toInt() >= report["probes"].toArray().size() &&
                !report["probes"].toArray().isEmpty());
    }
    void explainInJson() {
        const QJsonArray rows = json("cutaway-cli explain chain.py --node b").array();
        bool applies = false;
        for (const QJsonValue& row : rows) {
            QCOMPARE(row["node"].toString(), QString("b"));
            QCOMPARE(row["applies"].toBool(), row["reason"].toString().isEmpty());
            applies |= row["applies"].toBool() && row["pass"].toString() == "remove_noop_ops";
        }
        QVERIFY(applies);
        const QJsonArray uses = json("cutaway-cli explain '" CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2'").array();
        QVERIFY(!uses.isEmpty());
        for (const QJsonValue& use : uses)
            QVERIFY(use["tried"].toInt() >= use["applied"].toInt() && !use["rule"].toString().isEmpty());
    }
    void rulesInJson() {
        const QJsonArray rules = json("cutaway-cli rules --pass early_patterns").array();
        QVERIFY(!rules.isEmpty());
        for (const QJsonValue& rule : rules) QCOMPARE(rule["pass"].toString(), QString("early_patterns"));
    }
    void benchInJson() {
        const QJsonArray rows = json("cutaway-cli bench two.py --repeat 1").array();
        QCOMPARE(rows.size(), 1);
        QCOMPARE(rows[0]["model"].toString(), QString("two.py"));
        for (const char* key : {"open_ms", "passes_ms", "passes_processor_ms", "open_and_passes_ms", "diff_ms"})
            QVERIFY2(rows[0][key].isDouble(), key);
        QVERIFY(!rows[0]["schedule_processor_ms"].isDouble());
        const QJsonArray built = json("cutaway-cli bench two.py --repeat 1 --build").array();
        for (const char* key : {"schedule_processor_ms", "build_processor_ms", "graph_to_program_processor_ms"})
            QVERIFY2(built[0][key].toDouble() > 0, key);
        const QJsonArray curve = json("cutaway-cli bench --curve 60 --repeat 1").array();
        QCOMPARE(curve[0]["asked"].toInt(), 60);
        QVERIFY(curve[0]["nodes"].toInt() >= 60);
    }

    /// Everything that --dump promises is there, and the numbers of its files are those of `steps`.
    void dumps() {
        const Ended ended = shell("cutaway-cli compile chain.py --dump dump");
        QVERIFY2(ended.status == 0, ended.err.constData());
        const QDir folder(m_folder.filePath("dump"));
        QVERIFY(folder.exists("host.txt") && folder.exists("host.cpp"));
        QVERIFY(folder.exists("kernels.cpp") && folder.exists("kernels.log"));
        int changed = 0;
        for (const QJsonValue& step : json("cutaway-cli steps chain.py").array()) {
            if (step["state"].toString() != "changed") continue;
            ++changed;
            const QString stem = QString("%1_%2.%3")
                                     .arg(step["index"].toInt(), 2, 10, QChar('0'))
                                     .arg(step["stage"].toString(), step["name"].toString());
            QVERIFY2(folder.exists(stem + ".before.py") && folder.exists(stem + ".after.py"), qPrintable(stem));
        }
        QVERIFY(changed > 0);
    }

    /// Each command answers --help, and what it says about --json is the same everywhere.
    void help() {
        for (const char* command : {"info", "compile", "steps", "diff", "run", "bench", "bisect", "explain", "rules"}) {
            const Ended ended = shell(QString("cutaway-cli %1 --help").arg(command));
            QCOMPARE(ended.status, 0);
            QVERIFY2(QString::fromUtf8(ended.out).simplified().contains(
                         "--json FILE Write the report as JSON to a file, or - for stdout"),
                     ended.out.constData());
        }
    }
};

CUTAWAY_SUITE(CliTest)
#include "cli_test.moc"
