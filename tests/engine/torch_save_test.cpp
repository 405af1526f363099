// torch.save files: every opcode and allowed name, sharing, and all that must be refused.
#include "engine/formats/torch_save.h"

#include <QtTest>
#include <random>

#include "engine/formats/byte_source.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/pickle_builder.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;
using namespace cutaway::testing::pickle;

class TorchSaveTest : public QObject {
    Q_OBJECT

  private slots:
    void readsValues_data();
    void readsValues();
    void readsTensors_data();
    void readsTensors();
    void keepsSharing();
    void stateDictNamesAreJoined();
    void refuses_data();
    void refuses();
    void survivesDamage();
    void readsReferenceFiles();
};

namespace {

const std::string kFloats = global("torch", "FloatStorage");
/// 1.0, 2.0, 3.0, 4.0
const std::string kFour = std::string("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40", 16);

std::string show(const SavedValue& value);
std::string showTensor(const Tensor& tensor) {
    std::string out(info(tensor.dtype()).abbreviation);
    out += "[";
    for (size_t i = 0; i < tensor.sizes().size(); ++i) out += (i ? "," : "") + std::to_string(tensor.sizes()[i]);
    out += "](";
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        const Scalar item = tensor.item(i);
        if (i) out += " ";
        if (const auto* complex = std::get_if<std::complex<double>>(&item))
            out += QString("%1%2%3j")
                       .arg(complex->real())
                       .arg(complex->imag() < 0 ? "" : "+")
                       .arg(complex->imag())
                       .toStdString();
        else out += QString::number(toDouble(item)).toStdString();
    }
    return out + ")";
}
std::string show(const SavedValue& value) {
    struct Visitor {
        const SavedValue& whole;
        std::string operator()(std::monostate) const { return "None"; }
        std::string operator()(bool flag) const { return flag ? "True" : "False"; }
        std::string operator()(int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return QString::number(number, 'g', 17).toStdString(); }
        std::string operator()(std::complex<double> number) const {
            return std::to_string(number.real()) + "," + std::to_string(number.imag());
        }
        std::string operator()(const std::string& text) const { return "'" + text + "'"; }
        std::string operator()(DType dtype) const { return std::string(info(dtype).torchName); }
        std::string operator()(const Tensor& tensor) const {
            return (whole.parameter ? "parameter " : "") + showTensor(tensor);
        }
        std::string operator()(const SavedUnsupported& other) const { return "<" + other.what + ">"; }
        std::string operator()(const SavedItems& items) const {
            std::string out = whole.tuple ? "(" : "[";
            for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + show(items[i]);
            return out + (whole.tuple ? ")" : "]");
        }
        std::string operator()(const std::shared_ptr<const SavedDict>& dict) const {
            std::string out = "{";
            for (size_t i = 0; i < dict->items.size(); ++i)
                out += (i ? ", " : "") + dict->items[i].first + ": " + show(dict->items[i].second);
            return out + "}";
        }
    };
    return std::visit(Visitor{value}, value.kind);
}
QString shown(const std::string& bytes) {
    const auto value = readTorchSave(storageOf(bytes), "t.pt");
    return value ? QString::fromStdString(show(*value)) : failureOf(value);
}
void row(const char* name, const std::string& bytes, const char* expected) {
    QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << expected;
}
void valueRow(const char* name, const std::string& value, const char* expected) {
    row(name, archive(whole(value)), expected);
}

}  // namespace

