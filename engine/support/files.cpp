#include "engine/support/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <system_error>

namespace cutaway {
namespace {

Error fileError(const std::string& what, const std::string& path, int number) {
    const ErrorCode code = number == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidInput;
    return {code, what + ": " + std::generic_category().message(number), path, {}};
}

Error notRegular(const std::string& path, mode_t mode) {
    if (S_ISDIR(mode)) return fileError("cannot read", path, EISDIR);
    const char* kind = S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
    return invalidInput(std::string("not a regular file: this is ") + kind, path);
}

}  // namespace

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path) {
    struct stat status {};
    // Asked before opening, since opening a device may act on it, and again afterwards, of what was really opened.
    if (::stat(path.c_str(), &status) != 0) return fileError("cannot read", path, errno);
    if (!S_ISREG(status.st_mode)) return notRegular(path, status.st_mode);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor < 0) return fileError("cannot read", path, errno);
    const std::shared_ptr<InputFile> file(new InputFile(path, descriptor));
    if (::fstat(descriptor, &status) != 0) return fileError("cannot read", path, errno);
    if (!S_ISREG(status.st_mode)) return notRegular(path, status.st_mode);
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    file->m_size = static_cast<uint64_t>(status.st_size);
    file->m_modifiedSeconds = status.st_mtim.tv_sec;
    file->m_modifiedNanoseconds = status.st_mtim.tv_nsec;
    return std::shared_ptr<const InputFile>(file);
}

InputFile::~InputFile() { ::close(m_descriptor); }

Result<void> InputFile::checkUnchanged() const {
    struct stat status {};
    if (::fstat(m_descriptor, &status) != 0) return fileError("cannot read", m_path, errno);
    if (static_cast<uint64_t>(status.st_size) == m_size && status.st_mtim.tv_sec == m_modifiedSeconds &&
        status.st_mtim.tv_nsec == m_modifiedNanoseconds)
        return {};
    std::string message = "the file has changed since it was opened";
    if (static_cast<uint64_t>(status.st_size) != m_size)
        message += ": it had " + std::to_string(m_size) + " bytes and has " + std::to_string(status.st_size) + " now";
    return Error{
        ErrorCode::InvalidInput, message, m_path, {"open it again when the program that writes it has finished"}};
}

Result<void> InputFile::read(uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
        const ssize_t count = ::pread(m_descriptor, into.data(), into.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fileError("cannot read", m_path, errno);
        if (count == 0) break;
        into = into.subspan(static_cast<size_t>(count));
        offset += static_cast<uint64_t>(count);
    }
    CT_TRY_VOID(checkUnchanged());
    if (!into.empty()) return invalidInput("cannot read: the file ends early", m_path);
    return {};
}

size_t InputFile::peek(std::span<std::byte> into) const {
    const ssize_t count = ::pread(m_descriptor, into.data(), into.size(), 0);
    return count > 0 ? static_cast<size_t>(count) : 0;
}

Result<std::string> InputFile::readAll(uint64_t limit) const {
    if (m_size > limit)
        return Error{ErrorCode::Limit,
                     std::to_string(m_size) + " bytes are too many: at most " + std::to_string(limit) + " are read",
                     m_path,
                     {}};
    std::string bytes(m_size, '\0');
    CT_TRY_VOID(read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
}

Result<std::string> readTextFile(const std::string& path, size_t limit) {
    CT_TRY(const std::shared_ptr<const InputFile> file, InputFile::open(path));
    return file->readAll(limit);
}

Result<std::string> readFile(const std::string& path) {
    CT_TRY(const std::shared_ptr<const InputFile> file, InputFile::open(path));
    return file->readAll(std::numeric_limits<uint64_t>::max());
}

Result<void> writeFile(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return Error{ErrorCode::ToolFailed, "cannot write: " + std::generic_category().message(errno), path, {}};
    return {};
}

Result<void> replaceFile(const std::string& path, std::string_view bytes) {
    const std::string unfinished = path + "." + std::to_string(::getpid()) + kUnfinished;
    const auto failed = [&](int error) {
        ::unlink(unfinished.c_str());
        return Error{ErrorCode::ToolFailed, "cannot write: " + std::generic_category().message(error), path, {}};
    };
    const int file = ::open(unfinished.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return failed(errno);
    int error = 0;
    while (!bytes.empty() && error == 0) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written >= 0) bytes.remove_prefix(static_cast<size_t>(written));
        else if (errno != EINTR) error = errno;
    }
    if (error == 0 && ::fsync(file) != 0) error = errno;
    if (::close(file) != 0 && error == 0) error = errno;
    if (error == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) return failed(error);
    return {};
}

}  // namespace cutaway
