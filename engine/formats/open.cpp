#include "engine/formats/open.h"

#include <filesystem>

#include "engine/formats/exported.h"
#include "engine/formats/folder.h"
#include "engine/formats/package.h"
#include "engine/formats/pt2.h"
#include "engine/formats/repro.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/structured_trace.h"
#include "engine/formats/text_file.h"

namespace cutaway {
namespace {

constexpr std::string_view kZipMagic("PK\x03\x04", 4);
constexpr std::string_view kLegacyMagic("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E", 15);

Result<FileFormat> detectArchive(const ZipArchive& archive) {
    if (archive.find("archive_format")) {
        CT_TRY(const std::string format, archive.readText("archive_format", ZipArchive::kMaxMarker));
        if (format.starts_with("pt2"))
            return archive.hasFolder("models/") || !archive.hasFolder("data/aotinductor/")
                       ? FileFormat::Pt2
                       : FileFormat::CompiledPackage;
    }
    if (archive.find("serialized_exported_program.json")) return FileFormat::Pt2Flat;
    if (archive.find("constants.pkl") || archive.hasFolder("code/")) return FileFormat::TorchScript;
    if (archive.find("data.pkl")) return FileFormat::TorchSave;
    if (archive.hasFolder("data/aotinductor/")) return FileFormat::CompiledPackage;
    if (archive.find("manifest.json") && isExported(treeOf(archive))) return FileFormat::Exported;
    return FileFormat::Unknown;
}

bool looksLikeSafeTensors(std::string_view text) {
    if (text.size() < 9 || text[8] != '{') return false;
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[i]);
    return length <= 100'000'000;
}

/// "V0303 12:00:00.123456 4711 torch/x.py:12] {…": a letter, four digits, and JSON after the bracket.
bool isTraceHeader(std::string_view line) {
    if (line.size() < 6 || std::string_view("VIWEC").find(line[0]) == std::string_view::npos) return false;
    for (size_t i = 1; i < 5; ++i)
        if (line[i] < '0' || line[i] > '9') return false;
    return line[5] == ' ' && line.find("] {\"") != std::string_view::npos;
}

FileFormat detectText(std::string_view text) {
    if (isTraceHeader(text.substr(0, text.find('\n')))) return FileFormat::StructuredTrace;
    if (text.find("def load_args(reader)") != std::string_view::npos) return FileFormat::Repro;
    if (text.find("(torch.nn.Module):") != std::string_view::npos ||
        text.find("def forward(") != std::string_view::npos)
        return FileFormat::FxText;
    return FileFormat::Unknown;
}

Result<OpenedFile> openTorchSave(const ZipArchive& archive) {
    OpenedFile file;
    CT_TRY(const SavedValue value, readTorchSave(archive));
    file.tensors = tensorsOf(value);
    file.description = "torch.save, " + std::to_string(file.tensors.size()) + " tensors";
    return file;
}
Result<OpenedFile> openSafeTensors(const ByteSource& source, const std::string& path) {
    OpenedFile file;
    CT_TRY(SafeTensors read, parseSafeTensors(source, path));
    file.tensors = std::move(read.tensors);
    file.description = "safetensors, " + std::to_string(file.tensors.size()) + " tensors";
    for (const auto& [key, text] : read.metadata) file.remarks.push_back(key + ": " + text);
    return file;
}
Result<OpenedFile> openArchive(const ZipArchive& archive, FileFormat format, const std::string& path,
                               const OpenOptions& options) {
    switch (format) {
        case FileFormat::Pt2: return readPt2(archive, options);
        case FileFormat::Pt2Flat: return readFlatPt2(archive, options);
        case FileFormat::TorchSave: return openTorchSave(archive);
        case FileFormat::CompiledPackage: return describePackage(readPackage(treeOf(archive), path));
        case FileFormat::Exported: return readExported(treeOf(archive), path);
        case FileFormat::TorchScript:
            return unsupported("a TorchScript archive", path,
                               {"export the model with torch.export.export and torch.export.save"});
        default:
            return unsupported("a zip archive of an unknown kind", path,
                               {"Cutaway opens what torch.export.save and torch.save write"});
    }
}

bool isFolder(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error);
}

}  // namespace

std::string_view name(FileFormat format) {
    switch (format) {
        case FileFormat::Unknown: return "unknown";
        case FileFormat::Pt2: return ".pt2";
        case FileFormat::Pt2Flat: return ".pt2 (before PyTorch 2.8)";
        case FileFormat::CompiledPackage: return "compiled package";
        case FileFormat::TorchSave: return "torch.save";
        case FileFormat::TorchScript: return "TorchScript";
        case FileFormat::LegacyTorchSave: return "torch.save (before PyTorch 1.6)";
        case FileFormat::SafeTensors: return "safetensors";
        case FileFormat::Repro: return "repro script";
        case FileFormat::FxText: return "FX text";
        case FileFormat::Log: return "log with graphs";
        case FileFormat::StructuredTrace: return "structured trace";
        case FileFormat::ModuleFolder: return "folder of a GraphModule";
        case FileFormat::DebugFolder: return "debug folder";
        case FileFormat::Exported: return "exported program";
    }
    return "unknown";
}

