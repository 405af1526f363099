// The second printer of loop nests. Without a GPU: what it prints, and that NVRTC's language takes it where a compiler
// is there (nvcc in PATH). With CUTAWAY_CUDA_FOLDER=DIR it writes DIR/kernels.cu: a program for a machine with a GPU,
// which runs every kernel, compares with what the kernels mean, and times large ones against a copy.
#include "engine/codegen/cuda_printer.h"

#include <QtTest>
#include <random>

#include "engine/codegen/cuda_prelude.h"
#include "engine/loops/interpret.h"
#include "engine/loops/kernel_rules.h"
#include "engine/loops/nest_text.h"
#include "engine/support/check.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct CudaSample {
    QString name;
    Kernel kernel;
    TargetInfo target;
    size_t elements;   // of each buffer
    double megabytes;  // that must be read and written; of large ones
};

TargetInfo gpu(int lanes, int indexBits = 64) {
    TargetInfo target = kH100Target;
    target.loops.lanes = lanes;
    target.loops.indexBits = indexBits;
    return target;
}

std::vector<CudaSample> cudaSamples(bool large) {
    const int64_t n = large ? 4096 : 40, m = large ? 4096 : 33;
    const double one = static_cast<double>(n * m) * 4 / 1e6;
    const auto elements = static_cast<size_t>(n * m);
    auto named = [&](const char* name, Kernel kernel) {
        kernel.name = std::string(large ? "large_" : "small_") + name;
        return kernel;
    };
    const int64_t all = large ? n * m : 20 * 1024;
    Kernel online = named("online", softmax(n, m));
    TargetInfo longRows = gpu(256);
    longRows.loops.rowBytes = 64;
    longRows.loops.onlineSoftmax = true;
    CT_CHECK(onlineSoftmax(online, longRows).size() == 1, "the rows are long");
    const int64_t joined = large ? n * m / 4 : 150;
    return {{"pointwise", named("pointwise", gelu(n * m)), gpu(256, 32), elements, 2 * one},
            {"row reduction", named("rows", softmax(n, m)), gpu(256), elements, 2 * one},
            {"short rows", named("short", softmax(n * m / 100, 100)), gpu(256), elements, 2 * one},
            {"rows of a few", named("few", softmax(n * m / 6, 6)), gpu(256), elements, 2 * one},
            {"split reduction", named("split", largest(1, all)), gpu(256), static_cast<size_t>(all),
             static_cast<double>(all) * 4 / 1e6},
            {"outer reduction", named("outer", columnSums(n, m)), gpu(256, 32), elements, one},
            {"transpose", named("transpose", transpose(n, m)), gpu(32), elements, 2 * one},
            {"gather", named("gather", gather(n * m)), gpu(256), elements, 4 * one},
            {"scatter", named("scatter", scatterAdded(n * m / 33, n * m / 99, 33)), gpu(32), elements, one * 4 / 3},
            {"online softmax", online, longRows, elements, 2 * one},
            {"concatenation", named("beside", beside(joined, joined / 4, 7)), gpu(256), static_cast<size_t>(joined * 4),
             static_cast<double>(joined) * 3 * 1.25 * 2 * 4 / 1e6}};
}

LoweredKernel lowered(const CudaSample& sample) {
    return lowerLoops(sample.kernel, choosePlan(sample.kernel, sample.target), sample.target);
}
PrintedKernel printed(const CudaSample& sample) { return printCuda(lowered(sample)); }
QString functions(const CudaSample& sample) { return QString::fromStdString(printed(sample).source); }

QString bytesOf(const std::vector<char>& bytes) {
    QStringList words;
    for (size_t i = 0; i + 3 < bytes.size(); i += 4) {
        uint32_t word = 0;
        std::memcpy(&word, &bytes[i], 4);
        words += QString::number(word) + "u";
    }
    return words.join(",");
}

