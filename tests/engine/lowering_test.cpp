// Lowering rules: what compiled code computes for every recorded sample of every op that has a rule, and for samples
// derived from them, beside the interpreter without libraries. With 1 and with 4 threads the bits are the same.
// Of derived samples some per op: CUTAWAY_SAMPLES=N takes more, CUTAWAY_SAMPLES=all every one. CUTAWAY_OPS=TEXT takes
// only ops whose names hold it. CUTAWAY_SANITIZED=N runs N calls per op and kind of samples under the sanitizers;
// without it one recorded call per op.
#include <QtTest>
#include <chrono>
#include <map>

#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/engine/lowering_samples.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr size_t kPerGraph = 200, kUsual = 8;
constexpr int64_t kSampleSizes[] = {0, 1, 15, 16, 17, 4099};
constexpr DType kDtypesTried[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64,
                                  DType::I32, DType::I16, DType::I8,  DType::U8,   DType::Bool};

struct Text {
    std::string arguments;
    Operands operands = Operands::Stored;
};
std::vector<Text> textsOf(const std::vector<std::string>& samples, Operands operands = Operands::Stored) {
    std::vector<Text> texts;
    for (const std::string& sample : samples) texts.push_back({sample, operands});
    return texts;
}

/// Calls that compiled code once got wrong, where no sample stands for them.
const std::multimap<std::string_view, const char*> kMended = {
    {"aten.argmax.default", "u64[40]?, 0"},
    {"aten.argmin.default", "u64[3, 40]?, 1"},
    {"aten.max.dim", "u64[3, 40]?, 1"},
    {"aten.amin.default", "u64[3, 40]?, [1]"},
    {"aten.var.correction", "f32[4, 3], [1], correction = nan"},
    {"aten.var_mean.correction", "f64[4, 3], [0], correction = nan"},
    {"prims.convert_element_type.default", "f32[211]?, torch.uint64"},
    {"prims.convert_element_type.default", "f64[211]?, torch.uint64"},
    {"prims.convert_element_type.default", "f32[3]?, torch.uint64"},
    {"prims.convert_element_type.default", "f32[211]?, torch.uint32"},
    {"prims.convert_element_type.default", "f64[211]?, torch.int32"},
    {"prims.convert_element_type.default", "f64[211]?, torch.int16"},
    {"prims.convert_element_type.default", "f64[211]?, torch.uint8"},
    {"aten.pow.Tensor_Scalar", "f64[211]?, -0.5"},
    {"aten.pow.Tensor_Scalar", "f32[211]?, -2"},
    {"aten.max_pool2d_with_indices.default", "f32[2, 40, 7]?, [3, 3], [2, 2], [1, 1]"},
    {"prims.prepare_softmax_online.default", "i32[3, 40], 1"},
    {"prims._low_memory_max_pool_offsets_to_indices.default", "i8[1, 4, 4]<4, [1, 1], [8, 8], [1, 1], [0, 0], [1, 1]"},
    {"aten.softshrink_backward.default", "f32[40], f32[40], -1.0"},
    {"aten.hardshrink_backward.default", "u8[2, 3], u8[2, 3], 1.5"},
};

/// Samples of one op: the lines of its row, all that are recorded, and those above.
struct OpTexts {
    std::vector<std::string> rows, recorded, mended;
};

using Deriving = std::vector<Text> (*)(const OpTexts&);
struct Kind {
    const char* name;
    Deriving derive;
    bool whole;  // all of them in every run
};
const Kind kKinds[] = {
    {"recorded", [](const OpTexts& opTexts) { return textsOf(opTexts.recorded); }, true},
    {"sizes", [](const OpTexts& own) { return textsOf(resizedSamples(own.rows, kSampleSizes, own.recorded)); }, false},
    {"dtypes", [](const OpTexts& own) { return textsOf(retypedSamples(own.rows, kDtypesTried, own.recorded)); }, false},
    {"once wrong", [](const OpTexts& own) { return textsOf(own.mended); }, true},
    {"odd values", [](const OpTexts& own) { return textsOf(oddSamples(own.rows)); }, false},
    {"layouts",
     [](const OpTexts& own) {
         std::vector<Text> texts;
         for (const std::string& row : own.rows)
             for (const Operands operands : kLayouts) texts.push_back({row, operands});
         return texts;
     },
     false},
};

/// `count` of them, spread evenly.
std::vector<Text> spread(std::vector<Text> texts, size_t count) {
    if (texts.size() <= count) return texts;
    std::vector<Text> chosen;
    for (size_t i = 0; i < count; ++i) chosen.push_back(texts[i * texts.size() / count]);
    return chosen;
}

