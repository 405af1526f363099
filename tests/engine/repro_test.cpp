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
    row("defaults",
        script("x", relu, "    buf0 = reader.storage(None, 24)\n    reader.tensor(buf0, (2, 3), is_leaf=True)  # x\n"),
        "%x: f32[2, 3]\n%relu: f32[2, 3] = aten.relu.default(%x)\nreturn (%relu)\n");
    row("strides, dtype and device",
        script("x", relu,
               "    buf0 = reader.storage(None, 24, device=device(type='cuda', index=1), dtype_hint=torch.float16)\n"
               "    reader.tensor(buf0, (2, 3), (1, 2), dtype=torch.float16, storage_offset=1)  # x\n"),
        "%x: f16[2, 3][1, 2]cuda:1\n%relu: f16[2, 3][1, 2]cuda:1 = aten.relu.default(%x)\nreturn (%relu)\n");
    row("scalar", script("x", relu, "    buf0 = reader.storage(None, 4)\n    reader.tensor(buf0, ())  # x\n"),
        "%x: f32[]\n%relu: f32[] = aten.relu.default(%x)\nreturn (%relu)\n");
    row("symbols",
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
    row("lost branches",
        script(
            "x",
            "        true_graph_0 = self.true_graph_0\n        cond = torch.ops.higher_order.cond(x, true_graph_0);  x = true_graph_0 = None\n        return (cond,)\n",
            "    buf0 = reader.storage(None, 1)\n    reader.tensor(buf0, (), dtype=torch.bool)  # x\n",
            "        self.true_graph_0 = <lambda>()\n"),
        "%x: b8[]\n%true_graph_0: opaque  = self.true_graph_0\n%cond: opaque  = higher_order.cond(%x, %true_graph_0)\nreturn (%cond)\n",
        "incomplete graph: 'true_graph_0' is a graph or module whose content was not saved");
    // Graphs as classes in front, as PyTorch 2.15 writes them; what they return is known from what they are given.
    const auto graphClass = [](const std::string& name, const std::string& inputs, const std::string& body) {
        return "class " + name +
               "(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n\n    def forward(self, " +
               inputs + "):\n" + body + "\n\n";
    };
    const std::string input = "    buf0 = reader.storage(None, 24)\n    reader.tensor(buf0, (2, 3))  # x\n";
    const std::string sine = "        s = torch.ops.aten.sin.default(a);  a = None\n        return (s,)\n";
    row("the graphs of cond",
        script(
            "x",
            "        yes = self.yes\n        no = self.no\n        gt = torch.ops.aten.gt.Scalar(x, 0)\n"
            "        any_1 = torch.ops.aten.any.default(gt);  gt = None\n"
            "        cond = torch.ops.higher_order.cond(any_1, yes, no, (x,));  any_1 = yes = no = x = None\n"
            "        y = cond[0];  cond = None\n        z = torch.ops.aten.sum.default(y);  y = None\n        return (z,)\n",
            input, "        self.yes = yes_0_0()\n        self.no = no_0_1()\n",
            graphClass("yes_0_0", "a", sine) + graphClass("no_0_1", "a", "        return (a,)\n")),
        "%x: f32[2, 3]\n%gt: b8[2, 3] = aten.gt.Scalar(%x, 0)\n%any_1: b8[] = aten.any.default(%gt)\n"
        "%cond: (f32[2, 3]) = higher_order.cond(%any_1, @yes, @no, (%x))\n%y: f32[2, 3] = operator.getitem(%cond, 0)\n"
        "%z: f32[] = aten.sum.default(%y, None)\nreturn (%z)\n");
    row("the graph of a scan, which calls another",
        script("x",
               "        step = self.step\n        zero = torch.ops.aten.full.default([3], 0.0)\n"
               "        scan = torch.ops.higher_order.scan(step, [zero], [x], ());  step = zero = x = None\n"
               "        y = scan[1];  scan = None\n        return (y,)\n",
               input, "        self.step = step_0_1()\n",
               graphClass("inner_0_0", "a", sine) +
                   "class step_0_1(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n"
                   "        self.inner = inner_0_0()\n\n    def forward(self, c, v):\n        inner = self.inner\n"
                   "        w = torch.ops.higher_order.invoke_subgraph(inner, 'inner', v);  inner = None\n"
                   "        s = w[0];  w = None\n        t = torch.ops.aten.add.Tensor(c, s);  c = s = None\n"
                   "        u = torch.ops.aten.to.dtype(v, torch.float64);  v = None\n        return (t, u)\n\n"),
        "%x: f32[2, 3]\n%zero: f32[3] = aten.full.default([3], f0, None, None, None, None)\n"
        "%scan: (f32[3], f64[2, 3]) = higher_order.scan(@step, [%zero], [%x], ())\n"
        "%y: f64[2, 3] = operator.getitem(%scan, 1)\nreturn (%y)\n");
    row("the graphs of a while_loop, and of a map",
        script(
            "x",
            "        go = self.go\n        body = self.body\n        row = self.row\n"
            "        w = torch.ops.higher_order.while_loop(go, body, (x,), ());  go = body = x = None\n"
            "        a = w[0];  w = None\n        m = torch.ops.higher_order.map_impl(row, [a], []);  row = a = None\n"
            "        b = m[0];  m = None\n        return (b,)\n",
            input, "        self.go = go_0_0()\n        self.body = body_0_1()\n        self.row = row_0_2()\n",
            graphClass("go_0_0", "a",
                       "        l = torch.ops.aten.lt.Scalar(a, 1);  a = None\n"
                       "        y = torch.ops.aten.all.default(l);  l = None\n        return y\n") +
                graphClass("body_0_1", "a", sine) +
                graphClass("row_0_2", "a",
                           "        t = torch.ops.aten.sum.default(a);  a = None\n        return (t,)\n")),
        "%x: f32[2, 3]\n%w: (f32[2, 3]) = higher_order.while_loop(@go, @body, (%x), ())\n"
        "%a: f32[2, 3] = operator.getitem(%w, 0)\n%m: (f32[2]) = higher_order.map_impl(@row, [%a], [])\n"
        "%b: f32[2] = operator.getitem(%m, 0)\nreturn (%b)\n");
    row("the score and the mask of flex_attention",
        script(
            "q, t",
            "        score = self.score\n        mask = self.mask\n"
            "        f = torch.ops.higher_order.flex_attention(q, q, q, score, (4, 4, None, mask), 0.5, {}, (t,), ());  q = t = None\n"
            "        y = f[0];  f = None\n        return (y,)\n",
            "    buf0 = reader.storage(None, 64)\n    reader.tensor(buf0, (1, 2, 4, 2), dtype=torch.bfloat16)  # q\n"
            "    buf1 = reader.storage(None, 16)\n    reader.tensor(buf1, (4,))  # t\n",
            "        self.score = score_0_0()\n        self.mask = mask_0_1()\n",
            graphClass("score_0_0", "s, b, h, m, n, t",
                       "        i = torch.ops.aten.index.Tensor(t, [m]);  t = m = None\n"
                       "        a = torch.ops.aten.add.Tensor(s, i);  s = i = None\n        return a\n") +
                graphClass("mask_0_1", "b, h, m, n",
                           "        g = torch.ops.aten.ge.Tensor(m, n);  m = n = None\n        return g\n")),
        "%q: bf16[1, 2, 4, 2]\n%t: f32[4]\n%f: (bf16[1, 2, 4, 2], f32[1, 2, 4], f32[1, 2, 4]) = "
        "higher_order.flex_attention(%q, %q, %q, @score, (4, 4, None, @mask), f0.5, {}, (%t), ())\n"
        "%y: bf16[1, 2, 4, 2] = operator.getitem(%f, 0)\nreturn (%y)\n");
    row("no inputs", script("", "        full = torch.ops.aten.full.default([2], 1);  return (full,)\n", "    pass\n"),
        "%full: i64[2] = aten.full.default([2], 1, None, None, None, None)\nreturn (%full)\n");
}
void ReproTest::reads() {
    QFETCH(QByteArray, text);
    QFETCH(QString, graph);
    QFETCH(QString, remarks);
    const auto file = readRepro(text.toStdString(), "repro.py", kNoStorage);
    QCOMPARE(failureOf(file), QString());
    const QString read = QString::fromStdString(graphText(*file->graphs[0].module));
    const auto bodies = read.indexOf("\n@");
    QCOMPARE(bodies < 0 ? read : read.left(bodies + 1), graph);
    QVERIFY2(bodies < 0 || !read.mid(bodies).contains("opaque"), qPrintable(read));
    QCOMPARE(joined(file->graphs[0].module->origin.remarks), remarks);
}