/// One kernel as an entry of the program's table, with its data.
QString entry(const CudaSample& sample, int number, bool large) {
    const LoweredKernel kernel = lowered(sample);
    QString text = QString::fromStdString(printCuda(kernel).source), launches, sizes, workspace;
    for (size_t i = 0; i < kernel.nests.size(); ++i)
        launches += QStringLiteral("{(const void*)%1, %2, %3, %4},")
                        .arg(QString::fromStdString(kernel.functionOf(i)))
                        .arg(kernel.nests[i].range.value())
                        .arg(kernel.nests[i].threads)
                        .arg(kernel.nests[i].unit);
    for (const Workspace& space : kernel.workspace)
        workspace += QString::number(space.count.value() * byteSize(space.dtype)) + ",";
    QStringList initial, expected;
    Memory memory(sample.kernel, sample.elements, 7);
    for (size_t b = 0; b < sample.kernel.buffers.size(); ++b) {
        sizes += QStringLiteral("{%1, %2},")
                     .arg(memory.bytes[b].size())
                     .arg(sample.kernel.buffers[b].dtype == DType::F32 ? 1 : 0);
        if (!large) initial += QStringLiteral("{%1}").arg(bytesOf(memory.bytes[b]));
    }
    if (!large) {
        interpretKernel(sample.kernel, memory.pointers, {});
        for (const auto& bytes : memory.bytes) expected += QStringLiteral("{%1}").arg(bytesOf(bytes));
    }
    text +=
        QStringLiteral(
            "static void add%1(std::vector<Case>& all) {\n    all.push_back({\"%2\", %3, {%4}, {%5}, {%6}, {%7}, {%8}});\n}\n")
            .arg(number)
            .arg(sample.name)
            .arg(sample.megabytes)
            .arg(launches, sizes, workspace, initial.join(","), expected.join(","));
    return text;
}

constexpr const char* kHeader = R"(#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>
struct Launch { const void* function; unsigned long range; int threads; long perBlock; };
struct Buffer { size_t bytes; int floats; };
struct Case {
    const char* name; double megabytes;
    std::vector<Launch> launches; std::vector<Buffer> buffers; std::vector<size_t> workspace;
    std::vector<std::vector<unsigned>> initial, expected;
};
)";
constexpr const char* kMain = R"(
static float copyTime(size_t bytes) {
    char *a, *b; cudaMalloc(&a, bytes); cudaMalloc(&b, bytes);
    cudaEvent_t from, to; cudaEventCreate(&from); cudaEventCreate(&to);
    float best = 1e9f;
    for (int i = 0; i < 20; ++i) { cudaEventRecord(from); cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice); cudaEventRecord(to); cudaEventSynchronize(to); float ms; cudaEventElapsedTime(&ms, from, to); if (ms < best) best = ms; }
    cudaFree(a); cudaFree(b);
    return best;
}
int main() {
    std::vector<Case> all; addAll(all);
    cudaDeviceProp device; cudaGetDeviceProperties(&device, 0);
    const float copy = copyTime(64u << 20);
    printf("%s, copy %.0f GB/s\n", device.name, 2 * (64 << 20) / copy / 1e6);
    int wrong = 0;
    for (Case& c : all) {
        std::vector<void*> pointers;
        auto memory = [&](size_t bytes) { void* p; cudaMalloc(&p, bytes); cudaMemset(p, 0, bytes); pointers.push_back(p); return p; };
        for (size_t b = 0; b < c.buffers.size(); ++b) { void* p = memory(c.buffers[b].bytes); if (!c.initial.empty()) cudaMemcpy(p, c.initial[b].data(), c.buffers[b].bytes, cudaMemcpyHostToDevice); }
        for (size_t bytes : c.workspace) memory(bytes);
        void** p; int* fault; cudaMalloc(&p, 8 * pointers.size()); cudaMalloc(&fault, 4); cudaMemset(fault, 0, 4);
        cudaMemcpy(p, pointers.data(), 8 * pointers.size(), cudaMemcpyHostToDevice);
        const long none = 0;
        auto run = [&] {
            for (const Launch& l : c.launches) {
                long begin = 0, end = (long)l.range;
                void* args[] = {pointers.data(), (void*)&none, &begin, &end, &fault};
                size_t blocks = (l.range + l.perBlock - 1) / l.perBlock; if (blocks > 65535) blocks = 65535;
                cudaLaunchKernel(l.function, dim3((unsigned)blocks), dim3((unsigned)l.threads), args, 0, 0);
            }
        };
        run();
        cudaError_t status = cudaDeviceSynchronize();
        if (status != cudaSuccess) { printf("%s: %s\n", c.name, cudaGetErrorString(status)); return 1; }
        if (!c.expected.empty()) {
            size_t bad = 0; double worst = 0;
            for (size_t b = 0; b < c.buffers.size(); ++b) {
                std::vector<unsigned> got(c.expected[b].size()); cudaMemcpy(got.data(), pointers[b], c.buffers[b].bytes, cudaMemcpyDeviceToHost);
                for (size_t i = 0; i < got.size(); ++i) {
                    if (!c.buffers[b].floats) { bad += got[i] != c.expected[b][i]; continue; }
                    float g, e; memcpy(&g, &got[i], 4); memcpy(&e, &c.expected[b][i], 4);
                    const double error = std::fabs((double)g - e) / (std::fabs((double)e) + 1e-30);
                    if (!(std::fabs((double)g - e) <= 2e-6 * std::fabs((double)e) + 1e-6) && g != e) ++bad;
                    if (error > worst) worst = error;
                }
            }
            printf("%-16s %s, worst relative error %.1e\n", c.name, bad ? "WRONG" : "right", worst);
            wrong += bad != 0;
        } else {
            cudaEvent_t from, to; cudaEventCreate(&from); cudaEventCreate(&to);
            float best = 1e9f;
            for (int i = 0; i < 20; ++i) { cudaEventRecord(from); run(); cudaEventRecord(to); cudaEventSynchronize(to); float ms; cudaEventElapsedTime(&ms, from, to); if (ms < best) best = ms; }
            printf("%-16s %.3f ms, %.0f GB/s, %.0f%% of the copy\n", c.name, best, c.megabytes / best, 100 * c.megabytes / best / (2 * (64 << 20) / copy / 1e6));
        }
        for (void* q : pointers) cudaFree(q);
    }
    return wrong;
}
)";

}  // namespace