void failWhere(const std::vector<std::string>& wrong, const std::vector<LoweringCase>& cases) {
    for (size_t i = 0; i < cases.size(); ++i)
        if (!wrong[i].empty()) QTest::qFail(("\n" + cases[i].name + "\n    " + wrong[i]).c_str(), __FILE__, __LINE__);
}

}  // namespace

class LoweringTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase();
    void everyRuleMakesKernels();
    void agrees_data();
    void agrees();
    void sanitizersAreQuiet();

  private:
    std::vector<LoweringCase> casesOf(const Kind& kind, size_t perOp, size_t& refused) const;
    std::vector<std::pair<const Op*, OpTexts>> m_ops;
};

void LoweringTest::initTestCase() {
    const auto record = readOpRecord();
    QVERIFY2(record, record ? "" : record.error().text().c_str());
    const std::string only = qgetenv("CUTAWAY_OPS").toStdString();
    for (const Op* op : loweredOps()) {
        if (op->name().find(only) == std::string::npos) continue;
        OpTexts texts;
        for (const OpSample& sample : samplesOf(*op)) texts.rows.push_back(sample.text);
        if (const auto found = record->find(op->name()); found != record->end())
            for (const RecordedSample& sample : found->second) texts.recorded.push_back(sample.text);
        for (auto [call, end] = kMended.equal_range(op->name()); call != end; ++call)
            texts.mended.push_back(call->second);
        m_ops.emplace_back(op, std::move(texts));
    }
}

/// Otherwise nothing would be compared: a call without a kernel runs by the interpreter's own.
void LoweringTest::everyRuleMakesKernels() {
    QStringList never;
    for (const auto& [op, texts] : m_ops) {
        bool lowered = false;
        for (const std::string& text : texts.recorded) {
            const auto one = makeCase(*op, text, op->is(Tag::View) ? Operands::Computed : Operands::Stored);
            const auto preview = one ? previewCpu(one->module) : Result<BuildInfo>(one.error());
            lowered = preview && !preview->kernels.empty() &&
                      std::none_of(preview->kernels.begin(), preview->kernels.end(), [](const KernelInfo& kernel) {
                          return kernel.kind.starts_with("reference") || kernel.kind.starts_with("portable");
                      });
            if (lowered) break;
        }
        if (!lowered) never << QString::fromStdString(op->name());
    }
    QVERIFY2(never.isEmpty(), qPrintable("no kernel for any sample of: " + never.join(", ")));
}

std::vector<LoweringCase> LoweringTest::casesOf(const Kind& kind, size_t perOp, size_t& refused) const {
    std::vector<LoweringCase> cases;
    for (const auto& [op, texts] : m_ops)
        for (const Text& text : spread(kind.derive(texts), perOp)) {
            auto one = makeCase(*op, text.arguments, text.operands);
            if (!one) ++refused;
            else cases.push_back(std::move(*one));
        }
    return cases;
}

void LoweringTest::agrees_data() {
    QTest::addColumn<size_t>("kind");
    for (size_t i = 0; i < std::size(kKinds); ++i) QTest::newRow(kKinds[i].name) << i;
}
void LoweringTest::agrees() {
    QFETCH(size_t, kind);
    const auto begin = std::chrono::steady_clock::now();
    const QByteArray wanted = qgetenv("CUTAWAY_SAMPLES");
    const size_t count = wanted == "all" || kKinds[kind].whole ? SIZE_MAX
                         : wanted.isEmpty()                    ? kUsual
                                                               : wanted.toULong();
    size_t refused = 0;
    const std::vector<LoweringCase> cases = casesOf(kKinds[kind], count, refused);
    for (const Way& way : judgedWays()) failWhere(wrongOf(way, cases, kPerGraph), cases);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    qInfo("%zu calls of %zu ops in %.0f s; %zu refused", cases.size(), m_ops.size(), seconds.count(), refused);
}

/// Nothing reads or writes beside its operands, and nothing is left to the compiler.
void LoweringTest::sanitizersAreQuiet() {
    QTemporaryDir folder;
    const auto way = sanitizedCode(folder.path().toStdString());
    QVERIFY2(way, way ? "" : way.error().text().c_str());
    const auto perOp = static_cast<size_t>(qEnvironmentVariableIntValue("CUTAWAY_SANITIZED"));
    std::vector<LoweringCase> cases;
    size_t refused = 0;
    for (const Kind& kind : std::span(kKinds).first(perOp > 0 ? std::size(kKinds) : 1))
        for (LoweringCase& one : casesOf(kind, std::max<size_t>(perOp, 1), refused)) cases.push_back(std::move(one));
    failWhere(wrongOf(*way, cases, kPerGraph), cases);
    qInfo("%zu calls", cases.size());
}

CUTAWAY_SUITE(LoweringTest)
#include "lowering_test.moc"