namespace {

/// The version of PyTorch that a trace or a script says wrote it, "2.15.0+cpu"; empty if it says none.
std::string torchVersionIn(std::string_view text) {
    for (const std::string_view before : {"# torch version: ", "\"pytorch_version\": \""}) {
        const size_t at = text.find(before);
        if (at == std::string_view::npos) continue;
        const std::string_view rest = text.substr(at + before.size());
        return std::string(rest.substr(0, rest.find_first_of("\"\r\n")));
    }
    return {};
}
/// The same of a debug folder, by the first script in it.
std::string torchVersionIn(const FileTree& folder, const std::string& path) {
    for (const std::string& file : folder.files) {
        if (!file.ends_with("fx_graph_runnable.py")) continue;
        const auto source = folder.read(file);
        const auto text = source ? source->readText(path) : Result<std::shared_ptr<Storage>>(source.error());
        return text ? torchVersionIn(textOf(**text)) : std::string();
    }
    return {};
}

}  // namespace

struct RecognisedFile::Data {
    std::string path;
    FileFormat format = FileFormat::Unknown;
    // What was read to recognise it; of a folder its list of files.
    std::optional<FileTree> folder;
    std::optional<ByteSource> source;
    std::optional<ZipArchive> archive;
    std::shared_ptr<Storage> text;  // of what is neither an archive nor safetensors
};

FileFormat RecognisedFile::format() const { return m_data->format; }

Result<RecognisedFile> RecognisedFile::at(const std::string& path) {
    if (!isFolder(path)) {
        CT_TRY(const ByteSource source, ByteSource::open(path));
        return of(source, path);
    }
    auto data = std::make_shared<Data>();
    data->path = path;
    data->format = FileFormat::DebugFolder;
    CT_TRY(data->folder, listFolder(path));
    if (isExported(*data->folder)) data->format = FileFormat::Exported;
    else if (isPackage(*data->folder)) data->format = FileFormat::CompiledPackage;
    return RecognisedFile(std::move(data));
}

Result<RecognisedFile> RecognisedFile::of(const ByteSource& source, const std::string& path) {
    auto data = std::make_shared<Data>();
    data->path = path;
    data->source = source;
    CT_TRY(const std::shared_ptr<Storage> start, source.readStart(kLegacyMagic.size()));
    if (textOf(*start).starts_with(kZipMagic)) {
        CT_TRY(ZipArchive archive, ZipArchive::open(source, path));
        CT_TRY(data->format, detectArchive(archive));
        data->archive.emplace(std::move(archive));
    } else if (textOf(*start).starts_with(kLegacyMagic)) {
        data->format = FileFormat::LegacyTorchSave;
    } else if (looksLikeSafeTensors(textOf(*start))) {
        data->format = FileFormat::SafeTensors;
    } else {
        CT_TRY(data->text, source.readText(path));
        data->format = detectText(textOf(*data->text));
    }
    return RecognisedFile(std::move(data));
}

Result<OpenedFile> RecognisedFile::open(const OpenOptions& options) const {
    const Data& data = *m_data;
    const std::string& path = data.path;
    auto read = [&]() -> Result<OpenedFile> {
        if (data.format == FileFormat::Exported && data.folder) return readExported(*data.folder, path);
        if (data.format == FileFormat::CompiledPackage && data.folder)
            return describePackage(readPackage(*data.folder, path));
        if (data.folder) return readFolder(*data.folder, path, options);
        if (data.archive) return openArchive(*data.archive, data.format, path, options);
        switch (data.format) {
            case FileFormat::SafeTensors: return openSafeTensors(*data.source, path);
            case FileFormat::FxText:
            case FileFormat::Log: return openTextFile(textOf(*data.text), path, options);
            case FileFormat::Repro:
                return readRepro(textOf(*data.text), path, storagesBeside(path, textOf(*data.text)));
            case FileFormat::StructuredTrace: return readStructuredTrace(textOf(*data.text), path, options);
            case FileFormat::LegacyTorchSave:
                return unsupported("a torch.save file from before PyTorch 1.6", path,
                                   {"load it in PyTorch and save it again"});
            default:
                return unsupported(
                    "the content is of no format that Cutaway knows", path,
                    {"it opens .pt2, torch.save, safetensors, FX text, logs, repro scripts, structured traces and debug folders"});
        }
    };
    CT_TRY(OpenedFile file, read());
    file.path = path;
    if (file.format == FileFormat::Unknown) file.format = data.format;
    const std::string torch = data.folder ? torchVersionIn(*data.folder, path)
                              : data.text ? torchVersionIn(textOf(*data.text))
                                          : std::string();
    for (OpenedGraph& graph : file.graphs)
        if (graph.module && graph.module->origin.torch.empty()) graph.module->origin.torch = torch;
    return file;
}

Result<OpenedFile> openBytes(const ByteSource& source, const std::string& path, const OpenOptions& options) {
    CT_TRY(const RecognisedFile file, RecognisedFile::of(source, path));
    return file.open(options);
}

Result<OpenedFile> openFile(const std::string& path, const OpenOptions& options) {
    CT_TRY(const RecognisedFile file, RecognisedFile::at(path));
    return file.open(options);
}

}  // namespace cutaway
