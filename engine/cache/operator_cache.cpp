#include "engine/cache/operator_cache.h"

#include <algorithm>
#include <filesystem>

#include "engine/cache/sealed_folder.h"
#include "engine/support/file_lock.h"
#include "engine/support/files.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr double kLockSeconds = 600;  // PyTorch's

/// Whoever writes as PyTorch does truncates the file first: what is short now may be whole in a moment, and surely is
/// under the lock.
std::vector<OperatorRecord> parse(const OperatorPlace& place, std::vector<std::string>& remarks) {
    std::error_code none;
    if (!fs::exists(place.file(), none)) return {};
    const auto text = readFile(place.file());
    if (!text) {
        remarks.push_back(text.error().text());
        return {};
    }
    std::vector<OperatorRecord> records = parseOperatorRecords(*text, place.file(), remarks);
    std::erase_if(records, [&](const OperatorRecord& record) {
        const bool missing = !fs::exists(fs::path(place.folder()) / record.library, none);
        if (missing)
            remarks.push_back(place.file() + ": the library " + record.library + " is missing; its entry is left out");
        return missing;
    });
    return records;
}

/// What writers that were killed between writing and renaming left. Only under the lock, which a writer holds.
void dropUnfinished(const OperatorPlace& place) {
    const std::string begins = place.op + ".json.";
    std::error_code none;
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(place.folder(), none)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(begins) && name.ends_with(kUnfinished)) left.push_back(entry.path());
    }
    for (const fs::path& path : left) fs::remove(path, none);
}

}  // namespace

Result<void> makeFolders(const OperatorPlace& place) {
    for (const std::string& folder : {place.locks(), place.folder() + "/lib"}) {
        std::error_code failed;
        const bool fresh = fs::create_directories(folder, failed);
        if (failed) return Error{ErrorCode::ToolFailed, "cannot make the folder: " + failed.message(), folder, {}};
        if (fresh) fs::permissions(folder, fs::perms::owner_all, failed);
    }
    if (!isPrivateFolder(place.folder() + "/lib"))
        return Error{ErrorCode::InvalidInput,
                     "somebody else may write to the folder, and what lies there runs as you",
                     place.folder() + "/lib",
                     {"name another folder with --cache, or take the right from the others: chmod go-w"}};
    return {};
}

std::vector<OperatorPlace> operatorPlaces(const std::string& root) {
    std::vector<OperatorPlace> places;
    std::error_code none;
    const auto each = [&](const fs::path& folder, auto&& visit) {
        std::vector<fs::path> paths;
        for (const auto& entry : fs::directory_iterator(folder, none)) paths.push_back(entry.path());
        std::sort(paths.begin(), paths.end());
        for (const fs::path& path : paths) visit(path);
    };
    each(fs::path(root) / "aoti_eager", [&](const fs::path& space) {
        each(space, [&](const fs::path& device) {
            each(device, [&](const fs::path& file) {
                if (file.extension() == ".json" && fs::is_regular_file(file, none))
                    places.push_back({root, space.filename().string(), device.filename().string(),
                                      file.filename().string().substr(0, file.filename().string().size() - 5)});
            });
        });
    });
    return places;
}

std::vector<OperatorRecord> readOperatorRecords(const OperatorPlace& place, std::vector<std::string>& remarks) {
    std::vector<std::string> said;
    std::vector<OperatorRecord> records = parse(place, said);
    if (!said.empty()) {
        std::vector<std::string> again;
        constexpr double kSeconds = 1;
        const auto lock = FileLock::take(place.lock(), kSeconds);
        records = parse(place, again);
        said = std::move(again);
    }
    remarks.insert(remarks.end(), said.begin(), said.end());
    return records;
}

Result<void> changeOperatorRecords(const OperatorPlace& place,
                                   const std::function<bool(std::vector<OperatorRecord>&)>& change,
                                   std::vector<std::string>& remarks, const Progress& progress) {
    std::string problem;
    const auto lock = FileLock::take(place.lock(), kLockSeconds, &problem, progress);
    if (!lock)
        return Error{ErrorCode::Limit,
                     problem.empty() ? "another program has held its lock for long" : "it cannot be locked: " + problem,
                     place.file(),
                     {}};
    dropUnfinished(place);
    std::vector<OperatorRecord> records = parse(place, remarks);
    if (!change(records)) return {};
    return replaceFile(place.file(), operatorRecordsText(records));
}

}  // namespace cutaway
