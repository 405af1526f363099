// Host programs: the interpreter of their data and the printed C++ give the same bits, in ten contexts at once.
#include <dlfcn.h>

#include <QtTest>
#include <future>

#include "engine/codegen/host_printer.h"
#include "engine/formats/open.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/numerics/same.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/runtime/cpu/host_context.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/runtime/exported/program.h"
#include "engine/runtime/libraries/table.h"
#include "engine/schedule/schedule.h"
#include "engine/support/files.h"
#include "tests/support/graph_eval.h"
#include "tests/support/models.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr int kContexts = 10;

std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
    std::vector<Tensor> all;
    for (const Tensor& tensor : tensors) {
        if (!tensor.defined()) {
            all.emplace_back();
            continue;
        }
        const auto storage = Storage::allocate(tensor.storage()->size());
        std::memcpy(storage->data(), tensor.storage()->data(), tensor.storage()->size());
        all.emplace_back(storage, tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.offset());
    }
    return all;
}
QString difference(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
    if (got.size() != wanted.size()) return "another number of results";
    for (size_t i = 0; i < got.size(); ++i) {
        if (got[i].defined() != wanted[i].defined()) return QString("result %1 is there once").arg(i);
        if (!got[i].defined()) continue;
        const Tensor a = got[i].contiguous(), b = wanted[i].contiguous();
        if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return QString("result %1 has another type").arg(i);
        if (std::memcmp(a.data(), b.data(), a.bytes()) != 0) return QString("result %1 differs").arg(i);
    }
    return {};
}

bool close(const Tensor& a, const Tensor& b) {
    return a.defined() == b.defined() && (!a.defined() || (a.sizes() == b.sizes() && allClose(a, b, 1e-5, 1e-5, true)));
}

/// A graph, compiled both ways.
struct Compiled {
    QTemporaryDir folder;
    HostProgram host;
    std::vector<Tensor> constants;
    std::shared_ptr<LoadedProgram> loaded;
    std::vector<std::string> libraries;
};
Result<std::unique_ptr<Compiled>> compiled(const Snapshot& module, const std::vector<Tensor>& weights) {
    auto made = std::make_unique<Compiled>();
    CT_TRY(const Snapshot complete, withConstants(*module));
    CT_TRY(const ScheduledProgram program, scheduleModule(complete ? complete : module));
    const std::vector<PrintedKernel> printed = printKernels(program);
    CT_TRY(made->host, hostProgramOf(program, printed));
    CT_TRY(made->constants, constantsOf(made->host, program));
    CT_TRY(BuiltKernels built, buildKernels(printed, {made->folder.path().toStdString(), {}, nullptr}));
    made->libraries = std::move(built.libraries);
    CT_TRY(auto code, CompiledKernels::load(made->host, made->libraries));
    CT_TRY(HostProgram own, hostProgramOf(program, printed));
    made->loaded = std::make_shared<LoadedProgram>(std::move(own), std::move(code), made->constants,
                                                   std::vector<std::vector<Tensor>>{weights}, ProgramOptions{});
    return made;
}

/// The printed program as a library, with its C interface.
class Printed {
  public:
    QString build(const Compiled& from, const std::string& source) {
        const QString folder = from.folder.path(), path = folder + "/host.cpp", library = folder + "/host.so";
        if (!writeFile(path.toStdString(), source)) return "cannot write";
        QStringList arguments = {"-std=c++17",
                                 "-O1",
                                 "-Wall",
                                 "-Wextra",
                                 "-Werror",
                                 "-Wno-unused-variable",
                                 "-Wno-unused-function",
                                 "-Wno-unused-parameter",
                                 "-shared",
                                 "-fPIC",
                                 "-I" CUTAWAY_SOURCE_DIR,
                                 path,
                                 "-o",
                                 library};
        for (const std::string& kernels : std::set<std::string>(from.libraries.begin(), from.libraries.end()))
            if (!kernels.empty()) arguments << QString::fromStdString(kernels);
        QProcess compiler;
        compiler.start("c++", arguments);
        if (!compiler.waitForFinished(300000) || compiler.exitCode() != 0)
            return QString::fromUtf8(compiler.readAllStandardError()).left(2000);
        m_handle = ::dlopen(library.toUtf8().constData(), RTLD_NOW | RTLD_LOCAL);
        return m_handle ? QString() : QString(::dlerror());
    }
    ~Printed() {
        if (m_handle) ::dlclose(m_handle);
    }
    template <class Function>
    Function* at(const char* name) const {
        return reinterpret_cast<Function*>(::dlsym(m_handle, name));
    }

