// Repro scripts: what becomes of their inputs, attributes and symbols (REPRO-1..11).
#include "engine/formats/repro.h"

#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>

#include "engine/interpret/interpret.h"
#include "engine/support/files.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/pickle_builder.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class ReproTest : public QObject {
    Q_OBJECT

  private slots:
    void reads_data();
    void reads();
    void refuses_data();
    void refuses();
    void samplesShareStorages();
    void samplesComeFromStorages();
    void storagesLieWhereTheScriptSaved();
    void constructorMakesTensors();
};

namespace {

const StorageFinder kNoStorage = [](const std::string&) { return std::shared_ptr<Storage>(); };

/// A script whose forward returns what `body` computes from `parameters`.
std::string script(const std::string& parameters, const std::string& body, const std::string& reader,
                   const std::string& constructor = {}, const std::string& head = {}) {
    return head +
           "import torch\nclass Repro(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n" +
           constructor + "\n    def forward(self, " + parameters + "):\n" + body + "\ndef load_args(reader):\n" +
           reader + "load_args._version = 0\nmod = Repro()\n";
}
QString joined(const std::vector<std::string>& lines) {
    QStringList out;
    for (const std::string& line : lines) out << QString::fromStdString(line);
    return out.join('\n');
}

}  // namespace

void ReproTest::reads_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("graph");
    QTest::addColumn<QString>("remarks");
    auto row = [](const char* name, const std::string& text, const char* graph, const char* remarks = "") {
        QTest::newRow(name) << QByteArray::fromStdString(text) << graph << remarks;
    };
    const std::string relu = "        relu = torch.ops.aten.relu.default(x);  x = None\n        return (relu,)\n";
    row("defaults (REPRO-5)",
        script("x", relu, "    buf0 = reader.storage(None, 24)\n    reader.tensor(buf0, (2, 3), is_leaf=True)  # x\n"),
        "%x: f32[2, 3]\n%relu: f32[2, 3] = aten.relu.default(%x)\nreturn (%relu)\n");
    row("strides, dtype and device",
        script("x", relu,
               "    buf0 = reader.storage(None, 24, device=device(type='cuda', index=1), dtype_hint=torch.float16)\n"
               "    reader.tensor(buf0, (2, 3), (1, 2), dtype=torch.float16, storage_offset=1)  # x\n"),
        "%x: f16[2, 3][1, 2]cuda:1\n%relu: f16[2, 3][1, 2]cuda:1 = aten.relu.default(%x)\nreturn (%relu)\n");
    row("scalar", script("x", relu, "    buf0 = reader.storage(None, 4)\n    reader.tensor(buf0, ())  # x\n"),
        "%x: f32[]\n%relu: f32[] = aten.relu.default(%x)\nreturn (%relu)\n");
    row("symbols (REPRO-6, REPRO-7)",
        script(
            "s, x", "        add = torch.ops.aten.add.Tensor(x, 1);  x = None\n        return (add, s)\n",
            "    reader.symint(5)  # s\n    buf0 = reader.storage(None, 4*s77)\n    reader.tensor(buf0, (s77, 2*s77))  # x\n",
            {}, "s77 = 5\n"),
        "%s: Sym(s77)\n%x: f32[s77, 2*s77]\n%add: f32[s77, 2*s77] = aten.add.Tensor(%x, 1, 1)\nreturn (%add, %s)\n");
    row("symbol of an ambiguous number",
        script("s", "        return (s,)\n", "    reader.symint(5)  # s\n", {}, "s77 = 5\ns3 = 5\n"),
        "%s: Sym(5)\nreturn (%s)\n", "input 's': several symbols have the value 5, so it is kept as that number");
    row("filtered and unsupported inputs",
        script(
            "a, b, x", relu,
            "    reader.const('a')  # a, filtered out during compilation\n    # b was unsupported type for dumping: <class 'list'>\n"
            "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (2,))  # x\n"),
        "%a: opaque None\n%b: opaque unsupported\n%x: f32[2]\n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu)\n",
        "input b was unsupported type for dumping: <class 'list'>");
    row("lost branches (REPRO-3)",
        script(
            "x",
            "        true_graph_0 = self.true_graph_0\n        cond = torch.ops.higher_order.cond(x, true_graph_0);  x = true_graph_0 = None\n        return (cond,)\n",
            "    buf0 = reader.storage(None, 1)\n    reader.tensor(buf0, (), dtype=torch.bool)  # x\n",
            "        self.true_graph_0 = <lambda>()\n"),
        "%x: b8[]\n%true_graph_0: opaque  = self.true_graph_0\n%cond: opaque  = higher_order.cond(%x, %true_graph_0)\nreturn (%cond)\n",
        "incomplete graph: 'true_graph_0' is a graph or module whose content was not saved (REPRO-3)");
    row("no inputs", script("", "        full = torch.ops.aten.full.default([2], 1);  return (full,)\n", "    pass\n"),
        "%full: i64[2] = aten.full.default([2], 1, None, None, None, None)\nreturn (%full)\n");
}
void ReproTest::reads() {
    QFETCH(QByteArray, text);
    QFETCH(QString, graph);
    QFETCH(QString, remarks);
    const auto file = readRepro(text.toStdString(), "repro.py", kNoStorage);
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(QString::fromStdString(graphText(*file->graphs[0].module)), graph);
    QCOMPARE(joined(file->graphs[0].module->origin.remarks), remarks);
}

