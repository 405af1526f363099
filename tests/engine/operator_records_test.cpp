// PyTorch's notes of operators that were compiled one by one: what PyTorch 2.11 writes reads and is written the same,
// what is damaged drops itself alone, and two calls are the same where one library computes both.
#include "engine/cache/operator_records.h"

#include <QtTest>
#include <cmath>
#include <limits>

#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// As json.dump(..., indent=4) writes what aoti_compile_with_persistent_cache gives it: clamp of a tensor with bounds,
/// then a list of tensors, then what other parameters are noted as.
const std::string& written() {
    static const std::string text =
        cutaway::testing::contentOf(cutaway::testing::testFile("data/aoti_eager/op.json")).toStdString();
    return text;
}

std::vector<OperatorRecord> parsed(const std::string& text, std::vector<std::string>& remarks) {
    return parseOperatorRecords(text, "op.json", remarks);
}
QString all(const std::vector<std::string>& texts) {
    QString joined;
    for (const std::string& text : texts) joined += QString::fromStdString(text) + "\n";
    return joined;
}

TensorRecord tensor() { return {false, "cpu", -1, "torch.float32", {2, 3}, {3, 1}, false, plainKeys(DeviceType::Cpu)}; }
template <class T>
std::vector<InputRecord> with(T kind) {
    return {InputRecord{0, kind}};
}
ScalarRecord scalar(std::variant<bool, int64_t, double> value) { return {"cpu", -1, value}; }

}  // namespace

class OperatorRecordsTest : public QObject {
    Q_OBJECT

  private slots:
    /// Byte for byte, as it was read and written anew from what was understood.
    void writesWhatPyTorchWrites() {
        std::vector<std::string> remarks;
        std::vector<OperatorRecord> records = parsed(written(), remarks);
        QCOMPARE(all(remarks), QString());
        QCOMPARE(records.size(), size_t{2});
        QCOMPARE(operatorRecordsText(records), written());
        for (OperatorRecord& record : records) {
            QCOMPARE(record.problem, std::string());
            record.raw.clear();
        }
        QCOMPARE(operatorRecordsText(records), written());
        QCOMPARE(operatorRecordsText({}), std::string("[]"));
        std::string inputs;
        for (const OperatorRecord& record : records)
            for (const InputRecord& input : record.inputs) inputs += input.text() + "; ";
        QCOMPARE(inputs, std::string("f32[2, 3]; -inf; 5; [bf16[]cuda]; 'none \"{['; torch.float64; device('cpu'); "
                                     "torch.strided; True; 1e-05; "));
    }