  private:
    void* m_handle = nullptr;
};
CtTensor described(const Tensor& tensor) {
    return {const_cast<void*>(tensor.data()), static_cast<int32_t>(tensor.dtype()),
            static_cast<int32_t>(tensor.sizes().size()), tensor.sizes().data(), tensor.strides().data()};
}
Tensor taken(const CtTensor& tensor) {
    if (tensor.rank < 0) return {};
    const Dims sizes(tensor.sizes, tensor.sizes + tensor.rank), strides(tensor.strides, tensor.strides + tensor.rank);
    const auto dtype = static_cast<DType>(tensor.dtype);
    const auto bytes = static_cast<size_t>(extent(sizes, strides) * byteSize(dtype));
    const auto storage = Storage::allocate(std::max<size_t>(bytes, 1));
    std::memcpy(storage->data(), tensor.data, bytes);
    return Tensor(storage, dtype, sizes, strides);
}

Snapshot afterPasses(const QString& file, bool freeze, QString& problem) {
    auto opened = openFile(file.toStdString(), {});
    if (!opened) return problem = QString::fromStdString(opened.error().text()), nullptr;
    CompileRequest request;
    request.freeze = freeze;
    const Snapshot input = std::move(opened->graphs[0].module);
    const auto trace = runPipeline(input, request, {.cacheFile = "off"}, {});
    if (!trace || trace->failed()) return problem = "the passes failed", nullptr;
    return trace->result();
}

}  // namespace

class HostProgramTest : public QObject {
    Q_OBJECT

  private slots:
    void sameAsPrinted_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<bool>("freeze");
        QStringList files = modelFiles();
        for (const char* name : {"training_ir_dynamic", "decomposed_dynamic"})
            if (const QString file = QString(CUTAWAY_SOURCE_DIR "/../shared/reference/formats/%1.pt2").arg(name);
                QFile::exists(file))
                files << file;
        for (const QString& file : files)
            for (const bool freeze : {false, true})
                QTest::newRow(qPrintable(modelName(file) + QFileInfo(file).baseName() + (freeze ? " frozen" : "")))
                    << file << freeze;
    }
    void sameAsPrinted() {
        QFETCH(QString, file);
        QFETCH(bool, freeze);
        QString problem;
        const Snapshot module = afterPasses(file, freeze, problem);
        QVERIFY2(module, qPrintable(problem));
        const auto user = cutaway::randomInputs(*module, 1);
        QVERIFY2(user.has_value(), user ? "" : user.error().text().c_str());
        const auto bound = bindInputs(*module, *user);
        QVERIFY2(bound.has_value(), bound ? "" : bound.error().text().c_str());
        auto made = compiled(module, *bound);
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const HostFunction& function = (*made)->host.functions[0];
        const auto sizes = bindSymbols(function, *bound);
        QVERIFY2(sizes.has_value(), sizes ? "" : sizes.error().text().c_str());
        const auto given = laidOut(function, *bound, *sizes);
        QVERIFY2(given.has_value(), given ? "" : given.error().text().c_str());

        Board board;
        const auto wanted = HostContext((*made)->loaded, 0).run(*given, 0, board);
        QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
        std::vector<std::future<QString>> others;
        for (int i = 0; i < kContexts; ++i)
            others.push_back(std::async(std::launch::async, [&] {
                Board own;
                const auto run = HostContext((*made)->loaded, 0).run(*given, 1, own);
                return run ? difference(run->outputs, wanted->outputs) : QString::fromStdString(run.error().text());
            }));
        for (auto& other : others) QCOMPARE(other.get(), QString());
        const auto source = printHost((*made)->host);
        const auto reference = std::find_if(function.steps.begin(), function.steps.end(),
                                            [](const HostStep& step) { return step.kind == HostStepKind::Reference; });
        if (reference != function.steps.end()) {
            QVERIFY(!source);
            QVERIFY2(source.error().message.find("computed by the engine") != std::string::npos,
                     source.error().message.c_str());
            return;
        }
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        comparePrinted(**made, *source, *given, wanted->outputs);
    }

    /// One program for sizes that nobody named when it was built.
    void oneProgramForAllSizes_data() {
        QTest::addColumn<QString>("graph");
        QTest::newRow("product, reduction, broadcast") << R"py(
def forward(self, x: "f32[s0, 8]", w: "f32[8, 4]"):
    mm: "f32[s0, 4]" = torch.ops.aten.mm.default(x, w)
    relu: "f32[s0, 4]" = torch.ops.aten.relu.default(mm)
    sum_1: "f32[4]" = torch.ops.aten.sum.dim_IntList(relu, [0])
    add: "f32[s0, 4]" = torch.ops.aten.add.Tensor(relu, sum_1)
    return (add, sum_1)
)py";
        QTest::newRow("two sizes, softmax, transpose") << R"py(
