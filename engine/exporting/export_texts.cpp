#include "engine/exporting/export_texts.h"

#include <algorithm>
#include <set>

#include "cutaway/version.h"
#include "engine/exporting/carried_files.h"
#include "engine/formats/json.h"
#include "engine/runtime/exported/processor_needs.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

std::string_view carried(std::string_view path) {
    const auto files = carriedFiles();
    const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
    return found == files.end() ? std::string_view() : found->text;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}
std::string fromTemplate(const std::string& file, const std::string& name) {
    return replaced(std::string(carried("engine/exporting/templates/" + file + ".in")), "@NAME@", name);
}

/// Without the lines that include files of this tree.
std::string withoutOwnIncludes(std::string_view text) {
    std::string kept;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        const std::string_view line = text.substr(at, end - at);
        if (line.rfind("#include \"engine/", 0) != 0) kept += line;
        at = end;
    }
    return kept;
}

std::string dimsText(const SymDims& dims) {
    std::string all;
    for (const SymInt& dim : dims)
        all += (all.empty() ? "" : ", ") + (dim.isInt() ? dim.text() : jsonString(dim.text()));
    return "[" + all + "]";
}
std::string portText(const std::string& name, const TensorType* type, bool state, const std::string& original = {}) {
    std::string text = "{\"name\": " + jsonString(name);
    if (type) {
        text += ", \"dtype\": " + jsonString(info(type->dtype).torchName) + ", \"sizes\": " + dimsText(type->sizes) +
                ", \"strides\": " + dimsText(type->strides);
    }
    if (!original.empty()) text += ", \"original\": " + jsonString(original);
    return text + (state ? ", \"state\": true}" : "}");
}
std::string listText(const std::vector<std::string>& rows) {
    std::string all;
    for (const std::string& row : rows) all += (all.empty() ? "\n  " : ",\n  ") + row;
    return "[" + all + (rows.empty() ? "]" : "\n ]");
}

/// On which processors it runs.
std::string processorText(const ExportForm& form) {
    if (form.target != "native") return "every processor of " + std::string(form.target);
    return "a processor like the one that compiled it, with " + ct::processorHas();
}

}  // namespace

bool areLinkedWith(const Libraries& libraries, LinkedWith what) {
    return std::any_of(libraries.begin(), libraries.end(), [&](const Library* each) { return each->linked == what; });
}

Libraries librariesOf(const HostProgram& program) {
    std::set<std::string_view> called;
    for (const HostFunction& function : program.functions)
        for (const HostStep& step : function.steps)
            if (!step.library.empty()) called.insert(step.library);
    Libraries libraries;
    for (const Library* each : allLibraries())
        if (called.contains(each->name)) libraries.push_back(each);
    return libraries;
}

std::string headerText(const std::string& name) {
    return withoutOwnIncludes(carried("engine/libraries/library.h")) +
           withoutOwnIncludes(carried("engine/runtime/exported/program.h")) + fromTemplate("functions.h", name);
}
std::string templateText(const std::string& file, const std::string& name, const ExportForm& form) {
    const bool beside = form.weights == ExportForm::Weights::Beside;
    const std::string null = file.ends_with(".c") ? "NULL" : "nullptr";
    const std::string text = replaced(fromTemplate(file, name), "@PYWEIGHTS@",
                                      beside ? "os.path.join(FOLDER, \"weights.safetensors\")" : "None");
    return replaced(text, "@WEIGHTS@", beside ? "FOLDER \"/weights.safetensors\"" : null);
}

std::string openText(const std::string& name, const Libraries& libraries, const ExportForm& form) {
    std::string text = "#include \"engine/runtime/exported/open.h\"\n\n#include <cstring>\n\nnamespace cutaway {\n";
    for (const Library* each : libraries) text += "const CtLibrary& " + std::string(each->function) + "();\n";
    text += "}  // namespace cutaway\n\nnamespace {\nconst CtLibrary* library(const char* name) {\n";
    for (const Library* each : libraries)
        text += "    if (std::strcmp(name, \"" + std::string(each->name) +
                "\") == 0) return &cutaway::" + std::string(each->function) + "();\n";
    text +=
        "    static_cast<void>(name);\n    return nullptr;\n}\n"
        "const CtHost kHost = {CT_PROGRAM_VERSION, sizeof(CtHost), library};\n}  // namespace\n\n";
    const bool held = form.weights == ExportForm::Weights::Embedded;
    text += replaced(fromTemplate("open.cpp", name), "@TARGET@", form.target);
    return replaced(text, "@WEIGHTS@", held ? "ct_weights[0], ct_weights[1]" : "nullptr, nullptr");
}

