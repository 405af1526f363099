#include "engine/exporting/export_place.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <set>

#include "engine/formats/open.h"
#include "engine/formats/zip_writer.h"

namespace cutaway {
namespace {

namespace fs = std::filesystem;

/// Within the folder, so on its disk: new files before they are put in place, and old ones meanwhile.
constexpr const char* kSpace = ".cutaway-export";

Error cannotWrite(const std::error_code& failed, const fs::path& file) {
    return invalidInput("cannot write: " + failed.message(), file.string());
}

/// Moves a file, to another disk if need be.
std::error_code moveFile(const fs::path& from, const fs::path& to) {
    std::error_code failed;
    fs::create_directories(to.parent_path(), failed);
    if (failed) return failed;
    fs::rename(from, to, failed);
    if (failed) fs::copy_file(from, to, failed);
    return failed;
}

/// Puts each entry of `made` into the folder, and what the folder has under its name into `old`; on failure all are
/// where they were. All three are on one disk.
Result<void> exchange(const fs::path& made, const fs::path& old, const fs::path& folder,
                      const std::set<std::string>& entries) {
    std::vector<std::pair<fs::path, fs::path>> moved;
    std::error_code failed, none;
    const auto move = [&](const fs::path& from, const fs::path& to) {
        if (failed) return;
        fs::rename(from, to, failed);
        if (!failed) moved.emplace_back(from, to);
    };
    // The manifest last: until then that of the earlier export says which files are not its own.
    std::vector<std::string> order(entries.begin(), entries.end());
    std::stable_partition(order.begin(), order.end(), [](const std::string& e) { return e != "manifest.json"; });
    for (const std::string& entry : order) {
        const fs::file_status there = fs::symlink_status(folder / entry, none);
        // A folder that has a file's name is not an export's: it stays, and the file cannot be written.
        const bool stays = fs::is_directory(there) && !fs::is_directory(made / entry, none);
        if (fs::exists(there) && !stays) move(folder / entry, old / entry);
        move(made / entry, folder / entry);
        if (!failed) continue;
        for (auto back = moved.rbegin(); back != moved.rend(); ++back) fs::rename(back->second, back->first, none);
        return cannotWrite(failed, folder / entry);
    }
    return {};
}

/// moveInto() entry by entry, where a folder holds other things, too.
Result<void> moveEntries(const fs::path& from, const fs::path& folder, const std::vector<std::string>& files) {
    std::error_code none;
    fs::path fresh;  // the outermost folder that is made here
    for (fs::path at = folder; !at.empty() && !fs::exists(at, none); at = at.parent_path()) fresh = at;
    // Once all files are there, nothing but renaming is left to do.
    const fs::path space = folder / kSpace, made = space / "made", old = space / "old";
    const auto filled = [&]() -> Result<void> {
        std::error_code failed;
        fs::create_directories(old, failed);
        if (failed) return cannotWrite(failed, folder);
        std::set<std::string> entries;
        for (const std::string& file : files) {
            failed = moveFile(from / file, made / file);
            if (failed) return cannotWrite(failed, folder / file);
            entries.insert(fs::path(file).begin()->string());
        }
        return exchange(made, old, folder, entries);
    }();
    fs::remove_all(space, none);
    if (!filled && !fresh.empty()) fs::remove_all(fresh, none);
    return filled;
}

/// Whether the folder holds nothing but what `made` has, too: file for file and folder for folder.
bool holdsNothingElse(const fs::path& folder, const fs::path& made) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
        const fs::file_status there = entry.symlink_status(none),
                              own = fs::symlink_status(made / entry.path().filename(), none);
        if (there.type() != own.type()) return false;
    }
    return !none;
}
/// Puts `made` in the place of the folder, which goes; both lie in one folder.
bool replaceAtOnce(const fs::path& made, const fs::path& folder) {
    std::error_code failed;
    if (!fs::exists(folder, failed) || fs::is_empty(folder, failed)) {
        fs::rename(made, folder, failed);
        return !failed;
    }
    if (!holdsNothingElse(folder, made)) return false;
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) return false;
    fs::remove_all(made, failed);
    return true;
}

}  // namespace

Result<void> checkFolder(const fs::path& folder) {
    std::error_code failed;
    if (!fs::exists(folder, failed)) return {};
    if (!fs::is_directory(folder, failed))
        return invalidInput("the output path is a file; give a folder", folder.string());
    fs::remove_all(folder / kSpace, failed);  // of an export that was killed
    if (fs::is_empty(folder, failed) || fs::exists(folder / "manifest.json", failed)) return {};
    return Error{ErrorCode::InvalidInput,
                 "the folder holds what is not an export",
                 folder.string(),
                 {"name a new or empty folder, or one that an export is to replace"}};
}

Result<void> checkArchive(const fs::path& file) {
    std::error_code failed;
    if (!fs::exists(file, failed)) return {};
    const auto known = RecognisedFile::at(file.string());
    if (fs::is_regular_file(file, failed) && known && known->format() == FileFormat::Exported) return {};
    return Error{ErrorCode::InvalidInput,
                 "the file is not an export",
                 file.string(),
                 {"name a new file, or one that an export is to replace"}};
}

Result<void> moveInto(const fs::path& from, const fs::path& folder, const std::vector<std::string>& files) {
    std::error_code failed, none;
    fs::path place = fs::weakly_canonical(folder, failed);
    if (failed || !place.has_filename()) place = fs::absolute(folder).lexically_normal();
    if (!place.has_filename()) place = place.parent_path();
    fs::path fresh;  // the outermost folder that is made here
    for (fs::path at = place.parent_path(); !at.empty() && !fs::exists(at, none); at = at.parent_path()) fresh = at;
    const fs::path beside = place.parent_path() / ("." + place.filename().string() + kSpace);
    fs::remove_all(beside, none);  // of an export that was killed
    fs::create_directories(beside, failed);
    if (failed) return moveEntries(from, place, files);
    const auto moved = [&]() -> Result<void> {
        for (const std::string& file : files)
            if (const std::error_code wrong = moveFile(from / file, beside / file))
                return cannotWrite(wrong, place / file);
        return {};
    }();
    if (!moved || replaceAtOnce(beside, place)) {
        fs::remove_all(beside, none);
        if (!moved && !fresh.empty()) fs::remove_all(fresh, none);
        return moved;
    }
    const auto done = moveEntries(beside, place, files);
    fs::remove_all(beside, none);
    return done;
}

Result<void> moveIntoArchive(const fs::path& from, const fs::path& file, const std::string& name,
                             const std::vector<std::string>& files) {
    std::error_code failed;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), failed);
    CT_TRY(ZipWriter zip, ZipWriter::create(file.string(), name));
    for (const std::string& each : files) {
        CT_TRY(const ByteSource source, ByteSource::open((from / each).string()));
        CT_TRY(const std::shared_ptr<Storage> bytes, source.read(0, source.size()));
        CT_TRY_VOID(zip.add(each, textOf(*bytes)));
    }
    return zip.finish();
}

}  // namespace cutaway