void ReproTest::refuses_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("failure");
    auto row = [](const char* name, const std::string& text, const char* failure) {
        QTest::newRow(name) << QByteArray::fromStdString(text) << failure;
    };
    const std::string relu = "        return (x,)\n";
    row("count", script("x, y", relu, "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (2,))  # x\n"),
        "repro.py: forward takes 2 inputs, load_args reads 1");
    row("no graph", "# BackwardState\ndef load_args(reader):\n    pass\n",
        "repro.py: no graph was saved in this script open the graph that was compiled, fx_graph_readable.py");
    row("archive", "exported_program = torch.export.load('m.pt2')\n",
        "repro.py: the script loads an exported program open the file it names: 'm.pt2'");
    row("no storage", script("x", relu, "    reader.tensor(buf0, (2,))  # x\n"),
        "repro.py: load_args 2:5: the tensor's storage is not defined");
    row("negative size", script("x", relu, "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (-2,))  # x\n"),
        "repro.py: load_args 3:5: negative size, stride or offset -2");
    row("dtype",
        script("x", relu,
               "    buf0 = reader.storage(None, 8)\n    reader.tensor(buf0, (2,), dtype=torch.number)  # x\n"),
        "repro.py: load_args 3:5: 'torch.number' is not a dtype");
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
    // A name that is not a hash never becomes part of a path.
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
    QCOMPARE(joined(module.origin.remarks), QString("the data of 'p' was not saved; seeded values take its place"));
    QCOMPARE(tensorsWithoutData(module), std::vector<std::string>{"p"});
}

CUTAWAY_SUITE(ReproTest)
#include "repro_test.moc"
