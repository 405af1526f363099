// AOTInductor's packages of PyTorch 2.11 and 2.15 (tests/scripts/record_packages.py), as archives and as folders: what
// they hold, and which calls of ours compute the same.
#include "cutaway/packages.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/formats/package_constants.h"
#include "engine/formats/package_source.h"
#include "engine/formats/zip_archive.h"
#include "engine/session/session_state.h"
#include "engine/tensor/compare.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

std::string packageFile(const QString& name) {
    return testing::testFile(("data/packages/" + name).toUtf8()).toStdString();
}

/// The files of an archive in a folder.
void unpackInto(const std::string& archive, const std::filesystem::path& folder) {
    const auto source = ByteSource::open(archive);
    const auto zip = ZipArchive::open(*source, archive);
    for (const ZipEntry& entry : zip->entries()) {
        const std::filesystem::path file = folder / entry.name;
        std::filesystem::create_directories(file.parent_path());
        const auto bytes = zip->read(entry);
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>((*bytes)->data()), static_cast<std::streamsize>((*bytes)->size()));
    }
}

std::string typed(const std::vector<PackagedValue>& values) {
    std::string all;
    for (const PackagedValue& value : values) all += (all.empty() ? "" : ", ") + value.name + ": " + value.type;
    return all;
}

/// The calls of the recorded model; what its kernels keep for themselves has other names in each release.
void checkModel(const PackagedModel& model, const QString& release) {
    QVERIFY(std::find(model.metadata.begin(), model.metadata.end(),
                      std::pair<std::string, std::string>("AOTI_DEVICE_KEY", "cpu")) != model.metadata.end());
    // 2.11 does not say that the second input has the first one's symbol.
    QCOMPARE(typed(model.inputs), release == "2.11" ? std::string("arg6_1: f32[s31, 16], arg7_1: b8[?, 12]")
                                                    : std::string("arg6_1: f32[s31, 16], arg7_1: b8[s31, 12]"));
    QCOMPARE(typed(model.outputs), std::string("output0: f32[s31, 12], output1: f32[s31]"));
    std::string constants;
    for (const PackagedConstant& one : model.constants)
        constants += one.original + " " + one.type + " " + one.kind + " " + std::to_string(one.bytes) + "\n";
    QCOMPARE(constants, std::string("first.weight f32[24, 16] Parameter 1536\nfirst.bias f32[24] Parameter 128\n"
                                    "norm.weight f32[24] Parameter 128\nnorm.bias f32[24] Parameter 128\n"
                                    "second.weight f32[12, 24] Parameter 1152\nscale f32[12] Buffer 64\n"));
    std::string calls;
    for (const PackagedCall& call : model.calls) {
        calls += call.name + ":";
        for (const std::string& op : call.ops) calls += " " + op;
        calls += "\n";
        QCOMPARE(call.kernel, call.name.starts_with("cpp_"));
        QCOMPARE(!call.source.empty(), call.kernel);
    }
    QCOMPARE(calls, std::string("aoti_torch_cpu_addmm_out: t addmm\n"
                                "cpp_fused_amax_gelu_native_layer_norm_0: amax gelu native_layer_norm\n"
                                "aoti_torch_cpu_mm_out: t mm\n"
                                "cpp_fused__softmax_masked_fill_mul_1: _softmax masked_fill mul\n"));
    QCOMPARE(typed(model.calls[0].reads),
             std::string("first_bias: f32[24], arg6_1: f32[s31, 16], first_weight: f32[16, 24]"));
    QCOMPARE(typed(model.calls[2].writes), std::string("buf5: f32[s31, 12]"));
    QVERIFY(model.calls[1].source.starts_with("extern \"C\"") && model.calls[1].source.ends_with("\n}\n"));
    QVERIFY(!model.commands.empty() && model.commands[0].starts_with("g++ "));
}

}  // namespace

class PackagesTest : public QObject {
    Q_OBJECT

    static void addReleases() {
        QTest::addColumn<QString>("release");
        for (const char* release : {"2.11", "2.15"}) QTest::newRow(release) << release;
    }

  private slots:
    void opensArchives_data() { addReleases(); }
    void opensArchives() {
        QFETCH(const QString, release);
        const auto package = openPackage(packageFile(release + ".pt2"));
        QVERIFY2(package.has_value(), package ? "" : package.error().text().c_str());
        QCOMPARE(package->models.size(), size_t{1});
        QCOMPARE(package->models[0].name, std::string("model"));
        QVERIFY(package->remarks.empty());
        checkModel(package->models[0], release);
        const auto text = packagedText(packageFile(release + ".pt2"), ".wrapper.cpp");
        QVERIFY(text && text->find("AOTInductorModel::run_impl") != std::string::npos);
    }

