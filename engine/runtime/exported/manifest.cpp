#include "engine/runtime/exported/manifest.h"

#include <cstdio>
#include <memory>

#include "engine/runtime/exported/json_reader.h"
#include "engine/support/sha256.h"

namespace ct {
namespace {

constexpr size_t kMost = 64 << 20;  // of a manifest

std::string read(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               [](std::FILE* f) { return f ? std::fclose(f) : 0; });
    std::string text;
    char part[1 << 14];
    while (file != nullptr && text.size() < kMost) {
        const size_t got = std::fread(part, 1, sizeof part, file.get());
        if (got == 0) break;
        text.append(part, got);
    }
    return text;
}

}  // namespace

std::string checksumOf(const std::string& file) {
    const size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
    const std::string manifest = folder + "manifest.json", text = read(manifest), name = file.substr(folder.size());
    if (text.empty()) return {};
    std::string found;
    try {
        JsonReader reader(text);
        reader.object([&](const std::string& key) {
            if (key != "checksums") return reader.skip();
            reader.object([&](const std::string& path) {
                const std::string sum = reader.text();
                if (path == name) found = sum;
            });
        });
    } catch (const std::exception& error) {
        throw std::runtime_error(manifest + ": " + error.what());
    }
    return found;
}

void checkBytes(const std::string& file, const void* bytes, size_t size) {
    const std::string wanted = checksumOf(file);
    if (wanted.empty() || cutaway::sha256(bytes, size) == wanted) return;
    throw std::runtime_error(
        file +
        " is not the file that manifest.json beside it has the checksum of: copy the folder again, "
        "or give weights of your own another name");
}

}  // namespace ct
