#include "engine/runtime/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

#include "cutaway/guarded.h"
#include "cutaway/words.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

constexpr uint64_t kMagic = 0x32304b52574b5443;  // "CTKWRK02"
constexpr size_t kAlignment = 64;                // whole vectors
// Large blocks begin at pages of their own, so that forget() gives all of one back: a page that two share stays.
constexpr size_t kPage = 4096, kLarge = 16 * kPage;

size_t aligned(size_t offset, size_t to = kAlignment) { return (offset + to - 1) / to * to; }

Error systemError(const std::string& what, size_t bytes) {
    const int reason = errno;
    if (reason == ENOSPC || reason == ENOMEM || reason == EFBIG)
        return {ErrorCode::Limit,
                "out of memory: " + bytesText(static_cast<int64_t>(bytes)) + " for " + what + " could not be had",
                {},
                {"give smaller inputs, or close other programs"}};
    if (reason == EFAULT)
        return {
            ErrorCode::InvalidInput, "the file that " + what + " are read from became shorter", {}, {"open it again"}};
    return {ErrorCode::ToolFailed,
            "no memory to share for " + what + ": " + std::generic_category().message(reason),
            {},
            {}};
}

/// The bytes of its storage that a tensor reaches.
std::pair<size_t, size_t> reach(const Tensor& tensor) {
    if (tensor.numel() == 0) return {0, 0};
    int64_t first = tensor.offset(), last = tensor.offset();
    for (size_t d = 0; d < tensor.sizes().size(); ++d) {
        const int64_t step = (tensor.sizes()[d] - 1) * tensor.strides()[d];
        (step < 0 ? first : last) += step;
    }
    const auto item = static_cast<size_t>(byteSize(tensor.dtype()));
    return {static_cast<size_t>(first) * item, static_cast<size_t>(last + 1) * item};
}

/// The part of a storage that is sent, and its offset from the first block.
struct Block {
    std::shared_ptr<Storage> storage;
    size_t begin = 0, end = 0, at = 0;
};

struct Blocks {
    std::vector<Block> blocks;
    std::map<const Storage*, size_t> of;  // looked up by address, never iterated
    size_t bytes = 0;

    explicit Blocks(const std::vector<Tensor>& tensors) {
        for (const Tensor& tensor : tensors) {
            if (!tensor.defined()) continue;
            const auto [begin, end] = reach(tensor);
            const auto [known, fresh] = of.try_emplace(tensor.storage().get(), blocks.size());
            if (fresh) blocks.push_back({tensor.storage(), begin, end, 0});
            Block& block = blocks[known->second];
            if (begin == end) continue;
            const bool empty = block.begin == block.end;
            block.begin = empty ? begin : std::min(block.begin, begin);
            block.end = std::max(block.end, end);
        }
        for (Block& block : blocks) {
            // Elements keep their place in a vector.
            block.begin -= block.begin % kAlignment;
            const bool large = block.end - block.begin >= kLarge;
            block.at = aligned(bytes, large ? kPage : kAlignment);
            bytes = block.at + aligned(block.end - block.begin, large ? kPage : kAlignment);
        }
    }
};

Result<void> writeBlock(SharedMemory& memory, size_t at, const Block& block) {
    if (block.begin >= block.end) return {};
    CT_TRY(const std::shared_ptr<Storage> storage, Storage::forOneUse(block.storage));
    const auto* bytes = reinterpret_cast<const char*>(storage->data());
    return memory.write(at + block.at, {bytes + block.begin, block.end - block.begin});
}

/// Limits how much is read or computed at once. Computing a weight takes several times its bytes, so two large ones
/// follow each other.
class Room {
  public:
    void take(size_t bytes) {
        std::unique_lock lock(m_mutex);
        m_given.wait(lock, [&] { return m_taken == 0 || m_taken + bytes <= kBytes; });
        m_taken += bytes;
    }
    void give(size_t bytes) {
        const std::lock_guard lock(m_mutex);
        m_taken -= bytes;
        m_given.notify_all();
    }

  private:
    static constexpr size_t kBytes = size_t{8} << 20;
    std::mutex m_mutex;
    std::condition_variable m_given;
    size_t m_taken = 0;
};

Result<void> writeBlocks(SharedMemory& memory, size_t at, const std::vector<Block>& blocks, int threads,
                         const Progress& progress) {
    std::vector<std::optional<Error>> errors(blocks.size());
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    Room room;
    const auto work = [&](int thread) {
        for (size_t i = next++; i < blocks.size() && !failed && !progress.cancelled(); i = next++) {
            if (thread == 0 && blocks.size() > 1)
                progress.say(static_cast<double>(i) / static_cast<double>(blocks.size()), "handing weights over");
            const size_t bytes = blocks[i].end - blocks[i].begin;
            room.take(bytes);
            const auto written = guarded([&] { return writeBlock(memory, at, blocks[i]); });
            room.give(bytes);
            if (written) continue;
            errors[i] = written.error();
            failed = true;
        }
    };
    if (threads > 1 && blocks.size() > 1) runParts(std::min(threads, static_cast<int>(blocks.size())), work);
    else work(0);
    for (const std::optional<Error>& error : errors)
        if (error) return *error;
    if (progress.cancelled()) return Error{ErrorCode::Cancelled, "handing weights over was cancelled", {}, {}};
    return {};
}

}  // namespace

Result<SharedMemory> SharedMemory::create(std::string what) {
    const int made = ::memfd_create("cutaway", MFD_CLOEXEC);
    if (made < 0) return systemError(what, 0);
    // A descriptor above those of the standard streams, even if one of these is closed, since a child puts its own
    // there.
    const int descriptor = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(made);
    if (descriptor < 0) return systemError(what, 0);
    return SharedMemory(descriptor, std::move(what));
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(m_descriptor, other.m_descriptor);
    std::swap(m_what, other.m_what);
    return *this;
}

