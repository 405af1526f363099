#include "engine/exporting/export_folder.h"

#include <dlfcn.h>
#include <dnnl.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/exporting/carried_files.h"
#include "engine/exporting/export_place.h"
#include "engine/exporting/export_texts.h"
#include "engine/formats/exported.h"
#include "engine/support/files.h"
#include "engine/support/lapack.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLettersPerFile = 100'000;  // of kernels: a compiler's time grows faster than a file

bool startsWith(std::string_view text, std::string_view begin) { return text.rfind(begin, 0) == 0; }

/// Whether a program that calls these libraries needs the file. Headers include each other, so all of them do.
bool isNeeded(std::string_view path, const Libraries& called) {
    if (startsWith(path, "engine/exporting/")) return false;
    if (path.ends_with(".h")) return true;
    const auto isOf = [&](const Library* library) {
        return std::any_of(library->files.begin(), library->files.end(),
                           [&](std::string_view begin) { return startsWith(path, "engine/" + std::string(begin)); });
    };
    if (std::any_of(called.begin(), called.end(), isOf)) return true;
    const auto all = allLibraries();
    // What is not a library's own is for all of them, or for every program.
    return std::none_of(all.begin(), all.end(), isOf) &&
           (!called.empty() || !startsWith(path, "engine/runtime/libraries/"));
}

/// The path of the library that this program has the function of: without development files -l`name` finds nothing.
std::string pathOf(const void* function, const std::string& name) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "-l" + name;
    std::error_code none;
    const fs::path found = fs::canonical(info.dli_fname, none);
    // OpenBLAS has BLAS in its LAPACK, too.
    const std::string file = found.filename().string();
    const bool known = file.find(name) != std::string::npos || (name == "blas" && file.find("lapack") < file.size());
    return known ? found.string() : "-l" + name;
}

/// The runtime, compiled with this program; empty if it is not beside it or was made for a sanitizer.
std::string archive() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return {};
#else
    std::error_code none;
    for (const fs::path& candidate : placesBeside("libcutaway_carried.a"))
        if (fs::is_regular_file(candidate, none)) return candidate.string();
    return {};
#endif
}

/// By parts: weights may be larger than the memory.
Result<std::string> checksumOfFile(const std::string& path) {
    CT_TRY(const ByteSource source, ByteSource::open(path));
    return checksumOf(source);
}

class Writer {
  public:
    Writer(fs::path folder, const std::string& where, const ExportContents& contents)
        : m_folder(std::move(folder)),
          m_final(fs::absolute(where).string()),
          m_contents(&contents),
          m_libraries(librariesOf(*contents.program)) {}

    Result<ExportedFolder> run(const CompilerOptions& compiler, const Progress& progress) {
        progress.say(0.3, "writing sources");
        CT_TRY_VOID(write("src/host.cpp", *m_contents->source));
        CT_TRY_VOID(write("src/open.cpp", openText(m_contents->name, m_libraries, m_contents->form)));
        m_sources.push_back("src/open.cpp");
        CT_TRY_VOID(write("src/kernels_need.cpp", filled("kernels_need.cpp")));
        m_kernels.push_back("src/kernels_need.cpp");
        if (m_contents->form.weights == ExportForm::Weights::Embedded) {
            CT_TRY_VOID(write("src/weights.cpp", filled("weights.cpp")));
            m_sources.push_back("src/weights.cpp");
        }
        CT_TRY_VOID(writeKernels());
        const std::string compiled = archive();
        for (const CarriedFile& file : carriedFiles()) {
            if (!isNeeded(file.path, m_libraries)) continue;
            const std::string path = "src/" + std::string(file.path);
            CT_TRY_VOID(write(path, file.text));
            if (compiled.empty() && path.ends_with(".cpp")) m_sources.push_back(path);
        }
        CT_TRY_VOID(write(m_contents->name + ".h", headerText(m_contents->name)));
        for (const char* file : {"main.c", "example.cpp", "example.py"}) CT_TRY_VOID(write(file, filled(file)));
        CT_TRY_VOID(write(m_contents->name + "_container.h", filled("container.h")));
        CT_TRY_VOID(write("src/container.cpp", filled("container.cpp")));
        m_sources.push_back("src/container.cpp");
        CT_TRY_VOID(write("CMakeLists.txt", cmakeText(m_contents->name, m_libraries, m_contents->form,
                                                      kernelOptions(m_contents->form.target, m_contents->form.debug))));
        progress.say(0.5, "writing weights");
        if (const std::string weights = m_contents->form.weightsFile(); !weights.empty()) {
            CT_TRY_VOID(writeSafeTensors(place(weights), {m_contents->weights, {}}));
            m_made.files.push_back(weights);
        }
        CT_TRY_VOID(writeSafeTensors(place("inputs.safetensors"), {m_contents->inputs, {}}));
        m_made.files.emplace_back("inputs.safetensors");
        progress.say(0.6, "compiling the library");
        const std::string library = "lib" + m_contents->name + ".so";
        CT_TRY(m_made.compiled, compileLibrary(linked(compiled), place(library), compiler, progress));
        m_made.files.push_back(library);
        m_made.library = library;
        m_made.files.emplace_back("manifest.json");
        std::sort(m_made.files.begin(), m_made.files.end());
        CT_TRY(const auto checksums, this->checksums());
        const ExportedProgram program{m_contents->name, m_contents->model,   m_contents->request,   m_made.files,
                                      checksums,        m_contents->program, m_contents->originals, m_contents->form};
        CT_TRY_VOID(writeFile(place("manifest.json"), manifestText(program)));
        return std::move(m_made);
    }

