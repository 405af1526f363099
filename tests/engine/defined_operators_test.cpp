// Operators that rules files define (rewrite/operator_text.h): those that Cutaway ships, compared with what PyTorch's
// packages computed, and a user's own through everything that is done with a graph.
#include <QDir>
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/operator_files.h"
#include "cutaway/request.h"
#include "tests/support/paths.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr const char* kRules = R"(# two ways to compute it
operator mylib::scale_add(Tensor x, Tensor y, float alpha=1.0, Tensor? bias=None) -> Tensor
  why it is what mylib's kernel computes
  computes when bias is None
    s = torch.add(y, x, alpha=alpha)
    return s
  computes
    s = torch.add(y, x, alpha=alpha)
    t = s + bias
    return t

operator mylib::halves(Tensor[] parts, SymInt[] sizes) -> (Tensor, Tensor)
  computes
    whole = torch.cat(parts)
    shaped = whole.reshape(sizes)
    low = mylib.scale_add.default(shaped, shaped, 0.5)
    high = torch.tanh(shaped)
    return low, high
)";
constexpr const char* kModel = R"(def forward(x: "f32[4, 8]", y: "f32[8]", w: "f32[8]"):
    a = torch.ops.mylib.scale_add.default(x, y, 2.5)
    b = torch.ops.mylib.scale_add.default(a, y, 0.5, bias = w)
    h = torch.ops.mylib.halves.default([b, x], [8, 8])
    l = h[0]
    m = h[1]
    c = torch.ops.aten.add.Tensor(l, m)
    return (c,)
)";
/// The same in operators that the tables have.
constexpr const char* kPlain = R"(def forward(x: "f32[4, 8]", y: "f32[8]", w: "f32[8]"):
    a = torch.ops.aten.add.Tensor(y, x, alpha = 2.5)
    s = torch.ops.aten.add.Tensor(y, a, alpha = 0.5)
    b = torch.ops.aten.add.Tensor(s, w)
    whole = torch.ops.aten.cat.default([b, x])
    shaped = torch.ops.aten.view.default(whole, [8, 8])
    l = torch.ops.aten.add.Tensor(shaped, shaped, alpha = 0.5)
    m = torch.ops.aten.tanh.default(shaped)
    c = torch.ops.aten.add.Tensor(l, m)
    return (c,)
)";

QString recursiveRules(const QString& inner) {
    return "operator a::f(Tensor x) -> Tensor\n  computes\n    y = " + inner + "\n    return y\n";
}

}  // namespace

class DefinedOperatorsTest : public QObject {
    Q_OBJECT

  private slots:
    void init() {
        QVERIFY(m_folder.isValid());
        write("mine.txt", kRules);
        write("model.py", kModel);
        write("plain.py", kPlain);
        write("wrong.txt",
              "rule tanh_is_sin\n  place joint_custom_post_pass\n  find\n    s = aten.tanh.default(x)\n    return "
              "s\n  replace\n    s = aten.sin.default(x)\n    return s\n");
    }

    void shipped_data() {
        QTest::addColumn<QString>("name");
        for (const QString& name : QDir(testFile("data/operators")).entryList({"*.py"}))
            QTest::newRow(qPrintable(name)) << name.chopped(3);
    }
    void shipped() {
        QFETCH(QString, name);
        for (const char* backend : {"reference", "cpu"}) {
            const Ended ended = runShell(
                testFile("data/operators"),
                QString(
                    "cutaway-cli run %1.py --cache off --inputs %1.inputs.safetensors --expect %1.expected.safetensors --backend %2")
                    .arg(name, backend));
            QVERIFY2(ended.status == 0, qPrintable(ended.err + ended.out));
        }
    }