    /// The whole package unpacked, and only the folder with the library and its wrapper.
    void opensFolders_data() { addReleases(); }
    void opensFolders() {
        QFETCH(const QString, release);
        QTemporaryDir folder;
        unpackInto(packageFile(release + ".pt2"), folder.path().toStdString());
        const std::string root = folder.path().toStdString();
        for (const std::string& path : {root, root + "/data/aotinductor/model", root + "/data/aotinductor/model/"}) {
            const auto package = openPackage(path);
            QVERIFY2(package.has_value(), package ? "" : package.error().text().c_str());
            QCOMPARE(package->models.size(), size_t{1});
            QCOMPARE(package->models[0].name, std::string("model"));
            checkModel(package->models[0], release);
            const auto info = inspectFile(path);
            QVERIFY2(info && info->format.starts_with("compiled package (AOTInductor)"), path.c_str());
        }
    }

    /// As PyTorch saved them beside the same model, and how arguments and results are nested.
    void constants_data() { addReleases(); }
    void constants() {
        QFETCH(const QString, release);
        const std::string path = packageFile(release + ".pt2");
        Session session;
        QVERIFY(session.open(packageFile("model.pt2")));
        QTemporaryDir folder;
        unpackInto(path, folder.path().toStdString());
        const auto package = openPackage(folder.path().toStdString());
        const PackagedModel& model = package->models[0];
        const FileTree tree = *listFolder(folder.path().toStdString());
        for (size_t i = 0; i < model.constants.size(); ++i) {
            const auto found = packagedTensor(tree, model, i);
            QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
            const auto saved = session.state().input->tensors.find(model.constants[i].original);
            QVERIFY2(saved != session.state().input->tensors.end(), model.constants[i].original.c_str());
            QVERIFY2(release == "2.11" || sameBits(*found, saved->second), model.constants[i].original.c_str());
            QCOMPARE(found->sizes(), saved->second.sizes());
        }
        const auto text = packagedConstant(path, "", "scale");
        QVERIFY2(text && text->starts_with("scale: f32[12], from 0.5 to 1.5, mean 1\n         0.5    0.590909"),
                 text ? text->c_str() : text.error().text().c_str());
        QVERIFY(!packagedConstant(path, "", "none") && !packagedConstant(path, "other", "scale"));
        QVERIFY(model.inSpec.starts_with("[1, {\"type\": \"builtins.tuple\"") && model.outSpec.ends_with("]}]"));
    }
    /// A library that is cut short anywhere, or whose sources tell of more than it has, is refused.
    void damagedConstants() {
        QTemporaryDir folder;
        unpackInto(packageFile("2.15.pt2"), folder.path().toStdString());
        const std::string root = folder.path().toStdString();
        auto package = openPackage(root);
        PackagedModel model = package->models[0];
        QFile library(folder.filePath(QString::fromStdString(model.library)));
        QVERIFY(library.open(QIODevice::ReadOnly));
        const QByteArray whole = library.readAll();
        library.close();
        for (qsizetype size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
            QVERIFY(library.open(QIODevice::WriteOnly) && library.write(whole.left(size)) == size);
            library.close();
            static_cast<void>(packagedConstant(root, "", "first.weight"));
        }
        QVERIFY(library.open(QIODevice::WriteOnly) && library.write("no library") > 0);
        library.close();
        const auto none = packagedConstant(root, "", "first.weight");
        QVERIFY(!none && none.error().text().find("the library is cut short") != std::string::npos);
        QVERIFY(library.open(QIODevice::WriteOnly) && library.write(whole) == whole.size());
        library.close();
        const FileTree tree = *listFolder(root);
        for (auto change : std::vector<std::function<void(PackagedConstant&)>>{
                 [](PackagedConstant& one) { one.bytes = 1 << 20; }, [](PackagedConstant& one) { one.sizes[0] = 25; },
                 [](PackagedConstant& one) { one.strides[0] = 1 << 20; },
                 [](PackagedConstant& one) { one.offset = -1; }, [](PackagedConstant& one) { one.folded = true; },
                 [](PackagedConstant& one) { one.type = "?"; }}) {
            PackagedModel changed = model;
            change(changed.constants[0]);
            QVERIFY(!packagedTensor(tree, changed, 0));
        }
        QVERIFY(packagedTensor(tree, model, 0));
    }

