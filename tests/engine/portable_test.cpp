// Every portable function against the pure interpreter, to the bit: the recorded samples of its operator, and what is
// derived from those (sizes, dtypes, layouts, odd values), shared among 1 and among 4 threads.
#include "engine/runtime/portable/portable.h"

#include <QtTest>
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "engine/interpret/interpret.h"
#include "engine/libraries/choose.h"
#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/portable/elements.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/schedule.h"
#include "tests/engine/library_call.h"
#include "tests/engine/lowering_samples.h"
#include "tests/support/graph_eval.h"
#include "tests/support/op_record.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr int64_t kSizes[] = {0, 1, 15, 16, 17};
constexpr DType kDtypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32,
                             DType::I16, DType::I8,  DType::U8,  DType::Bool, DType::C64, DType::C128};

struct Text {
    std::string arguments;
    Operands operands = Operands::Stored;
};

/// Operators whose results may have several elements at one place in memory, which then are equal.
constexpr std::string_view kShare[] = {"aten._conj.default", "aten.empty_strided.default",
                                       "aten.new_empty_strided.default"};

/// A graph whose data its functions refuse in a run, and words of the error.
struct Wrong {
    const char* name;
    const char* graph;
    const char* words;
};
constexpr Wrong kWrong[] = {
    {"an index beyond the tensor",
     "def forward(x: \"f32[3]\", i: \"i64[2]\", y: \"f32[2]\"):\n    at = aten.add.Tensor(i, 9)\n"
     "    r = aten.scatter_add.default(x, 0, at, y)\n    return (r,)",
     "out of range for dim 0 of size 3"},
    {"a row beyond the table",
     "def forward(x: \"f32[3, 2]\", i: \"i64[2]\", y: \"f32[2, 2]\"):\n    at = aten.add.Tensor(i, 9)\n"
     "    r = aten.index_put.default(x, [at], y, True)\n    return (r,)",
     "out of range for dim 0 of size 3"},
    {"a source that is too short",
     "def forward(x: \"f32[8]\", y: \"f32[2]\"):\n    m = aten.ge.Scalar(x, -100)\n"
     "    r = aten.masked_scatter.default(x, m, y)\n    return (r,)",
     "the source has fewer elements than the mask selects"},
    {"a bag of a row beyond the table",
     "def forward(x: \"f32[3, 2]\", i: \"i64[4]\", o: \"i64[1]\"):\n    at = aten.add.Tensor(i, 9)\n"
     "    zero = aten.zeros_like.default(o)\n    b = aten._embedding_bag.default(x, at, zero)\n    y = b[0]\n"
     "    n = b[2]\n    return (y, n)",
     "out of range for a table of 3 rows"},
    {"a bag that ends behind all indices",
     "def forward(g: \"f32[2, 2]\", i: \"i64[4]\", o: \"i64[0]\", n: \"i64[2]\"):\n"
     "    wrong = aten.arange.start_step(0, 10, 5)\n"
     "    y = aten._embedding_bag_backward.default(g, i, wrong, o, n, n, 3, False, 0, False, None)\n    return (y,)",
     "offset 5 follows 0 with 4 indices"},
};

/// The samples that name a dtype, with a complex one in its place.
Texts complexSamples(const Texts& rows) {
    constexpr std::string_view kNamed = "dtype = torch.";
    Texts texts;
    for (std::string text : rows) {
        const size_t at = text.find(kNamed);
        if (at == std::string::npos) continue;
        const size_t name = at + kNamed.size();
        texts.push_back(text.replace(name, text.find_first_of(",)", name) - name, "complex64"));
    }
    return texts;
}

