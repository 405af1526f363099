#include "engine/support/plugin_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cutaway/program.h"
#include "cutaway/words.h"
#include "engine/support/elapsed.h"
#include "engine/support/sanitized.h"

namespace cutaway {
namespace {

constexpr int64_t kMostFiles = 8;  // of the largest size, that a plugin may write
constexpr size_t kMostWhyBytes = 4096, kMostSaidBytes = size_t{64} << 10;
constexpr double kEndSeconds = 1;  // from a closed connection to the end of its process
/// How often it is looked at while it works; more often where it may start others, which may start others.
constexpr double kLookSeconds = 0.1, kLookAtMany = 0.01;

std::mutex s_limitsMutex;
std::optional<PluginLimits> s_limits;

void add(std::string& bytes, uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }

std::string messageOf(const std::vector<std::string_view>& texts) {
    std::string bytes;
    uint64_t size = sizeof size;
    for (const std::string_view text : texts) size += sizeof size + text.size();
    bytes.reserve(size + sizeof size);
    add(bytes, size);
    add(bytes, texts.size());
    for (const std::string_view text : texts) {
        add(bytes, text.size());
        bytes += text;
    }
    return bytes;
}

/// What came back is a plugin's, so nothing of it is believed.
std::optional<std::vector<std::string>> textsOf(std::string_view bytes) {
    const auto number = [&]() -> std::optional<uint64_t> {
        uint64_t value = 0;
        if (bytes.size() < sizeof value) return std::nullopt;
        std::memcpy(&value, bytes.data(), sizeof value);
        bytes.remove_prefix(sizeof value);
        return value;
    };
    const auto count = number();
    if (!count || *count > bytes.size() / sizeof(uint64_t)) return std::nullopt;
    std::vector<std::string> texts;
    texts.reserve(*count);
    for (uint64_t i = 0; i < *count; ++i) {
        const auto size = number();
        if (!size || *size > bytes.size()) return std::nullopt;
        texts.emplace_back(bytes.substr(0, *size));
        bytes.remove_prefix(*size);
    }
    return bytes.empty() ? std::optional(std::move(texts)) : std::nullopt;
}

/// Of the files in a folder and below it.
int64_t bytesBelow(const std::filesystem::path& folder) {
    int64_t bytes = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(folder, error), last; !error && at != last;
         at.increment(error)) {
        std::error_code ignored;
        // What a link leads to is not a file of this folder.
        if (at->symlink_status(ignored).type() != std::filesystem::file_type::regular) continue;
        bytes += static_cast<int64_t>(at->file_size(ignored));
    }
    return bytes;
}

std::string seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g s", value);
    return text;
}

}  // namespace

PluginLimits pluginLimits() {
    const std::lock_guard lock(s_limitsMutex);
    if (!s_limits) {
        s_limits.emplace();
        if (const char* given = std::getenv("CUTAWAY_PLUGIN_SECONDS")) {
            const double value = std::strtod(given, nullptr);
            if (value > 0) s_limits->seconds = value;
        }
    }
    return *s_limits;
}

void setPluginLimits(const PluginLimits& limits) {
    const std::lock_guard lock(s_limitsMutex);
    s_limits = limits;
}

FileStamp FileStamp::of(const std::string& file) {
    struct stat facts {};
    if (::stat(file.c_str(), &facts) != 0) return {};
    return {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, facts.st_size, facts.st_ino};
}

Result<void> PluginProcess::start() {
    CT_TRY(const std::string program, findHelper("cutaway-plugin-host", "CUTAWAY_PLUGIN_HOST"));
    if (!m_folder) {
        CT_TRY(TempDir folder, TempDir::create("plugin"));
        m_folder.emplace(std::move(folder));
    }
    const PluginLimits limits = m_limits = pluginLimits();
    ProcessOptions options;
    options.argv = {program, m_file, std::to_string(kSanitized ? 0 : limits.memoryBytes),
                    std::to_string(limits.fileBytes), std::to_string(m_mayStart ? limits.processes : 0)};
    options.workingDirectory = m_folder->path().string();
    options.wallSeconds = 0;  // each call has its own
    options.outputLimit = static_cast<size_t>(limits.resultBytes) + (size_t{1} << 20);
    options.errorLimit = kMostSaidBytes;
    options.descriptors = m_lent;
    options.environment = {{"TMPDIR", m_folder->path().string()}};
    CT_TRY(ChildProcess child, startLasting(options));
    m_child.emplace(std::move(child));
    m_tree.emplace(m_child->pid());
    m_written = m_replied = 0;
    m_looked = std::chrono::steady_clock::now();
    return {};
}

