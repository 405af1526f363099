#include "engine/cache/sealed_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "engine/support/files.h"
#include "engine/support/hash.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSeal = "sealed";
constexpr std::string_view kHeader = "cutaway entry 1\n";  // and the version of this form

std::string sumOf(std::string_view bytes) { return Hasher().add(bytes).finish().hex(); }

Error damaged(const fs::path& file, const std::string& what) { return invalidInput(what, file.string()); }

struct Checked {
    Seal seal;
    std::map<std::string, std::string> digests;  // of the files
};

Result<Checked> read(const fs::path& folder) {
    const fs::path path = folder / kSeal;
    std::error_code none;
    if (!fs::exists(path, none)) return Error{ErrorCode::NotFound, "there is no entry", folder.string(), {}};
    CT_TRY(const std::string text, readFile(path.string()));
    const size_t end = text.rfind("end ");
    if (!text.starts_with(kHeader) || end == std::string::npos ||
        text.substr(end) != "end " + sumOf(text.substr(0, end)) + "\n")
        return damaged(path, "the list of the entry's files is damaged or of another version");
    Checked found;
    std::istringstream lines(text.substr(kHeader.size(), end - kHeader.size()));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string kind, name, digest;
        int64_t bytes = 0;
        words >> kind;
        if (kind == "file") words >> bytes >> digest;
        else words >> name;
        words.get();
        std::string rest;
        std::getline(words, rest);
        if (kind == "file") {
            found.seal.files[rest] = bytes;
            found.digests[rest] = digest;
        } else {
            found.seal.facts[name] = rest;
        }
    }
    return found;
}

}  // namespace

int64_t Seal::bytes() const {
    int64_t all = 0;
    for (const auto& [file, own] : files) all += own;
    return all;
}

Result<void> sealFolder(const std::string& folder, const std::map<std::string, std::string>& facts) {
    std::string text(kHeader);
    for (const auto& [name, value] : facts) text += "fact " + name + " " + value + "\n";
    std::map<std::string, std::string> files;
    std::error_code failed;
    for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
        if (entry.is_regular_file() && entry.path().filename() != kSeal) {
            CT_TRY(const std::string bytes, readFile(entry.path().string()));
            files[fs::relative(entry.path(), folder).string()] = std::to_string(bytes.size()) + " " + sumOf(bytes);
        }
    if (failed) return Error{ErrorCode::ToolFailed, failed.message(), folder, {}};
    for (const auto& [name, sum] : files) text += "file " + sum + " " + name + "\n";
    return writeFile((fs::path(folder) / kSeal).string(), text + "end " + sumOf(text) + "\n");
}

Result<Seal> openSealed(const std::string& folder) {
    CT_TRY(Checked found, read(folder));
    for (const auto& [name, bytes] : found.seal.files) {
        const fs::path file = fs::path(folder) / name;
        const auto own = readFile(file.string());
        if (!own) return damaged(file, "a file of the entry is missing");
        if (static_cast<int64_t>(own->size()) != bytes || sumOf(*own) != found.digests[name])
            return damaged(file, "a file of the entry is not as it was written");
    }
    return std::move(found.seal);
}

Result<Seal> readSeal(const std::string& folder) {
    CT_TRY(Checked found, read(folder));
    return std::move(found.seal);
}

Result<void> putFolder(const std::string& made, const std::string& place) {
    std::error_code failed, none;
    fs::rename(made, place, failed);
    if (!failed) return {};
    // Something is there. It goes aside first: a folder is not replaced by renaming.
    const fs::path aside = fs::path(place).parent_path() / (".gone-" + fs::path(place).filename().string());
    fs::remove_all(aside, none);
    fs::rename(place, aside, none);
    failed.clear();
    fs::rename(made, place, failed);
    fs::remove_all(aside, none);
    if (failed) return Error{ErrorCode::ToolFailed, "cannot put the entry into place: " + failed.message(), place, {}};
    return {};
}

bool isPrivateFolder(const std::string& folder) {
    struct stat found {};
    return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
           (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace cutaway