const Node& callNamed(const LoweringCase& one, const std::string& op) {
    for (const Node& node : one.module->graph().nodes())
        if (node.isCall(op)) return node;
    throw std::runtime_error("a graph without " + op);
}
/// The operands as the graph makes them, and the call.
Result<LibraryCallCase> libraryCallOf(const LoweringCase& one, const Node& call, const char* library) {
    LibraryCallCase made{call.op().name(), library, {call.args().begin(), call.args().end()}, {}, {}};
    NodeValues values;
    size_t next = 0;
    for (const Node& node : one.module->graph().nodes()) {
        if (&node == &call) break;
        if (node.isPlaceholder()) values.set(node, {one.inputs[next++]});
        else {
            CT_TRY(TensorList result, evaluateNode(node, values));
            values.set(node, std::move(result));
        }
    }
    for (const Node* input : call.inputs()) made.operands.emplace_back(input, values.valueOf(*input)[0]);
    return made;
}
/// Bytes from the first element to the last.
size_t extent(const Tensor& tensor) {
    int64_t elements = tensor.numel() > 0 ? 1 : 0;
    for (int64_t d = 0; d < tensor.rank() && elements > 0; ++d) elements += (tensor.size(d) - 1) * tensor.stride(d);
    return static_cast<size_t>(elements * byteSize(tensor.dtype()));
}
/// Memory for the results, filled with bytes that no result has.
std::vector<Tensor> poisonedResults(const Node& call) {
    std::vector<Tensor> results;
    const auto add = [&](const ValueType& item) {
        const TensorType* type = item.tensor();
        if (type) {
            results.push_back(Tensor::empty(type->dtype, toInts(type->sizes), toInts(type->strides)));
            std::memset(results.back().data(), 0xa5, extent(results.back()));
        } else {
            results.emplace_back();
        }
    };
    if (const TupleType* tuple = call.type().tuple())
        for (const ValueType& item : *tuple) add(item);
    else add(call.type());
    return results;
}
/// Names of the libraries that compute the operator with the bits of its portable function.
std::vector<const char*> librariesOf(const std::string& op) {
    for (const LibraryRow& row : libraryRows()) {
        if (row.op == op && &row.library == &kOneDnnBytes) return {"portable", "oneDNN int8"};
        if (row.op == op && &row.library == &kLapack) return {"LAPACK"};
    }
    return {"portable"};
}
/// The table, and linear algebra, which is called in the same way.
std::vector<portable::Function> everyFunction() {
    std::vector<portable::Function> all(portable::linearFunctions().begin(), portable::linearFunctions().end());
    for (const auto file : portable::allFunctions()) all.insert(all.end(), file.begin(), file.end());
    return all;
}
/// Empty, or what is wrong.
std::string wrongOf(const LoweringCase& one, const std::string& op, const char* library) {
    const Node& call = callNamed(one, op);
    const auto made = libraryCallOf(one, call, library);
    if (!made) return made.error().message;
    std::vector<Tensor> first;
    for (const int threads : {1, 4}) {
        std::vector<Tensor> results = poisonedResults(call);
        for (size_t i = 0; i < results.size(); ++i)
            if (results[i].defined() && extent(results[i]) < results[i].bytes() &&
                std::find(std::begin(kShare), std::end(kShare), op) == std::end(kShare))
                return "result " + std::to_string(i) + ": its elements share memory";
        const auto planned = planByLibrary(*made, results, threads);
        if (!planned) return planned.error().message;
        if (const auto run = runByLibrary(**planned, *made, results, threads); !run) return run.error().message;
        for (size_t i = 0; i < one.expected.size(); ++i) {
            if (!results[i].defined()) continue;
            const std::string wrong = beyondBound(results[i], one.expected[i], Tensor(), Bound{});
            if (!wrong.empty())
                return "result " + std::to_string(i) + " with " + std::to_string(threads) + " threads: " + wrong;
            if (!first.empty() && std::memcmp(first[i].data(), results[i].data(), extent(results[i])) != 0)
                return "result " + std::to_string(i) + ": other bits with 4 threads";
        }
        first = std::move(results);
    }
    return {};
}

}  // namespace

class PortableTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        auto record = readOpRecord();
        QVERIFY2(record, record ? "" : record.error().text().c_str());
        m_record = std::move(*record);
    }
    /// What the scheduler takes for portable is what there are functions for, and the other way round.
    void everyFunctionHasItsRow() {
        std::set<std::string_view> scheduled, present;
        for (const LibraryRow& row : libraryRows())
            if (&row.library == &kPortable || &row.library == &kOneDnnBytes || &row.library == &kLapack)
                scheduled.insert(row.op);
        for (const portable::Function& function : everyFunction()) {
            QVERIFY2(present.insert(function.op).second, function.op);
            QVERIFY2(scheduled.contains(function.op), function.op);
        }
        for (const std::string_view op : scheduled) QVERIFY2(present.contains(op), std::string(op).c_str());
    }
    void agrees_data() {
        QTest::addColumn<QString>("op");
        for (const portable::Function& function : everyFunction())
            if (!function.finds) QTest::newRow(function.op) << function.op;  // the others: host_sizes_test
    }
    void agrees() {
        QFETCH(QString, op);
        const std::string name = op.toStdString();
        size_t compared = 0, refused = 0;
        for (const Text& text : textsOf(name)) {
            const auto one = makeCase(requireOp(name), text.arguments, text.operands);
            if (!one) {
                ++refused;
                continue;
            }
            ++compared;
            for (const char* const library : librariesOf(name))
                if (const std::string wrong = ::wrongOf(*one, name, library); !wrong.empty())
                    QTest::qFail(("\n" + one->name + "\n    " + library + ": " + wrong).c_str(), __FILE__, __LINE__);
        }
        QVERIFY2(compared > 0, "no sample");
        qInfo("%zu calls, %zu refused", compared, refused);
    }
    /// Long lines are sorted by the bytes of their keys, and of few ranks only those are kept: ties, NaN and zeros of
    /// both signs among them.
    void longLines_data() {
        QTest::addColumn<QString>("op");
        QTest::addColumn<QString>("arguments");
        for (const char* dtype : {"f32", "f64", "bf16", "i64", "u8"})
            for (const int length : {127, 128, 129, 300, 2500}) {
                const QString x = QString("%1[3, %2], ").arg(dtype).arg(length);
                const auto row = [&](const char* op, const QString& rest) {
                    QTest::addRow("%s %s", op, qPrintable(x + rest)) << op << x + rest;
                };
                for (const char* descending : {"True", "False"}) {
                    row("aten.sort.default", QString("1, %1").arg(descending));
                    for (const int k : {1, 15, 100, 200})
                        if (k < length) row("aten.topk.default", QString("%1, 1, %2").arg(k).arg(descending));
                }
                row("aten.kthvalue.default", "9, 1");
            }
        for (const char* op : {"aten.cumsum.default", "aten.cumprod.default", "aten.logcumsumexp.default"})
            for (const char* sizes : {"[70, 600], 0", "[5, 7, 300], 1", "[3, 300, 2], 1", "[3, 2, 600], 2"})
                for (const char* dtype : {"f32", "bf16", "f64", "i64", "b8", "c64"}) {
                    const bool floats = QString(dtype) != "i64" && QString(dtype) != "b8";
                    const QString arguments = QString(dtype) + sizes;
                    if (floats || !QString(op).contains("log"))
                        QTest::addRow("%s %s", op, qPrintable(arguments)) << op << arguments;
                }
        // Elements in chunks, over dims that become one and dims that do not.
        for (const auto& [op, arguments] : std::initializer_list<std::pair<const char*, const char*>>{
                 {"aten.mul.Tensor", "c64[3, 5, 700], c64[3, 1, 700]"},
                 {"aten.mul.Tensor", "c64[40, 3, 70], c64[70]"},
                 {"aten.mul.Tensor", "c128[2, 3, 300], c64[2, 3, 300]"},
                 {"aten.sub.Tensor", "c64[4, 300], f32[4, 300], alpha=2"},
                 {"aten.complex.default", "f32[7, 700], f32[700]"},
                 {"aten.where.self", "b8[3, 700], c64[3, 700], c64[]"},
                 {"aten.abs.default", "c64[7, 3, 100]"},
                 {"aten.gcd.default", "i32[5, 700], i64[5, 700]"}})
            QTest::addRow("%s %s", op, arguments) << op << QString(arguments);
    }
    void longLines() {
        QFETCH(QString, op);
        QFETCH(QString, arguments);
        const std::string name = op.toStdString();
        Texts texts = oddSamples({arguments.toStdString()});
        texts.push_back(arguments.toStdString());
        for (const std::string& text : texts) {
            const auto one = makeCase(requireOp(name), text, Operands::Stored);
            QVERIFY2(one, one ? "" : one.error().text().c_str());
            const std::string wrong = ::wrongOf(*one, name, "portable");
            QVERIFY2(wrong.empty(), wrong.c_str());
        }
    }
    /// In a program that stands alone at least one of an operator's samples is a call of the portable function.
    void isScheduled_data() { agrees_data(); }
    void isScheduled() {
        QFETCH(QString, op);
        QString kinds;
        for (const Text& text : textsOf(op.toStdString())) {
            const auto one = makeCase(requireOp(op.toStdString()), text.arguments, text.operands);
            const auto planned =
                one ? scheduled(one->module, kCpuTarget) : Result<std::shared_ptr<const Module>>(one.error());
            const auto preview = planned ? previewCpu(forExport(*planned)) : Result<BuildInfo>(planned.error());
            if (!preview) continue;
            for (const KernelInfo& kernel : preview->kernels) {
                QVERIFY2(!kernel.kind.starts_with("reference: " + op.toStdString()), one->name.c_str());
                if (QString::fromStdString(kernel.kind) == "portable: " + op) return;
                if (kernel.kind.ends_with(" (oneDNN int8)") || kernel.kind.ends_with(" (LAPACK)")) return;
            }
        }
        if (op == "aten.copy.default") return;   // a kernel; in place it is none
        if (op == "aten.ormqr.default") return;  // written out, unless that is turned off
        QFAIL("never");
    }
    /// In a program that runs beside the engine, the engine's own function computes what it is faster at.
    void isLeftToTheEngine() {
        const auto one =
            makeCase(requireOp("aten._grouped_mm.default"), "f32[2, 4, 8], f32[2, 8, 4]", Operands::Stored);
        QVERIFY(one);
        const auto planned = scheduled(one->module, kCpuTarget);
        QVERIFY(planned);
        const auto beside = previewCpu(*planned), alone = previewCpu(forExport(*planned));
        QVERIFY(beside && alone);
        QCOMPARE(beside->kernels.at(0).kind, std::string("reference: aten._grouped_mm.default"));
        QCOMPARE(alone->kernels.at(0).kind, std::string("portable: aten._grouped_mm.default"));
        QCOMPARE(whyNoLibrary(callNamed(*one, "aten._grouped_mm.default"), kCpuTarget),
                 std::string("the engine's own function is faster at float32"));
    }
    /// Factorisations are LAPACK's: of matrices of this size none takes a second, by the interpreter or compiled.
    void largeMatrices_data() {
        QTest::addColumn<QString>("call");
        for (const char* call :
             {"aten._linalg_eigh.default(x)", "aten.linalg_eig.default(x)", "aten._linalg_svd.default(x)",
              "aten.linalg_qr.default(x)", "aten.linalg_inv_ex.default(x)", "aten._linalg_solve_ex.default(x, x)"})
            QTest::newRow(call) << QString(call);
    }
    void largeMatrices() {
        QFETCH(QString, call);
        const auto module = moduleOf("def forward(x: \"f32[160, 160]\"):\n    s = " + call.toStdString() +
                                     "\n    r = s[0]\n    return (r,)");
        const std::vector<Tensor> inputs = drawnInputs(*module, 3);
        QElapsedTimer clock;
        clock.start();
        const auto expected = referenceOutputs(*module, inputs);
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        QVERIFY2(program->info().kernels.at(0).kind.ends_with("(LAPACK)"), program->info().kernels[0].kind.c_str());
        QVERIFY(runCpu(*program, inputs, {}).has_value());
        QVERIFY2(clock.elapsed() < 3000, qPrintable(QString::number(clock.elapsed()) + " ms"));
    }
    /// Whatever the interpreter runs can be scheduled, also where what it reads is computed in the same kernel.
    void nothingFailsTheSchedule() {
        QStringList failed;
        for (const Op* op : allOps())
            for (const OpSample& sample : samplesOf(*op))
                for (const Operands operands : {Operands::Stored, Operands::Computed}) {
                    const auto one = makeCase(*op, sample.text, operands);
                    const auto preview = one ? previewCpu(one->module) : Result<BuildInfo>(BuildInfo());
                    if (!preview) failed << QString::fromStdString(one->name + ": " + preview.error().message);
                }
        QVERIFY2(failed.isEmpty(), qPrintable(failed.join("\n")));
    }
    void runsInPrograms() {
        const auto module = moduleOf(
            "def forward(x: \"f64[40, 33]\", y: \"f64[33, 700]\"):\n    p = aten.mm.default(x, y)\n"
            "    s = aten.cumsum.default(p, 1)\n    o = aten.sort.default(s, 1, True)\n    v = o[0]\n    i = o[1]\n"
            "    return (v, i)");
        const std::vector<Tensor> inputs = drawnInputs(*module, 3);
        const auto expected = referenceOutputs(*module, inputs);
        QVERIFY(expected);
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        for (const KernelInfo& kernel : program->info().kernels)
            QVERIFY2(kernel.kind.starts_with("portable: aten."), kernel.kind.c_str());
        for (const int threads : {1, 4}) {
            CpuRunOptions options;
            options.threads = threads;
            const auto run = runCpu(*program, inputs, options);
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            for (size_t i = 0; i < expected->size(); ++i)
                QCOMPARE(QString::fromStdString(beyondBound(run->outputs[i], (*expected)[i], Tensor(), Bound{})),
                         QString());
        }
    }
    /// What is written in place is seen by whoever shares the memory, and is the call's result.
    void inPlace() {
        const auto module = moduleOf(
            "def forward(x: \"f32[6, 4]\", i: \"i64[5]\", y: \"f32[5, 4]\", z: \"bf16[4]\"):\n"
            "    c = aten.clone.default(x)\n    t = aten.transpose.int(y, 0, 1)\n"
            "    p = aten.index_put_.default(c, [i], y, True)\n    e = aten.mul.Tensor(p, 3)\n"
            "    w = aten.transpose.int(c, 0, 1)\n    s = aten.index_add_.default(w, 1, i, t)\n"
            "    f = aten.mul.Tensor(s, 3)\n    r = aten.select.int(c, 0, 2)\n    k = aten.copy_.default(r, z)\n"
            "    d = aten.mul.Tensor(c, 2)\n    u = aten.copy_.default(x, d)\n    return (e, f, k, d, u)");
        const std::vector<Tensor> inputs = drawnInputs(*module, 3);
        std::vector<Tensor> own;
        for (const Tensor& input : inputs) own.push_back(input.clone());
        const auto expected = interpret(*module, own, {.pure = true});
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        QStringList kinds;
        for (const KernelInfo& kernel : program->info().kernels) kinds << QString::fromStdString(kernel.kind);
        QCOMPARE(
            kinds.join(", "),
            "pointwise, portable: aten.index_put_.default, pointwise, portable: aten.index_add_.default, pointwise, "
            "portable: aten.copy_.default, pointwise, portable: aten.copy_.default");
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (size_t i = 0; i < expected->size(); ++i)
            QCOMPARE(QString::fromStdString(beyondBound(run->outputs[i], (*expected)[i], Tensor(), Bound{})),
                     QString());
    }
    void wrongDataAreErrors_data() {
        QTest::addColumn<size_t>("row");
        for (size_t i = 0; i < std::size(kWrong); ++i) QTest::newRow(kWrong[i].name) << i;
    }
    void wrongDataAreErrors() {
        QFETCH(size_t, row);
        const auto module = moduleOf(kWrong[row].graph);
        const std::vector<Tensor> inputs = drawnInputs(*module, 3);
        QVERIFY(!referenceOutputs(*module, inputs));
        const auto program = buildCpu(module);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY(!run);
        QVERIFY2(run.error().text().find(kWrong[row].words) != std::string::npos, run.error().text().c_str());
    }
    /// Whole rows of float16 are converted by the processor, and the rest of a row one by one: all alike.
    void halves() {
        constexpr int64_t kRow = 29;  // no whole number of lanes
        uint16_t halves[kRow];
        float wide[kRow];
        for (uint32_t first = 0; first < 65536; first += kRow) {
            for (uint32_t i = 0; i < kRow; ++i) halves[i] = static_cast<uint16_t>(first + i);
            widenHalves(halves, kRow, wide);
            for (int64_t i = 0; i < kRow; ++i) {
                const auto one = std::bit_cast<uint32_t>(portable::wide(portable::Half{halves[i]}));
                const bool same = std::isnan(wide[i]) ? std::isnan(std::bit_cast<float>(one))
                                                      : one == std::bit_cast<uint32_t>(wide[i]);
                QVERIFY2(same, qPrintable(QString::number(halves[i], 16)));
            }
        }
        std::mt19937 random(20261123);
        for (int row = 0; row < 20000; ++row) {
            for (float& value : wide) {
                // Most of the range of float16, also what is halfway between two of them, and beyond both its ends.
                const auto bits = static_cast<uint32_t>(random()), exponent = 127 - 26 + bits % 44;
                const uint32_t low = bits % 4 == 0 ? 0x1000u : bits >> 3 & 0x1FFFu;
                value = std::bit_cast<float>((bits & 0x80000000u) | exponent << 23 | (bits >> 8 & 0x7FE000u) | low);
            }
            narrowToHalves(wide, kRow, halves);
            for (int64_t i = 0; i < kRow; ++i)
                QVERIFY2(halves[i] == portable::toHalf(wide[i]).bits,
                         qPrintable(QString::number(double(wide[i]), 'g', 12)));
        }
    }

  private:
    /// Recorded samples first.
    std::vector<Text> textsOf(const std::string& op) const {
        Texts rows, recorded;
        for (const OpSample& sample : samplesOf(requireOp(op))) rows.push_back(sample.text);
        if (const auto found = m_record.find(op); found != m_record.end())
            for (const RecordedSample& sample : found->second) recorded.push_back(sample.text);
        std::vector<Text> texts;
        const auto add = [&](const Texts& all) {
            for (const std::string& text : all) texts.push_back({text});
        };
        add(recorded);
        add(rows);
        add(resizedSamples(rows, kSizes, recorded));
        add(retypedSamples(rows, kDtypes, recorded));
        add(complexSamples(rows));
        add(oddSamples(rows));
        for (const std::string& row : rows)
            for (const Operands operands : kLayouts) texts.push_back({row, operands});
        return texts;
    }
    std::map<std::string, std::vector<RecordedSample>> m_record;
};

CUTAWAY_SUITE(PortableTest)
#include "portable_test.moc"
