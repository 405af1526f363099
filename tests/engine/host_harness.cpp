#include "tests/engine/host_harness.h"

#include <dlfcn.h>

#include <QProcess>
#include <future>

#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/numerics/same.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/runtime/exported/program.h"
#include "engine/runtime/libraries/table.h"
#include "engine/schedule/schedule.h"
#include "engine/support/files.h"
#include "tests/support/paths.h"

namespace cutaway::testing {
namespace {

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

bool close(const Tensor& a, const Tensor& b) {
    return a.defined() == b.defined() && (!a.defined() || (a.sizes() == b.sizes() && allClose(a, b, 1e-5, 1e-5, true)));
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
        // The runtime that exported programs carry.
        arguments << builtProgram("libcutaway_carried.a") << "-lgomp";
        QProcess compiler;
        compiler.start("c++", arguments);
        if (!compiler.waitForFinished(300000)) return "the compiler did not end: " + compiler.errorString();
        if (compiler.exitStatus() != QProcess::NormalExit || compiler.exitCode() != 0)
            return "the compiler fails: " + QString::fromUtf8(compiler.readAllStandardError()).left(2000);
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

}  // namespace

Result<std::unique_ptr<Compiled>> compiled(const Snapshot& module, const std::vector<Tensor>& weights) {
    auto made = std::make_unique<Compiled>();
    CT_TRY(const Snapshot complete, withConstants(*module));
    CT_TRY(const ScheduledProgram program, scheduleModule(complete ? complete : module, kCpuTarget));
    const std::vector<LoweredKernel> kernels = lowerKernels(program);
    std::vector<PrintedKernel> printed;
    for (const LoweredKernel& kernel : kernels) printed.push_back(printCpp(kernel));
    CT_TRY(made->host, hostProgramOf(program, kernels));
    CT_TRY(made->constants, constantsOf(made->host, program));
    CT_TRY(BuiltKernels built, buildKernels(printed, {made->folder.path().toStdString(), {}, nullptr}));
    made->libraries = std::move(built.libraries);
    CT_TRY(auto code, CompiledKernels::load(made->host, made->libraries));
    CT_TRY(HostProgram hostProgram, hostProgramOf(program, kernels));
    made->loaded = std::make_shared<LoadedProgram>(std::move(hostProgram), std::move(code), made->constants,
                                                   std::vector<std::vector<Tensor>>{weights}, ProgramOptions{});
    return made;
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

QString runProblem(HostContext& context, const Module& module, const std::vector<Tensor>& inputs, Agree how,
                   std::vector<Tensor>* outputs) {
    StatusPage board;
    const auto run = context.run(inputs, 1, board);
    if (!run) return QString::fromStdString(run.error().text());
    const auto wanted = interpret(module, inputs);
    if (!wanted) return QString::fromStdString(wanted.error().text());
    if (outputs) *outputs = run->outputs;
    if (how == Agree::ToTheBit) return difference(run->outputs, *wanted);
    if (run->outputs.size() != wanted->size()) return "another number of results";
    for (size_t i = 0; i < wanted->size(); ++i)
        if (!close(run->outputs[i], (*wanted)[i])) return QString("result %1 differs").arg(i);
    return {};
}

QString printedProblem(const Compiled& made, const std::string& source, const std::vector<Tensor>& given,
                       const std::vector<Tensor>& wanted) {
    Printed printed;
    if (const QString problem = printed.build(made, source); !problem.isEmpty()) return problem;
    const CtProgramInfo& info = *printed.at<const CtProgramInfo*()>("ct_info")();
    const HostFunction& function = made.host.functions[0];
    std::vector<CtTensor> constants;
    for (const Tensor& tensor : made.constants) constants.push_back(described(tensor));
    for (size_t i = 0; i < given.size(); ++i)
        if (function.parameters[i].isHeld()) constants.push_back(described(given[i]));
    if (static_cast<size_t>(info.constantCount) != constants.size()) return "another number of constants";
    const CtHost host{CT_PROGRAM_VERSION, sizeof(CtHost), [](const char* name) { return libraryNamed(name); }};
    CtProgram* const program =
        printed.at<CtProgram*(const CtHost*, const CtTensor*)>("ct_create")(&host, constants.data());
    if (program == nullptr) return printed.at<const char*()>("ct_error")();
    const auto runOnce = [&]() -> QString {
        CtContext* const context =
            printed.at<CtContext*(CtProgram*, const CtParallel*)>("ct_context")(program, nullptr);
        const std::vector<Tensor> own = copies(given);
        std::vector<CtTensor> inputs, outputs(static_cast<size_t>(info.outputCount));
        for (size_t i = 0; i < own.size(); ++i)
            if (!function.parameters[i].isHeld()) inputs.push_back(described(own[i]));
        QString problem;
        if (printed.at<int32_t(CtContext*, const CtTensor*, CtTensor*)>("ct_run")(context, inputs.data(),
                                                                                  outputs.data()) != 0) {
            problem = printed.at<const char*(const CtContext*)>("ct_context_error")(context);
        } else {
            std::vector<Tensor> got;
            for (const CtTensor& output : outputs) got.push_back(taken(output));
            problem = difference(got, wanted);
        }
        printed.at<void(CtContext*)>("ct_release")(context);
        return problem;
    };
    std::vector<std::future<QString>> others;
    for (int i = 0; i < kContexts; ++i) others.push_back(std::async(std::launch::async, runOnce));
    QString problem;
    for (auto& other : others)
        if (const QString own = other.get(); !own.isEmpty()) problem = own;
    printed.at<void(CtProgram*)>("ct_close")(program);
    return problem;
}

}  // namespace cutaway::testing
