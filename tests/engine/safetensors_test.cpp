// safetensors: round trips, and one file per error name of the format.
#include "engine/formats/safetensors.h"

#include <QtTest>
#include <random>

#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class SafeTensorsTest : public QObject {
    Q_OBJECT

  private slots:
    void roundTrips_data();
    void roundTrips();
    void writesAndMapsFiles();
    void keepsOrderAndMetadata();
    void readsMisalignedData();
    void refuses_data();
    void refuses();
    void survivesDamage();
    void readsReferenceFiles();
};

namespace {

std::string fileOf(const std::string& header, const std::string& data, int64_t claimed = -1) {
    const uint64_t length = claimed >= 0 ? static_cast<uint64_t>(claimed) : header.size();
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(length >> (8 * i) & 0xFF);
    return out + header + data;
}

}  // namespace

void SafeTensorsTest::roundTrips_data() {
    QTest::addColumn<int>("dtype");
    for (int i = 0; i < kDTypeCount; ++i)
        if (!info(static_cast<DType>(i)).safetensors.empty())
            QTest::newRow(info(static_cast<DType>(i)).torchName.data()) << i;
}
void SafeTensorsTest::roundTrips() {
    QFETCH(int, dtype);
    Tensor tensor = Tensor::empty(static_cast<DType>(dtype), {3, 2});
    for (size_t i = 0; i < tensor.bytes(); ++i)
        static_cast<unsigned char*>(tensor.data())[i] = static_cast<unsigned char>(i * 11 % 2);
    const auto bytes =
        formatSafeTensors({{{"a \"b\"\n", tensor}, {"empty", Tensor::zeros(tensor.dtype(), {0, 4})}}, {}});
    QCOMPARE(failureOf(bytes), QString());
    const auto back = parseSafeTensors(storageOf(*bytes), "t");
    QCOMPARE(failureOf(back), QString());
    QCOMPARE(back->tensors[0].first, std::string("a \"b\"\n"));
    const Tensor& read = back->tensors[0].second;
    QCOMPARE(read.dtype(), tensor.dtype());
    QCOMPARE(read.sizes(), tensor.sizes());
    QVERIFY(std::memcmp(read.data(), tensor.data(), tensor.bytes()) == 0);
    QCOMPARE(back->tensors[1].second.numel(), int64_t{0});
}

void SafeTensorsTest::writesAndMapsFiles() {
    const QTemporaryDir folder;
    const std::string path = folder.filePath("x.safetensors").toStdString();
    QCOMPARE(failureOf(writeSafeTensors(path, {{{"x", Tensor::full(DType::F32, {2}, 1.5)}}, {}})), QString());
    const auto back = readSafeTensors(path);
    QCOMPARE(failureOf(back), QString());
    QVERIFY(back->tensors[0].second.storage()->readOnly());
    QCOMPARE(toDouble(back->tensors[0].second.item(1)), 1.5);
    QVERIFY(failureOf(writeSafeTensors(folder.filePath("no/such/folder").toStdString(), {})).contains("cannot write"));
    QVERIFY(failureOf(readSafeTensors(folder.filePath("none").toStdString())).contains("No such file"));
    QVERIFY(failureOf(readSafeTensors(folder.path().toStdString())).contains("Is a directory"));
}

void SafeTensorsTest::keepsOrderAndMetadata() {
    const auto bytes =
        formatSafeTensors({{{"z", Tensor::full(DType::U8, {3}, 7.0)}, {"a", Tensor::full(DType::F64, {1}, 2.0)}},
                           {{"made by", "a test"}}});
    QVERIFY(bytes.has_value());
    const auto back = parseSafeTensors(storageOf(*bytes), "t");
    QCOMPARE(failureOf(back), QString());
    QCOMPARE(back->tensors[0].first, std::string("z"));
    QCOMPARE(back->metadata[0].second, std::string("a test"));
    QCOMPARE(toInt(back->tensors[0].second.item(2)), int64_t{7});
    QCOMPARE(toDouble(back->tensors[1].second.item()), 2.0);
}

void SafeTensorsTest::readsMisalignedData() {
    const std::string header =
        R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})";
    const auto file = parseSafeTensors(storageOf(fileOf(header, std::string("\x01\x00\x00\x80\x3f", 5))), "t");
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(toDouble(file->tensors[1].second.item()), 1.0);
    QCOMPARE(reinterpret_cast<uintptr_t>(file->tensors[1].second.data()) % 4, uintptr_t{0});
}

