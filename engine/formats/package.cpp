#include "engine/formats/package.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "engine/formats/json.h"
#include "engine/tensor/dtype.h"

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

/// What stands between two texts on a line; empty if it does not.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
    const size_t begin = line.find(before);
    if (begin == std::string_view::npos) return {};
    const size_t end = line.find(after, begin + before.size());
    return end == std::string_view::npos ? std::string_view()
                                         : line.substr(begin + before.size(), end - begin - before.size());
}

/// What a generated wrapper tells of the model's inputs, outputs and constants, and the names of the kernels that a
/// generated source has: the lines that PyTorch's cpp_wrapper writes, 2.11 and 2.15 alike.
void readSource(const ZipArchive& archive, const ZipEntry& entry, OpenedFile& file) {
    constexpr uint64_t kMaxSource = uint64_t{64} << 20;
    if (entry.size > kMaxSource) return file.remarks.push_back(entry.name + " is too large to look into");
    const auto text = archive.readText(entry.name);
    if (!text) return file.remarks.push_back(text.error().text());
    struct Constant {
        std::string name, dtype, sizes, kind, original;
    };
    std::map<int, Constant> constants;
    std::set<std::string> kernels;
    for (size_t at = 0; at < text->size();) {
        const size_t end = std::min(text->find('\n', at), text->size());
        const std::string_view line = std::string_view(*text).substr(at, end - at);
        at = end + 1;
        for (const auto& [list, what] : {std::pair("inputs_info_[", "input"), std::pair("outputs_info_[", "output")})
            if (const auto name = between(line, "].name = \"", "\"");
                !name.empty() && line.find(list) < line.size() && line.find("constants_info_[") > line.size())
                file.contents.push_back(std::string(what) + " '" + std::string(name) + "'");
        if (const auto number = between(line, "constants_info_[", "]"); !number.empty()) {
            int index = -1;
            const auto read = std::from_chars(number.data(), number.data() + number.size(), index);
            if (read.ec != std::errc() || index < 0) continue;
            Constant& constant = constants[index];
            if (const auto v = between(line, "].name = \"", "\""); !v.empty()) constant.name = v;
            if (const auto v = between(line, "torch_dtype_", ")"); !v.empty()) constant.dtype = v;
            if (const auto v = between(line, "].dtype = cached_torch_dtype_", ";"); !v.empty()) constant.dtype = v;
            if (const auto v = between(line, "].shape = {", "}"); !v.empty()) constant.sizes = v;
            if (const auto v = between(line, "ConstantType::", ")"); !v.empty()) constant.kind = v;
            if (const auto v = between(line, "].original_fqn = \"", "\""); !v.empty()) constant.original = v;
        }
        if (const size_t found = line.find(" cpp_"); found < line.size() && line.find("void") < found) {
            const std::string_view name = line.substr(found + 1);
            kernels.insert(std::string(name.substr(0, name.find_first_of("( "))));
        }
        if (line.find("loadKernel(") < line.size())
            if (const auto name = between(line, "\"triton_", "\""); !name.empty())
                kernels.insert("triton_" + std::string(name));
    }
    for (const auto& [index, constant] : constants) {
        const auto dtype = dtypeFromTorchName(constant.dtype);
        file.contents.push_back("constant '" + (constant.original.empty() ? constant.name : constant.original) +
                                "': " + (dtype ? std::string(info(*dtype).abbreviation) : constant.dtype) + "[" +
                                constant.sizes + "]" + (constant.kind.empty() ? "" : ", " + constant.kind));
    }
    for (const std::string& kernel : kernels) file.contents.push_back("kernel " + kernel);
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
    std::vector<const ZipEntry*> generated;
    for (const ZipEntry& entry : archive.entries()) {
        file.contents.push_back(describeEntry(entry));
        libraries += entry.name.ends_with(".so");
        sources += kindOf(entry.name) == "generated source";
        if (!entry.name.starts_with(kModels)) continue;
        const size_t slash = entry.name.find('/', kModels.size());
        if (slash != std::string::npos) models.insert(entry.name.substr(kModels.size(), slash - kModels.size()));
        if (entry.name.ends_with("metadata.json")) readMetadata(archive, entry, file);
        if (entry.name.ends_with(".cpp")) generated.push_back(&entry);
    }
    for (const ZipEntry* entry : generated) readSource(archive, *entry, file);
    file.description = "compiled package (AOTInductor), for inspection only: " + std::to_string(models.size()) +
                       (models.size() == 1 ? " model, " : " models, ") + std::to_string(libraries) + " libraries, " +
                       std::to_string(sources) + " sources";
    for (const std::string& model : models) file.remarks.push_back("model '" + model + "'");
    file.remarks.emplace_back(
        "holds compiled code and no graph; open the .pt2 that torch.export.save wrote to see its graph");
    return file;
}

}  // namespace cutaway