SharedMemory::~SharedMemory() {
    if (m_descriptor >= 0) ::close(m_descriptor);
}

Result<void> SharedMemory::write(size_t offset, std::string_view bytes) {
    const size_t all = bytes.size();
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(m_descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return systemError(m_what, all);
        offset += static_cast<size_t>(written);
        bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
}

Result<std::span<std::byte>> SharedMemory::map(std::shared_ptr<const void>& owner) const {
    struct stat facts {};
    if (::fstat(m_descriptor, &facts) != 0) return systemError(m_what, 0);
    const auto bytes = static_cast<size_t>(facts.st_size);
    if (bytes == 0) return std::span<std::byte>();
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, m_descriptor, 0);
    if (memory == MAP_FAILED) return systemError(m_what, bytes);
    owner = std::shared_ptr<const void>(memory,
                                        [bytes](const void* mapped) { ::munmap(const_cast<void*>(mapped), bytes); });
    return std::span(static_cast<std::byte*>(memory), bytes);
}

void SharedMemory::forget(size_t offset, size_t bytes) const {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
    // A system that cannot do it keeps the memory.
    if (begin < end)
        static_cast<void>(::fallocate(m_descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      static_cast<off_t>(begin), static_cast<off_t>(end - begin)));
}

Result<SharedMemory> SharedMemory::duplicate() const {
    const int descriptor = ::fcntl(m_descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (descriptor < 0) return systemError(m_what, 0);
    return SharedMemory(descriptor, m_what);
}

Result<std::span<std::byte>> SharedMemory::share(size_t bytes, std::shared_ptr<const void>& owner) const {
    struct stat facts {};
    if (::fstat(m_descriptor, &facts) != 0 ||
        (static_cast<size_t>(facts.st_size) < bytes && ::ftruncate(m_descriptor, static_cast<off_t>(bytes)) != 0))
        return systemError(m_what, bytes);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m_descriptor, 0);
    if (memory == MAP_FAILED) return systemError(m_what, bytes);
    owner = std::shared_ptr<const void>(memory,
                                        [bytes](const void* mapped) { ::munmap(const_cast<void*>(mapped), bytes); });
    return std::span(static_cast<std::byte*>(memory), bytes);
}

Result<void> writeMessage(SharedMemory& memory, size_t offset, std::string_view text,
                          const std::vector<Tensor>& tensors, int threads, const Progress& progress) {
    const Blocks layout(tensors);
    ByteWriter head;
    head.text(text);
    head.count(layout.blocks.size());
    for (const Block& block : layout.blocks) {
        head.pod(block.at);
        head.pod(block.end - block.begin);
    }
    head.count(tensors.size());
    for (const Tensor& tensor : tensors) {
        head.pod(tensor.defined());
        if (!tensor.defined()) continue;
        const size_t number = layout.of.at(tensor.storage().get());
        head.pod(static_cast<uint64_t>(number));
        head.pod(tensor.dtype());
        head.pod(tensor.device());
        head.dims(tensor.sizes());
        head.dims(tensor.strides());
        head.pod(tensor.offset() - static_cast<int64_t>(layout.blocks[number].begin) / byteSize(tensor.dtype()));
    }
    ByteWriter start;
    start.pod(kMagic);
    start.count(head.bytes.size());
    const size_t data = aligned(offset + start.bytes.size() + head.bytes.size(), kPage);
    CT_TRY_VOID(memory.write(offset, start.bytes + head.bytes));
    return writeBlocks(memory, data, layout.blocks, threads, progress);
}

Result<Message> readMessage(const SharedMemory& memory, size_t offset) {
    const Error damaged{ErrorCode::ToolFailed,
                        "what the worker and its program tell each other is damaged",
                        {},
                        {"both must be of one version"}};
    std::shared_ptr<const void> owner;
    CT_TRY(const std::span<std::byte> all, memory.map(owner));
    const std::string_view bytes(reinterpret_cast<const char*>(all.data()), all.size());
    if (bytes.size() < offset) return damaged;
    ByteReader start(bytes.substr(offset));
    constexpr size_t kStart = 2 * sizeof(uint64_t);
    if (start.pod<uint64_t>() != kMagic) return damaged;
    const size_t size = start.count();
    if (start.failed() || size > bytes.size() - offset - kStart) return damaged;
    ByteReader in(bytes.substr(offset + kStart, size));
    const size_t data = aligned(offset + kStart + size, kPage);

    Message message;
    message.bytes = all;
    message.text = in.text();
    std::vector<std::shared_ptr<Storage>> storages;
    in.each([&] {
        const auto at = in.pod<size_t>(), length = in.pod<size_t>();
        if (length > 0 && (at > bytes.size() || data + at > bytes.size() || length > bytes.size() - data - at))
            return in.fail();
        storages.push_back(Storage::view(all.data() + (length > 0 ? data + at : 0), length, owner));
    });
    in.each([&] {
        if (!in.pod<bool>()) {
            message.tensors.emplace_back();
            return;
        }
        const auto number = in.pod<uint64_t>();
        const auto dtype = in.pod<DType>();
        const auto device = in.pod<Device>();
        Dims sizes = in.dims(), strides = in.dims();
        const auto first = in.pod<int64_t>();
        if (number >= storages.size() || sizes.size() != strides.size()) return in.fail();
        message.tensors.emplace_back(storages[number], dtype, std::move(sizes), std::move(strides), first, device);
    });
    if (in.failed()) return damaged;
    return message;
}

int64_t bytesOf(const std::vector<Tensor>& tensors) { return static_cast<int64_t>(Blocks(tensors).bytes); }

}  // namespace cutaway
