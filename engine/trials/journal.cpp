#include "engine/trials/journal.h"

#include <filesystem>

#include "engine/support/files.h"

namespace cutaway {
namespace {

constexpr std::string_view kHead = "cutaway minify 1 ";

}  // namespace

Result<Journal> Journal::open(const std::string& path, const std::string& search, bool restart) {
    Journal journal;
    std::error_code ignored;
    if (restart) std::filesystem::remove(path, ignored);
    const std::string head = std::string(kHead) + search;
    bool fresh = true;
    if (std::filesystem::exists(path, ignored)) {
        CT_TRY(const std::string text, readFile(path));
        size_t begin = 0;
        for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
            const std::string line = text.substr(begin, end - begin);
            if (begin == 0) {
                if (line != head)
                    return Error{ErrorCode::InvalidInput,
                                 "the folder holds the search of another graph, request or check",
                                 path,
                                 {"give another folder, or --restart to forget that search"}};
                fresh = false;
                continue;
            }
            // A line that was being written when the program died has no end and is not read.
            const size_t blank = line.find(' ');
            if (blank != std::string::npos && blank + 1 < line.size())
                journal.m_known[line.substr(0, blank)] = line[blank + 1] == '1';
        }
        if (begin < text.size()) std::filesystem::resize_file(path, begin, ignored);
    }
    journal.m_path = path;
    journal.m_out.open(path, std::ios::binary | std::ios::app);
    if (fresh) journal.m_out << head << "\n";
    if (!journal.m_out.flush()) return Error{ErrorCode::ToolFailed, "cannot write the file", path, {}};
    return journal;
}

std::optional<bool> Journal::find(const std::string& key) const {
    const auto found = m_known.find(key);
    return found == m_known.end() ? std::nullopt : std::optional(found->second);
}

Result<void> Journal::add(const std::string& key, bool failed) {
    m_known[key] = failed;
    m_out << key << (failed ? " 1\n" : " 0\n") << std::flush;
    if (!m_out) return Error{ErrorCode::ToolFailed, "cannot write the file", m_path, {}};
    return {};
}

}  // namespace cutaway