void ReproTest::refuses_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("failure");
    auto row = [](const char* name, const std::string& text, const char* failure) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << failure;
    };
    const std::string relu = "        return (x,)\n";
    row("count (REPRO-11)",
        script("x, y", relu, "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (2,))  # x\n"),
        "repro.py: REPRO-11: forward takes 2 inputs, load_args reads 1");
    row("no graph (REPRO-9)", "# BackwardState\ndef load_args(reader):\n    pass\n",
        "repro.py: REPRO-9: no graph was saved in this script open the graph that was compiled, fx_graph_readable.py");
    row("archive (REPRO-10)", "exported_program = torch.export.load('m.pt2')\n",
        "repro.py: REPRO-10: the script loads an exported program open the file it names: 'm.pt2'");
    row("no storage", script("x", relu, "    reader.tensor(buf0, (2,))  # x\n"),
        "repro.py: load_args 2:5: REPRO-5: the tensor's storage is not defined");
    row("negative size", script("x", relu, "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (-2,))  # x\n"),
        "repro.py: load_args 3:5: REPRO-5: negative size, stride or offset -2");
    row("dtype",
        script("x", relu,
               "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (2,), dtype=torch.number)  # x\n"),
        "repro.py: load_args 3:5: REPRO-5: 'torch.number' is not a dtype");
}
void ReproTest::refuses() {
    QFETCH(QByteArray, text);
    QFETCH(QString, failure);
    QCOMPARE(failureOf(readRepro(text.toStdString(), "repro.py", kNoStorage)), failure);
}

void ReproTest::samplesShareStorages() {
    const auto file = readRepro(
        script(
            "a, b, i", "        return (a, b, i)\n",
            "    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (4,))  # a\n    reader.tensor(buf0, (2,), storage_offset=2)  # b\n"
            "    buf1 = reader.storage(None, 16)\n    reader.tensor(buf1, (2,), dtype=torch.int64)  # i\n"),
        "repro.py", kNoStorage);
    QCOMPARE(failureOf(file), QString());
    const auto& samples = file->graphs[0].sampleInputs;
    QCOMPARE(samples.size(), size_t{3});
    QVERIFY(samples[0].tensor()->storage() == samples[1].tensor()->storage());
    QCOMPARE(toDouble(samples[1].tensor()->item(1)), toDouble(samples[0].tensor()->item(3)));
    QVERIFY(toDouble(samples[0].tensor()->item(0)) != 0.0);
    QCOMPARE(toInt(samples[2].tensor()->item(1)), int64_t{0});
}