std::string cmakeText(const std::string& name, const Libraries& libraries, const ExportForm& form,
                      const std::vector<std::string>& options) {
    std::string text = fromTemplate("CMakeLists.txt", name), all;
    const bool oneDnn = areLinkedWith(libraries, LinkedWith::OneDnn);
    const bool lapack = areLinkedWith(libraries, LinkedWith::Lapack);
    for (const std::string& option : options) all += (all.empty() ? "" : ";") + option;
    text = replaced(replaced(text, "@OPTIONS@", all), "@DEBUG@", form.debug ? " -g" : "");
    std::string needed, linked;
    if (oneDnn) {
        needed += ", and oneDNN 2 or 3 (Debian, Ubuntu: apt install libdnnl-dev)";
        linked +=
            "find_library(DNNL_LIBRARY dnnl REQUIRED)\nfind_path(DNNL_INCLUDE dnnl.hpp REQUIRED)\n"
            "target_include_directories(" +
            name + "_library SYSTEM PRIVATE ${DNNL_INCLUDE})\ntarget_link_libraries(" + name +
            "_library PRIVATE ${DNNL_LIBRARY})\n";
    }
    if (lapack) {
        needed +=
            ", and LAPACK and BLAS (Debian, Ubuntu: apt install libopenblas-serial-dev, or liblapack-dev, slower)";
        linked +=
            "find_library(LAPACK_LIBRARY lapack REQUIRED)\nfind_library(BLAS_LIBRARY blas REQUIRED)\n"
            "target_link_libraries(" +
            name + "_library PRIVATE ${LAPACK_LIBRARY} ${BLAS_LIBRARY})\n";
    }
    text = replaced(text, "@NEEDS@", needed);
    return replaced(text, "@LIBRARIES@\n", linked);
}

std::string manifestText(const ExportedProgram& exported) {
    const HostProgram& program = *exported.program;
    const HostFunction& run = program.functions[0];
    const auto originalOf = [&](const std::string& name) {
        const auto found = exported.originals->find(name);
        return found == exported.originals->end() ? std::string() : found->second;
    };
    std::vector<std::string> inputs, constants, outputs, symbols, libraries, files;
    for (const HostParameter& parameter : run.parameters)
        (parameter.isHeld() ? constants : inputs)
            .push_back(portText(parameter.name, parameter.type.tensor(), parameter.state,
                                parameter.isHeld() ? originalOf(parameter.name) : std::string()));
    for (const HostValue& value : run.values)
        if (value.kind == HostValue::Kind::Constant)
            constants.push_back(portText(program.constants[static_cast<size_t>(value.index)], &value.type, false));
    for (const int64_t number : run.results) {
        const HostValue* value = number < 0 ? nullptr : &run.values[static_cast<size_t>(number)];
        outputs.push_back(portText(value ? value->name : "", value ? &value->type : nullptr, false));
    }
    for (const HostSymbol& symbol : run.symbols)
        symbols.push_back("{\"name\": " + jsonString(symbol.name) +
                          ", \"input\": " + jsonString(run.parameters[symbol.parameter].name) +
                          (symbol.dim < 0 ? "" : ", \"dim\": " + std::to_string(symbol.dim)) +
                          ", \"least\": " + std::to_string(symbol.least) +
                          (symbol.most ? ", \"most\": " + std::to_string(*symbol.most) : "") + "}");
    Libraries called = librariesOf(program);
    std::sort(called.begin(), called.end(), [](const Library* a, const Library* b) { return a->name < b->name; });
    for (const Library* each : called) {
        const char* const version = versionOfLibrary(each->name);
        libraries.push_back("{\"name\": " + jsonString(std::string(each->name)) +
                            (version ? ", \"version\": " + jsonString(version) : "") + "}");
    }
    for (const std::string& file : exported.files) files.push_back(jsonString(file));
    std::string checksums;
    for (const auto& [file, sum] : exported.checksums)
        checksums += (checksums.empty() ? "\n  " : ",\n  ") + jsonString(file) + ": " + jsonString(sum);
    size_t kernels = 0, calls = 0;
    for (const HostFunction& function : program.functions)
        for (const HostStep& step : function.steps) ++(step.kind == HostStepKind::Kernel ? kernels : calls);
    return "{\"cutaway\": " + jsonString(version()) + ",\n \"name\": " + jsonString(exported.name) +
           ",\n \"model\": " + jsonString(exported.model) + ",\n \"request\": " + jsonString(exported.request) +
           ",\n \"device\": \"cpu\",\n \"target\": " + jsonString(std::string(exported.form.target)) +
           ",\n \"processor\": " + jsonString(processorText(exported.form)) +
           ",\n \"weights\": " + jsonString(exported.form.weightsFile()) +
           ",\n \"kernel_calls\": " + std::to_string(kernels) + ",\n \"library_calls\": " + std::to_string(calls) +
           ",\n \"inputs\": " + listText(inputs) + ",\n \"outputs\": " + listText(outputs) +
           ",\n \"sizes\": " + listText(symbols) + ",\n \"constants\": " + listText(constants) +
           ",\n \"libraries\": " + listText(libraries) + ",\n \"files\": " + listText(files) + ",\n \"checksums\": {" +
           checksums + "\n }}\n";
}

}  // namespace cutaway
