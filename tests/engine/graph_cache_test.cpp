// Compiled graphs that are kept: what they depend on, each ingredient by itself; that what is read computes the same to
// the bit; and that neither damage nor kills nor a full cache cost more than a compile.
#include "cutaway/graph_cache.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>
#include <set>

#include "cutaway/version.h"
#include "engine/cache/build_id.h"
#include "engine/cache/graph_key.h"
#include "engine/cache/sealed_folder.h"
#include "engine/formats/safetensors.h"
#include "engine/support/threads.h"
#include "engine/text/parse.h"
#include "tests/support/cache_entries.h"
#include "tests/support/paths.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::contentOf;
using cutaway::testing::inWords;
using cutaway::testing::wholeEntries;
using cutaway::testing::writeBytes;

namespace {

constexpr const char* kPlain = R"(# symbol s0: lower=1, upper=64, hint=4
def forward(self, x: "f32[s0, 6]", w: "f32[6, 5]"):
    mm: "f32[s0, 5]" = torch.ops.aten.mm.default(x, w)
    add: "f32[s0, 5]" = torch.ops.aten.add.Tensor(mm, 1.5)
    relu: "f32[s0, 5]" = torch.ops.aten.relu.default(add)
    cat: "f32[s0, 10]" = torch.ops.aten.cat.default([relu, add], 1)
    return (cat, relu)
)";

CompileRequest requested(const QString& text) {
    auto request = parseRequest(text.toStdString());
    if (!request) qFatal("%s", request.error().text().c_str());
    return *request;
}

}  // namespace

class GraphCacheTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QTemporaryDir> m_folder;

    QString in(const QString& name) const { return m_folder->filePath(name); }
    std::string store() const { return in("cache/store.sqlite").toStdString(); }
    CompileHooks hooks() const { return {.cacheFile = store()}; }
    QString plain(const QString& text = kPlain, const QString& name = "plain.py") const {
        writeBytes(in(name), text.toUtf8());
        return in(name);
    }
    struct Made {
        std::unique_ptr<Session> session = std::make_unique<Session>();
        RunId run = 0;
        CacheUse use;
    };
    Made made(const QString& model, const QString& request = {}) const {
        Made all;
        if (const auto opened = all.session->open(model.toStdString()); !opened)
            qFatal("%s", opened.error().text().c_str());
        const auto run = compileToRun(*all.session, requested(request), hooks(), all.use);
        if (!run) qFatal("%s", run.error().text().c_str());
        all.run = *run;
        return all;
    }
    /// Results of a run, as the report's numbers.
    QString ran(Made& of, const QString& inputs = {}) const {
        RunOptions options;
        options.backend = Backend::Cpu;
        options.inputsFile = inputs.toStdString();
        const auto report = of.session->run(of.run, options);
        if (!report) return QString::fromStdString(report.error().text());
        QString text;
        for (const auto* list : {&report->outputs, &report->written})
            for (const OutputReport& output : *list)
                text += QString("%1 %2 %3 %4 %5\n")
                            .arg(QString::fromStdString(output.name), QString::fromStdString(output.type))
                            .arg(output.minimum, 0, 'g', 17)
                            .arg(output.maximum, 0, 'g', 17)
                            .arg(output.mean, 0, 'g', 17);
        return text;
    }
    CachedGraphs listed(bool verify = false) const {
        auto list = cachedGraphs(store(), verify);
        if (!list) qFatal("%s", list.error().text().c_str());
        return std::move(*list);
    }
    QString folderOf(const CacheUse& use) const { return in("cache/graphs/") + QString::fromStdString(use.key); }
    int entries(int* unfinished = nullptr) const { return wholeEntries(in("cache/graphs"), unfinished); }
    static QString cli() { return cutaway::testing::builtProgram("cutaway-cli"); }

  private slots:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void ingredients_data() {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("by");
        QTest::addColumn<QString>("differs");
        QTest::newRow("nothing") << ""
                                 << ""
                                 << "";
        QTest::newRow("names of inner values") << "mm"
                                               << "product"
                                               << "";
        QTest::newRow("an operator") << "relu.default"
                                     << "sigmoid.default"
                                     << "graph";
        QTest::newRow("a literal") << "1.5"
                                   << "1.25"
                                   << "graph";
        QTest::newRow("an integer for a float") << "1.5"
                                                << "1"
                                                << "graph";
        QTest::newRow("an operand") << "[relu, add]"
                                    << "[add, relu]"
                                    << "graph";
        QTest::newRow("what is returned") << "return (cat, relu)"
                                          << "return (relu, cat)"
                                          << "graph;inputs and outputs";
        QTest::newRow("a size") << ", 5]"
                                << ", 8]"
                                << "graph";
        QTest::newRow("a dtype") << "f32"
                                 << "f64"
                                 << "graph";
        QTest::newRow("strides") << "w: \"f32[6, 5]\""
                                 << "w: \"f32[6, 5][1, 6]\""
                                 << "graph";
        QTest::newRow("the name of an input") << "w"
                                              << "weight"
                                              << "inputs and outputs";
        QTest::newRow("the name of an output") << "cat:"
                                               << "joined:"
                                               << "inputs and outputs";
        QTest::newRow("a bound of a size") << "upper=64"
                                           << "upper=32"
                                           << "size symbols";
        QTest::newRow("an example of a size") << "hint=4"
                                              << "hint=8"
                                              << "size symbols";
    }
    /// A change of one thing changes its ingredient and the key.
    void ingredients() {
        QFETCH(QString, what);
        QFETCH(QString, by);
        QFETCH(QString, differs);
        QString text = kPlain;
        if (!what.isEmpty()) {
            const bool word = what[0].isLetter() && !what.contains(QRegularExpression("[^a-z]"));
            text.replace(QRegularExpression(word ? "\\b" + what + "\\b(?!\\.)" : QRegularExpression::escape(what)), by);
            if (what == "cat:") text.replace("(cat,", "(joined,");
            QVERIFY(text != kPlain);
        }
        const auto before = parseText(kPlain), after = parseText(text.toStdString());
        QVERIFY2(after.has_value(), after ? "" : after.error().text().c_str());
        const auto a = graphIngredients(**before, "v"), b = graphIngredients(**after, "v");
        QStringList found;
        for (size_t i = 0; i < a.size(); ++i)
            if (a[i].digest != b[i].digest) found << QString::fromStdString(a[i].name);
        QCOMPARE(found.join(';'), differs);
        QCOMPARE(keyOf(a) == keyOf(b), differs.isEmpty());
        QCOMPARE(parseIngredients(ingredientsText(a)).size(), a.size());
        QCOMPARE(differenceCount(a, parseIngredients(ingredientsText(b))), size_t(found.size()));
    }

    /// An element, a name, which memory is shared: all of it counts.
    void constants() {
        const auto module = parseText(kPlain);
        const auto digest = [&] {
            const auto values = constantValues(**module);
            return graphIngredients(**module, values ? *values : values.error().text())[3].digest;
        };
        const Tensor a = Tensor::zeros(DType::F32, {4}), b = Tensor::zeros(DType::F32, {4});
        (*module)->tensors = {{"a", a}, {"b", b}};
        std::set<std::string> seen = {digest()};
        QCOMPARE(*seen.begin(), digest());
        static_cast<float*>((*module)->tensors["b"].data())[2] = 1;
        seen.insert(digest());
        (*module)->tensors["b"] = a;
        seen.insert(digest());
        (*module)->tensors = {{"a", a}, {"c", a}};
        seen.insert(digest());
        (*module)->tensors["c"] = a.view({2, 2}, {2, 1}, 0);
        seen.insert(digest());
        QCOMPARE(seen.size(), size_t{5});
    }

    void others_data() {
        QTest::addColumn<QString>("variable");
        QTest::addColumn<QString>("request");
        QTest::addColumn<QString>("says");
        QTest::newRow("an option") << ""
                                   << "--freeze"
                                   << "the request is another: --freeze, not (none)";
        QTest::newRow("a pass that is off") << ""
                                            << "--disable decompose"
                                            << "the request is another";
        QTest::newRow("a setting") << ""
                                   << "--enable fusion=max_nodes:8"
                                   << "the request is another";
        QTest::newRow("the compiler") << "CXX=g++ -DX"
                                      << ""
                                      << "the compiler and processor is another";
        QTest::newRow("oneDNN's instructions") << "ONEDNN_MAX_CPU_ISA=AVX2"
                                               << ""
                                               << "the environment is another: ONEDNN_MAX_CPU_ISA=AVX2, not";
        QTest::newRow("nothing") << ""
                                 << ""
                                 << "";
    }
    /// What is not part of the graph; the sentence names it.
    void others() {
        QFETCH(QString, variable);
        QFETCH(QString, request);
        QFETCH(QString, says);
        QVERIFY(QFile::copy(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2", in("mlp.pt2")));
        QVERIFY(!made(in("mlp.pt2")).use.found);
        const QByteArray name = variable.section('=', 0, 0).toLatin1(), value = variable.section('=', 1).toLatin1();
        const QByteArray kept = qgetenv(name.constData());
        if (!name.isEmpty()) qputenv(name.constData(), value);
        Session session;
        const auto opened = session.open(in("mlp.pt2").toStdString());
        const auto why = opened ? whyCached(session, requested(request), hooks()) : Result<CacheUse>(opened.error());
        if (!name.isEmpty()) kept.isNull() ? qunsetenv(name.constData()) : qputenv(name.constData(), kept);
        QVERIFY2(why.has_value(), why ? "" : why.error().text().c_str());
        QCOMPARE(why->found, says.isEmpty());
        QVERIFY2(QString::fromStdString(why->why).contains(says), why->why.c_str());
        // One ingredient alone.
        QCOMPARE(QString::fromStdString(why->why).count(';'), 0);
    }

    /// The engine, its build and its threads are those of this program; another number of threads misses.
    void circumstancesOfThisProgram() {
        const Made first = made(plain());
        const auto there = parseIngredients(contentOf(folderOf(first.use) + "/ingredients").toStdString());
        const auto is = [&](const char* name, const std::string& all) {
            return std::any_of(there.begin(), there.end(), [&](const Ingredient& one) {
                return one.name == name && one.digest == ingredient(name, all, {}).digest;
            });
        };
        QVERIFY(is("engine", buildId()) && is("build", buildText()));
        QVERIFY(is("number of threads", std::to_string(threadCount())));
        const QString why = "cutaway-cli cache why plain.py --cache cache/store.sqlite";
        const auto other =
            testing::runShell(m_folder->path(), "OMP_NUM_THREADS=" + QString::number(threadCount() + 1) + " " + why);
        QVERIFY2(other.out.contains("number of threads"), other.out + other.err);
    }

    void models_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("request");
        for (const char* name : {"mlp", "tiny_resnet", "tiny_transformer"})
            for (const char* request : {"", "--freeze"})
                QTest::addRow("%s %s", name, request)
                    << QString(CUTAWAY_SOURCE_DIR "/resources/models/%1.pt2").arg(name) << request;
        QTest::newRow("a buffer that is written to") << QString(CUTAWAY_SOURCE_DIR "/tests/data/counter.pt2") << "";
        QTest::newRow("sizes") << "plain"
                               << "";
    }
    /// What is read computes the same, and knows its kernels.
    void models() {
        QFETCH(QString, model);
        QFETCH(QString, request);
        if (model == "plain") model = plain();
        Made first = made(model, request);
        QVERIFY(!first.use.found);
        QCOMPARE(inWords(first.use.remarks), QString());
        QVERIFY2(first.use.why == "the cache has no compiled graph yet", first.use.why.c_str());
        const QString results = ran(first);
        Made second = made(model, request);
        QVERIFY2(second.use.found, second.use.why.c_str());
        QCOMPARE(second.use.key, first.use.key);
        QCOMPARE(ran(second), results);
        QCOMPARE(second.session->steps(second.run)->size(), size_t{1});
        const auto a = first.session->build(first.run, Target::Cpu), b = second.session->build(second.run, Target::Cpu);
        QCOMPARE(b->source, a->source);
        QCOMPARE(b->kernels.size(), a->kernels.size());
        for (size_t i = 0; i < a->kernels.size(); ++i) {
            QCOMPARE(b->kernels[i].kind, a->kernels[i].kind);
            QCOMPARE(b->kernels[i].nodes.size(), a->kernels[i].nodes.size());
        }
        if (!model.endsWith("plain.py")) return;
        // One entry serves all sizes.
        for (const int64_t rows : {1, 17}) {
            QVERIFY(writeSafeTensors(
                in("in.safetensors").toStdString(),
                {{{"x", Tensor::full(DType::F32, {rows, 6}, 0.5)}, {"w", Tensor::full(DType::F32, {6, 5}, 2.0)}}, {}}));
            QVERIFY2(ran(second, in("in.safetensors")).contains(QString("f32[%1, 10]").arg(rows)),
                     qPrintable(ran(second, in("in.safetensors"))));
            QCOMPARE(ran(second, in("in.safetensors")), ran(first, in("in.safetensors")));
        }
        const CachedGraphs list = listed();
        QCOMPARE(list.entries.size(), size_t{1});
        QCOMPARE(list.entries[0].hits, 1);
        QCOMPARE(list.entries[0].model, std::string("plain.py"));
        QVERIFY(list.entries[0].bytes > 1000 && list.bytes == list.entries[0].bytes);
        QVERIFY(list.limit == int64_t{2} << 30);
    }

    void notKept_data() {
        QTest::addColumn<QString>("request");
        QTest::addColumn<QString>("says");
        QTest::newRow("training") << "--mode training"
                                  << "only runs for inference are kept";
        QTest::newRow("a GPU") << "--device cuda"
                               << "runs for a GPU are not kept";
        QTest::newRow("no schedule") << "--passes-only"
                                     << "the run ends before there is a program";
    }
    void notKept() {
        QFETCH(QString, request);
        QFETCH(QString, says);
        Session session;
        QVERIFY(session.open(plain().toStdString()));
        CacheUse use;
        static_cast<void>(compileToRun(session, requested(request), hooks(), use));
        QCOMPARE(QString::fromStdString(use.why), says);
        QVERIFY(!QDir(in("cache/graphs")).exists());
        QVERIFY(compileToRun(session, {}, {.cacheFile = "off"}, use).has_value());
        QCOMPARE(use.why, std::string("the cache is off"));
        const QByteArray home = qgetenv("HOME"), cache = qgetenv("XDG_CACHE_HOME");
        qunsetenv("HOME");
        qunsetenv("XDG_CACHE_HOME");
        const bool compiled = compileToRun(session, {}, {}, use).has_value();
        qputenv("HOME", home);
        if (!cache.isNull()) qputenv("XDG_CACHE_HOME", cache);
        QVERIFY(compiled);
        QCOMPARE(use.why, std::string("there is no home for a cache"));
        QVERIFY(use.remarks.empty());
    }

    void damage_data() {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("says");
        for (const char* file : {"graph", "program", "kernels0.so", "ingredients"})
            QTest::newRow(file) << file << "a file of the entry is not as it was written";
        QTest::newRow("the list of files") << "sealed"
                                           << "the list of the entry's files is damaged";
        QTest::newRow("the folder") << ""
                                    << "";
        QTest::newRow("the index") << "index"
                                   << "could not be used";
    }
    void damage() {
        QFETCH(QString, what);
        QFETCH(QString, says);
        Made first = made(plain());
        const QString results = ran(first), folder = folderOf(first.use);
        if (what.isEmpty()) QVERIFY(QDir(folder).removeRecursively());
        else if (what == "index")
            writeBytes(QString::fromStdString(store()),
                       contentOf(QString::fromStdString(store())).left(100) + QByteArray(4000, 'x'));
        else {
            QByteArray bytes = contentOf(folder + "/" + what);
            bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
            QVERIFY(QFile::remove(folder + "/" + what));  // a library is the kernel cache's file, too
            writeBytes(folder + "/" + what, bytes);
        }
        Made second = made(plain());
        QCOMPARE(second.use.found, what == "index");
        QVERIFY2(says.isEmpty() || inWords(second.use.remarks).contains(says), qPrintable(inWords(second.use.remarks)));
        QCOMPARE(ran(second), results);
        QVERIFY(made(plain()).use.found);
        QCOMPARE(entries(), 1);
        QCOMPARE(listed().entries.size(), size_t{1});
    }

    void verifiesAndClears() {
        const Made first = made(plain());
        static_cast<void>(made(plain(), "--disable decompose"));
        QVERIFY(QDir(in("cache/graphs")).mkpath(".making-abc"));
        QCOMPARE(listed(true).entries.size(), size_t{2});
        QVERIFY(!QDir(in("cache/graphs/.making-abc")).exists());
        writeBytes(folderOf(first.use) + "/program", "x");
        QCOMPARE(inWords({listed().entries[0].problem, listed().entries[1].problem}).trimmed(), QString());
        const CachedGraphs all = listed(true);
        QVERIFY(inWords({all.entries[0].problem, all.entries[1].problem}).contains("not as it was written"));
        QCOMPARE(listed().entries.size(), size_t{1});
        QCOMPARE(*clearGraphs(store()), 1);
        QCOMPARE(entries(), 0);
        QVERIFY(listed().entries.empty() && listed().bytes == 0);
        QVERIFY(!made(plain()).use.found);
    }

    /// Above the limit those go that nobody has used for longest.
    void staysBelowItsLimit() {
        const auto use = [&](const QString& name) {
            QTest::qWait(1100);  // uses are told apart by seconds
            return made(plain(QString(kPlain).replace("1.5", name), name + ".py")).use;
        };
        static_cast<void>(use("1.0"));
        const int64_t one = listed().bytes;
        QVERIFY(limitGraphs(store(), 3 * one - one / 2));
        static_cast<void>(use("2.0"));
        QVERIFY(use("1.0").found);
        static_cast<void>(use("3.0"));  // 2.0 goes
        QStringList left;
        for (const CachedGraph& graph : listed().entries) left << QString::fromStdString(graph.model);
        QCOMPARE(left, (QStringList{"3.0.py", "1.0.py"}));
        QVERIFY(listed().bytes <= listed().limit);
        QVERIFY(!use("2.0").found);
        QVERIFY(limitGraphs(store(), 0));
        QCOMPARE(entries(), 0);
        QVERIFY(!use("1.0").found && !use("1.0").found);
        QCOMPARE(entries(), 0);
    }

    void unwritable() {
        writeBytes(in("cache"), "a file");
        Made first = made(plain());
        QVERIFY2(inWords(first.use.remarks).contains("the cache is not used"), qPrintable(inWords(first.use.remarks)));
        QVERIFY(ran(first).contains("f32[4, 10]"));
    }

    void fullDisk() {
        QStringList line = testing::ownMounts();
        if (line.isEmpty()) QSKIP("no file system can be mounted here");
        QVERIFY(QDir(m_folder->path()).mkpath("cache"));
        line += {"sh",
                 "-c",
                 "mount -t tmpfs -o size=80k none cache && exec \"$@\"",
                 "sh",
                 cli(),
                 "run",
                 plain(),
                 "--backend",
                 "cpu",
                 "--cache",
                 QString::fromStdString(store())};
        QProcess process;
        process.setWorkingDirectory(m_folder->path());
        process.start(line.takeFirst(), line);
        QVERIFY(process.waitForFinished(120'000));
        const QByteArray said = process.readAllStandardError();
        QVERIFY2(process.exitCode() == 0, said.constData());
        QVERIFY2(said.contains("the compiled graph is not kept") || said.contains("the cache is not used"),
                 said.constData());
    }

    void tenAtOnce() {
        constexpr int kProcesses = 10;
        const QString model = plain();
        std::vector<std::unique_ptr<QProcess>> all;
        for (int i = 0; i < kProcesses; ++i) {
            all.push_back(std::make_unique<QProcess>());
            all.back()->start(
                cli(), {"run", model, "--backend", "cpu", "--cache", QString::fromStdString(store()), "--json", "-"});
        }
        for (const auto& process : all) {
            QVERIFY(process->waitForFinished(120'000));
            const QByteArray said = process->readAllStandardError();
            QVERIFY2(process->exitCode() == 0 && said.isEmpty(), said.constData());
        }
        QCOMPARE(entries(), 1);
        QCOMPARE(listed().entries[0].hits, kProcesses - 1);  // one compiled, the others waited and read
    }

    void kills() {
        const QString model = plain();
        const QStringList command = {"run", model, "--backend", "cpu", "--cache", QString::fromStdString(store())};
        QElapsedTimer timer;
        timer.start();
        QVERIFY(QProcess::execute(cli(), command) == 0);
        const qint64 length = timer.elapsed();
        const int kills =
            qEnvironmentVariableIntValue("CUTAWAY_KILLS") > 0 ? qEnvironmentVariableIntValue("CUTAWAY_KILLS") : 20;
        for (int i = 0; i < kills; ++i) {
            QVERIFY(clearGraphs(store()));
            if (i % 2 == 0) QDir(in("cache/kernels")).removeRecursively();
            QProcess process;
            process.start(cli(), command);
            QVERIFY(process.waitForStarted());
            process.waitForFinished(static_cast<int>(length * i / kills / (i % 2 == 0 ? 1 : 3)));
            process.kill();
            process.waitForFinished();
            entries();
        }
        Made last = made(model);
        QVERIFY(ran(last).contains("f32[4, 10]"));
        QVERIFY(made(model).use.found);
        listed(true);
        int unfinished = 0;
        QCOMPARE(entries(&unfinished), 1);
        QCOMPARE(unfinished, 0);
    }
};

CUTAWAY_SUITE(GraphCacheTest)
#include "graph_cache_test.moc"