void TorchSaveTest::readsValues_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("expected");
    valueRow("None", kNone, "None");
    valueRow("bools", tuple({kTrue, kFalse}), "(True, False)");
    valueRow("BININT1", "K\xff", "255");
    valueRow("BININT2", std::string("M\x01\xff", 3), "65281");
    valueRow("BININT", integer(-7), "-7");
    valueRow("LONG1", std::string("\x8a\x05\xff\xff\xff\xff\xff", 7), "-1");
    valueRow("LONG1, empty", std::string("\x8a\x00", 2), "0");
    valueRow("LONG1, positive", std::string("\x8a\x02\xff\x00", 4), "255");
    valueRow("BINFLOAT", real(0.1), "0.10000000000000001");
    valueRow("BINUNICODE", text("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
    valueRow("SHORT_BINSTRING", std::string("U\x02hi", 4), "'hi'");
    valueRow("tuples", std::string(")") + "K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87\x87", "((1), (1, 2), (1, 2, 3))");
    valueRow("tuple of nothing", ")", "()");
    valueRow("list",
             "](K\x01K\x02"
             "eK\x03"
             "a",
             "[1, 2, 3]");
    valueRow("dict", dict({{"a", "K\x01"}}) + text("b") + "K\x02s", "{a: 1, b: 2}");
    valueRow("int keys", "}K\x07K\x01s", "{7: 1}");
    valueRow("empty set", "\x8f", "[]");
    valueRow("memo",
             "K\x05q\x03"
             "h\x03\x86",
             "(5, 5)");
    valueRow("long memo", std::string("K\x05r\x00\x01\x00\x00j\x00\x01\x00\x00\x86", 13), "(5, 5)");
    valueRow(
        "ordered dict",
        call(global("collections", "OrderedDict"), {}) + "(" + text("a") + "K\x01u" + dict({{"_metadata", ")"}}) + "b",
        "{a: 1}");
    valueRow("ordered dict of pairs",
             call(global("collections", "OrderedDict"), {"](" + tuple({text("a"), "K\x01"}) + "e"}), "{a: 1}");
    valueRow("default dict",
             call(global("collections", "defaultdict"), {global("builtins", "list")}) + text("a") + "]s", "{a: []}");
    valueRow("set",
             call(global("__builtin__", "set"), {"](K\x01K\x02"
                                                 "e"}),
             "[1, 2]");
    valueRow("complex", call(global("builtins", "complex"), {real(1), real(-2)}), "1.000000,-2.000000");
    valueRow("bytes", call(global("_codecs", "encode"), {text("ab"), text("latin1")}), "'ab'");
    valueRow("dtype", global("torch", "bfloat16"), "bfloat16");
    valueRow("device", call(global("torch", "device"), {text("cuda"), "K\x01"}), "'cuda:1'");
    valueRow("size", call(global("torch", "Size"), {tuple({"K\x02", "K\x03"})}), "(2, 3)");
    row("protocol 4",
        archive(std::string("\x80\x04\x95\x0a\0\0\0\0\0\0\0\x8c\x02hi\x94\x8c\x0b"
                            "collections\x8c\x0bOrderedDict\x93)R\x86.",
                            48)),
        "('hi', {})");
}
void TorchSaveTest::readsValues() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, expected);
    QCOMPARE(shown(bytes.toStdString()), expected);
}

void TorchSaveTest::readsTensors_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("expected");
    const std::string four = storage(kFloats, "0", 4);
    row("contiguous", archive(whole(tensor(four, 0, {2, 2}, {2, 1})), {{"0", kFour}}), "f32[2,2](1 2 3 4)");
    row("transposed", archive(whole(tensor(four, 0, {2, 2}, {1, 2})), {{"0", kFour}}), "f32[2,2](1 3 2 4)");
    row("offset", archive(whole(tensor(four, 3, {}, {})), {{"0", kFour}}), "f32[](4)");
    row("expanded", archive(whole(tensor(four, 1, {3}, {0})), {{"0", kFour}}), "f32[3](2 2 2)");
    row("empty", archive(whole(tensor(storage(kFloats, "0", 0), 0, {0, 5}, {5, 1})), {{"0", ""}}), "f32[0,5]()");
    row("conj",
        archive(whole(tensor(storage(global("torch", "ComplexFloatStorage"), "0", 2), 0, {2}, {1},
                             {dict({{"conj", kTrue}})})),
                {{"0", kFour}}),
        "c64[2](1-2j 3-4j)");
    row("neg", archive(whole(tensor(four, 0, {2}, {2}, {dict({{"neg", kTrue}})})), {{"0", kFour}}), "f32[2](-1 -3)");
    row("big-endian",
        archive(whole(tensor(storage(global("torch", "ShortStorage"), "0", 2), 0, {2}, {1})),
                {{"0", std::string("\x01\x02\xff\xfe", 4)}}, {{"byteorder", "big"}}),
        "i16[2](258 -2)");
    row("cuda", archive(whole(tensor(storage(kFloats, "0", 4, "cuda:0"), 0, {1}, {1})), {{"0", kFour}}), "f32[1](1)");
    row("meta", archive(whole(tensor(storage(kFloats, "0", 4, "meta"), 0, {1}, {1}))),
        "<tensor without data (device meta)>");
    row("parameter",
        archive(whole(call(global("torch._utils", "_rebuild_parameter"),
                           {tensor(four, 0, {1}, {1}), kTrue, call(global("collections", "OrderedDict"), {})})),
                {{"0", kFour}}),
        "parameter f32[1](1)");
    row("untyped",
        archive(whole(call(global("torch._utils", "_rebuild_tensor_v3"),
                           {storage(global("torch.storage", "UntypedStorage"), "0", 16), integer(1),
                            tuple({integer(2)}), tuple({integer(1)}), kFalse,
                            call(global("collections", "OrderedDict"), {}), global("torch", "uint16")})),
                {{"0", kFour}}),
        "u16[2](16256 0)");
    row("from type",
        archive(whole(call(global("torch._tensor", "_rebuild_from_type_v2"),
                           {global("torch._utils", "_rebuild_tensor_v2"), global("torch.nn.parameter", "Parameter"),
                            tuple({four, integer(0), tuple({}), tuple({}), kFalse, kNone}), kNone})),
                {{"0", kFour}}),
        "f32[](1)");
    row("sparse", archive(whole(tuple({call(global("torch._utils", "_rebuild_sparse_tensor"), {kNone}), "K\x01"}))),
        "(<unsupported tensor kind (torch._utils _rebuild_sparse_tensor)>, 1)");
    row("bare storage", archive(whole(four), {{"0", kFour}}), "f32[4](1 2 3 4)");
}
void TorchSaveTest::readsTensors() { readsValues(); }