def forward(self, x: "f32[s0, s1]", y: "f32[s1, s0]"):
    amax: "f32[s0, 1]" = torch.ops.aten.amax.default(x, [-1], True)
    sub: "f32[s0, s1]" = torch.ops.aten.sub.Tensor(x, amax)
    exp: "f32[s0, s1]" = torch.ops.aten.exp.default(sub)
    sum_1: "f32[s0, 1]" = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
    div: "f32[s0, s1]" = torch.ops.aten.div.Tensor(exp, sum_1)
    permute: "f32[s0, s1]" = torch.ops.aten.permute.default(y, [1, 0])
    mul: "f32[s0, s1]" = torch.ops.aten.mul.Tensor(div, permute)
    cumsum: "f32[s0, s1]" = torch.ops.aten.cumsum.default(mul, 0)
    return (mul, cumsum)
)py";
        QTest::newRow("sizes that are made of others") << R"py(
def forward(self, x: "f32[s0, 6]", y: "f32[s0, 6]"):
    cat: "f32[2*s0, 6]" = torch.ops.aten.cat.default([x, y])
    view: "f32[12*s0]" = torch.ops.aten.view.default(cat, [-1])
    mul: "f32[12*s0]" = torch.ops.aten.mul.Tensor(view, 2)
    return (mul,)
)py";
        QTest::newRow("a size as a number") << R"py(
def forward(self, s0: "Sym(s0)", x: "f32[s0, 3]"):
    mul: "f32[s0, 3]" = torch.ops.aten.mul.Tensor(x, s0)
    full: "i64[s0]" = torch.ops.aten.full.default([s0], s0, dtype = torch.int64)
    return (mul, full)
)py";
    }
    void oneProgramForAllSizes() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const auto source = printHost((*made)->host);
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        Board board;
        HostContext context((*made)->loaded, 0);
        for (const int64_t size : {2, 3, 1, 17, 500, 2, 64}) {
            auto numbers = std::make_shared<Module>(*module);
            QVERIFY(specialize(*numbers, {{"s0", size}, {"s1", size / 2 + 1}}).has_value());
            const auto random = cutaway::randomInputs(*numbers, static_cast<uint64_t>(size));
            QVERIFY2(random.has_value(), random ? "" : random.error().text().c_str());
            std::vector<Tensor> given = *random;
            for (size_t i = 0; i < given.size(); ++i)
                if ((*made)->host.functions[0].parameters[i].type.sym()) given[i] = Tensor::scalar(DType::I64, size);
            const auto run = context.run(given, 1, board);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const auto wanted = interpret(*numbers, given);
            QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
            for (size_t i = 0; i < wanted->size(); ++i)
                QVERIFY2(close(run->outputs[i], (*wanted)[i]),
                         qPrintable(QString("result %1 for s0 = %2").arg(i).arg(size)));
            comparePrinted(**made, *source, given, run->outputs);
        }
    }

    /// Sizes that a step finds in its data: what comes after is laid out then.
    void sizesFromData_data() {
        QTest::addColumn<QString>("graph");
        QTest::newRow("nonzero") << R"py(
def forward(self, x: "f32[40]"):
    gt: "b8[40]" = torch.ops.aten.gt.Scalar(x, 0.5)
    nonzero: "i64[u0, 1]" = torch.ops.aten.nonzero.default(gt)
    view: "i64[u0]" = torch.ops.aten.view.default(nonzero, [-1])
    mul: "i64[u0]" = torch.ops.aten.mul.Tensor(view, 3)
    index: "f32[u0]" = torch.ops.aten.index.Tensor(x, [view])
    sum_1: "f32[]" = torch.ops.aten.sum.default(index)
    return (mul, index, sum_1)
)py";
        QTest::newRow("two segments") << R"py(
