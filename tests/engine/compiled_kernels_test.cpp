// Kernels written by hand, in one file of generated C++ with vectors of 16, 32 and 64 lanes: compiled, they give what
// the kernels mean, element by element.
#include <dlfcn.h>

#include <QTemporaryDir>
#include <QtTest>

#include "engine/codegen/cpp_printer.h"
#include "engine/runtime/cpu/compiler.h"
#include "engine/support/files.h"
#include "tests/support/kernels.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

std::vector<KernelSample> samples() {
    std::vector<KernelSample> all;
    for (const int64_t n : {1, 15, 16, 31, 32, 33, 63, 64, 65, 150})
        for (const DType dtype : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::I64})
            all.push_back({QStringLiteral("%1 of %2").arg(n).arg(QString::fromUtf8(info(dtype).abbreviation)),
                           integers(3, n, dtype), static_cast<size_t>(3 * n)});
    for (const int64_t dims : {1, 16, 37})
        all.push_back(
            {QStringLiteral("rows of %1 added").arg(dims), scatterAdded(23, 5, dims), static_cast<size_t>(23 * dims)});
    return all;
}

}  // namespace

class CompiledKernelsTest : public QObject {
    Q_OBJECT

  private slots:
    void giveWhatTheyMean() {
        const std::vector<KernelSample> all = samples();
        std::vector<PrintedKernel> printed;
        std::vector<int64_t> ranges;
        std::set<int> lanes;
        for (const KernelSample& sample : all) {
            const LoweredKernel lowered = lowerLoops(sample.kernel, choosePlan(sample.kernel, kCpuTarget), kCpuTarget);
            printed.push_back(printCpp(lowered));
            QCOMPARE(lowered.nests.size(), size_t{1});
            ranges.push_back(lowered.nests[0].range.value());
            lanes.insert(printed.back().lanes);
        }
        QCOMPARE(lanes, (std::set<int>{16, 32, 64}));
        const QTemporaryDir folder;
        const std::string source = (folder.path() + "/kernels.cpp").toStdString(),
                          library = (folder.path() + "/kernels.so").toStdString();
        QVERIFY(writeFile(source, cppFile(printed)));
        const auto compiled = compileCpp(source, library, {});
        QVERIFY2(bool(compiled), compiled ? "" : compiled.error().text().c_str());
        void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        QVERIFY2(loaded, dlerror());
        using Function = void (*)(void* const*, const long*, long, long, int*);
        for (size_t i = 0; i < all.size(); ++i) {
            const KernelSample& sample = all[i];
            const auto run = reinterpret_cast<Function>(dlsym(loaded, printed[i].functions[0].c_str()));
            QVERIFY2(run, qPrintable(sample.name));
            Memory meant(sample.kernel, sample.elements, 3), made(sample.kernel, sample.elements, 3);
            QCOMPARE(interpretKernel(sample.kernel, meant.pointers, {}), KernelFault::None);
            int fault = 0;
            run(made.pointers.data(), nullptr, 0, ranges[i], &fault);
            QCOMPARE(fault, 0);
            QVERIFY2(meant.bytes == made.bytes, qPrintable(sample.name));
        }
        dlclose(loaded);
    }
};

CUTAWAY_SUITE(CompiledKernelsTest)
#include "compiled_kernels_test.moc"
