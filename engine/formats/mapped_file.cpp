#include "engine/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cutaway {
namespace {

Error fileError(const std::string& path, int number) {
    Error error{ErrorCode::NotFound, std::string("cannot read: ") + std::strerror(number), path, {}};
    if (number != ENOENT) error.code = ErrorCode::InvalidInput;
    return error;
}

class Descriptor {
  public:
    explicit Descriptor(const std::string& path) : m_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~Descriptor() {
        if (m_fd >= 0) ::close(m_fd);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return m_fd; }

  private:
    int m_fd;
};

}  // namespace

Result<std::shared_ptr<Storage>> mapFile(const std::string& path) {
    const Descriptor file(path);
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return fileError(path, errno);
    if (S_ISDIR(status.st_mode)) return fileError(path, EISDIR);
    if (!S_ISREG(status.st_mode)) return invalidInput("not a regular file", path);
    const auto size = static_cast<size_t>(status.st_size);
    if (size == 0) return Storage::view(nullptr, 0, nullptr);
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory == MAP_FAILED) return fileError(path, errno);
    std::shared_ptr<const void> owner(memory, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
    return Storage::view(memory, size, std::move(owner));
}

}  // namespace cutaway