void TorchSaveTest::keepsSharing() {
    const std::string four = storage(kFloats, "0", 4);
    const auto value = readTorchSave(
        storageOf(archive(whole(tuple({tensor(four, 0, {2}, {1}), tensor(four, 2, {2}, {1})})), {{"0", kFour}})),
        "t.pt");
    QCOMPARE(failureOf(value), QString());
    const SavedItems& items = *value->items();
    QCOMPARE(items[0].tensor()->storage().get(), items[1].tensor()->storage().get());
    QCOMPARE(items[1].tensor()->offset(), int64_t{2});
}

void TorchSaveTest::stateDictNamesAreJoined() {
    const std::string one = tensor(storage(kFloats, "0", 4), 0, {1}, {1});
    const auto value = readTorchSave(
        storageOf(
            archive(whole(dict({{"model", dict({{"l.weight", one}, {"steps", "K\x07"}})}, {"list", "](" + one + "e"}})),
                    {{"0", kFour}})),
        "t.pt");
    QCOMPARE(failureOf(value), QString());
    const auto tensors = tensorsOf(*value);
    QCOMPARE(tensors.size(), size_t{2});
    QCOMPARE(tensors[0].first, std::string("model.l.weight"));
    QCOMPARE(tensors[1].first, std::string("list.0"));
}