    void damage_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("libraries");
        QTest::addColumn<QString>("says");
        const QString whole = QString::fromStdString(written());
        const QString first = "lib/cabc/c1/model.so", second = "lib/cdef/c2/model.so";
        const auto changed = [&](const QString& what, const QString& by) {
            QString text = whole;
            text.replace(text.indexOf(what), what.size(), by);
            return text;
        };
        QTest::newRow("nothing") << ""
                                 << ""
                                 << "";
        QTest::newRow("an empty list") << "[]"
                                       << ""
                                       << "";
        QTest::newRow("no list") << "{\"a\": 1}"
                                 << ""
                                 << "the file is not a list of entries, and counts as empty";
        QTest::newRow("no JSON") << "hello"
                                 << ""
                                 << "the file is not a list of entries, and counts as empty";
        QTest::newRow("cut short in the second") << whole.left(whole.size() - 60) << first << "the file ends early";
        QTest::newRow("cut short in the first") << whole.left(300) << ""
                                                << "counts as empty";
        QTest::newRow("the first is not JSON")
            << changed("\"sizes\": [", "\"sizes\": [,") << second << "entry 1 is damaged and left out";
        QTest::newRow("the first has no library")
            << changed("\"kernel_path\"", "\"path\"") << second << "entry 1 is damaged and left out: 'kernel_path'";
        QTest::newRow("the first has no inputs")
            << changed("\"meta_info\"", "\"info\"") << second << "entry 1 is damaged and left out: 'meta_info'";
        QTest::newRow("a number where an entry is") << "[7, " + whole.mid(1) << first + second << "";
        // Kept, since somebody understands it, and matching nothing.
        QTest::newRow("sizes that are not static") << changed("\"is_dynamic\": false", "\"is_dynamic\": true")
                                                   << "(Only support static shape for now)" + second << "";
        QTest::newRow("an input of a later PyTorch")
            << changed("\"string_value\"", "\"int_list_value\"") << first + "('is_dynamic' is missing)"
            << "";
    }
    void damage() {
        QFETCH(QString, text);
        QFETCH(QString, libraries);
        QFETCH(QString, says);
        std::vector<std::string> remarks;
        const std::vector<OperatorRecord> records = parsed(text.toStdString(), remarks);
        QString found;
        for (const OperatorRecord& record : records)
            found += QString::fromStdString(record.problem.empty() ? record.library : "(" + record.problem + ")");
        QCOMPARE(found, libraries);
        QVERIFY2(says.isEmpty() ? remarks.empty() : all(remarks).contains(says), qPrintable(all(remarks)));
        // What is written back is whole, and holds what was understood.
        std::vector<std::string> none;
        QCOMPARE(parsed(operatorRecordsText(records), none).size(), records.size());
        QCOMPARE(all(none), QString());
    }

    void same_data() {
        using Inputs = std::vector<InputRecord>;
        QTest::addColumn<Inputs>("a");
        QTest::addColumn<Inputs>("b");
        QTest::addColumn<bool>("same");
        const auto other = [](auto change) {
            TensorRecord record = tensor();
            change(record);
            return with(record);
        };
        const Inputs plain = with(tensor());
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QTest::newRow("equal") << plain << with(tensor()) << true;
        QTest::newRow("sizes") << plain << other([](TensorRecord& t) { t.sizes[0] = 3; }) << false;
        QTest::newRow("strides") << plain << other([](TensorRecord& t) { t.strides = {1, 2}; }) << false;
        QTest::newRow("dtype") << plain << other([](TensorRecord& t) { t.dtype = "torch.float64"; }) << false;
        QTest::newRow("device") << plain << other([](TensorRecord& t) { t.device = "cuda"; }) << false;
        QTest::newRow("its number") << plain << other([](TensorRecord& t) { t.deviceIndex = 1; }) << false;
        QTest::newRow("gradient") << plain << other([](TensorRecord& t) { t.requiresGrad = true; }) << false;
        QTest::newRow("keys of PyTorch 2.15") << plain << other([](TensorRecord& t) { t.keys = 635655225345; }) << true;
        QTest::newRow("other keys") << plain << other([](TensorRecord& t) { t.keys |= 1ull << 32; }) << false;
        QTest::newRow("length") << plain << Inputs() << false;
        QTest::newRow("order") << plain << Inputs{{1, tensor()}} << false;
        QTest::newRow("a list of one") << plain << with(std::vector{tensor()}) << false;
        QTest::newRow("lists") << with(std::vector{tensor()}) << with(std::vector{tensor()}) << true;
        QTest::newRow("lists of other lengths")
            << with(std::vector{tensor()}) << with(std::vector{tensor(), tensor()}) << false;
        QTest::newRow("integers") << with(scalar(int64_t{2})) << with(scalar(int64_t{2})) << true;
        QTest::newRow("other integers") << with(scalar(int64_t{2})) << with(scalar(int64_t{3})) << false;
        QTest::newRow("an integer and a float") << with(scalar(int64_t{2})) << with(scalar(2.0)) << false;
        QTest::newRow("an integer and a bool") << with(scalar(int64_t{1})) << with(scalar(true)) << false;
        QTest::newRow("floats") << with(scalar(0.1)) << with(scalar(0.1)) << true;
        QTest::newRow("nearly") << with(scalar(0.1)) << with(scalar(std::nextafter(0.1, 1))) << false;
        QTest::newRow("zeros") << with(scalar(0.0)) << with(scalar(-0.0)) << false;
        QTest::newRow("NaN") << with(scalar(nan)) << with(scalar(nan)) << true;
        QTest::newRow("texts") << with(TextRecord{"a"}) << with(TextRecord{"b"}) << false;
        QTest::newRow("dtypes") << with(DTypeRecord{"torch.half"}) << with(DTypeRecord{"torch.half"}) << true;
        QTest::newRow("a dtype and an integer")
            << with(DTypeRecord{"torch.float32"}) << with(scalar(int64_t{6})) << false;
        QTest::newRow("devices") << with(DeviceRecord{"cuda", 0}) << with(DeviceRecord{"cuda", {}}) << false;
        QTest::newRow("layouts") << with(LayoutRecord{"torch.strided"}) << with(LayoutRecord{"torch.strided"}) << true;
    }
    void same() {
        QFETCH(std::vector<InputRecord>, a);
        QFETCH(std::vector<InputRecord>, b);
        QFETCH(bool, same);
        QCOMPARE(sameInputs(a, b), same);
        QCOMPARE(sameInputs(b, a), same);
        // What is written reads back as the same.
        std::vector<std::string> remarks;
        const auto read = parsed(operatorRecordsText({OperatorRecord{a, "lib/a/b.so", {}, {}}}), remarks);
        QCOMPARE(read.size(), size_t{1});
        QCOMPARE(read[0].problem, std::string());
        QVERIFY(sameInputs(read[0].inputs, a));
    }
};

CUTAWAY_SUITE(OperatorRecordsTest)
#include "operator_records_test.moc"
