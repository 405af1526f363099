#include "engine/formats/exported.h"

#include <algorithm>

#include "cutaway/words.h"
#include "engine/formats/json.h"
#include "engine/support/sha256.h"

namespace cutaway {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr size_t kNamed = 5;  // of the files that are wrong

bool has(const FileTree& tree, const std::string& file) {
    return std::find(tree.files.begin(), tree.files.end(), file) != tree.files.end();
}
Result<std::unique_ptr<JsonDocument>> manifestOf(const FileTree& tree) {
    CT_TRY(const ByteSource source, tree.read(kManifest));
    CT_TRY(const std::shared_ptr<Storage> text, source.readText(kManifest));
    return parseJson(textOf(*text), kManifest);
}
std::string textAt(const Json& object, std::string_view key) {
    const auto found = object.find(key);
    return found ? std::string(found->text().value_or("")) : std::string();
}
/// "float32[2, 12]" of a port.
std::string typeOf(const Json& port) {
    std::string all;
    if (const auto sizes = port.find("sizes"))
        for (const Json size : sizes->items())
            all += (all.empty() ? "" : ", ") +
                   (size.integer() ? std::to_string(*size.integer()) : std::string(size.text().value_or("?")));
    return textAt(port, "dtype") + "[" + all + "]";
}
void describePorts(const Json& manifest, const char* key, const char* what, OpenedFile& file) {
    const auto ports = manifest.find(key);
    if (!ports) return;
    for (const Json port : ports->items()) {
        const std::string original = textAt(port, "original");
        file.contents.push_back(std::string(what) + " " + textAt(port, "name") + ": " + typeOf(port) +
                                (original.empty() ? "" : ", " + original + " in the model"));
    }
}

}  // namespace

Result<std::string> checksumOf(const ByteSource& source) {
    constexpr uint64_t kPart = 1 << 22;
    Sha256 sum;
    for (uint64_t at = 0; at < source.size(); at += kPart) {
        CT_TRY(const std::shared_ptr<Storage> part, source.read(at, std::min(kPart, source.size() - at)));
        sum.add(part->data(), part->size());
    }
    return sum.hex();
}

bool isExported(const FileTree& tree) {
    if (!has(tree, kManifest)) return false;
    const auto manifest = manifestOf(tree);
    return manifest && (*manifest)->root.find("cutaway") && (*manifest)->root.find("checksums");
}

Result<OpenedFile> readExported(const FileTree& tree, const std::string& path) {
    CT_TRY(const std::unique_ptr<JsonDocument> document, manifestOf(tree));
    const Json manifest = document->root;
    OpenedFile file;
    file.path = path;
    file.format = FileFormat::Exported;
    CT_TRY(const Json checksums, manifest.objectAt("checksums", kManifest));
    std::vector<std::string> wrong;
    size_t files = 0;
    for (const auto& [name, sum] : checksums.members()) {
        const std::string own(name);
        ++files;
        if (!has(tree, own)) {
            wrong.push_back(own + " is missing");
            continue;
        }
        CT_TRY(const ByteSource source, tree.read(own));
        CT_TRY(const std::string now, checksumOf(source));
        if (now != Json(sum).text().value_or("")) wrong.push_back(own + " was changed");
        file.contents.push_back(own + " (" + bytesText(static_cast<int64_t>(source.size())) + ")");
    }
    if (!wrong.empty()) {
        std::string all;
        for (size_t i = 0; i < std::min(wrong.size(), kNamed); ++i) all += (i > 0 ? ", " : "") + wrong[i];
        if (wrong.size() > kNamed) all += ", and " + std::to_string(wrong.size() - kNamed) + " more";
        return invalidInput("the export is not what its manifest has the checksums of: " + all, path);
    }
    describePorts(manifest, "inputs", "input", file);
    describePorts(manifest, "outputs", "output", file);
    describePorts(manifest, "constants", "weight", file);
    const std::string weights = textAt(manifest, "weights");
    file.description = "exported program '" + textAt(manifest, "name") + "' of " + textAt(manifest, "model") + ": " +
                       std::to_string(files) + " files, all as the manifest has them";
    file.remarks.push_back("compiled for " + textAt(manifest, "processor"));
    // What the library holds is there as a file, too, of which it is built again.
    file.remarks.push_back(weights.empty()               ? "without weights"
                           : weights.starts_with("src/") ? "weights in the library, from " + weights
                                                         : "weights in " + weights);
    file.remarks.emplace_back(
        "holds compiled code and no graph; open the model that it was made from to see its graph");
    return file;
}

FileTree treeOf(const ZipArchive& archive) {
    FileTree tree;
    for (const ZipEntry& entry : archive.entries()) tree.files.push_back(entry.name);
    std::sort(tree.files.begin(), tree.files.end());
    tree.read = [&archive](const std::string& name) -> Result<ByteSource> {
        const ZipEntry* const entry = archive.find(name);
        if (entry == nullptr) return invalidInput("there is no such entry", archive.where() + ": " + name);
        return archive.source(*entry);
    };
    return tree;
}

}  // namespace cutaway