    void everywhere_data() {
        QTest::addColumn<QString>("command");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const char* command, const char* says) {
            QTest::newRow(name) << command << says;
        };
        row("interpreted", "run model.py --cache off --rules mine.txt", "");
        row("compiled", "run model.py --cache off --backend cpu --rules mine.txt", "");
        row("differentiated", "run model.py --cache off --mode training --grad x --rules mine.txt", "gradients:");
        row("differentiated, compiled",
            "run model.py --cache off --backend cpu --mode training --grad x --rules mine.txt", "gradients:");
        row("forward mode", "run model.py --cache off --mode jvp --rules mine.txt", "c.tangent");
        row("checked", "checked-run model.py --rules mine.txt", "no value diverges");
        row("written out by a pass", "steps model.py --rewrites --rules mine.txt", "mylib.scale_add.default");
        row("explained", "explain model.py --rules mine.txt --node c", "c");
        row("exported", "export model.py --rules mine.txt -o exported", "exported");
        row("minified",
            "minify model.py --rules mine.txt --rules wrong.txt --check numbers -o small && cat small/best/*",
            "mylib.halves.default(");
        row("bisected", "bisect model.py --rules mine.txt --rules wrong.txt", "tanh_is_sin");
        row("compiled alone",
            "compile-op mylib::scale_add --arg 'f32[2, 3]' --arg 'f32[3]' --arg 2.0 --cache operators",
            "mylib::scale_add");
        row("listed", "operators", "mylib.halves.default");
        row("checked as a file", "operators --check mine.txt", "mylib.scale_add.default");
        row("rules again", "rules --rules mine.txt", "operator mylib::halves");
    }
    void everywhere() {
        QFETCH(QString, command);
        QFETCH(QString, says);
        const QString folder = m_folder.path();
        // The result as the same graph gives it in operators of the tables.
        if (says.isEmpty()) says = resultOf(runShell(folder, "cutaway-cli run plain.py --cache off").out);
        const bool fromFolder = !command.contains("--rules");
        const Ended ended = runShell(
            folder, (fromFolder ? "CUTAWAY_OPERATORS=" + folder + "/mine.txt " : QString()) + "cutaway-cli " + command);
        QVERIFY2(ended.status == 0, qPrintable(ended.err + ended.out));
        QVERIFY2(ended.out.contains(says.toUtf8()), qPrintable(ended.out));
    }

    void folders() {
        const QString folder = m_folder.path();
        // Beside the model nothing is read, and neither is from a relative path.
        for (const char* where : {"", "CUTAWAY_OPERATORS=mine.txt "}) {
            const Ended ended = runShell(folder, where + QString("cutaway-cli run model.py --cache off"));
            QCOMPARE(ended.status, 1);
            QVERIFY2(ended.err.contains("mylib"), qPrintable(ended.err));
        }
        const Ended info = runShell(folder, "CUTAWAY_OPERATORS=mine.txt cutaway-cli info model.py");
        QVERIFY2(info.out.contains("it is not an absolute path"), qPrintable(info.out));
        // The user's own, and a file that is wrong beside it.
        QVERIFY(QDir(folder).mkpath("data/cutaway/operators"));
        write("data/cutaway/operators/mine.txt", kRules);
        write("data/cutaway/operators/wrong.txt", "operator b::g(Tensor x) -> Tensor\n");
        const Ended run = runShell(folder, "XDG_DATA_HOME=$PWD/data cutaway-cli run model.py --cache off");
        QVERIFY2(run.status == 0, qPrintable(run.err));
        const Ended listed = runShell(folder, "XDG_DATA_HOME=$PWD/data cutaway-cli operators");
        QVERIFY2(listed.out.contains("mylib.halves.default  user: "), qPrintable(listed.out));
        QVERIFY2(listed.err.contains("wrong.txt, line 1: b.g.default does not say what it computes"),
                 qPrintable(listed.err));
    }

    void keys() {
        const QString folder = m_folder.path();
        const QString run = "CUTAWAY_OPERATORS=$PWD/mine.txt cutaway-cli %1 model.py --cache kept";
        QCOMPARE(runShell(folder, run.arg("run --backend cpu")).status, 0);
        QVERIFY(runShell(folder, run.arg("cache why")).out.contains("it is in the cache"));
        write("mine.txt", QString(kRules).replace("shaped, 0.5", "shaped, 0.75"));
        const Ended why = runShell(folder, run.arg("cache why"));
        QVERIFY2(why.out.contains("request"), qPrintable(why.out));
    }

    void starts() {
        write("unknown.py",
              "def forward(x: \"f32[4]\", n: \"i64[2]\"):\n"
              "    a: \"f32[4]\" = torch.ops.other.f.default(x, [1, 2], n, mode = 'sum', eps = 1.5)\n"
              "    b: \"f32[4]\" = torch.ops.other.f.default(a, [3], None, mode = 'sum')\n"
              "    return (b,)\n");
        const Ended ended = runShell(m_folder.path(),
                                     "cutaway-cli operators --start unknown.py > start.txt; cat start.txt; "
                                     "cutaway-cli operators --check start.txt; "
                                     "cutaway-cli run unknown.py --cache off --rules start.txt");
        QVERIFY2(ended.status == 0, qPrintable(ended.err + ended.out));
        QVERIFY2(ended.out.contains(
                     "operator other::f.default(Tensor a0, int[] a1, Tensor? a2, str mode, float? eps=None) -> Tensor"),
                 qPrintable(ended.out));
    }

    void refused_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const QString& text, const char* says) {
            QTest::newRow(name) << text << says;
        };
        const QString body = "  computes\n    y = torch.neg(x)\n    return y\n";
        row("no namespace", "operator f(Tensor x) -> Tensor\n" + body, "'f' names no operator with its namespace");
        row("no schema", "operator a::f\n" + body, "no parameter list");
        row("an unknown type", "operator a::f(Tensr x) -> Tensor\n" + body, "unknown type 'Tensr'");
        row("an alias set that does not end", "operator a::f(Tensor(\n" + body, "alias set does not end");
        row("in place", "operator a::f(Tensor(a!) x) -> Tensor(a!)\n" + body, "writes to what it is given");
        row("nothing", "operator a::f(Tensor x) -> ()\n" + body, "returns nothing");
        row("a number", "operator a::f(Tensor x) -> int\n" + body, "returns what is not a tensor");
        row("no body", "operator a::f(Tensor x) -> Tensor\n", "line 1: a.f.default does not say what it computes");
        row("no return", "operator a::f(Tensor x) -> Tensor\n  computes\n    y = torch.neg(x)\n",
            "line 2: the statements of a.f.default do not end with a 'return'");
        row("a property", "operator a::f(Tensor x) -> Tensor\n  replace\n" + body,
            "no property 'replace' of an operator");
        row("twice", ("operator a::f(Tensor x) -> Tensor\n" + body).repeated(2), "defined twice; first in line 1");
        row("of the tables", "operator aten::relu(Tensor x) -> Tensor\n" + body, "is an operator that Cutaway knows");
        row("an unknown name", recursiveRules("torch.neg(z)"), "line 3: ");
        row("an unknown operator", recursiveRules("b.g.default(x)"),
            "it calls 'b.g.default', which is not an operator");
        row("an unknown function", recursiveRules("torch.nosuch(x)"), "it calls 'torch.nosuch'");
        row("itself", recursiveRules("a.f.default(x)"), "its definition leads back to itself");
        row("itself, by another",
            recursiveRules("b.g.default(x)") + recursiveRules("a.f.default(x)").replace("a::f", "b::g"),
            "its definition leads back to itself");
        row("a condition", "operator a::f(Tensor x) -> Tensor\n  computes when x is\n    return x\n",
            "line 2: a condition reads");
        row("a condition of nothing", "operator a::f(Tensor x) -> Tensor\n  computes when z is None\n    return x\n",
            "'z' is not a parameter of the schema");
        row("never reached", "operator a::f(Tensor x) -> Tensor\n" + body + "  computes when x is None\n    return x\n",
            "is never reached");
    }
    void refused() {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto made = checkOperators(text.toStdString(), "mine.txt");
        QVERIFY(!made);
        const QString error = QString::fromStdString(made.error().text());
        QVERIFY2(error.contains(says), qPrintable(error));
        QVERIFY2(error.contains("mine.txt"), qPrintable(error));
    }

    void refusedCalls_data() {
        QTest::addColumn<QString>("rules");
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("says");
        const QString head = "operator a::f(Tensor x, int n=0) -> Tensor\n";
        const auto row = [&](const char* name, const QString& body, const char* call, const char* says) {
            QTest::newRow(name) << head + body << call << says;
        };
        row("a missing argument", "  computes\n    y = torch.neg(x)\n    return y\n", "y: \"f32[4]\" = a.f.default()",
            "argument 'x' is missing");
        row("a case that nobody wrote", "  computes when n == 1\n    y = torch.neg(x)\n    return y\n",
            "y: \"f32[4]\" = a.f.default(x, 2)", "no 'computes when' of its definition in mine, line 1 holds");
        row("another type than the file's", "  computes\n    y = x.to(torch.float64)\n    return y\n",
            "y: \"f32[4]\" = a.f.default(x)", "its definition gives f64[4], the file says f32[4]");
        row("shapes that do not fit", "  computes\n    y = torch.mm(x, x)\n    return y\n",
            "y: \"f32[4]\" = a.f.default(x)", "a.f.default: ");
        row("more results than the schema", "  computes\n    y = torch.neg(x)\n    return y, x\n",
            "y: \"f32[4]\" = a.f.default(x)", "returns 2 values, the schema 1");
    }
    void refusedCalls() {
        QFETCH(QString, rules);
        QFETCH(QString, call);
        QFETCH(QString, says);
        write("mine.txt", rules);
        write("call.py", "def forward(x: \"f32[4]\"):\n    " + call + "\n    return (y,)\n");
        const Ended ended = runShell(m_folder.path(), "cutaway-cli run call.py --cache off --rules mine.txt");
        QCOMPARE(ended.status, 1);
        QVERIFY2(ended.err.contains(says.toUtf8()), qPrintable(ended.err));
    }

  private:
    /// The line of a report that says what c is like.
    static QString resultOf(const QByteArray& report) {
        for (const QByteArray& line : report.split('\n'))
            if (line.startsWith("  c ")) return line;
        return "no result";
    }
    void write(const QString& name, const QString& text) {
        QFile file(m_folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text.toUtf8());
    }

    QTemporaryDir m_folder;
};

CUTAWAY_SUITE(DefinedOperatorsTest)
#include "defined_operators_test.moc"