class CudaPrinterTest : public QObject {
    Q_OBJECT

  private slots:
    /// Warps by themselves, in registers; what each of them has meets in shared memory, between two barriers for all.
    void lanesMeetInSharedMemory() {
        const CudaSample sample{"rows", softmax(3, 512), gpu(128), 1536, 0};
        const QString text = functions(sample);
        QVERIFY2(text.contains("__shfl_xor_sync(0xffffffffu, t") && text.contains("[4];\n"), qPrintable(text));
        const LoopNest nest =
            lowerLoops(sample.kernel, choosePlan(sample.kernel, sample.target), sample.target).nests[0];
        int64_t vectorLoops = 0;
        forEachStmt(nest.body, [&](const Stmt& stmt) {
            const auto* loop = std::get_if<For>(&stmt.node);
            vectorLoops += loop != nullptr && loop->lanes > 1;
        });
        QCOMPARE(text.count("__syncthreads();"), 2 * (vectorLoops - 1));  // the last one stores
        QVERIFY(!functions({"warp", softmax(3, 40), gpu(32), 120, 0}).contains("__syncthreads"));
    }
    /// Adjacent threads have adjacent elements of a row, and rows do not wait for each other.
    void shortRowsAreOfAWarp_data() {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("lanes");
        QTest::newRow("half a block") << 6144 << 128 << 32;
        QTest::newRow("some for each thread") << 6144 << 1024 << 32;
        QTest::newRow("few rows") << 64 << 1024 << 256;
        QTest::newRow("longer") << 6144 << 1025 << 256;
        QTest::newRow("a part of a warp") << 50000 << 6 << 8;
        QTest::newRow("two") << 50000 << 2 << 2;
    }
    void shortRowsAreOfAWarp() {
        QFETCH(int, rows);
        QFETCH(int, length);
        QFETCH(int, lanes);
        const CudaSample sample{"rows", softmax(rows, length), kH100Target, 0, 0};
        const LoopPlan plan = choosePlan(sample.kernel, sample.target);
        QCOMPARE(plan.vectors, VectorOver::Inner);
        QCOMPARE(plan.lanes, lanes);
        const LoweredKernel made = lowered(sample);
        const PrintedKernel kernel = printCuda(made);
        const QString text = QString::fromStdString(kernel.source);
        QCOMPARE(made.nests[0].threads, 256);
        QCOMPARE(made.nests[0].unit, int64_t{256 / lanes});
        QCOMPARE(text.contains("__syncthreads"), lanes == 256);
        QCOMPARE(text.contains("threadIdx.x % " + QString::number(lanes) + ";"), lanes < 256);
        QCOMPARE(text.contains(" << (threadIdx.x % 32 - k)), t"), lanes < 32);
        QVERIFY2(!text.contains("k * (" + QString::number(length) + "L)"), qPrintable(text));
    }
    /// Both what is read and what is written lies side by side for adjacent threads, and so in different banks between.
    void transposesGoThroughSharedMemory() {
        for (const auto& [n, m] : {std::pair{8192, 8192}, std::pair{50, 70}}) {
            const CudaSample sample{"turned", transpose(n, m), kH100Target, 0, 0};
            const LoweredKernel made = lowered(sample);
            const PrintedKernel kernel = printCuda(made);
            const QString text = QString::fromStdString(kernel.source);
            QCOMPARE(made.nests[0].threads, 256);
            QVERIFY2(text.contains("__shared__ float c0[1056];"), qPrintable(text));
            QCOMPARE(text.count("__syncthreads();"), 2);
            int cut = 0;
            forEachStmt(lowerLoops(sample.kernel, choosePlan(sample.kernel, kH100Target), kH100Target).nests[0].body,
                        [&](const Stmt& stmt) { cut += std::holds_alternative<If>(stmt.node); });
            QCOMPARE(cut > 0, n % 32 != 0);
        }
    }
    void everyFunctionHasAHelper() {
        for (const char* name :
             {"exp",   "exp2", "expm1", "log",    "log2",   "log10",    "log1p",    "sqrt",  "rsqrt", "sin",
              "cos",   "tan",  "asin",  "acos",   "atan",   "sinh",     "cosh",     "tanh",  "asinh", "acosh",
              "atanh", "erf",  "erfc",  "erfinv", "lgamma", "digamma",  "sigmoid",  "floor", "ceil",  "trunc",
              "round", "pow",  "atan2", "fmod",   "hypot",  "copysign", "nextafter"}) {
            QVERIFY2(kH100Target.hasFunction(name), name);
            QVERIFY2(hasCudaHelper(std::string("f_") + name), name);
        }
        QVERIFY(!hasCudaHelper("f_bessel"));
        QVERIFY_THROWS_EXCEPTION(InternalError, (void)cudaPrelude({"f_bessel"}));
    }
    void largeArraysAreOfTheLaunch() {
        CudaSample sample{"kept", softmax(9, 16000), gpu(256), 9 * 16000, 0};
        QVERIFY(printed(sample).source.find("_shared = ") == std::string::npos);
        sample.target.loops.maxCached = 16000;
        const PrintedKernel kernel = printed(sample);
        const QString text = QString::fromStdString(kernel.source);
        const qsizetype bytes = text.indexOf("_shared = ") + 10;
        QVERIFY2(bytes >= 10 && text.mid(bytes, text.indexOf(';', bytes) - bytes).toInt() >= 64000, qPrintable(text));
        QVERIFY(kernel.source.find("extern __shared__") != std::string::npos);
        QVERIFY(kernel.source.find("    float* const c0 = (float*)(shared + 0);") != std::string::npos);
    }
    void neighboursAreReadAtOnce() {
        const CudaSample large{"many", gelu(1 << 22), gpu(256), 0, 0};
        QCOMPARE(lowered(large).nests[0].threads, 256);
        const PrintedKernel many = printed(large);
        QVERIFY(many.source.find("(long)blockIdx.x * 1024;") != std::string::npos);
        QVERIFY(many.helpers.contains("wide"));
        QVERIFY(!printed({"few", gelu(1 << 12), gpu(256), 0, 0}).helpers.contains("wide"));
    }
    /// Of a row each thread has some that lie side by side, in all inner loops.
    void walksReadNeighboursAtOnce() {
        const CudaSample sample{"rows", softmax(9, 4096), gpu(256), 9 * 4096, 0};
        const QString text = functions(sample);
        QCOMPARE(text.count("readWide("), 3);
        QCOMPARE(text.count("writeWide("), 2);  // what is kept, and the result
        Kernel across = largest(9, 4096);
        const auto apart = [](const Expr& e) {
            return e->kind == ExprKind::Load ? Expr::load(e->name, num(3) * e->operands[0], e->dtype) : Expr();
        };
        QVERIFY(printed({"rows", across, gpu(256), 0, 0}).helpers.contains("wide"));
        across.stores[0].value = rewriteShared(across.stores[0].value, apart);
        QVERIFY(!printed({"apart", across, gpu(256), 0, 0}).helpers.contains("wide"));
    }
    void programsHaveEachKernelOnce() {
        const PrintedKernel kernel = printed({"one", gelu(300), gpu(256), 0, 0});
        Kernel renamed = gelu(300);
        renamed.name = "two";
        const PrintedKernel same = printed({"two", renamed, gpu(256), 0, 0}),
                            other = printed({"", gelu(301), gpu(256), 0, 0});
        QCOMPARE(same.functions, kernel.functions);
        const QString file = QString::fromStdString(cudaFile({kernel, same, other}));
        QCOMPARE(file.count("extern \"C\" __global__"), 2);
        QCOMPARE(file.count("FN float f_erf(float x)"), 1);
    }
    /// Without a barrier lanes find what others have not stored yet, whichever comes first.
    void lanesThatDoNotWaitAreFound() {
        const auto wrongWith = [](const std::string& between) {
            const auto nest = parseNest(
                "race(b0: f32!, b1: f32)\n  lanes 64\n  scratch c0: f32[64]\n"
                "  vector 64 for x0 in 0 .. 64:\n    c0[x0 : 1] = b1[x0 : 1]\n" +
                between + "  vector 64 for x1 in 0 .. 64:\n    b0[x1 : 1] = c0[63 - x1 : -1]\n");
            CT_CHECK(bool(nest), nest ? "" : nest.error().message.c_str());
            std::vector<float> to(64), from(64);
            for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
            void* const buffers[] = {to.data(), from.data()};
            interpretLanes({{*nest}, {}}, buffers, {}, 3);
            int wrong = 0;
            for (size_t i = 0; i < to.size(); ++i) wrong += to[i] != static_cast<float>(63 - i);
            return wrong;
        };
        QCOMPARE(wrongWith("  barrier\n"), 0);
        QVERIFY(wrongWith("") > 0);
    }
    void halvesAreFloatsInRegisters() {
        Kernel kernel = transpose(4, 4);
        kernel.buffers = {{DType::F16, true}, {DType::BF16, false}};
        const Expr half = Expr::load("b1", Expr::axis(0), DType::BF16);
        kernel.stores[0].value = Expr::cast(half, DType::F32) + Expr::real(1, DType::F32);
        const PrintedKernel printedKernel = printed({"halves", kernel, gpu(32), 16, 0});
        const QString text = QString::fromStdString(printedKernel.source);
        QVERIFY2(text.contains("rd_bf16(b1 + (") && text.contains("wr_f16(b0 + ("), qPrintable(text));
        QVERIFY(printedKernel.helpers.contains("mem_f16") && printedKernel.helpers.contains("mem_bf16"));
    }
    /// The nests of a GPU's plans, interpreted: what is left to the printer is statement by statement.
    void gpuPlansDoWhatKernelsMean() {
        for (const CudaSample& sample : cudaSamples(false)) {
            const LoopPlan plan = choosePlan(sample.kernel, sample.target);
            QCOMPARE(problemOf(plan, sample.kernel, sample.target), std::string());
            TargetInfo target = sample.target;
            target.sums = DType::F64;  // as kernels sum that are interpreted
            const QString wrong = difference(sample.kernel, plan, target, sample.elements, 7, 3);
            QVERIFY2(wrong.isEmpty(), qPrintable(sample.name + ": " + wrong));
        }
    }
    void program() {
        QString added, entries;
        int number = 0;
        std::set<std::string> helpers;
        for (const bool large : {false, true})
            for (const CudaSample& sample : cudaSamples(large)) {
                helpers.merge(printed(sample).helpers);
                added += QStringLiteral("    add%1(all);\n").arg(number);
                entries += entry(sample, number++, large);
            }
        QString text = kHeader + QString::fromStdString(cudaPrelude(helpers)) + entries;
        text += "static void addAll(std::vector<Case>& all) {\n" + added + "}\n" + kMain;
        QVERIFY(text.count("extern \"C\" __global__") >= 16);
        const QString folder = qEnvironmentVariable("CUTAWAY_CUDA_FOLDER");
        if (folder.isEmpty()) return;
        QFile file(folder + "/kernels.cu");
        QVERIFY2(file.open(QIODevice::WriteOnly), qPrintable(file.errorString()));
        QVERIFY(file.write(text.toUtf8()) > 0);
    }
};

CUTAWAY_SUITE(CudaPrinterTest)
#include "cuda_printer_test.moc"