void ReproTest::samplesComeFromStorages() {
    auto saved = Storage::allocate(8);
    const float values[2] = {2.5f, -1.0f};
    std::memcpy(saved->data(), values, sizeof values);
    const std::string hash(40, 'a');
    std::string asked;
    const auto file =
        readRepro(script("x", "        return (x,)\n",
                         "    buf0 = reader.storage('" + hash + "', 8)\n    reader.tensor(buf0, (2,))  # x\n"),
                  "repro.py", [&](const std::string& name) {
                      asked = name;
                      return saved;
                  });
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(asked, hash);
    QCOMPARE(toDouble(file->graphs[0].sampleInputs.at(0).tensor()->item(1)), -1.0);
    // A name that is no hash never becomes part of a path.
    QVERIFY(storagesBeside("/tmp/repro.py")("../../etc/passwd") == nullptr);
}

/// The script was copied out of the folder that it saved to, to where that folder's end lies, or into it.
void ReproTest::storagesLieWhereTheScriptSaved() {
    QTemporaryDir folder;
    const std::string saved = folder.filePath("debug/run_1/minifier/checkpoints").toStdString();
    std::filesystem::create_directories(saved + "/storages");
    std::filesystem::create_directories(folder.filePath("debug/isolate").toStdString());
    const std::string hash(40, 'b');
    namespace p = pickle;
    const std::string bytes =
        p::archive(p::whole(p::tensor(p::storage(p::global("torch", "FloatStorage"), "0", 1), 0, {}, {})),
                   {{"0", std::string("\0\0\x80?", 4)}});
    QVERIFY(writeFile(saved + "/storages/" + hash, bytes));
    const auto at = [&](const char* script) { return folder.filePath(script).toStdString(); };
    const std::string elsewhere = "run_repro(mod, load_args, save_dir='/home/me/debug/run_1/minifier/checkpoints')";
    QVERIFY(storagesBeside(at("repro.py"))(hash));                           // below the script
    QVERIFY(storagesBeside(at("debug/isolate/repro.py"), elsewhere)(hash));  // the end of save_dir
    QVERIFY(!storagesBeside(at("debug/isolate/repro.py"))(hash));            // nothing says so
    QVERIFY(storagesBeside(at("debug/isolate/repro.py"), "save_dir='" + saved + "'")(hash));
    QVERIFY(!storagesBeside(at("repro.py"))(std::string(40, 'c')));
}

void ReproTest::constructorMakesTensors() {
    const auto file = readRepro(
        script(
            "x",
            "        c = self.c;  add = torch.ops.aten.add.Tensor(x, c);  p = self.p;  mm = torch.ops.aten.mm.default(add, p);  act = self.act(mm)\n        return (act, mm)\n",
            "    buf0 = reader.storage(None, 16)\n    reader.tensor(buf0, (2, 2))  # x\n",
            "        self.register_buffer('c', tensor([1., -2.]))\n        self.p = torch.nn.Parameter(torch.randn([2, 3], dtype=torch.float32))\n        self.act = ReLU(inplace=True)\n"),
        "repro.py", kNoStorage);
    QCOMPARE(failureOf(file), QString());
    const Module& module = *file->graphs[0].module;
    QCOMPARE(QString::fromStdString(module.graph().findByName("mm")->type().text()), QString("f32[2, 3]"));
    QCOMPARE(toDouble(module.tensors.at("c").item(1)), -2.0);
    QCOMPARE(QString::fromStdString(*module.graph().findByName("act")->provenance().moduleType),
             QString("ReLU(inplace=True)"));
    QCOMPARE(joined(module.origin.remarks),
             QString("the data of 'p' was not saved (REPRO-2); seeded values take its place"));
    QCOMPARE(tensorsWithoutData(module), std::vector<std::string>{"p"});
}

CUTAWAY_SUITE(ReproTest)
#include "repro_test.moc"
