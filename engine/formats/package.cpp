#include "engine/formats/package.h"

#include <set>

#include "engine/formats/json.h"

namespace cutaway {
namespace {

constexpr std::string_view kModels = "data/aotinductor/";
constexpr uint64_t kMaxMetadata = 1 << 20;

std::string_view kindOf(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
        {".so", "compiled library"},   {".o", "object file"},       {".cubin", "GPU code"},
        {".ptx", "GPU assembly"},      {".spv", "GPU code"},        {".hsaco", "GPU code"},
        {"metadata.json", "metadata"}, {".json", "JSON"},           {".cpp", "generated source"},
        {".h", "generated source"},    {".weights", "weights"},     {".blob", "weights"},
        {".bin", "weights"},           {".cu", "generated source"}, {".pt", "tensors"}};
    for (const auto& [ending, kind] : kKinds)
        if (name.ends_with(ending)) return kind;
    return "data";
}

std::string plainText(const Json& value) {
    if (const auto text = value.text()) return std::string(*text);
    if (const auto number = value.integer()) return std::to_string(*number);
    if (const auto flag = value.flag()) return *flag ? "true" : "false";
    if (const auto real = value.real()) return std::to_string(*real);
    return value.isNull() ? "none" : "…";
}

void readMetadata(const ZipArchive& archive, const ZipEntry& entry, OpenedFile& file) {
    if (entry.size > kMaxMetadata) return file.remarks.push_back(entry.name + " is too large to show");
    const auto text = archive.readText(entry.name);
    if (!text) return file.remarks.push_back(text.error().text());
    const auto document = parseJson(*text, entry.name);
    if (!document) return file.remarks.push_back(document.error().text());
    const std::string name = entry.name.substr(entry.name.rfind('/') + 1);
    for (const auto& [key, value] : (*document)->root.members())
        file.remarks.push_back(name + ": " + std::string(key) + " = " + plainText(Json(value)));
}

}  // namespace

std::string describeEntry(const ZipEntry& entry) {
    return entry.name + " (" + std::to_string(entry.size) + " bytes, " + std::string(kindOf(entry.name)) + ")";
}

OpenedFile readPackage(const ZipArchive& archive) {
    OpenedFile file;
    file.path = archive.where();
    file.format = FileFormat::CompiledPackage;
    std::set<std::string> models;
    size_t libraries = 0, sources = 0;
    for (const ZipEntry& entry : archive.entries()) {
        file.contents.push_back(describeEntry(entry));
        libraries += entry.name.ends_with(".so");
        sources += kindOf(entry.name) == "generated source";
        if (!entry.name.starts_with(kModels)) continue;
        const size_t slash = entry.name.find('/', kModels.size());
        if (slash != std::string::npos) models.insert(entry.name.substr(kModels.size(), slash - kModels.size()));
        if (entry.name.ends_with("metadata.json")) readMetadata(archive, entry, file);
    }
    file.description = "compiled package (AOTInductor), for inspection only: " + std::to_string(models.size()) +
                       (models.size() == 1 ? " model, " : " models, ") + std::to_string(libraries) + " libraries, " +
                       std::to_string(sources) + " sources";
    for (const std::string& model : models) file.remarks.push_back("model '" + model + "'");
    file.remarks.emplace_back(
        "holds compiled code and no graph; open the .pt2 that torch.export.save wrote to see its graph");
    return file;
}

}  // namespace cutaway