def forward(self, x: "f32[40]"):
    gt: "b8[40]" = torch.ops.aten.gt.Scalar(x, 0.5)
    nonzero: "i64[u0, 1]" = torch.ops.aten.nonzero.default(gt)
    lt: "b8[40]" = torch.ops.aten.lt.Scalar(x, 0.25)
    nonzero_1: "i64[u1, 1]" = torch.ops.aten.nonzero.default(lt)
    add: "i64[u0, 1]" = torch.ops.aten.add.Tensor(nonzero, 1)
    cat: "i64[u0 + u1, 1]" = torch.ops.aten.cat.default([add, nonzero_1])
    return (cat, add)
)py";
    }
    void sizesFromData() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        QVERIFY((*made)->host.functions[0].segments.size() > 1);
        Board board;
        HostContext context((*made)->loaded, 0);
        for (const uint64_t seed : {1, 2, 3}) {
            const std::vector<Tensor> inputs = cutaway::testing::randomInputs(*module, seed);
            const auto run = context.run(inputs, 1, board);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const auto wanted = interpret(*module, inputs);
            QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
            for (size_t i = 0; i < wanted->size(); ++i)
                QVERIFY2(close(run->outputs[i], (*wanted)[i]), qPrintable(QString("result %1").arg(i)));
        }
        QVERIFY(!printHost((*made)->host));
    }

    /// Graphs that calls run are functions of the program.
    void graphsOfCalls_data() {
        QTest::addColumn<QString>("graph");
        const char* const branches = R"py(
def yes(x: "f32[6]", w: "f32[6]"):
    mul: "f32[6]" = aten.mul.Tensor(x, w)
    relu: "f32[6]" = aten.relu.default(mul)
    return (relu,)
def no(x: "f32[6]", w: "f32[6]"):
    sub: "f32[6]" = aten.sub.Tensor(x, w)
    return (sub,)
)py";
        QTest::newRow("cond") << QString(R"py(
def forward(p: "b8[]", x: "f32[6]", w: "f32[6]"):
    exp: "f32[6]" = aten.exp.default(x)
    cond = higher_order.cond(p, yes, no, [exp, w])
    getitem: "f32[6]" = cond[0]
    add: "f32[6]" = aten.add.Tensor(getitem, 1)
    return (add, getitem)
)py") + branches;
        QTest::newRow("cond twice") << QString(R"py(
def forward(p: "b8[]", x: "f32[6]", w: "f32[6]"):
    cond = higher_order.cond(p, yes, no, [x, w])
    getitem: "f32[6]" = cond[0]
    logical_not: "b8[]" = aten.logical_not.default(p)
    cond_1 = higher_order.cond(logical_not, yes, no, [getitem, x])
    getitem_1: "f32[6]" = cond_1[0]
    return (getitem_1, getitem)
)py") + branches;
        const char* const loop = R"py(
def again(n: "i64[]", x: "f32[2, 3]"):
    lt: "b8[]" = aten.lt.Scalar(n, 4)
    return (lt,)