  private:
    std::string place(const std::string& path) const { return (m_folder / path).string(); }
    std::string filled(const std::string& file) const { return templateText(file, m_contents->name, m_contents->form); }
    Result<void> write(const std::string& path, std::string_view text) {
        std::error_code failed;
        fs::create_directories((m_folder / path).parent_path(), failed);
        CT_TRY_VOID(writeFile(place(path), text));
        m_made.files.push_back(path);
        return {};
    }
    Result<std::map<std::string, std::string>> checksums() const {
        std::map<std::string, std::string> all;
        for (const std::string& file : m_made.files) {
            if (file == "manifest.json") continue;
            CT_TRY(all[file], checksumOfFile(place(file)));
        }
        return all;
    }
    /// Kernels of the same name are the same.
    Result<void> writeKernels() {
        std::set<std::string> known;
        std::vector<PrintedKernel> file;
        size_t letters = 0;
        const auto finish = [&]() -> Result<void> {
            if (file.empty()) return {};
            const std::string path = "src/kernels" + std::to_string(m_kernels.size() - 1) + ".cpp";
            CT_TRY_VOID(write(path, cppFile(file)));
            m_kernels.push_back(path);
            file.clear();
            letters = 0;
            return {};
        };
        for (const PrintedKernel& kernel : *m_contents->printed) {
            if (kernel.functions.empty() || !known.insert(kernel.functions[0]).second) continue;
            letters += kernel.source.size();
            file.push_back(kernel);
            if (letters > kLettersPerFile) CT_TRY_VOID(finish());
        }
        return finish();
    }
    LibrarySources linked(const std::string& archive) const {
        LibrarySources from;
        for (const std::string& path : m_kernels) from.kernels.push_back(place(path));
        for (const std::string& path : m_sources) from.sources.push_back(place(path));
        from.callers = {place("src/host.cpp")};
        from.includes = {place("src")};
        from.target = m_contents->form.target;
        from.options = {"-DWEIGHTS_FILE=\"" + place("src/weights.safetensors") + "\""};
        if (m_contents->form.debug)
            from.options.insert(from.options.end(), {"-g", "-ffile-prefix-map=" + m_folder.string() + "=" + m_final});
        if (!archive.empty()) from.linked = {archive, "-Wl,--exclude-libs,ALL"};
        from.linked.push_back("-Wl,-z,defs");
        if (areLinkedWith(m_libraries, LinkedWith::OneDnn))
            from.linked.push_back(pathOf(reinterpret_cast<const void*>(&dnnl_version), "dnnl"));
        if (areLinkedWith(m_libraries, LinkedWith::Lapack)) {
            from.linked.push_back(pathOf(reinterpret_cast<const void*>(&lapack::dgetrf_), "lapack"));
            from.linked.push_back(pathOf(reinterpret_cast<const void*>(&lapack::dgemm_), "blas"));
        }
        from.linked.insert(from.linked.end(), {"-lgomp", "-lpthread"});
        return from;
    }

    fs::path m_folder;
    std::string m_final;  // where the folder is to be
    const ExportContents* m_contents;
    Libraries m_libraries;
    std::vector<std::string> m_kernels, m_sources;
    ExportedFolder m_made;
};

}  // namespace

std::string exportNameOf(const std::string& name) {
    std::string made;
    for (const char c : fs::path(name).stem().string()) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (plain) made += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
        else if (!made.empty() && made.back() != '_') made += '_';
    }
    while (!made.empty() && made.back() == '_') made.pop_back();
    if (made.empty()) return "model";
    return made[0] >= '0' && made[0] <= '9' ? "model_" + made : made;
}

Result<ExportedFolder> writeExport(const std::string& folder, const ExportContents& contents,
                                   const CompilerOptions& compiler, const Progress& progress) {
    const bool archive = fs::path(folder).extension() == ".zip";
    CT_TRY_VOID(archive ? checkArchive(folder) : checkFolder(folder));
    CT_TRY(const TempDir space, TempDir::create("export"));
    CT_TRY(ExportedFolder made, Writer(space.path(), folder, contents).run(compiler, progress));
    if (contents.inspect) CT_TRY_VOID(contents.inspect(space.path()));
    CT_TRY_VOID(archive ? moveIntoArchive(space.path(), folder, contents.name, made.files)
                        : moveInto(space.path(), folder, made.files));
    made.library = (archive ? fs::path(contents.name) : fs::path(folder)) / made.library;
    return made;
}

}  // namespace cutaway