/// Why it has to be ended: files of too many bytes, also those that are gone again, or too many processes.
std::optional<Error> PluginProcess::lookAtIt() {
    m_looked = std::chrono::steady_clock::now();
    const int64_t most = kMostFiles * m_limits.fileBytes;
    const int64_t written = m_tree->writtenBytes() - m_written - m_replied;
    if (written > most || bytesBelow(m_folder->path()) > most)
        return Error{ErrorCode::ToolFailed,
                     std::string("wrote more than ") + std::to_string(most) + " bytes together and was ended",
                     {},
                     {}};
    if (m_mayStart && m_tree->others() > m_limits.processes)
        return Error{ErrorCode::ToolFailed,
                     "had more than " + std::to_string(m_limits.processes) + " processes at a time and was ended",
                     {},
                     {}};
    return std::nullopt;
}

/// Ends it with all that it has started, which may have left its group: orphans of such a process become its children.
void PluginProcess::end() {
    if (m_child && m_mayStart) m_tree->endOthers();
    m_child.reset();
    m_folder.reset();  // with all that it left there
}

/// What has become of the process, in words.
Error PluginProcess::gone(double limit, const Error& error) {
    const bool ended = error.code != ErrorCode::Limit;
    if (m_mayStart) m_tree->endOthers();
    bool closed = false;  // the connection alone, and the process lives
    if (ended) {
        const auto start = std::chrono::steady_clock::now();
        while ((closed = m_child->running()) && millisecondsSince(start) < kEndSeconds * 1000) ::usleep(1000);
    }
    if (!ended || closed) m_child->kill();
    ProcessEnd last = m_child->wait();
    m_child.reset();
    m_folder.reset();
    Error out{ErrorCode::ToolFailed, {}, {}, {}};
    if (!ended) {
        out.code = ErrorCode::Limit;
        out.message = "did not answer within " + seconds(limit) + " and was ended";
    } else if (closed) {
        out.message = "closed its connection to Cutaway and was ended";
    } else if (last.how == ProcessEnd::How::Signalled && last.signal == SIGXFSZ) {
        out.message = "wrote a file of more than " + std::to_string(pluginLimits().fileBytes) + " bytes and was ended";
    } else {
        out.message = "its process " + last.text();
    }
    std::string said = last.errors.size() > 400 ? last.errors.substr(last.errors.size() - 400) : last.errors;
    while (said.ends_with('\n')) said.pop_back();
    if (!said.empty()) out.notes.push_back("it said: " + visibleText(said));
    return out;
}

Result<std::vector<std::string>> PluginProcess::exchange(const std::string& request, double limit,
                                                         const Stopped& stopped) {
    const auto start = std::chrono::steady_clock::now();
    const auto left = [&] { return limit - millisecondsSince(start) / 1000; };
    if (auto written = m_child->write(request, limit, stopped); !written) {
        if (written.error().code == ErrorCode::Limit) return gone(limit, written.error());
        if (written.error().code == ErrorCode::Cancelled) {
            end();
            return written.error();
        }
        // A process that cannot load its library says so and exits, whether or not the request has reached it.
    }
    const double look = m_mayStart ? kLookAtMany : kLookSeconds;
    std::optional<Error> broken;  // a limit, for which it is ended at once
    const auto read = [&](size_t count) -> Result<std::string> {
        while (true) {
            auto bytes = m_child->readBytes(count, std::min(look, std::max(left(), 0.0)));
            if (bytes || bytes.error().code != ErrorCode::Limit) return bytes;
            if ((broken = lookAtIt())) return *broken;
            if (stopped && stopped()) return Error{ErrorCode::Cancelled, "the call was stopped", {}, {}};
            if (left() <= 0) return bytes;
        }
    };
    auto head = read(sizeof(uint64_t));
    uint64_t size = 0;
    if (head) {
        std::memcpy(&size, head->data(), sizeof size);
        if (size > static_cast<uint64_t>(pluginLimits().resultBytes)) {
            end();
            return Error{ErrorCode::Limit,
                         "returned " + std::to_string(size) + " bytes, and may return " +
                             std::to_string(pluginLimits().resultBytes),
                         {},
                         {}};
        }
        m_replied += static_cast<int64_t>(sizeof size + size);
        head = read(size);
    }
    if (head && (m_mayStart || millisecondsSince(m_looked) > 1000 * kLookSeconds)) {
        broken = lookAtIt();
        if (!broken) m_written = m_tree->writtenBytes(), m_replied = 0;
    }
    if (broken) {
        end();
        return *broken;
    }
    if (!head) {
        if (head.error().code != ErrorCode::Cancelled) return gone(limit, head.error());
        end();
        return head.error();
    }
    if (auto texts = textsOf(*head); texts && !texts->empty()) return std::move(*texts);
    end();
    return Error{ErrorCode::ToolFailed, "returned bytes that are not an answer", {}, {}};
}