def body(n: "i64[]", x: "f32[2, 3]"):
    add: "i64[]" = aten.add.Tensor(n, 1)
    sum_1: "f32[2, 1]" = aten.sum.dim_IntList(x, [1], True)
    sub: "f32[2, 3]" = aten.sub.Tensor(x, sum_1)
    return (add, sub)
)py";
        QTest::newRow("while_loop") << QString(R"py(
def forward(n: "i64[]", x: "f32[2, 3]"):
    while_loop = higher_order.while_loop(again, body, [n, x], [])
    getitem: "i64[]" = while_loop[0]
    getitem_1: "f32[2, 3]" = while_loop[1]
    mul: "f32[2, 3]" = aten.mul.Tensor(getitem_1, 2)
    return (getitem, mul)
)py") + loop;
        QTest::newRow("map and scan") << QString(R"py(
def forward(x: "f32[2]", m: "f32[5, 2]"):
    c = higher_order.map_impl(each, [m], [x])
    r: "f32[5, 2]" = c[0]
    d = higher_order.scan(running, [x], [r], [])
    l: "f32[2]" = d[0]
    s: "f32[5, 2]" = d[1]
    return (l, s)
def each(a: "f32[2]", y: "f32[2]"):
    b: "f32[2]" = aten.mul.Tensor(a, y)
    return (b,)
def running(c: "f32[2]", a: "f32[2]"):
    s: "f32[2]" = aten.add.Tensor(c, a)
    n: "f32[2]" = aten.neg.default(s)
    return (s, n)
)py");
        QTest::newRow("a map of a size that data gives") << QString(R"py(
def forward(x: "f32[8]"):
    gt: "b8[8]" = aten.gt.Scalar(x, 0)
    nonzero: "i64[u0, 1]" = aten.nonzero.default(gt)
    c = higher_order.map_impl(each, [nonzero], [x])
    r: "f32[u0, 8]" = c[0]
    sum_1: "f32[8]" = aten.sum.dim_IntList(r, [0])
    return (r, sum_1)
def each(a: "i64[1]", y: "f32[8]"):
    b: "f32[8]" = aten.mul.Tensor(y, a)
    return (b,)
)py");
        QTest::newRow("a number that data gives, as an index") << QString(R"py(
def forward(n: "i64[]", items: "f32[5, 2]"):
    u0: "Sym(u0)" = aten._local_scalar_dense.default(n)
    select: "f32[2]" = aten.select.int(items, 0, u0)
    mul: "f32[2]" = aten.mul.Tensor(select, 3)
    return (mul,)
)py");
        QTest::newRow("a view at an offset that data gives") << QString(R"py(
def forward(n: "i64[]", items: "f32[5, 2]"):
    add: "i64[]" = aten.add.Tensor(n, 1)
    u0: "Sym(u0)" = aten._local_scalar_dense.default(add)
    select: "f32[2]" = aten.select.int(items, 0, u0)
    view: "f32[1, 2]" = aten.view.default(select, [1, 2])
    permute: "f32[2, 5]" = aten.permute.default(items, [1, 0])
    mm: "f32[1, 5]" = aten.mm.default(view, permute)
    return (mm, select)
)py");
    }
    void graphsOfCalls() {
        QFETCH(QString, graph);
        const Snapshot module = moduleOf(graph.toStdString());
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        Board board;
        HostContext context((*made)->loaded, 0);
        for (const uint64_t seed : {1, 2, 3, 4}) {
            const std::vector<Tensor> inputs = cutaway::testing::randomInputs(*module, seed);
            const auto run = context.run(inputs, 1, board);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const auto wanted = interpret(*module, inputs);
            QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
            for (size_t i = 0; i < wanted->size(); ++i)
                QVERIFY2(close(run->outputs[i], (*wanted)[i]), qPrintable(QString("result %1").arg(i)));
        }
        QVERIFY(!printHost((*made)->host));
    }

    /// As much work, of another form: plans of libraries are those of the form.
    void otherFormsOfTheSameSize() {
        const Snapshot module = moduleOf(R"py(
def forward(self, x: "f32[s0, s1]"):
    cumsum: "f32[s0, s1]" = torch.ops.aten.cumsum.default(x, 0)
    return (cumsum,)
)py");
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        Board board;
        HostContext context((*made)->loaded, 0);
        for (const auto& [rows, columns] : {std::pair{2, 6}, {6, 2}, {3, 4}, {12, 1}, {1, 12}}) {
            auto numbers = std::make_shared<Module>(*module);
            QVERIFY(specialize(*numbers, {{"s0", rows}, {"s1", columns}}).has_value());
            const std::vector<Tensor> inputs = cutaway::testing::randomInputs(*numbers, 1);
            const auto run = context.run(inputs, 1, board);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const auto wanted = interpret(*numbers, inputs);
            QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
            QCOMPARE(difference(run->outputs, *wanted), QString());
        }
    }

    /// A run draws what the one before it drew.
    void drawsBeginAnew() {
        const Snapshot module = moduleOf(R"py(
def forward(self, x: "f32[16]"):
    randperm: "i64[16]" = torch.ops.aten.randperm.default(16, device = device(type='cpu'), pin_memory = False)
    index: "f32[16]" = torch.ops.aten.index.Tensor(x, [randperm])
    return (index, randperm)
)py");
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        Board board;
        HostContext context((*made)->loaded, 0);
        const std::vector<Tensor> inputs = cutaway::testing::randomInputs(*module, 1);
        const auto wanted = interpret(*module, inputs);
        QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
        for (int i = 0; i < 3; ++i) {
            const auto run = context.run(inputs, 2, board);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            QCOMPARE(difference(run->outputs, *wanted), QString());
        }
    }

    void text() {
        auto made = compiled(moduleOf(R"py(
def forward(self, x: "f32[s0, 8]", w: "f32[8, 4]"):
    mm: "f32[s0, 4]" = torch.ops.aten.mm.default(x, w)
    relu: "f32[s0, 4]" = torch.ops.aten.relu.default(mm)
    return (relu,)
)py"),
                             {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const QString said = QString::fromStdString(cutaway::text((*made)->host));
        const QString wanted = R"(
function run(x: f32[s0, 8], w: f32[8, 4])
    s0 = size 0 of x
    slot0: 16*s0 bytes
    slot1: 16*s0 bytes
    v0: f32[s0, 8] = x  # x
    v1: f32[8, 4] = w  # w
    v2: f32[s0, 4] = slot0  # mm
    v3: f32[s0, 4] = slot1  # relu
    v2 = aten.mm.default(v0, v1) by oneDNN  # mm
    kernel0(v3, v2) over 4*s0  # relu (kernel0)
    return v3
)";
        QVERIFY2(said.endsWith(wanted.mid(1)), qPrintable(said));
    }

    void refusals_data() {
        QTest::addColumn<QList<qint64>>("sizes");
        QTest::addColumn<QString>("says");
        QTest::newRow("another inner size") << QList<qint64>{3, 7} << "input 'x' must be f32[3, 8], not f32[3, 7]";
        QTest::newRow("more than was exported")
            << QList<qint64>{65, 8} << "size s0 = 65 is outside the range that the program was exported for";
        QTest::newRow("another rank") << QList<qint64>{3} << "input 'x' must be f32[s0, 8], not f32[3]";
    }
    void refusals() {
        QFETCH(QList<qint64>, sizes);
        QFETCH(QString, says);
        auto made = compiled(
            moduleOf(
                "# symbol s0: lower=2, upper=64, hint=8\ndef forward(self, x: \"f32[s0, 8]\"):\n    relu: \"f32[s0, 8]\" = "
                "torch.ops.aten.relu.default(x)\n    return (relu,)\n"),
            {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        Board board;
        const auto run = HostContext((*made)->loaded, 0)
                             .run({Tensor::empty(DType::F32, Dims(sizes.begin(), sizes.end()))}, 0, board);
        QVERIFY(!run);
        QCOMPARE(QString::fromStdString(run.error().message), says);
    }

  private:
    void comparePrinted(const Compiled& made, const std::string& source, const std::vector<Tensor>& given,
                        const std::vector<Tensor>& wanted) {
        Printed printed;
        QCOMPARE(printed.build(made, source), QString());
        const CtProgramInfo& info = *printed.at<const CtProgramInfo*()>("ct_program_info")();
        const HostFunction& function = made.host.functions[0];
        std::vector<CtTensor> constants;
        for (const Tensor& tensor : made.constants) constants.push_back(described(tensor));
        for (size_t i = 0; i < given.size(); ++i)
            if (function.parameters[i].constant) constants.push_back(described(given[i]));
        QCOMPARE(static_cast<size_t>(info.constantCount), constants.size());
        const CtHost host{CT_PROGRAM_VERSION, sizeof(CtHost), [](const char* name) { return libraryNamed(name); }};
        CtProgram* const program =
            printed.at<CtProgram*(const CtHost*, const CtTensor*)>("ct_program_create")(&host, constants.data());
        QVERIFY(program);
        const auto runOnce = [&]() -> QString {
            CtContext* const context =
                printed.at<CtContext*(CtProgram*, const CtParallel*)>("ct_context_create")(program, nullptr);
            const std::vector<Tensor> own = copies(given);
            std::vector<CtTensor> inputs, outputs(static_cast<size_t>(info.outputCount));
            for (size_t i = 0; i < own.size(); ++i)
                if (!function.parameters[i].constant) inputs.push_back(described(own[i]));
            QString problem;
            if (printed.at<int32_t(CtContext*, const CtTensor*, CtTensor*)>("ct_run")(context, inputs.data(),
                                                                                      outputs.data()) != 0) {
                problem = printed.at<const char*(const CtContext*)>("ct_context_error")(context);
            } else {
                std::vector<Tensor> got;
                for (const CtTensor& output : outputs) got.push_back(taken(output));
                problem = difference(got, wanted);
            }
            printed.at<void(CtContext*)>("ct_context_destroy")(context);
            return problem;
        };
        std::vector<std::future<QString>> others;
        for (int i = 0; i < kContexts; ++i) others.push_back(std::async(std::launch::async, runOnce));
        for (auto& other : others) QCOMPARE(other.get(), QString());
        printed.at<void(CtProgram*)>("ct_program_destroy")(program);
    }
};

QTEST_GUILESS_MAIN(HostProgramTest)
#include "host_program_test.moc"
