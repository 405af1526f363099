// Operators compiled one by one: what comes into the cache, what is found there, what PyTorch's words refuse, and that
// neither damage nor kills nor ten processes at once leave anything but whole entries.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

#include "cutaway/operators.h"
#include "engine/cache/sealed_folder.h"
#include "engine/formats/safetensors.h"
#include "engine/support/files.h"
#include "tests/support/cache_entries.h"
#include "tests/support/paths.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::contentOf;
using cutaway::testing::inWords;
using cutaway::testing::wholeEntries;
using cutaway::testing::writeBytes;

class OperatorCacheTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_prepared;  // a cache with relu of f32[4, 5] and of f64[7]
    std::unique_ptr<QTemporaryDir> m_folder;

    void usePrepared() const {
        if (QProcess::execute("cp", {"-a", m_prepared.filePath("cache"), m_folder->path()}) != 0) qFatal("cannot copy");
    }
    QString cache() const { return m_folder->filePath("cache"); }
    QString json(const QString& op) const { return cache() + "/aoti_eager/aten/cpu/" + op + ".json"; }
    OperatorOptions asked(const QString& op, const QStringList& arguments) const {
        OperatorOptions options;
        options.op = op.toStdString();
        for (const QString& argument : arguments) options.arguments.push_back(argument.toStdString());
        options.cache = cache().toStdString();
        return options;
    }
    Result<CompiledOperator> compiled(const QString& op, const QStringList& arguments) const {
        return compileOperator(asked(op, arguments));
    }
    CompiledOperator relu() const {
        auto made = compiled("aten::relu", {"f32[4, 5]"});
        if (!made) qFatal("%s", made.error().text().c_str());
        return std::move(*made);
    }
    OperatorList listed() const {
        auto list = operatorEntries(cache().toStdString());
        if (!list) qFatal("%s", list.error().text().c_str());
        return std::move(*list);
    }
    int entries(int* unfinished = nullptr) const {
        return wholeEntries(cache() + "/aoti_eager/aten/cpu/lib", unfinished);
    }
    QStringList command(const QStringList& more = {}) const {
        return QStringList{"compile-op", "aten::relu", "--arg", "f32[4, 5]", "--cache", cache(), "--json", "-"} + more;
    }
    static QString cli() { return cutaway::testing::builtProgram("cutaway-cli"); }

  private slots:
    void initTestCase() {
        for (const char* type : {"f32[4, 5]", "f64[7]"}) {
            OperatorOptions options;
            options.op = "aten::relu";
            options.arguments = {type};
            options.cache = m_prepared.filePath("cache").toStdString();
            const auto made = compileOperator(options);
            QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        }
    }
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }

    void calls_data() {
        QTest::addColumn<QString>("op");
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QStringList>("again");
        using List = QStringList;
        QTest::newRow("no name of an overload") << "aten::relu" << List{"f32[2, 3]"} << "relu"
                                                << "f32[2, 3]" << List{"self=f32[2, 3]"};
        QTest::newRow("a default that is given")
            << "aten::add.Tensor" << List{"f32[2, 3]", "f32[3]", "alpha=1"} << "add.Tensor"
            << "f32[2, 3], f32[3]" << List{"f32[2, 3]", "f32[3]"};
        QTest::newRow("a literal") << "aten::add.Tensor" << List{"f32[2]", "f32[2]", "alpha=2"} << "add.Tensor"
                                   << "f32[2], f32[2], 2" << List{"alpha=2", "other=f32[2]", "self=f32[2]"};
        QTest::newRow("a list of tensors") << "aten.cat.default" << List{"[f32[2], f32[3]]"} << "cat"
                                           << "[f32[2], f32[3]]" << List{"[f32[2], f32[3]]", "0"};
        QTest::newRow("strides") << "aten::exp" << List{"f32[2, 3][1, 2]"} << "exp"
                                 << "f32[2, 3][1, 2]" << List{};
        QTest::newRow("a float that is written as an integer") << "aten::elu" << List{"f32[4]", "2", "1.5"} << "elu"
                                                               << "f32[4], 2, 1.5" << List{};
        QTest::newRow("an infinity") << "aten::masked_fill.Scalar" << List{"f32[4]", "bool[4]", "-inf"}
                                     << "masked_fill.Scalar"
                                     << "f32[4], b8[4], -inf" << List{"float32[4]", "b8[4]", "float('-inf')"};
        QTest::newRow("a text") << "aten::gelu" << List{"f32[4]", "approximate='tanh'"} << "gelu"
                                << "f32[4], 'tanh'" << List{"f32[4]", "approximate=\"tanh\""};
        QTest::newRow("a dtype") << "aten::sum" << List{"f32[4]", "dtype=torch.float64"} << "sum"
                                 << "f32[4], torch.float64" << List{};
        QTest::newRow("several results") << "aten::max.dim" << List{"f32[4, 3]", "1"} << "max.dim"
                                         << "f32[4, 3], 1" << List{};
        QTest::newRow("a library's") << "aten::mm" << List{"f32[4, 3]", "f32[3, 5]"} << "mm"
                                     << "f32[4, 3], f32[3, 5]" << List{};
    }
    /// Compiled, noted, run beside the interpreter, and found when it is asked for once more.
    void calls() {
        QFETCH(QString, op);
        QFETCH(QStringList, arguments);
        QFETCH(QString, file);
        QFETCH(QString, inputs);
        QFETCH(QStringList, again);
        const auto first = compiled(op, arguments);
        QVERIFY2(first.has_value(), first ? "" : first.error().text().c_str());
        QCOMPARE(inWords(first->remarks), QString());
        QVERIFY(!first->found);
        QCOMPARE(inWords(first->entry.inputs), inputs);
        QVERIFY(QFile::exists(QString::fromStdString(first->entry.library)));
        QVERIFY2(QFile::exists(json(file)), qPrintable(json(file)));
        const auto run = runOperator(first->entry, {.repeat = 3, .compare = true});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY2(run->compared && run->matches, run->outputs[0].problem.c_str());
        for (const OutputReport& output : run->outputs) QVERIFY(output.compared);
        QVERIFY(run->medianMilliseconds > 0 && run->repeats == 3);
        const auto second = compiled(op, again.isEmpty() ? arguments : again);
        QVERIFY2(second.has_value(), second ? "" : second.error().text().c_str());
        QVERIFY(second->found);
        QCOMPARE(second->entry.library, first->entry.library);
        const OperatorList list = listed();
        QCOMPARE(inWords(list.remarks), QString());
        QCOMPARE(list.entries.size(), size_t{1});
        QCOMPARE(inWords(list.entries[0].inputs), inputs);
        QCOMPARE(list.entries[0].hits, 1);
        QVERIFY(list.entries[0].made > 0 && list.entries[0].used >= list.entries[0].made);
        QVERIFY(list.entries[0].bytes > 10'000);
        QCOMPARE(list.entries[0].problem, std::string());
    }

    void refusals_data() {
        QTest::addColumn<QString>("op");
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("says");
        using List = QStringList;
        QTest::newRow("no such operator") << "aten::reul" << List{"f32[2]"} << "there is no operator 'aten::reul'";
        QTest::newRow("a size that is not a number")
            << "aten::relu" << List{"f32[s0]"} << "Only support static shape for now";
        QTest::newRow("None") << "aten::index.Tensor" << List{"f32[2, 2]", "[None, i64[1]]"}
                              << "_impl_with_aoti_compile encounters unsupported input types: [f32[2, 2], [None, "
                                 "i64[1]]]";
        QTest::newRow("None alone") << "aten::clamp" << List{"f32[2]", "1", "max=None"} << "";
        QTest::newRow("integers") << "aten::sum.dim_IntList" << List{"f32[2, 2]", "[0]"}
                                  << "_impl_with_aoti_compile encounters unsupported input types: [f32[2, 2], [0]]";
        QTest::newRow("a memory format") << "aten::clone" << List{"f32[2]", "memory_format=torch.contiguous_format"}
                                         << "Unsupported input types: [f32[2], torch.contiguous_format]";
        QTest::newRow("a complex number")
            << "aten::mul.Scalar" << List{"c64[2]", "2j"} << "Unsupported input types: [c64[2], 2j]";
        QTest::newRow("a list of results") << "aten::split.Tensor" << List{"f32[4]", "2"}
                                           << "Not implemented for operations that return a non-Tensor value.";
        QTest::newRow("no parameter") << "aten::relu" << List{"f32[2]", "x=1"} << "it has no parameter 'x'";
        QTest::newRow("too many") << "aten::relu" << List{"f32[2]", "1"} << "it has 1 parameters";
        QTest::newRow("twice") << "aten::relu" << List{"f32[2]", "self=f32[2]"} << "parameter 'self' is given twice";
        QTest::newRow("none at all") << "aten::relu" << List{} << "";
        QTest::newRow("no value") << "aten::relu" << List{"f32[2]), x=("} << "this is not a value";
        QTest::newRow("a statement") << "aten::relu" << List{"1\nimport os"} << "this is not a value";
        QTest::newRow("what the rule refuses") << "aten::mm" << List{"f32[2, 3]", "f32[2, 3]"} << "";
    }
    void refusals() {
        QFETCH(QString, op);
        QFETCH(QStringList, arguments);
        QFETCH(QString, says);
        const auto made = compiled(op, arguments);
        if (QString(QTest::currentDataTag()) == "None alone") {  // the default
            QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
            QCOMPARE(inWords(made->entry.inputs), QString("f32[2], 1"));
            return;
        }
        QVERIFY(!made);
        QVERIFY2(QString::fromStdString(made.error().text()).contains(says), made.error().text().c_str());
        QVERIFY(!QFile::exists(cache() + "/aoti_eager"));
    }
    void aGpuIsRefused() {
        OperatorOptions options = asked("aten::relu", {"f32[2]"});
        options.device = Target::Cuda;
        const auto made = compileOperator(options);
        QVERIFY(!made);
        QVERIFY2(QString::fromStdString(made.error().message).startsWith("Failed to compile relu: "),
                 made.error().text().c_str());
    }

    /// Tensors of a file are the call's, by their parameters' names.
    void inputsOfAFile() {
        Tensor x = Tensor::zeros(DType::F32, {3}), y = Tensor::zeros(DType::F32, {2});
        for (int i = 0; i < 3; ++i) static_cast<float*>(x.data())[i] = static_cast<float>(i + 1);
        const std::string path = m_folder->filePath("in.safetensors").toStdString();
        QVERIFY(writeSafeTensors(path, {{{"tensors.0", x}, {"tensors.1", y}}, {}}));
        OperatorOptions options = asked("aten::cat", {});
        options.inputsFile = path;
        const auto made = compileOperator(options);
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        QCOMPARE(inWords(made->entry.inputs), QString("[f32[3], f32[2]]"));
        const auto run = runOperator(made->entry, {.inputsFile = path, .compare = true});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->matches);
        QCOMPARE(run->outputs[0].maximum, 3.0);
        QVERIFY(compiled("aten::cat", {"[f32[3], f32[2]]"})->found);
        options.op = "aten::relu";
        const auto wrong = compileOperator(options);
        QVERIFY(!wrong);
        QVERIFY2(QString::fromStdString(wrong.error().text()).contains("its tensors are: self"),
                 wrong.error().text().c_str());
        // Inputs of other sizes are refused by the program.
        QVERIFY(writeSafeTensors(path, {{{"self", x}}, {}}));
        const auto refused = runOperator(relu().entry, {.inputsFile = path});
        QVERIFY(!refused);
        QVERIFY2(QString::fromStdString(refused.error().text()).contains("must be f32[4, 5], not f32[3]"),
                 refused.error().text().c_str());
    }

    void damage_data() {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("says");
        QTest::newRow("a library that is another") << "library"
                                                   << "not as it was written";
        QTest::newRow("a library that is missing") << "gone"
                                                   << "a file of the entry is missing";
        QTest::newRow("the list of files") << "seal"
                                           << "the list of the entry's files is damaged";
        QTest::newRow("the folder is missing") << "folder"
                                               << "";
        QTest::newRow("records cut short") << "json"
                                           << "";
        QTest::newRow("no records") << "no json"
                                    << "";
        QTest::newRow("the index") << "index"
                                   << "could not be used";
    }
    /// Whatever is wrong is a remark and a compile, or not even that; another entry of the operator stays.
    void damage() {
        QFETCH(QString, what);
        QFETCH(QString, says);
        usePrepared();
        const CompiledOperator made = relu();
        QVERIFY(made.found);
        const QString folder = QFileInfo(QString::fromStdString(made.entry.library)).path();
        const QByteArray records = contentOf(json("relu"));
        bool found = false;
        if (what == "library") writeBytes(QString::fromStdString(made.entry.library), "hello");
        else if (what == "gone") QFile::remove(QString::fromStdString(made.entry.library));
        else if (what == "seal") writeBytes(folder + "/sealed", "cutaway entry 1\n");
        else if (what == "folder") QDir(folder).removeRecursively();
        else if (what == "json") writeBytes(json("relu"), records.left(records.size() - 20));
        else if (what == "no json") QFile::remove(json("relu"));
        else
            writeBytes(cache() + "/store.sqlite",
                       contentOf(cache() + "/store.sqlite").left(100) + QByteArray(4000, 'x'));
        found = what == "json" || what == "no json" || what == "index";
        const CompiledOperator again = relu();
        QCOMPARE(again.found, found);
        QVERIFY2(says.isEmpty() || inWords(again.remarks).contains(says), qPrintable(inWords(again.remarks)));
        QCOMPARE(entries(), 2);
        QVERIFY(runOperator(again.entry, {.compare = true})->matches);
        QVERIFY(compiled("aten::relu", {"f64[7]"})->found);
        const OperatorList list = listed();
        QCOMPARE(list.entries.size(), size_t{2});
        QCOMPARE(inWords(list.remarks), QString());
        for (const OperatorEntry& entry : list.entries) QCOMPARE(entry.problem, std::string());
    }

    /// An entry of PyTorch's is listed and stays as it is, to the byte.
    void anEntryOfPyTorchStays() {
        usePrepared();
        QVERIFY(removeOperator(listed().entries[1]));
        QByteArray records = contentOf(json("relu"));
        records.replace("lib/", "lib/cab/");
        QVERIFY(QDir(cache() + "/aoti_eager/aten/cpu/lib").mkpath("cab"));
        const QString name = QString::fromUtf8(records).section("kernel_path\": \"", 1).section('"', 0, 0);
        QVERIFY(QDir(cache() + "/aoti_eager/aten/cpu").mkpath(QFileInfo(name).path()));
        writeBytes(cache() + "/aoti_eager/aten/cpu/" + name, "library of PyTorch");
        writeBytes(json("relu"), records);
        const CompiledOperator again = relu();
        QVERIFY(again.found);
        QVERIFY2(inWords(again.remarks).contains("PyTorch has an entry of these inputs"),
                 qPrintable(inWords(again.remarks)));
        QCOMPARE(contentOf(json("relu")), records);
        const OperatorList list = listed();
        QCOMPARE(list.entries.size(), size_t{1});
        QVERIFY(QString::fromStdString(list.entries[0].problem).contains("PyTorch's"));
        QCOMPARE(inWords(list.entries[0].inputs), QString("f32[4, 5]"));
        const auto run = runOperator(list.entries[0], {});
        QVERIFY(!run);
        // Beside it there is room for ours.
        QVERIFY(compiled("aten::relu", {"f64[3]"}).has_value());
        QVERIFY(contentOf(json("relu")).startsWith(records.left(records.size() - 2)));
        QCOMPARE(listed().entries.size(), size_t{2});
        QVERIFY(removeOperator(list.entries[0]));
        QCOMPARE(listed().entries.size(), size_t{1});
        QVERIFY(QFile::exists(cache() + "/aoti_eager/aten/cpu/" + name));
    }

    void removes() {
        usePrepared();
        const CompiledOperator made = relu();
        QVERIFY(removeOperator(made.entry));
        QCOMPARE(entries(), 1);
        QCOMPARE(listed().entries.size(), size_t{1});
        QVERIFY(!relu().found);
        QVERIFY(!runOperator(made.entry, {.timeoutSeconds = 0.001}).has_value());
    }

    /// No cache is not a reason to fail.
    void unwritable_data() {
        QTest::addColumn<QString>("mount");
        QTest::newRow("no folder") << "";
        QTest::newRow("read-only") << "mount --bind cache cache && mount -o remount,ro,bind cache";
        QTest::newRow("full") << "mount -t tmpfs -o size=64k none cache";
    }
    void unwritable() {
        QFETCH(QString, mount);
        QProcess process;
        process.setWorkingDirectory(m_folder->path());
        if (mount.isEmpty()) {
            writeBytes(cache(), "a file");
            process.start(cli(), command({"--check"}));
        } else {
            QVERIFY(QDir(m_folder->path()).mkpath("cache"));
            QStringList line = testing::ownMounts();
            if (line.isEmpty()) QSKIP("no file system can be mounted here");
            line += QStringList{"sh", "-c", mount + " && exec \"$@\"", "sh", cli()} + command({"--check"});
            process.start(line.takeFirst(), line);
        }
        QVERIFY(process.waitForFinished(120'000));
        const QByteArray said = process.readAllStandardError(), out = process.readAllStandardOutput();
        QVERIFY2(process.exitCode() == 0, said.constData());
        QVERIFY2(said.contains("the cache cannot be written, and the library is kept until the program ends"),
                 said.constData());
        QVERIFY2(out.contains("\"matches\": true"), out.constData());
    }

    /// As a shell hands them over: lists in brackets, names, negative numbers.
    void valuesOfTheCommandLine() {
        usePrepared();
        const auto said = [&](const QStringList& arguments) {
            QProcess process;
            process.start(cli(), QStringList{"compile-op"} + arguments + QStringList{"--cache", cache()});
            if (!process.waitForFinished(120'000)) qFatal("it does not end");
            return QString::fromUtf8(process.readAllStandardError() + process.readAllStandardOutput());
        };
        QVERIFY2(said({"aten::relu", "--arg", "f32[4, 5]"}).contains("found in the cache"), "found");
        const QString cat = said({"aten::cat", "--arg", "[f32[2], f32[3]]"});
        QVERIFY2(cat.startsWith("aten::cat([f32[2], f32[3]]) for cpu: compiled"), qPrintable(cat));
        const QString fill =
            said({"aten::masked_fill.Scalar", "--arg", "f32[4]", "b8[4]", "value=-inf", "--check", "--repeat", "2"});
        QVERIFY2(fill.startsWith("aten::masked_fill.Scalar(f32[4], b8[4], -inf)") && fill.contains("median"),
                 qPrintable(fill));
        const QString sizes = said({"aten::view", "--arg", "f32[4]", "[2, 2]"});
        QVERIFY2(sizes.contains("_impl_with_aoti_compile encounters unsupported input types: [f32[4], [2, 2]]"),
                 qPrintable(sizes));
    }

    void tenAtOnceCompileOnce() {
        constexpr int kProcesses = 10;
        std::vector<std::unique_ptr<QProcess>> all;
        for (int i = 0; i < kProcesses; ++i) {
            all.push_back(std::make_unique<QProcess>());
            all.back()->start(cli(), command());
        }
        int made = 0;
        for (const auto& process : all) {
            QVERIFY(process->waitForFinished(120'000));
            const QByteArray said = process->readAllStandardError();
            QVERIFY2(process->exitCode() == 0 && said.isEmpty(), said.constData());
            made += process->readAllStandardOutput().contains("\"found\": false");
        }
        QCOMPARE(made, 1);
        QCOMPARE(entries(), 1);
        QCOMPARE(listed().entries.size(), size_t{1});
        QCOMPARE(listed().entries[0].hits, kProcesses - 1);
    }

    /// A program that is killed leaves whole entries or none, and nothing that the next one does not clear away.
    /// What a writer that was killed before it renamed left goes when the operator's records are next written; another
    /// operator's may be on its way.
    void unfinishedRecords() {
        usePrepared();
        const QStringList names = {"relu.json.4711.tmp", "relu_.json.4711.tmp"};
        for (const QString& name : names) writeBytes(cache() + "/aoti_eager/aten/cpu/" + name, "[{");
        QVERIFY(relu().found);  // nothing is written
        const QDir folder(cache() + "/aoti_eager/aten/cpu");
        QCOMPARE(folder.entryList({"*.tmp"}, QDir::Files, QDir::Name), names);
        QVERIFY(!compiled("aten::relu", {"f32[2]"})->found);
        QCOMPARE(folder.entryList({"*.tmp"}, QDir::Files, QDir::Name), QStringList(names[1]));
    }
    void kills() {
        QElapsedTimer timer;
        timer.start();
        QProcess whole;
        whole.start(cli(), command());
        QVERIFY(whole.waitForFinished(120'000) && whole.exitCode() == 0);
        const qint64 length = timer.elapsed();
        QVERIFY(QDir(cache()).removeRecursively());
        const int kills =
            qEnvironmentVariableIntValue("CUTAWAY_KILLS") > 0 ? qEnvironmentVariableIntValue("CUTAWAY_KILLS") : 12;
        for (int i = 0; i < kills; ++i) {
            QProcess process;
            process.start(cli(), command());
            QVERIFY(process.waitForStarted());
            // Most of the time is a compiler's; the writing comes at the end.
            const qint64 wait = i % 3 == 0 ? length * i / kills : length * (80 + i * 25 / kills) / 100;
            process.waitForFinished(static_cast<int>(wait));
            process.kill();
            process.waitForFinished();
            entries();
            const OperatorList list = listed();
            QCOMPARE(inWords(list.remarks), QString());
            if (!list.entries.empty() && i % 2 == 0) QVERIFY(removeOperator(list.entries[0]));
        }
        QVERIFY(runOperator(relu().entry, {.compare = true})->matches);
        QVERIFY(compiled("aten::relu", {"f64[3]"}).has_value());
        int unfinished = 0;
        QCOMPARE(entries(&unfinished), 2);
        QCOMPARE(unfinished, 0);
        QCOMPARE(listed().entries.size(), size_t{2});
        QCOMPARE(QDir(cache() + "/aoti_eager/aten/cpu").entryList({"*.tmp"}), QStringList());
    }
};

CUTAWAY_SUITE(OperatorCacheTest)
#include "operator_cache_test.moc"