Result<PluginReply> PluginProcess::call(const PluginCall& call, const Stopped& stopped) {
    const std::lock_guard lock(m_mutex);
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = [&]() -> Result<PluginReply> {
        const PluginLimits now = pluginLimits();
        const bool sameLimits = now.memoryBytes == m_limits.memoryBytes && now.fileBytes == m_limits.fileBytes &&
                                now.resultBytes == m_limits.resultBytes && now.processes == m_limits.processes;
        if (m_child && (!sameLimits || !m_child->running())) end();
        if (FileStamp::of(m_file) != m_stamp) {
            end();
            return Error{ErrorCode::ToolFailed,
                         "its file has been replaced or removed since it was read",
                         m_file,
                         {"compile again: then the plugin is read anew"}};
        }
        if (m_child && m_mayStart) m_tree->goOn();
        if (!m_child) CT_TRY_VOID(start());
        const std::string index = std::to_string(call.index);
        std::vector<std::string_view> texts = {call.kind, index, call.file, call.work};
        texts.insert(texts.end(), call.settings.begin(), call.settings.end());
        const double limit = call.seconds > 0 ? call.seconds : pluginLimits().seconds;
        CT_TRY(std::vector<std::string> reply, exchange(messageOf(texts), limit, stopped));
        if (m_mayStart) m_tree->stop();  // nothing goes on between calls, when nobody looks
        if (reply[0] == "failed")
            return Error{
                ErrorCode::ToolFailed,
                "failed: " + visibleText(reply.size() > 1 && !reply[1].empty() ? reply[1].substr(0, kMostWhyBytes)
                                                                               : "it does not say why"),
                {},
                {}};
        PluginReply out{reply[0] == "yes", {}};
        if (reply.size() > 2)
            out.said.assign(std::make_move_iterator(reply.begin() + 2), std::make_move_iterator(reply.end()));
        return out;
    };
    Result<PluginReply> reply = answer();
    PluginCounts counts;
    counts.calls = call.kind != "describe";
    counts.milliseconds = millisecondsSince(begin);
    if (reply || reply.error().code == ErrorCode::Cancelled) {
        count(counts);
        return reply;
    }
    Error error = reply.error();
    error.message = call.name + " " + error.message;
    counts.addFault(error.message);
    count(counts);
    return error;
}

void PluginProcess::count(const PluginCounts& counts) {
    if (m_shared) return addPluginUse(m_file, counts);
    const std::lock_guard counting(m_countsMutex);
    m_counts.add(counts);
}

void PluginProcess::letStartProcesses(bool may) {
    const std::lock_guard lock(m_mutex);
    if (m_mayStart == may) return;
    m_mayStart = may;
    end();
}

int64_t PluginProcess::residentBytes() const {
    const std::lock_guard lock(m_mutex);
    if (!m_child) return 0;
    std::ifstream file("/proc/" + std::to_string(m_child->pid()) + "/statm");
    int64_t size = 0, resident = 0;
    file >> size >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

PluginCounts PluginProcess::counts() const {
    const std::lock_guard lock(m_countsMutex);
    return m_counts;
}

}  // namespace cutaway