void TorchSaveTest::refuses_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("expected");
    const std::string four = storage(kFloats, "0", 4);
    valueRow(
        "os.system", call(global("os", "system"), {text("true")}),
        "t.pt: data.pkl: the pickle names 'os system', which is refused: making such objects means running code of the file save plain tensors, lists, tuples and dicts of them");
    valueRow(
        "all names at once",
        tuple({global("os", "system"), global("torch", "float32"), call(global("builtins", "eval"), {text("1")})}),
        "t.pt: data.pkl: the pickle names 'os system', 'builtins eval', which is refused: making such objects means running code of the file save plain tensors, lists, tuples and dicts of them");
    row("stack global", archive(std::string("\x80\x04\x8c\x05posix\x8c\x06system\x93)R.", 22)),
        "t.pt: data.pkl: the pickle names 'posix system', which is refused: making such objects means running code of the file save plain tensors, lists, tuples and dicts of them");
    valueRow(
        "pickled module", global("torch.nn.modules.linear", "Linear") + ")\x81}b",
        "t.pt: data.pkl: the pickle names 'torch.nn.modules.linear Linear', which is refused: making such objects means running code of the file this is a whole pickled module: save its state_dict(), or export it with torch.export.save");
    valueRow("unknown opcode", "\x92", "t.pt: data.pkl: pickle: opcode 0x92 at byte 2: unknown opcode");
    valueRow("protocol 0 text", "S'x'\n", "t.pt: data.pkl: pickle: opcode 0x53 at byte 2: unknown opcode");
    row("no STOP", archive("\x80\x02N"), "t.pt: data.pkl: pickle: opcode 0x4e at byte 3: ends without STOP");
    row("protocol 9", archive("\x80\x09N."),
        "t.pt: data.pkl: pickle: opcode 0x80 at byte 0: protocol 9 (2 to 5 are read)");
    valueRow("string past the end", std::string("X\xff\xff\xff\x0f", 5),
             "t.pt: data.pkl: pickle: opcode 0x58 at byte 2: its operand is cut short or out of range");
    valueRow("empty stack", "0", "t.pt: data.pkl: pickle: opcode 0x30 at byte 2: unknown opcode");
    valueRow("nothing to stop with", "", "t.pt: data.pkl: pickle: opcode 0x2e at byte 2: the stack is empty");
    valueRow("no mark", "t", "t.pt: data.pkl: pickle: opcode 0x74 at byte 2: no MARK on the stack");
    valueRow("empty memo", "h\x07", "t.pt: data.pkl: pickle: opcode 0x68 at byte 2: memo slot 7 is empty");
    valueRow("huge memo slot", "Nr\xff\xff\xff\xff",
             "t.pt: data.pkl: pickle: opcode 0x72 at byte 3: memo slot 4294967295 is out of range");
    valueRow("call of a value", text("f") + ")R",
             "t.pt: data.pkl: pickle: opcode 0x52 at byte 9: calls something that is not a global");
    valueRow("list that holds itself",
             "]q\x01h\x01"
             "a",
             "t.pt: data.pkl: a container holds itself");
    valueRow("deep", std::string(300, ']') + std::string(299, 'a'), "t.pt: data.pkl: nested more than 256 levels deep");
    valueRow("deep tuples", "N" + std::string(400, '\x85'), "t.pt: data.pkl: nested more than 256 levels deep");
    std::string laughs = "N";
    for (int i = 0; i < 40; ++i) laughs += "q\x01h\x01\x86";
    valueRow("billion laughs", laughs, "t.pt: data.pkl: more than 10000000 values");
    valueRow("state of a list", "]}b",
             "t.pt: data.pkl: pickle: opcode 0x62 at byte 4: sets the state of a plain value");
    valueRow("other persistent id", tuple({text("module"), kNone}) + "Q",
             "t.pt: data.pkl: a persistent id that does not name a storage");
    row("truncated storage", archive(whole(tensor(four, 0, {4}, {1})), {{"0", kFour.substr(0, 12)}}),
        "t.pt: data/0: 4 elements of 4 bytes are promised, 12 bytes are there");
    row("missing storage", archive(whole(tensor(four, 0, {4}, {1}))),
        "t.pt: data/0: the storage's data is not in the file");
    row("offset out of range", archive(whole(tensor(four, 1, {4}, {1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: it reaches 5 elements of 4 bytes, the storage has 16 bytes");
    row("stride out of range", archive(whole(tensor(four, 0, {2, 2}, {3, 1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: it reaches 5 elements of 4 bytes, the storage has 16 bytes");
    row("negative offset", archive(whole(tensor(four, -1, {1}, {1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: negative storage offset -1");
    row("negative stride", archive(whole(tensor(four, 3, {2}, {-1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: negative stride -1");
    row("negative size", archive(whole(tensor(four, 0, {-2}, {1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: negative size -2");
    row("overflow", archive(whole(tensor(four, 0, {2147483647, 2147483647, 2147483647}, {0, 0, 0})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: sizes overflow 64 bits");
    row("sizes against strides", archive(whole(tensor(four, 0, {2, 2}, {1})), {{"0", kFour}}),
        "t.pt: data/0: invalid tensor: 2 sizes but 1 strides");
    row("nested from type",
        archive(whole(
            call(global("torch._tensor", "_rebuild_from_type_v2"),
                 {global("torch._tensor", "_rebuild_from_type_v2"), global("torch", "Tensor"), tuple({}), kNone}))),
        "t.pt: data.pkl: 'torch._tensor _rebuild_from_type_v2' with arguments that it does not take");
    row("no data.pkl",
        archive("")
            .replace(archive("").find("data.pkl"), 8, "data.xyz")
            .replace(archive("").rfind("data.pkl"), 8, "data.xyz"),
        "t.pt: no data.pkl; this is not a torch.save file");
}
void TorchSaveTest::refuses() { readsValues(); }

void TorchSaveTest::survivesDamage() {
    const uint32_t seed = 20260103;
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    const std::string four = storage(kFloats, "0", 4);
    const std::string good = whole(tuple({dict({{"w", tensor(four, 0, {2, 2}, {2, 1})},
                                                {"n",
                                                 "](K\x01K\x02"
                                                 "e"}}),
                                          "}"}));
    for (int trial = 0; trial < 6000; ++trial) {
        std::string bytes = good;
        for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        if (trial % 3 == 0) bytes.resize(random() % bytes.size());
        shown(archive(bytes, {{"0", kFour}}));
    }
}

void TorchSaveTest::readsReferenceFiles() {
    const QString folder = referenceFolder("formats");
    if (folder.isEmpty()) QSKIP(kNoReference);
    auto read = [&](const char* name) {
        const auto bytes = ByteSource::open((folder + "/" + name).toStdString());
        return bytes ? readTorchSave(*bytes, name) : Result<SavedValue>(bytes.error());
    };
    const auto state = read("state_dict.pt");
    QCOMPARE(failureOf(state), QString());
    const auto tensors = tensorsOf(*state);
    QCOMPARE(tensors.size(), size_t{5});
    QVERIFY(tensors[1].first == "l.weight" && tensors[3].first == "m.weight");
    QCOMPARE(tensors[1].second.storage().get(), tensors[3].second.storage().get());
    const auto kinds = read("tensors.pt");
    QCOMPARE(failureOf(kinds), QString());
    const auto all = tensorsOf(*kinds);
    QCOMPARE(all.size(), size_t{6});
    QCOMPARE(all[0].second.storage().get(), all[1].second.storage().get());
}

CUTAWAY_SUITE(TorchSaveTest)
#include "torch_save_test.moc"