void SafeTensorsTest::refuses_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    auto row = [](const char* name, const std::string& bytes, const char* message) {
        QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << message;
    };
    auto one = [](const char* entry, int data) {
        return fileOf(std::string("{\"x\":") + entry + "}", std::string(static_cast<size_t>(data), '\0'));
    };
    row("HeaderTooSmall", "{}", "t: HeaderTooSmall: 2 bytes, at least 8 are needed");
    row("HeaderTooLarge", fileOf("{}", "", 100'000'001),
        "t: HeaderTooLarge: a header of 100000001 bytes, the limit is 100000000");
    row("InvalidHeaderLength", fileOf("{}", "", 3),
        "t: InvalidHeaderLength: a header of 3 bytes does not fit a file of 10 bytes");
    row("InvalidHeader", fileOf("{\"\xff\":1}", ""), "t: InvalidHeader: the header is not UTF-8");
    row("InvalidHeaderStart", fileOf(" {}", ""), "t: InvalidHeaderStart: the header does not begin with '{'");
    row("InvalidHeaderStart, empty", fileOf("", ""), "t: InvalidHeaderStart: the header does not begin with '{'");
    row("InvalidHeaderDeserialization, duplicate",
        fileOf(
            R"({"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
            "ab"),
        "t: x: InvalidHeaderDeserialization: the name appears twice");
    row("InvalidHeaderDeserialization, dtype", one(R"({"dtype":"F99","shape":[],"data_offsets":[0,1]})", 1),
        "t: x: InvalidHeaderDeserialization: unknown dtype 'F99'");
    row("InvalidHeaderDeserialization, negative", one(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1),
        "t: x: InvalidHeaderDeserialization: 'shape' holds something that is not a size");
    row("InvalidHeaderDeserialization, offsets", one(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})", 1),
        "t: x: InvalidHeaderDeserialization: 'data_offsets' is not a pair");
    row("InvalidOffset, hole", one(R"({"dtype":"U8","shape":[1],"data_offsets":[1,2]})", 2),
        "t: x: InvalidOffset: data_offsets [1, 2], expected to begin at 0");
    row("InvalidOffset, backwards", one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,-1]})", 2),
        "t: x: InvalidHeaderDeserialization: 'data_offsets' holds something that is not an offset");
    row("InvalidOffset, overlap",
        fileOf(
            R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            "abc"),
        "t: b: InvalidOffset: data_offsets [1, 3], expected to begin at 2");
    row("MetadataIncompleteBuffer, short", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3),
        "t: MetadataIncompleteBuffer: the header describes 4 bytes of data, the file has 3");
    row("MetadataIncompleteBuffer, long", one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})", 3),
        "t: MetadataIncompleteBuffer: the header describes 1 bytes of data, the file has 3");
    row("TensorInvalidInfo", one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,3]})", 3),
        "t: x: TensorInvalidInfo: 3 bytes given, dtype and shape need 4");
    row("TensorInvalidInfo, 4 bits", one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1),
        "t: x: TensorInvalidInfo: 4-bit elements do not fill whole bytes");
    row("ValidationOverflow", one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", 4),
        "t: x: ValidationOverflow: the shape overflows 64 bits");
    row("ValidationOverflow, empty",
        one(R"({"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})", 0),
        "t: x: ValidationOverflow: sizes overflow 64 bits");
}
void SafeTensorsTest::refuses() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    QCOMPARE(failureOf(parseSafeTensors(storageOf(bytes.toStdString()), "t")), message);
}

void SafeTensorsTest::survivesDamage() {
    const uint32_t seed = 20260102;
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    const auto whole = formatSafeTensors(
        {{{"w", Tensor::zeros(DType::F32, {4, 4})}, {"n", Tensor::zeros(DType::I64, {3})}}, {{"k", "v"}}});
    QVERIFY(whole.has_value());
    for (int trial = 0; trial < 4000; ++trial) {
        std::string bytes = *whole;
        for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
            bytes[random() % 160] ^= static_cast<char>(1u << random() % 8);
        if (trial % 3 == 0) bytes.resize(random() % bytes.size());
        const auto file = parseSafeTensors(storageOf(bytes), "t");
        if (!file) continue;
        for (const auto& [name, tensor] : file->tensors) (void)tensor.contiguous();
    }
}

void SafeTensorsTest::readsReferenceFiles() {
    const QString folder = referenceFolder("models/mlp");
    if (folder.isEmpty()) QSKIP(kNoReference);
    const auto file = readSafeTensors((folder + "/inputs.safetensors").toStdString());
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->tensors.size(), size_t{1});
    QCOMPARE(file->tensors[0].second.sizes(), (Dims{8, 32}));
}

CUTAWAY_SUITE(SafeTensorsTest)
#include "safetensors_test.moc"