    void findsWhatComputesTheSame_data() { addReleases(); }
    void findsWhatComputesTheSame() {
        QFETCH(const QString, release);
        const auto package = openPackage(packageFile(release + ".pt2"));
        Session session;
        QVERIFY(session.open(packageFile("model.pt2")));
        const auto run = session.compile({});
        QVERIFY(run.has_value());
        const auto all = comparePackage(session, *run, package->models[0]);
        QVERIFY2(all.has_value(), all ? "" : all.error().text().c_str());
        std::string pairs;
        for (const CallPair& pair : all->pairs)
            pairs += std::to_string(static_cast<int>(pair.match)) + " " + std::to_string(pair.theirs) + " " +
                     (pair.ours < 0 ? "-" : all->ours[static_cast<size_t>(pair.ours)].name) + ": " + pair.why + "\n";
        QCOMPARE(pairs, std::string("0 0 addmm: both compute addmm, with the same results\n"
                                    "0 1 kernel0: both compute amax, gelu, layer_norm, with the same results\n"
                                    "0 2 mm: both compute mm, with the same results\n"
                                    "0 3 kernel1: both compute masked_fill, mul, softmax, with the same results\n"
                                    "3 -1 guard: no call of theirs computes it\n"));
        QCOMPARE(all->same, 4);
        // A call that computes something else, or other results, is not the same.
        PackagedModel other = package->models[0];
        other.calls[1].ops = {"amax", "relu", "native_layer_norm"};
        for (PackagedValue& value : other.calls[2].writes) value.type = "f32[s31, 13]";
        const auto changed = comparePackage(session, *run, other);
        QCOMPARE(changed->same, 2);
        QCOMPARE(changed->pairs[1].why, std::string("both compute amax, layer_norm; only theirs relu; only ours gelu"));
        QCOMPARE(changed->pairs[2].why, std::string("both compute mm; the results are of other types"));
    }

    void refusesWhatIsNone() {
        const auto model = openPackage(packageFile("model.pt2"));
        QVERIFY(!model && model.error().text().find("it is not a package of AOTInductor but of the kind: .pt2") !=
                              std::string::npos);
        const std::string package = packageFile("2.15.pt2");
        const auto none = packagedText(package, "none.cpp");
        QVERIFY(!none && none.error().text().find("has no file 'none.cpp'") != std::string::npos);
        const auto several = packagedText(package, ".cpp");
        QVERIFY(!several && several.error().text().find("several files end in '.cpp'") != std::string::npos);
        const auto library = packagedText(package, ".so");
        QVERIFY(!library && library.error().text().find("it is not text") != std::string::npos);
        Session session;
        QVERIFY(session.open(packageFile("model.pt2")));
        CompileRequest training;
        training.mode = Mode::Training;
        const auto run = session.compile(training);
        const auto compared = comparePackage(session, *run, openPackage(package)->models[0]);
        QVERIFY(!compared && compared.error().text().find("this one is for training") != std::string::npos);
    }

    void readsNamesOfKernels() {
        const auto known = [](std::string_view name) {
            return name == "add" || name == "native_layer_norm" || name == "_softmax" || name == "mul";
        };
        const auto names = [&](std::string_view kernel) { return fusedOperators(kernel, known); };
        using Names = std::vector<std::string>;
        QCOMPARE(names("cpp_fused__softmax_add_native_layer_norm_12"), (Names{"_softmax", "add", "native_layer_norm"}));
        QCOMPARE(names("triton_poi_fused_add_mul_0"), (Names{"add", "mul"}));
        QCOMPARE(names("cpp_fused_strange_mul_1"), (Names{"strange", "mul"}));
        QCOMPARE(names("cpp_fused_0"), Names{});
        QCOMPARE(names("extern_kernel"), Names{});
    }

    /// Every prefix of a wrapper is read to its end.
    void readsDamagedSources() {
        const auto text = packagedText(packageFile("2.15.pt2"), ".wrapper.cpp");
        for (size_t length = 0; length < text->size(); length += 97) {
            PackagedModel model;
            readWrapperSource(
                std::string_view(*text).substr(0, length), [](std::string_view) { return false; }, model);
            QVERIFY(model.calls.size() <= 4);
        }
    }
};

CUTAWAY_SUITE(PackagesTest)
#include "packages_test.moc"
